// A visit to the console in a real browser, against a server that only pretends.

import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { openBrowser } from './browser.mjs';
import { startMock } from './mock.mjs';
import { patient, until, within } from './waits.mjs';

/** @type {import('playwright-core').Browser} each file of tests has one of its own */
export let browser;
before(async () => { browser = await openBrowser(); });
after(() => within(browser?.close(), () => 'the browser is closed'));
/**
 * Opens the console, and fails the test if the page breaks its own rules. With `still`, time stands still for the page,
 * and goes on only as far as the test says.
 */
export async function visit(t, { mock = {}, hash = '#/sessions', auto = true, context = {}, expectErrors = false, still = false } = {}) {
  const server = mock.state && mock.stop ? mock : await startMock(mock);
  const opened = await browser.newContext({ viewport: { width: 1400, height: 900 }, reducedMotion: 'reduce', ...context });
  const page = await opened.newPage();
  await patient(page);
  if (still) {
    await page.clock.install({ time: Date.now() });
    // A little later, because it goes on while this is said.
    await page.clock.pauseAt(Date.now() + 10_000);
  }
  const problems = [];
  const sent = [];
  page.on('request', (request) => { if (request.method() === 'POST') sent.push(new URL(request.url()).pathname); });
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    const words = message.text();
    if (/Content Security Policy|TypeError|ReferenceError/.test(words) || (message.type() === 'error' && !expectErrors && !/WebSocket|Failed to load resource/.test(words))) problems.push(words);
  });
  if (!auto) await page.addInitScript(() => localStorage.setItem('amplifier.open-questions', 'no'));
  await page.goto(`${server.url}enter?code=any${hash}`);
  t.after(async () => {
    await within(opened.close(), () => 'the page is closed');
    await server.stop().catch(() => {});
    assert.deepEqual(problems, []);
  });
  if (still) await until(() => soon(page, page.getByText('Live', { exact: true }), 500), () => 'the page is live');
  return { page, mock: server, sent };
}

/** Lets a little time go by on a page where it stands still, and says whether something is to be seen then. */
export async function soon(page, locator, ms = 50) {
  await page.clock.runFor(ms);
  return locator.isVisible();
}

export const dialog = (page) => page.getByRole('dialog');
export const answered = async (mock, n) => {
  await until(() => mock.state.answers.length >= n, () => `${n} answers: ${JSON.stringify(mock.state.answers)}`);
  assert.equal(mock.state.answers.length, n);
};

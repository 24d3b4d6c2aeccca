// How tests wait: for what they want to see, never for a while, and never for ever. A busy machine takes its time.

import assert from 'node:assert/strict';
import { test as plainTest } from 'node:test';

/** Longer than anything takes; whoever waits for it has failed. */
export const LIMIT = 90_000;

/** A test that fails, rather than wait for something that has no limit of its own. */
export const test = (name, run) => plainTest(name, { timeout: 5 * LIMIT }, run);

/** What the page or a process says, which it may never do: neither has a limit of its own. */
export async function within(said, what) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`this took too long: ${what()}`)), LIMIT); });
  try {
    return await Promise.race([said, late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Makes a page as patient as the tests, and as slow as SLOW says (`SLOW=4 node --test` has a processor of a quarter of the speed).
 * @param {import('playwright-core').Page} page
 */
export async function patient(page) {
  page.setDefaultTimeout(LIMIT);
  if (!process.env.SLOW) return;
  const session = await page.context().newCDPSession(page);
  await session.send('Emulation.setCPUThrottlingRate', { rate: Number(process.env.SLOW) });
}

/** Waits until something holds, and gives it. */
export async function until(holds, what) {
  const end = Date.now() + LIMIT;
  while (Date.now() < end) {
    const value = await within(holds(), what);
    if (value) return value;
    await new Promise((resolve) => setTimeout(resolve, 40));
  }
  throw new Error(`this did not come true: ${what()}`);
}

/** Waits until a part of the page reads so. */
export async function reads(locator, pattern) {
  let text = '';
  await until(async () => pattern.test(text = await locator.innerText()), () => `${pattern} in ${text.slice(0, 2_000)}`);
}

/** Waits until the question takes answers. */
export const settled = (page) => page.locator('#question .option[aria-disabled="false"]').first().waitFor();

/** Waits until what the page was about to draw is drawn. */
export const drawn = (page) => within(page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))), () => 'the page is drawn');

/** Makes the window as tall as the page: what is out of sight is not drawn, and what a bar covers only for now is no fault. */
export async function tall(page) {
  await drawn(page);
  const { width, height } = page.viewportSize();
  const all = await within(page.evaluate(() => document.documentElement.scrollHeight), () => 'the page says how tall it is');
  await page.setViewportSize({ width, height: Math.max(height, all + 40) });
  await drawn(page);
}

/** Waits until the page has changed that many times. */
export const changes = (page, times) => within(page.evaluate((most) => new Promise((resolve) => {
  let left = most;
  const seen = new MutationObserver(() => {
    left -= 1;
    if (left > 0) return;
    seen.disconnect();
    resolve(undefined);
  });
  seen.observe(document.body, { subtree: true, childList: true, characterData: true });
}), times), () => `${times} changes of the page`);

/** Opens what is folded, and waits for what it is filled with. */
export async function unfold(details) {
  await details.locator('summary').first().click();
  await details.locator('.parts').waitFor();
}

/**
 * Makes sure that the page has sent no answer. What it has begun to send is known at once; what it does after the last key is seen by asking
 * it something.
 */
export async function nothingSent(page, sent) {
  await within(page.evaluate(() => fetch('/health').then((response) => response.text())), () => 'the page has sent what it was about to');
  assert.deepEqual(sent.filter((one) => one.endsWith('/answer')), []);
}

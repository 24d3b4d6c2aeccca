// The console in a real browser, against a server that only pretends. What is checked is what a person sees and does.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openBrowser } from './browser.mjs';
import { KEY, startMock } from './mock.mjs';
import { BROKEN, HOSTILE, HOSTILE_LONG, nothing, question } from './story.mjs';
import { changes, drawn, nothingSent, patient, reads, settled, unfold, until } from './waits.mjs';

const CONSOLE = new URL('../../src/console/', import.meta.url);
/** @type {import('playwright-core').Browser} */
let browser;
before(async () => { browser = await openBrowser(); });
after(async () => { await browser?.close(); });

/**
 * Opens the console, and fails the test if the page breaks its own rules. With `still`, time stands still for the page,
 * and goes on only as far as the test says.
 */
async function visit(t, { mock = {}, hash = '#/sessions', auto = true, context = {}, expectErrors = false, still = false } = {}) {
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
  await page.addInitScript((key) => localStorage.setItem('amplifier.key', key), KEY);
  await page.goto(server.url + hash);
  t.after(async () => {
    await opened.close();
    await server.stop().catch(() => {});
    assert.deepEqual(problems, []);
  });
  if (still) await until(() => soon(page, page.getByText('Live', { exact: true }), 500), () => 'the page is live');
  return { page, mock: server, sent };
}

/** Lets a little time go by on a page where it stands still, and says whether something is to be seen then. */
async function soon(page, locator, ms = 50) {
  await page.clock.runFor(ms);
  return locator.isVisible();
}

const dialog = (page) => page.getByRole('dialog');
const answered = async (mock, n) => {
  await until(() => mock.state.answers.length >= n, () => `${n} answers: ${JSON.stringify(mock.state.answers)}`);
  assert.equal(mock.state.answers.length, n);
};

describe('questions', () => {
  test('a question opens by itself, is told in full, and is answered by a number key', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 0 } });
    await page.getByRole('heading', { name: 'Sessions' }).waitFor();
    const asked = question(7);
    mock.ask(asked);
    await dialog(page).waitFor();
    await page.getByRole('heading', { name: 'Allow write to config/production.toml?' }).waitFor();
    const told = await dialog(page).innerText();
    for (const part of ['production-guard', asked.reason, 'edit_file', 'requests_a_minute = 6000', 'The file is outside of the folders', asked.digest, '/home/ada/work/harbour', 'then it is denied']) assert.ok(told.includes(part), `${part} in ${told}`);
    assert.equal(await page.title(), '(1) Sessions · Amplifier');
    assert.match(await page.locator('#favicon').getAttribute('href'), /^data:image\/svg/);
    await settled(page);
    await page.keyboard.press('1');
    await answered(mock, 1);
    assert.deepEqual(mock.state.answers, [{ id: asked.id, option: 'Allow once', nonce: asked.nonce }]);
    await dialog(page).waitFor({ state: 'hidden' });
    await page.waitForFunction(() => document.title === 'Sessions · Amplifier');
    assert.equal(await page.locator('#favicon').getAttribute('href'), '/console/favicon.svg');
  });

  test('a button answers as the key does', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 1 } });
    await dialog(page).waitFor();
    await settled(page);
    await dialog(page).getByRole('button', { name: /^Deny/ }).click();
    await answered(mock, 1);
    assert.equal(mock.state.answers[0].option, 'Deny');
  });

  test('keys and clicks before the dialog has settled answer nothing, and typing makes it wait longer', async (t) => {
    const { page, mock, sent } = await visit(t, { mock: { open: 0 }, still: true });
    mock.ask(question(7));
    await dialog(page).waitFor();
    for (let i = 0; i < 12; i += 1) {
      await page.keyboard.press('1');
      await page.clock.runFor(90);
    }
    // Forced: the browser driver would wait until the button says that it works.
    await dialog(page).getByRole('button', { name: /^Allow once/ }).click({ force: true });
    await nothingSent(page, sent);
    await page.clock.runFor(400);
    assert.equal(await page.locator('.option').first().getAttribute('aria-disabled'), 'true');
    await page.clock.runFor(400);
    await settled(page);
    await page.keyboard.press('3');
    await answered(mock, 1);
  });

  test('another question under the same id is shown anew, and nothing of the one before can be sent', async (t) => {
    const { page, mock, sent } = await visit(t, { mock: { open: 0 }, still: true });
    const first = question(7);
    mock.ask(first);
    await dialog(page).waitFor();
    await page.clock.runFor(1_000);
    await settled(page);
    const other = question(7, { prompt: 'Allow rm -rf /srv?', digest: 'sha256:other', nonce: 'other' });
    mock.state.approvals = [other];
    mock.say({ type: 'asked', approval: other });
    await page.getByRole('heading', { name: 'Allow rm -rf /srv?' }).waitFor();
    await page.keyboard.press('1');
    await dialog(page).getByRole('button', { name: /^Allow once/ }).click({ force: true });
    await nothingSent(page, sent);
    await page.clock.runFor(1_000);
    await settled(page);
    await page.keyboard.press('3');
    await answered(mock, 1);
    assert.equal(mock.state.answers[0].nonce, 'other');
  });

  test('a rule for the project is offered only where an answer that lasts is', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 0 } });
    await page.getByRole('heading', { name: 'Sessions' }).waitFor();
    const asked = question(7);
    mock.ask({ ...asked, options: asked.options.filter((one) => one.effect !== 'allow_always'), action: { ...asked.action, about: 'a new file' } });
    await dialog(page).waitFor();
    await dialog(page).getByRole('button', { name: /^Allow once/ }).waitFor();
    assert.equal(await dialog(page).getByRole('button', { name: /for this project/ }).count(), 0);
    assert.ok((await dialog(page).innerText()).includes('a new file'));
  });

  test('a question that is cut in the list is read in full before it can be answered', async (t) => {
    const { page, mock, sent } = await visit(t, { mock: { open: 0 }, still: true });
    const whole = question(7);
    let isReadable = false;
    await page.route('**/api/approvals/s-harbour.7', async (route) => {
      while (!isReadable) await new Promise((resolve) => setTimeout(resolve, 20));
      await route.fulfill({ json: whole });
    });
    mock.ask({ ...whole, cut: true, action: { ...whole.action, body: [] } });
    await dialog(page).waitFor();
    await page.clock.runFor(1_000);
    await page.keyboard.press('1');
    await nothingSent(page, sent);
    isReadable = true;
    await dialog(page).getByText('requests_a_minute = 6000').waitFor();
    await page.clock.runFor(1_000);
    await settled(page);
    await page.keyboard.press('1');
    await answered(mock, 1);
  });

  test('Escape closes and answers nothing; the question stays open and can be opened again', async (t) => {
    const { page, sent } = await visit(t, { mock: { open: 1 } });
    await dialog(page).waitFor();
    await settled(page);
    await page.keyboard.press('Escape');
    await dialog(page).waitFor({ state: 'hidden' });
    await nothingSent(page, sent);
    assert.match(await page.title(), /^\(1\)/);
    await page.locator('#bar-asks').focus();
    await page.keyboard.press('Enter');
    await dialog(page).waitFor();
    await nothingSent(page, sent);
  });

  test('the focus begins on the question, goes round inside the dialog, and Enter on the question answers nothing', async (t) => {
    const { page, sent } = await visit(t, { mock: { open: 2 } });
    await dialog(page).waitFor();
    await settled(page);
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'question-title');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Space');
    const seen = [];
    for (let i = 0; i < 24; i += 1) {
      await page.keyboard.press('Tab');
      seen.push(await page.evaluate(() => { const at = document.activeElement; return at?.closest('#question') ? at.id || at.className || at.tagName : 'OUTSIDE'; }));
    }
    assert.ok(!seen.includes('OUTSIDE'), seen.join(', '));
    const first = seen.slice(0, seen.indexOf(seen[0], 1));
    assert.ok(first.includes('diff') && first.some((one) => one.includes('option allow')) && first.includes('question-close'), first.join(', '));
    await nothingSent(page, sent);
  });

  test('several questions: which of how many, forwards and back, and each one settles anew', async (t) => {
    const { page, mock, sent } = await visit(t, { mock: { open: 2 }, still: true });
    await dialog(page).waitFor();
    await reads(page.locator('#question-place'), /^Question 1 of 2$/);
    await page.clock.runFor(1_000);
    await page.keyboard.press('ArrowRight');
    await reads(page.locator('#question-place'), /^Question 2 of 2$/);
    await page.keyboard.press('1');
    await nothingSent(page, sent);
    await page.clock.runFor(1_000);
    await page.keyboard.press('1');
    await answered(mock, 1);
    // The other one comes up, and is not answered by the same key press.
    await reads(page.locator('#question-place'), /^One question$/);
    sent.length = 0;
    await page.keyboard.press('1');
    await nothingSent(page, sent);
    assert.equal(mock.state.answers.length, 1);
  });

  test('who was faster is said, and the dialog does not go on to the next question by itself', async (t) => {
    const { page, mock, sent } = await visit(t, { mock: { open: 2 } });
    await dialog(page).waitFor();
    await settled(page);
    mock.decide('s-harbour.8', true, { by: { name: 'grace', via: 'terminal' } });
    await reads(page.locator('.outcome'), /Allowed\s*Answered by grace in the terminal/);
    await page.keyboard.press('1');
    await nothingSent(page, sent);
    await page.getByRole('button', { name: 'Next question' }).click();
    await page.getByRole('heading', { name: 'Allow write to config/production.toml?' }).waitFor();
  });

  test('a late answer is refused, and that is shown', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 1 }, expectErrors: true });
    await dialog(page).waitFor();
    await settled(page);
    mock.state.refuseNext = { status: 409, code: 'late', message: 'the time limit was over; it was denied by default' };
    await page.keyboard.press('1');
    await reads(dialog(page).getByRole('alert'), /Too late: the time limit was over/);
  });

  test('two browsers race: one wins, the other is told by whom', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 1 } });
    const { page: other } = await visit(t, { mock });
    await dialog(page).waitFor();
    await dialog(other).waitFor();
    await settled(page);
    await page.keyboard.press('3');
    await reads(other.locator('.outcome'), /Denied\s*Answered by ada in the console/);
    assert.equal(mock.state.answers.length, 1);
  });

  test('the countdown runs, says what happens at zero, and then nothing can be answered any more', async (t) => {
    const { page, mock, sent } = await visit(t, { mock: { open: 0 }, still: true });
    const now = await page.evaluate(async () => (await import('/console/format.js')).serverNow());
    mock.ask(question(7, { asked_at: new Date(now).toISOString(), deadline: new Date(now + 3_000).toISOString(), timeout_s: 3 }));
    await dialog(page).waitFor();
    const left = page.locator('.left');
    const arc = () => page.locator('.ring .arc').getAttribute('stroke-dashoffset').then(Number);
    await reads(left, /^0:03\s*then it is denied$/);
    const before = await arc();
    await page.clock.runFor(2_000);
    await reads(left, /^0:01\s*then it is denied$/);
    assert.ok((await arc()) > before);
    await page.clock.runFor(1_000);
    await reads(left, /^0:00\s*time is up: denied$/);
    await page.keyboard.press('1');
    await nothingSent(page, sent);
    mock.decide('s-harbour.7', false, { basis: 'timeout' });
    await reads(page.locator('.outcome'), /nobody answered in time/);
  });

  test('"for this project" goes with its scope, and is not offered where the question has a star', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 1 } });
    await dialog(page).waitFor();
    await settled(page);
    await page.keyboard.press('4');
    await answered(mock, 1);
    assert.equal(mock.state.answers[0].scope, 'project');
    assert.equal(mock.state.answers[0].option, 'Allow always');
    mock.ask(question(9, { prompt: 'Allow rm *?' }));
    await dialog(page).getByRole('heading', { name: 'Allow rm *?' }).waitFor();
    assert.equal(await dialog(page).locator('.option').count(), 3);
  });

  test('a viewer sees the question, and has nothing to answer it with', async (t) => {
    const { page, mock, sent } = await visit(t, { mock: { open: 1, role: 'viewer' }, still: true });
    await dialog(page).waitFor();
    assert.equal(await dialog(page).locator('.option').count(), 0);
    await dialog(page).getByText('your role is viewer').waitFor();
    await page.clock.runFor(1_000);
    await page.keyboard.press('1');
    await nothingSent(page, sent);
    await page.keyboard.press('Escape');
    await page.clock.resume();
    assert.equal(await page.getByRole('button', { name: 'New session' }).count(), 0);
    await page.goto(`${mock.url}#/sessions/s-harbour`);
    await page.locator('.entry').first().waitFor();
    for (const name of ['Interrupt', 'End', 'Send']) assert.equal(await page.getByRole('button', { name, exact: true }).count(), 0, name);
  });

  test('changed lines have numbers and signs, and are named for a screen reader', async (t) => {
    const { page } = await visit(t, { mock: { open: 1 } });
    await dialog(page).waitFor();
    const rows = await page.locator('.diff tr').evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
    assert.deepEqual(rows[2], ['13', '', '−removed: ', 'workers = 4']);
    assert.deepEqual(rows[4], ['', '13', '+added: ', 'workers = 16']);
    assert.match(await page.locator('.changed').innerText(), /\+4 −3/);
  });

  test('all of the action can be reached, however small the screen', async (t) => {
    for (const viewport of [{ width: 1400, height: 500 }, { width: 390, height: 600 }]) {
      const { page } = await visit(t, { mock: { open: 1 }, context: { viewport } });
      await dialog(page).waitFor();
      for (const last of [page.locator('.diff tr').last(), page.locator('.fields dd').last(), page.locator('.digest')]) {
        await last.scrollIntoViewIfNeeded();
        const [inside, top] = await last.evaluate((node) => {
          const box = node.getBoundingClientRect();
          const at = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
          return [node.contains(at) || at?.contains(node), box.height];
        });
        assert.ok(inside && top > 0, `${viewport.width}: ${await last.innerText()} is seen`);
      }
      const cut = await page.locator('.action').evaluate((node) => node.scrollHeight - node.clientHeight);
      assert.ok(cut <= 1, `${cut} pixels of the action are cut off`);
    }
  });

  test('too many questions: the page says so and offers a rule to look at, never a yes to all', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 2 }, auto: false });
    mock.setBusy({ asked: 14, seconds: 60, hook: 'shell-guard', pattern: 'Run this command on the staging host?' });
    await page.getByText('has asked 14 times in 60 seconds').waitFor();
    assert.equal(await page.getByRole('button', { name: /all/i }).filter({ hasText: /allow|yes|approve/i }).count(), 0);
    await page.getByRole('button', { name: 'Look at a rule…' }).click();
    assert.equal(await page.getByLabel('Questions of the hook').inputValue(), 'shell-guard');
    await page.getByText('1 of the questions that are open now are of this kind').waitFor();
    assert.equal(await page.getByLabel('What happens').inputValue(), 'deny');
    await page.getByRole('button', { name: 'Make the rule' }).click();
    await page.getByText('The rule holds from now on.').waitFor();
    assert.deepEqual({ ...mock.state.rules.at(-1), id: '', by: null, explanation: '' }, { id: '', scope: 'project', project: '/home/ada/work/harbour', hook: 'shell-guard', pattern: 'Run this command on the staging host?', decision: 'deny', by: null, explanation: '' });
    assert.equal(mock.state.approvals.length, 2);
  });

  test('a notification is asked for by a click, comes when nobody looks, and opens its question', async (t) => {
    const mock = await startMock({ open: 0 });
    const { page } = await visit(t, { mock, hash: '#/approvals', auto: false });
    await page.context().grantPermissions(['notifications'], { origin: new URL(mock.url).origin });
    // The browser's own notifications, which are kept to be looked at.
    await page.evaluate(() => {
      globalThis.notes = [];
      globalThis.Notification = class extends Notification {
        constructor(title, options) {
          super(title, options);
          const note = { it: this, heard: [] };
          for (const name of ['show', 'error', 'close']) this.addEventListener(name, () => note.heard.push(name));
          globalThis.notes.push(note);
        }
      };
    });
    const notes = () => page.evaluate(() => globalThis.notes.map(({ it, heard }) => [it.title, it.body, it.tag, ...heard]));
    const come = (wanted) => until(async () => JSON.stringify(await notes()) === JSON.stringify(wanted), () => `notifications ${JSON.stringify(wanted)}`);
    // Who looks at the page needs none, and who did not ask for any gets none.
    mock.ask(question(5));
    await page.locator('.question-card').waitFor();
    await page.getByRole('button', { name: 'Notify me' }).click();
    await page.getByRole('button', { name: 'Notifications are on' }).waitFor();
    mock.ask(question(6));
    await page.locator('.question-card').nth(1).waitFor();
    assert.deepEqual(await notes(), []);
    // A headless browser has no window to hide.
    await page.evaluate(() => Object.defineProperty(document, 'hidden', { get: () => true }));
    const first = ['production-guard asks', 'AllowU+202E this?', 's-harbour.7'];
    const second = ['shell-guard asks', 'Allow that?', 's-harbour.8'];
    mock.ask(question(7, { prompt: 'Allow\u202E this?' }));
    mock.ask(question(8, { hook: 'shell-guard', prompt: 'Allow that?' }));
    await come([[...first, 'show'], [...second, 'show']]);
    mock.decide('s-harbour.7', true);
    await come([[...first, 'show', 'close'], [...second, 'show']]);
    // Nobody can click on what a headless browser shows.
    await page.evaluate(() => globalThis.notes[1].it.dispatchEvent(new Event('click')));
    await dialog(page).getByRole('heading', { name: 'Allow that?' }).waitFor();
    await come([[...first, 'show', 'close'], [...second, 'show', 'close']]);
  });
});

describe('sessions', () => {
  test('those that wait come first, then the newest; states are words; search and filter find', async (t) => {
    const { page } = await visit(t, { auto: false });
    await page.locator('.session').first().waitFor();
    assert.deepEqual(await page.locator('.session .state').allInnerTexts(), ['Waiting for you', 'Running', 'Idle', 'Running', 'Ended', 'Gone']);
    await page.getByLabel('Search sessions').fill('tuesday');
    await page.waitForFunction(() => document.querySelectorAll('.session').length === 1);
    await page.getByLabel('Search sessions').fill('');
    await page.getByRole('button', { name: /^Gone/ }).click();
    await page.waitForFunction(() => document.querySelectorAll('.session').length === 1 && document.querySelector('.session')?.textContent?.includes('Nightly dependency check'));
  });

  test('a session is watched live, follows its end, and does not once somebody has scrolled up', async (t) => {
    const { page, mock } = await visit(t, { hash: '#/sessions/s-berths', auto: false });
    await page.getByRole('heading', { name: /Berth planner/ }).waitFor();
    for (let n = 0; n < 40; n += 1) mock.add('s-berths', { turn: 8, event: 'tool:pre', data: { tool_name: 'bash', tool_input: { command: `step ${n}` }, tool_call_id: `c${n}` }, hooks: [{ hook: 'secrets-guard', answer: 'continue', took_ns: 12_345 }] });
    await page.getByText('step 39').waitFor();
    const gap = () => page.evaluate(() => document.scrollingElement.scrollHeight - document.scrollingElement.scrollTop - document.scrollingElement.clientHeight);
    await until(async () => (await gap()) < 90, () => 'the end is in sight');
    await reads(page.locator('.hook-chip').last(), /secrets-guard\s*lets it pass\s*12 µs/);
    await page.evaluate(() => new Promise((resolve) => {
      addEventListener('scroll', resolve, { once: true });
      window.scrollTo(0, 0);
    }));
    await drawn(page);
    mock.add('s-berths', { turn: 8, event: 'tool:post', data: { tool_name: 'bash', tool_input: {}, tool_result: 'done', success: true, duration_ms: 250, tool_call_id: 'c39' } });
    mock.add('s-berths', { turn: 8, event: 'tool:pre', data: { tool_name: 'bash', tool_input: { command: 'after' }, tool_call_id: 'after' } });
    await page.getByRole('button', { name: '1 new' }).waitFor();
    assert.equal(await page.evaluate(() => document.scrollingElement.scrollTop), 0);
    await page.getByRole('button', { name: '1 new' }).click();
    await until(async () => (await gap()) < 90, () => 'the end is in sight again');
    // What ends a call is told with the call, not as one more entry.
    assert.equal(await page.locator('.entry.tool').count(), 41);
    await reads(page.locator('.entry.tool').nth(39), /250 ms/);
    assert.ok(mock.state.watches.some((one) => one.session === 's-berths'));
  });

  test('the timeline tells denials, hooks, injections where they landed, and who approved from where', async (t) => {
    const { page } = await visit(t, { hash: '#/sessions/s-harbour', auto: false });
    await reads(page.locator('.entry.denied'), /Denied by secrets-guard: The command sends what looks like a key/);
    await reads(page.locator('.approval-line').first(), /Allowed\s*Run `cargo test --workspace`\?\s*grace in the terminal after 6\.4 s/);
    await reads(page.locator('.injection-line').last(), /rustfmt\s*told the agent something, at the end of the tool's result/);
    await reads(page.locator('.message-line'), /80 % of its budget/);
    const entry = page.locator('.entry.tool').filter({ hasText: 'grep' }).first();
    await unfold(entry.locator('.more-of-it'));
    await reads(entry, /Input[\s\S]*pattern[\s\S]*Output/);
    await page.getByText('Waits for an answer').waitFor();
  });

  test('what is there when a session is opened is not called new, and a session that is not there is said to be unknown', async (t) => {
    const { page, mock } = await visit(t, { hash: '#/sessions/s-docs', auto: false });
    await page.getByText('Session ended').waitFor();
    await drawn(page);
    assert.equal(await page.locator('.jump').isVisible(), false);
    await page.goto(`${mock.url}#/sessions/none`);
    await page.getByRole('alert').filter({ hasText: 'there is no session `none`' }).waitFor();
    assert.equal(await page.getByLabel('Show in the timeline').isVisible(), false);
  });

  test('who comes first is told what to run, and nothing is said to be verified', async (t) => {
    const { page, mock } = await visit(t, { mock: { state: nothing() } });
    await reads(page.locator('.empty'), /No session yet[\s\S]*amplifier chat --serve[\s\S]*shows up here/);
    await reads(page.locator('#proven'), /^Nothing recorded yet$/);
    for (const [hash, words] of [['#/approvals', 'No question is open.'], ['#/approvals/history', 'Nothing was decided yet.'], ['#/approvals/rules', 'There are no rules.'], ['#/hooks', 'No hook was called yet.'], ['#/audit', 'Nothing is recorded yet']]) {
      await page.goto(mock.url + hash);
      await page.locator('main').getByText(words).waitFor();
      assert.equal(await page.locator('main table').filter({ visible: true }).count(), 0, hash);
    }
  });

  test('thousands of entries stay quick', async (t) => {
    // How quick the machine is right now is seen by a session of a hundred entries.
    const opened = async (entries) => {
      const mock = await startMock({ open: 0 });
      for (let n = 0; n < entries; n += 1) mock.state.add('s-berths', { turn: 8 + Math.floor(n / 100), event: 'tool:pre', data: { tool_name: 'bash', tool_input: { command: `step ${n}` }, tool_call_id: `c${n}` }, hooks: [{ hook: 'a', answer: 'continue', took_ns: 1 }] });
      const began = Date.now();
      const { page } = await visit(t, { mock, hash: '#/sessions/s-berths' });
      await page.getByText(`step ${entries - 1}`, { exact: true }).waitFor();
      const took = Date.now() - began;
      const frame = await page.evaluate(async () => {
        const frames = [];
        let last = performance.now();
        for (let n = 0; n < 31; n += 1) {
          await new Promise(requestAnimationFrame);
          window.scrollBy(0, n % 2 ? 400 : -400);
          frames.push(performance.now() - last);
          last = performance.now();
        }
        return frames.sort((a, b) => a - b)[15];
      });
      return { page, took, frame };
    };
    const few = await opened(100);
    const { page, took, frame } = await opened(6_000);
    assert.ok(took < 20 * few.took + 5_000, `${took} ms, beside ${few.took} ms for few`);
    assert.ok(frame < 8 * few.frame + 100, `half of the frames take longer than ${frame} ms, beside ${few.frame} ms with few`);
    const nodes = await page.locator('.entry').count();
    assert.ok(nodes <= 1_800, `${nodes} entries on the page`);
    await page.getByRole('button', { name: 'Show earlier entries' }).click();
    await page.getByText('step 3100', { exact: true }).waitFor();
  });

  test('what changes all the time can still be clicked', async (t) => {
    const { page, mock } = await visit(t, { auto: false });
    await page.locator('.session').first().waitFor();
    const session = mock.state.sessions.find((one) => one.id === 's-berths');
    const timer = setInterval(() => mock.say({ type: 'session', session: { ...session, tool_calls: (session.tool_calls += 1), last_at: new Date().toISOString() } }), 10);
    t.after(() => clearInterval(timer));
    const press = async (locator) => {
      const box = await locator.boundingBox();
      await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
      await page.mouse.down();
      await changes(page, 4);
      await page.mouse.up();
    };
    await press(page.locator('.session a').filter({ hasText: 'Berth planner' }));
    await page.getByRole('heading', { name: /Berth planner/ }).waitFor();
    await press(page.getByRole('button', { name: 'Interrupt' }));
    await page.getByText('Once more stops it at once').waitFor();
    await press(page.locator('#bar-asks'));
    await dialog(page).waitFor();
  });

  test('a prompt, an interrupt and an end are sent to the session', async (t) => {
    const { page, mock } = await visit(t, { hash: '#/sessions/s-idle', auto: false });
    await page.getByLabel('Prompt').fill('Shorter still.');
    await page.keyboard.press('Enter');
    await page.getByText('Shorter still.').waitFor();
    await page.getByRole('button', { name: 'End', exact: true }).click();
    await page.getByRole('button', { name: 'End session' }).click();
    await page.getByText('The session is told to end.').waitFor();
    await page.goto(`${mock.url}#/sessions/s-harbour`);
    await page.getByRole('button', { name: 'Interrupt' }).click();
    await page.getByText('Once more stops it at once').waitFor();
    assert.deepEqual(mock.state.commands.map((one) => one.what), ['prompt', 'end', 'interrupt']);
  });
});

describe('hostile text', () => {
  test('markup stays text, hidden characters are marks, long text is cut; nothing runs', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 0 }, hash: '#/sessions/s-odd' });
    const prompt = page.locator('.prompt-text');
    await prompt.waitFor();
    const text = await prompt.innerText();
    assert.ok(text.includes('<script>globalThis.hacked = 1</script>'), 'markup is text');
    for (const mark of ['U+001B', 'U+202E', 'U+200B×3', 'U+2066', 'U+FEFF', 'U+0007', 'U+000D', 'U+E0041', 'U+00AD']) assert.ok(text.includes(mark), mark);
    assert.ok(text.length < 3_000);
    const raw = await page.evaluate(() => /[\u001b\u202a-\u202e\u2066-\u2069\u200b\u00ad\ufeff\u0007\u{e0041}]/u.test(document.body.textContent ?? ''));
    assert.equal(raw, false, 'no such character is left anywhere on the page');
    await prompt.getByRole('button', { name: /show all/ }).click();
    await page.waitForFunction((n) => document.querySelector('.prompt-text')?.textContent?.endsWith('xxxx') && document.querySelectorAll('.prompt-text .mark').length > n, 19_000);
    for (const [hash, there] of [['#/sessions', '.session'], ['#/approvals/history', 'tbody tr'], ['#/audit', 'tbody tr'], ['#/hooks/broken-hook', 'tbody tr']]) {
      await page.goto(mock.url + hash);
      await page.locator(there).first().waitFor();
      await drawn(page);
    }
    assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
    assert.equal(await page.locator('main script, main img, main iframe, dialog script, dialog img').count(), 0);
  });

  test('a hostile question is harmless, and its buttons stay in sight', async (t) => {
    for (const viewport of [{ width: 1400, height: 900 }, { width: 390, height: 844 }]) {
      await t.test(`${viewport.width} wide`, async (t) => {
        const { page, mock } = await visit(t, { mock: { open: 0 }, context: { viewport } });
        await page.getByRole('heading', { name: 'Sessions' }).waitFor();
        mock.ask(question(7, {
          prompt: HOSTILE_LONG, reason: HOSTILE_LONG, hook: HOSTILE, session_name: HOSTILE, digest: HOSTILE, options: [{ label: 'Allow', effect: 'allow_once' }, { label: HOSTILE, effect: 'deny' }],
          action: { title: HOSTILE, target: HOSTILE, notes: [HOSTILE_LONG], body: Array.from({ length: 3_000 }, (_, n) => ({ kind: 'added', text: n === 0 ? HOSTILE_LONG : HOSTILE, new: n + 1 })), fields: [{ name: HOSTILE, value: HOSTILE_LONG }] },
        }));
        await dialog(page).waitFor();
        await settled(page);
        const button = await page.locator('.option').first().boundingBox();
        assert.ok(button && button.y + button.height <= viewport.height && button.x >= 0 && button.x + button.width <= viewport.width, JSON.stringify(button));
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
        assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
        assert.ok(!/[\u001b\u202e\u200b]/.test(await page.title()));
        await page.keyboard.press('1');
        await answered(mock, 1);
        assert.equal(mock.state.answers[0].option, 'Allow');
      });
    }
  });

  test('emoji and other scripts are left alone', async (t) => {
    const { page } = await visit(t, { mock: { open: 0 } });
    const marks = await page.evaluate(async () => {
      const { shown, plain } = await import('/console/text.js');
      const count = (text) => shown(text).querySelectorAll('.mark').length;
      return [count('👩‍💻 ❤️ 🇫🇷 日本語 العربية שלום\tok\nline'), count('a\u00a0b'), count('x\u200dy'), count('\ud800'), plain('a\u202eb\nc'), shown('👍'.repeat(3), { limit: 3, more: false }).textContent];
    });
    assert.deepEqual(marks, [0, 1, 1, 1, 'aU+202Eb c', '👍…']);
  });
});

describe('hooks, rules and the audit log', () => {
  test('hooks have figures and charts with words, and sort by their columns', async (t) => {
    const { page } = await visit(t, { hash: '#/hooks', auto: false });
    await page.getByRole('link', { name: 'secrets-guard' }).waitFor();
    const names = () => page.locator('tbody th a').allInnerTexts();
    assert.equal((await names())[0], 'redact');
    await page.getByRole('button', { name: 'Denied' }).click();
    assert.equal((await names())[0], 'shell-guard');
    assert.match(await page.locator('.histogram').first().getAttribute('aria-label'), /Time of calls. up to/);
    await page.getByRole('link', { name: 'redact' }).click();
    await page.getByRole('heading', { name: 'redact' }).waitFor();
    await page.getByText('Latest calls').waitFor();
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length > 5);
  });

  test('what was decided says who, from where and after how long; rules are explained and revoked', async (t) => {
    const { page, mock } = await visit(t, { hash: '#/approvals/history', auto: false });
    await page.getByRole('cell', { name: 'grace in the terminal after 6.4 s' }).waitFor();
    await page.getByRole('cell', { name: 'nobody answered in time after 5 min 00 s' }).waitFor();
    await page.getByRole('link', { name: 'Rules' }).click();
    await page.getByText('Until this session ends, the same question is answered with yes.').waitFor();
    await page.locator('.rule-card').nth(1).getByRole('button', { name: 'Revoke' }).click();
    await dialog(page).getByRole('button', { name: 'Revoke' }).click();
    await page.waitForFunction(() => document.querySelectorAll('.rule-card').length === 2);
    assert.deepEqual(mock.state.rules.map((one) => one.id), ['r1', 'r3']);
  });

  test('the log says up to where it is verified, and pages through its records', async (t) => {
    const { page } = await visit(t, { hash: '#/audit', auto: false });
    await page.getByText('Verified up to record 1,284').first().waitFor();
    await page.getByText('What this proves, and what it cannot').click();
    await page.getByText('no checkpoint kept elsewhere covers them yet').waitFor();
    const first = page.locator('main tbody td').first();
    await reads(first, /^1,284$/);
    await page.getByRole('button', { name: 'Older' }).click();
    await reads(first, /^1,234$/);
    await page.getByRole('button', { name: 'Newer' }).click();
    await reads(first, /^1,284$/);
    await page.locator('main tbody a').first().click();
    await page.getByRole('heading', { name: /^Record / }).waitFor();
    await page.getByText('verified', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Show the proof' }).click();
    await page.getByText('checkpoint').first().waitFor();
  });

  test('under a filter, the newest records come first too, and pages go back to the first', async (t) => {
    const { page, mock } = await visit(t, { hash: '#/audit', auto: false });
    const numbers = () => page.locator('main tbody tr:not(.border) td:first-child').allInnerTexts().then((all) => all.map((one) => Number(one.replace(/\D/g, ''))));
    const of = (kind) => mock.state.records.filter((one) => one.kind === kind).map((one) => one.seq).reverse();
    const shows = (wanted) => until(async () => JSON.stringify(await numbers()) === JSON.stringify(wanted), () => `${wanted.length} records from ${wanted[0]}`);
    await page.getByLabel('Kind of record').selectOption('event');
    const events = of('event');
    assert.ok(events.length > 100);
    for (let at = 0; at < events.length; at += 50) {
      await shows(events.slice(at, at + 50));
      if (at + 50 < events.length) await page.getByRole('button', { name: 'Older' }).click();
    }
    assert.equal(await page.getByRole('button', { name: 'Older' }).isDisabled(), true);
    await page.getByRole('button', { name: 'Newest' }).click();
    await shows(events.slice(0, 50));
    // What is rare is far back: the server is asked until it is found.
    await page.getByLabel('Kind of record').selectOption('approval_decision');
    await shows(of('approval_decision'));
    assert.equal(of('approval_decision').length, 7);
    await page.getByText('Verified up to record 1,284').first().waitFor();
    await page.getByLabel('Text').fill('no such text');
    await page.getByText('No record matches.').waitFor();
  });

  test('where the log breaks is seen among the records, also if a filter hides the one that breaks it', async (t) => {
    const mock = await startMock({ open: 0 });
    mock.setAudit(BROKEN);
    const { page } = await visit(t, { mock, hash: '#/audit', auto: false });
    await page.getByLabel('Hook').fill('secrets-guard');
    await page.getByText('Sound up to record 811').first().waitFor();
    const line = page.locator('main tbody tr.border');
    await until(async () => {
      if (await line.count()) return true;
      await page.getByRole('button', { name: 'Older' }).click();
      return false;
    }, () => 'the line is found');
    const around = await line.evaluate((row) => [row.previousElementSibling, row.nextElementSibling].map((one) => Number(one?.querySelector('td')?.textContent?.replace(/\D/g, ''))));
    assert.ok(around[0] > 811 && around[1] <= 811, String(around));
    await reads(line, /Sound up to record 811\. What stands above this line cannot be trusted/);
    assert.equal(await page.locator('main tbody tr.doubtful').count() > 0, true);
  });

  test('bundles are read again, and what came of it is said for each session', async (t) => {
    const { page, mock } = await visit(t, { hash: '#/hooks', auto: false });
    await page.getByRole('button', { name: 'Reload bundles' }).click();
    await page.getByText('3 sessions told to read their bundles again.').first().waitFor();
    mock.state.reloads = [
      { session: 's-berths', result: 'changed' }, { session: 's-harbour', result: 'refused', message: 'bundle.yaml:3: unknown name `tool_nam`' },
      { session: 's-idle', result: 'not_trusted', message: 'run `amplifier hooks trust`' }, { session: 's-odd', result: 'no_answer' },
    ];
    await page.getByRole('button', { name: 'Reload bundles' }).click();
    await page.locator('.results li').first().waitFor();
    const lines = await page.locator('.results li').allInnerTexts();
    for (const [n, pattern] of [/New version\s*Berth planner[\s\S]*in force/, /Refused\s*Move the harbour API[\s\S]*bundle\.yaml:3: unknown name/, /Not trusted\s*Release notes[\s\S]*hooks trust/, /No answer/].entries()) assert.match(lines[n], pattern);
  });

  test('the tests of a bundle are run: that of the server, or one that is written here', async (t) => {
    const { page, mock } = await visit(t, { hash: '#/hooks', auto: false });
    await page.getByRole('button', { name: 'Test…' }).click();
    await dialog(page).getByRole('button', { name: 'Run the tests' }).click();
    await dialog(page).getByText('1 passed, 1 failed.').first().waitFor();
    assert.deepEqual(mock.state.tested, {});
    await reads(dialog(page).locator('.results li').first(), /Passed\s*production is asked about\s*tool:pre\s*84 µs/);
    await reads(dialog(page).locator('.results li').nth(1), /Failed\s*forced pushes are denied[\s\S]*decision\s*deny\s*continue\s*by\s*shell-guard\s*–/);
    await dialog(page).getByLabel('What is tested').selectOption('text');
    const text = dialog(page).getByLabel(/^The bundle/);
    assert.match(await text.inputValue(), /^hooks:[\s\S]*tests:[\s\S]*event: tool:pre/);
    await text.fill('hooks: 7');
    await dialog(page).getByRole('button', { name: 'Run the tests' }).click();
    await dialog(page).getByRole('alert').filter({ hasText: 'expected a list' }).waitFor();
    assert.deepEqual(mock.state.tested, { bundle: 'hooks: 7' });
    await page.keyboard.press('Escape');
    await dialog(page).waitFor({ state: 'hidden' });
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Test…');
  });

  test('an admin lets somebody in with a link, by keyboard alone; others are told who can', async (t) => {
    const { page, mock } = await visit(t, { auto: false, context: { permissions: ['clipboard-read', 'clipboard-write'] } });
    await page.getByRole('button', { name: /ada/ }).focus();
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'link-name');
    await page.keyboard.type('grace');
    await page.keyboard.press('Tab');
    await dialog(page).getByText('They may look at everything, and verify the audit log.').waitFor();
    await page.keyboard.type('approver');
    await dialog(page).getByText(/^They may look at everything, answer questions/).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    const url = await dialog(page).getByLabel('The link').inputValue();
    assert.match(url, /^http:\/\/127\.0\.0\.1:7878\/enter\?code=/);
    assert.deepEqual(mock.state.links, [{ name: 'grace', role: 'approver' }]);
    await dialog(page).getByText('It is not shown again.').waitFor();
    await dialog(page).getByRole('button', { name: 'Copy' }).click();
    await dialog(page).getByText('Copied.').waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), url);
    for (const role of ['viewer', 'approver']) {
      const { page: other } = await visit(t, { auto: false, mock: { role }, hash: '#/hooks' });
      await other.getByRole('button', { name: /ada/ }).click();
      await dialog(other).getByText('Only an admin can let others in').waitFor();
      assert.equal(await dialog(other).getByRole('button', { name: 'Make a link' }).count(), 0);
      await dialog(other).getByRole('button', { name: 'Close' }).click();
      await other.locator('main tbody tr').first().waitFor();
      for (const name of ['Test…', 'Reload bundles']) assert.equal(await other.getByRole('button', { name }).count(), 0, `${role}: ${name}`);
    }
  });

  test('rules that cannot be read are said', async (t) => {
    const mock = await startMock({ open: 0 });
    mock.state.unreadable = [{ file: '/home/ada/.config/amplifier/approvals.json', why: 'line 3: expected a value' }];
    const { page } = await visit(t, { mock, hash: '#/approvals/rules' });
    await reads(page.getByRole('alert'), /Not all rules can be read[\s\S]*approvals\.json: line 3: expected a value/);
    assert.equal(await page.locator('.rule-card').count(), 3);
  });

  test('a broken log is loud everywhere, and says where and what', async (t) => {
    const { page, mock } = await visit(t, { auto: false });
    await page.getByText('Verified up to record').first().waitFor();
    mock.setAudit(BROKEN);
    await page.getByText('The audit log is not as it was written').waitFor();
    await page.locator('#bar-broken').click();
    await page.getByRole('alert').filter({ hasText: 'This log is not as it was written' }).waitFor();
    await page.getByText('the hash does not fit what the record says').waitFor();
    await page.getByText('Sound up to record 811').waitFor();
    await page.getByRole('link', { name: 'Record 812' }).click();
    await page.getByText('This is where the log breaks').waitFor();
  });
});

describe('the connection', () => {
  test('after a restart of the server the page comes back by itself, from its cursor, with the same question', async (t) => {
    const { page, mock, sent } = await visit(t, { mock: { open: 1 }, still: true });
    await dialog(page).waitFor();
    await page.clock.runFor(1_000);
    await settled(page);
    const { port, state } = mock;
    await mock.stop();
    await page.locator('#question-offline').waitFor();
    await page.keyboard.press('1');
    assert.deepEqual(sent, []);
    // The session finds the server a moment later than the browser does.
    const [asked] = state.approvals.splice(0);
    const again = await startMock({ port, state });
    t.after(() => again.stop());
    await until(() => soon(page, page.getByText('Live', { exact: true })), () => 'the page comes back');
    await page.clock.runFor(1_000);
    await page.keyboard.press('1');
    await nothingSent(page, sent);
    assert.equal(await page.locator('.outcome').count(), 0);
    again.ask({ ...asked, nonce: 'another-nonce' });
    await page.locator('#question-offline').waitFor({ state: 'hidden' });
    assert.match(state.streams.at(-1), /after=1285/);
    await page.clock.runFor(1_000);
    await page.keyboard.press('1');
    await answered(again, 1);
    assert.equal(state.answers[0].nonce, 'another-nonce');
  });

  test('a question that does not come back after a restart is not called denied, and can be answered if it comes late', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 1 }, expectErrors: true });
    await dialog(page).waitFor();
    const { port, state } = mock;
    await mock.stop();
    await page.locator('#question-offline').waitFor();
    const [asked] = state.approvals.splice(0);
    const again = await startMock({ port, state });
    t.after(() => again.stop());
    await page.getByText('This question is no longer open').first().waitFor();
    assert.equal(await page.locator('.outcome').count(), 0);
    assert.equal(await page.locator('.option').count(), 0);
    // It was only late: it can be answered again.
    again.ask(asked);
    await settled(page);
    await page.keyboard.press('3');
    await answered(again, 1);
  });

  test('a lost connection is said, and so is that it is back', async (t) => {
    // Time stands still, so the page does not try again before it is told to.
    const { page, mock } = await visit(t, { auto: false, still: true });
    const { port, state } = mock;
    await mock.stop();
    await until(() => soon(page, page.getByText('The connection to the server is lost')), () => 'the page says that the connection is lost');
    const again = await startMock({ port, state });
    t.after(() => again.stop());
    await page.getByRole('button', { name: 'Try now' }).click();
    await page.getByText('Connected again').waitFor();
  });

  test('a stream that never begins is given up, and tried again', async (t) => {
    const mock = await startMock();
    mock.state.deaf = 1;
    const { page } = await visit(t, { mock, auto: false, still: true });
    assert.equal(mock.state.deaf, 0);
    assert.equal(mock.state.streams.length, 1);
    await page.locator('.session').first().waitFor();
  });

  test('a program that has taken the port gets no key, and the page says so', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 0 } });
    await page.getByText('Live').waitFor();
    await mock.stop();
    await page.getByText('Connection lost').first().waitFor();
    const heard = [];
    const stranger = createServer((request, response) => {
      heard.push({ url: request.url, text: JSON.stringify(request.headers) });
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"proof":"none","name":"ada","role":"admin"}');
    });
    await new Promise((resolve) => stranger.listen(mock.port, '127.0.0.1', resolve));
    t.after(() => { stranger.close(); stranger.closeAllConnections(); });
    await page.getByRole('heading', { name: 'Something else answers at this address' }).waitFor();
    assert.equal(await page.evaluate(() => localStorage.getItem('amplifier.key')), null);
    await page.evaluate(() => window.dispatchEvent(new Event('online')));
    // What is not sent cannot be waited for; this is longer than a page takes to try again.
    await page.waitForTimeout(1_000);
    assert.equal(heard.length, 1);
    assert.match(heard[0].url, /^\/proof\?challenge=[A-Za-z0-9_-]{43}$/);
    assert.ok(!heard[0].text.includes(KEY));
    // When the server is back, the page goes on.
    stranger.closeAllConnections();
    await new Promise((resolve) => stranger.close(resolve));
    const again = await startMock({ state: mock.state, port: mock.port });
    t.after(() => again.stop());
    await page.getByRole('button', { name: 'Ask again' }).click();
    await page.getByText('Live').waitFor();
    assert.equal(await page.evaluate(() => localStorage.getItem('amplifier.key')), KEY);
  });

  test('who is not known is told how to get in', async (t) => {
    const mock = await startMock();
    mock.state.known = false;
    const { page } = await visit(t, { mock, expectErrors: true });
    await page.getByText('amplifier serve link').waitFor();
    assert.equal(await page.locator('.session').count(), 0);
    mock.state.known = true;
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'Sessions' }).waitFor();
  });

  test('colours follow the system, and the switch wins and is remembered', async (t) => {
    const { page } = await visit(t, { auto: false, context: { colorScheme: 'dark' } });
    await page.locator('.session').first().waitFor();
    const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const dark = await background();
    await page.getByRole('button', { name: 'Colours: Auto' }).click();
    const light = await background();
    assert.notEqual(dark, light);
    await page.reload();
    await page.locator('.session').first().waitFor();
    assert.equal(await background(), light);
  });
});

describe('for everyone', () => {
  // With each view, what it shows once it has read everything.
  const VIEWS = [
    ['#/sessions', '.session'], ['#/sessions/s-harbour', '.entry'], ['#/sessions/s-odd', '.entry'], ['#/approvals', '.question-card'], ['#/approvals/history', 'tbody tr'], ['#/approvals/rules', '.rule-card'],
    ['#/hooks', 'tbody tr'], ['#/hooks/redact', '.charts'], ['#/audit', 'tbody tr'], ['#/audit/12', '.facts'], ['dialog', '.option[aria-disabled="false"]'], ['access', '.made'], ['tests', '.results'], ['broken', '.proof.broken'], ['empty', '.empty'], ['door', '.door'],
  ];
  for (const [colorScheme, viewport] of [['light', { width: 1400, height: 900 }], ['dark', { width: 390, height: 844 }]]) {
    test(`no view has a fault that axe finds, or is wider than the screen: ${colorScheme}, ${viewport.width} wide`, async (t) => {
      const axe = await readFile(new URL('node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
      for (const [view, there] of VIEWS) {
        const mock = await startMock(view === 'empty' ? { state: nothing() } : { open: 2 });
        if (view === 'broken') mock.setAudit(BROKEN);
        if (view === 'door') mock.state.known = false;
        const { page } = await visit(t, { mock, hash: view.startsWith('#') ? view : view === 'broken' ? '#/audit' : view === 'tests' ? '#/hooks' : '#/sessions', auto: view === 'dialog', expectErrors: true, context: { colorScheme, viewport, bypassCSP: true } });
        if (view === 'access') {
          await page.locator('#access').click();
          await page.locator('#link-name').fill('grace');
          await page.keyboard.press('Enter');
        }
        if (view === 'tests') {
          await page.getByRole('button', { name: 'Test…' }).click();
          await page.locator('#test-which').selectOption('text');
          await page.getByRole('button', { name: 'Run the tests' }).click();
        }
        await page.locator(there).first().waitFor();
        await drawn(page);
        await page.evaluate(axe);
        const found = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }));
        assert.deepEqual(found.violations.map((one) => [view, one.id, one.nodes.slice(0, 4).map((node) => `${node.target} ${node.any[0]?.message ?? node.failureSummary ?? ''}`)]), []);
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, `${view} is wider than the screen`);
        await page.context().close();
        await mock.stop();
      }
    });
  }

  test('the whole page works with the keyboard: skip, go to a view, open a session, come back', async (t) => {
    const { page } = await visit(t, { auto: false, mock: { open: 0 } });
    await page.locator('.session').first().waitFor();
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'To the content');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'main');
    assert.match(page.url(), /#\/sessions$/);
    for (let i = 0; i < 12 && !(await page.evaluate(() => document.activeElement?.closest('.session'))); i += 1) await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => location.hash.startsWith('#/sessions/'));
    await page.waitForFunction(() => document.activeElement?.tagName === 'H1');
    await page.keyboard.press('Tab');
    assert.ok(await page.evaluate(() => document.activeElement !== document.body));
  });
});

describe('the files', () => {
  test('the types fit', () => {
    const here = (path) => fileURLToPath(new URL(path, import.meta.url));
    const checked = spawnSync(process.execPath, [here('node_modules/typescript/bin/tsc'), '-p', here('tsconfig.json')], { encoding: 'utf8' });
    assert.deepEqual([checked.status, checked.stdout], [0, '']);
  });

  test('no file parses HTML or evaluates text, and the page has no inline script or style', async () => {
    for (const name of await readdir(CONSOLE)) {
      const text = await readFile(new URL(name, CONSOLE), 'utf8');
      assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setHTMLUnsafe|createContextualFragment|DOMParser/, name);
      if (name === 'index.html') assert.doesNotMatch(text, /\son[a-z]+=|\sstyle=|<style|<script(?![^>]*src=)/i);
      assert.doesNotMatch(text, /https?:\/\/(?!www\.w3\.org\/)/, `${name} loads nothing from elsewhere`);
    }
  });
});

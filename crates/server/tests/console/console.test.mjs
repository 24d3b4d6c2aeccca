// The console in a real browser, against a server that only pretends. What is checked is what a person sees and does.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openBrowser } from './browser.mjs';
import { KEY, startMock } from './mock.mjs';
import { BROKEN, HOSTILE, HOSTILE_LONG, question } from './story.mjs';

const CONSOLE = new URL('../../src/console/', import.meta.url);
/** Long enough for the dialog to have settled. */
const SETTLED = 750;
/** @type {import('playwright-core').Browser} */
let browser;
before(async () => { browser = await openBrowser(); });
after(async () => { await browser?.close(); });

/** Opens the console, and fails the test if the page breaks its own rules. */
async function visit(t, { mock = {}, hash = '#/sessions', auto = true, context = {}, expectErrors = false } = {}) {
  const server = mock.state && mock.stop ? mock : await startMock(mock);
  const opened = await browser.newContext({ viewport: { width: 1400, height: 900 }, reducedMotion: 'reduce', ...context });
  const page = await opened.newPage();
  const problems = [];
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
  return { page, mock: server };
}

const dialog = (page) => page.getByRole('dialog');
const answered = async (mock, n) => {
  for (let i = 0; i < 100 && mock.state.answers.length < n; i += 1) await new Promise((resolve) => setTimeout(resolve, 30));
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
    await page.waitForTimeout(SETTLED);
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
    await page.waitForTimeout(SETTLED);
    await dialog(page).getByRole('button', { name: /^Deny/ }).click();
    await answered(mock, 1);
    assert.equal(mock.state.answers[0].option, 'Deny');
  });

  test('keys and clicks before the dialog has settled answer nothing, and typing makes it wait longer', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 0 } });
    await page.getByRole('heading', { name: 'Sessions' }).waitFor();
    mock.ask(question(7));
    await dialog(page).waitFor();
    for (let i = 0; i < 12; i += 1) {
      await page.keyboard.press('1');
      await page.waitForTimeout(90);
    }
    // Forced: the browser driver would wait until the button says that it works.
    await dialog(page).getByRole('button', { name: /^Allow once/ }).click({ force: true });
    assert.deepEqual(mock.state.answers, []);
    await page.waitForTimeout(SETTLED);
    await page.keyboard.press('3');
    await answered(mock, 1);
  });

  test('Escape closes and answers nothing; the question stays open and can be opened again', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 1 } });
    await dialog(page).waitFor();
    await page.waitForTimeout(SETTLED);
    await page.keyboard.press('Escape');
    await dialog(page).waitFor({ state: 'hidden' });
    assert.deepEqual(mock.state.answers, []);
    assert.match(await page.title(), /^\(1\)/);
    await page.locator('#bar-asks').focus();
    await page.keyboard.press('Enter');
    await dialog(page).waitFor();
    await page.waitForTimeout(100);
    assert.deepEqual(mock.state.answers, []);
  });

  test('the focus begins on the question, goes round inside the dialog, and Enter on the question answers nothing', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 2 } });
    await dialog(page).waitFor();
    await page.waitForTimeout(SETTLED);
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
    assert.deepEqual(mock.state.answers, []);
  });

  test('several questions: which of how many, forwards and back, and each one settles anew', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 2 } });
    await dialog(page).waitFor();
    assert.match(await page.locator('#question-place').innerText(), /Question 1 of 2/);
    await page.waitForTimeout(SETTLED);
    await page.keyboard.press('ArrowRight');
    await page.waitForFunction(() => document.getElementById('question-place')?.textContent === 'Question 2 of 2');
    await page.keyboard.press('1');
    await page.waitForTimeout(200);
    assert.deepEqual(mock.state.answers, []);
    await page.waitForTimeout(SETTLED);
    await page.keyboard.press('1');
    await answered(mock, 1);
    // The other one comes up, and is not answered by the same key press.
    await page.waitForFunction(() => document.getElementById('question-place')?.textContent === 'One question');
    await page.keyboard.press('1');
    await page.waitForTimeout(200);
    assert.equal(mock.state.answers.length, 1);
  });

  test('who was faster is said, and the dialog does not go on to the next question by itself', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 2 } });
    await dialog(page).waitFor();
    await page.waitForTimeout(SETTLED);
    mock.decide('s-harbour.8', true, { by: { name: 'grace', via: 'terminal' } });
    await page.locator('.outcome').waitFor();
    assert.match(await page.locator('.outcome').innerText(), /Allowed\s*Answered by grace in the terminal/);
    await page.keyboard.press('1');
    await page.waitForTimeout(150);
    assert.deepEqual(mock.state.answers, []);
    await page.getByRole('button', { name: 'Next question' }).click();
    await page.getByRole('heading', { name: 'Allow write to config/production.toml?' }).waitFor();
  });

  test('a late answer is refused, and that is shown', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 1 }, expectErrors: true });
    await dialog(page).waitFor();
    await page.waitForTimeout(SETTLED);
    mock.state.refuseNext = { status: 409, code: 'late', message: 'the time limit was over; it was denied by default' };
    await page.keyboard.press('1');
    await dialog(page).getByRole('alert').waitFor();
    assert.match(await dialog(page).getByRole('alert').innerText(), /Too late: the time limit was over/);
  });

  test('two browsers race: one wins, the other is told by whom', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 1 } });
    const { page: other } = await visit(t, { mock });
    await dialog(page).waitFor();
    await dialog(other).waitFor();
    await page.waitForTimeout(SETTLED);
    await page.keyboard.press('3');
    await other.locator('.outcome').waitFor();
    assert.match(await other.locator('.outcome').innerText(), /Denied\s*Answered by ada in the console/);
    assert.equal(mock.state.answers.length, 1);
  });

  test('the countdown runs, says what happens at zero, and then nothing can be answered any more', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 0 } });
    await page.getByRole('heading', { name: 'Sessions' }).waitFor();
    mock.ask(question(7, { since: 0, timeout_s: 3 }));
    await dialog(page).waitFor();
    const left = page.locator('.left');
    assert.match(await left.innerText(), /0:0[234]\s*then it is denied/);
    const arc = () => page.locator('.ring .arc').getAttribute('stroke-dashoffset').then(Number);
    const before = await arc();
    await page.waitForFunction(() => document.querySelector('.left')?.textContent?.includes('0:01'));
    assert.ok((await arc()) > before);
    await page.waitForFunction(() => document.querySelector('.left')?.textContent?.includes('time is up: denied'));
    await page.keyboard.press('1');
    await page.waitForTimeout(150);
    assert.deepEqual(mock.state.answers, []);
    mock.decide('s-harbour.7', false, { basis: 'timeout' });
    await page.locator('.outcome').waitFor();
    assert.match(await page.locator('.outcome').innerText(), /nobody answered in time/);
  });

  test('"for this project" goes with its scope, and is not offered where the question has a star', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 1 } });
    await dialog(page).waitFor();
    await page.waitForTimeout(SETTLED);
    await page.keyboard.press('4');
    await answered(mock, 1);
    assert.equal(mock.state.answers[0].scope, 'project');
    assert.equal(mock.state.answers[0].option, 'Allow always');
    mock.ask(question(9, { prompt: 'Allow rm *?' }));
    await page.getByRole('heading', { name: 'Allow rm *?' }).waitFor();
    assert.equal(await dialog(page).locator('.option').count(), 3);
  });

  test('a viewer sees the question, and has nothing to answer it with', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 1, role: 'viewer' } });
    await dialog(page).waitFor();
    assert.equal(await dialog(page).locator('.option').count(), 0);
    await dialog(page).getByText('your role is viewer').waitFor();
    await page.waitForTimeout(SETTLED);
    await page.keyboard.press('1');
    await page.waitForTimeout(100);
    assert.deepEqual(mock.state.answers, []);
    await page.keyboard.press('Escape');
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

  test('a notification is asked for by a click, and comes when nobody looks', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 0 }, hash: '#/approvals' });
    await page.context().grantPermissions(['notifications'], { origin: new URL(mock.url).origin });
    await page.evaluate(() => {
      globalThis.notes = [];
      globalThis.Notification = class extends EventTarget {
        static permission = 'default';
        static async requestPermission() { this.permission = 'granted'; return 'granted'; }
        constructor(title, options) { super(); globalThis.notes.push([title, options.body]); }
        close() { globalThis.notes.push('closed'); }
      };
    });
    await page.getByRole('button', { name: 'Notify me' }).click();
    await page.getByRole('button', { name: 'Notifications are on' }).waitFor();
    await page.evaluate(() => Object.defineProperty(document, 'hidden', { get: () => true }));
    mock.ask(question(7, { prompt: `Allow\u202E this?` }));
    await page.waitForFunction(() => globalThis.notes.length === 1);
    assert.deepEqual(await page.evaluate(() => globalThis.notes), [['production-guard asks', 'AllowU+202E this?']]);
    mock.decide('s-harbour.7', true);
    await page.waitForFunction(() => globalThis.notes.at(-1) === 'closed');
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
    await page.waitForTimeout(300);
    assert.ok((await gap()) < 90, `at the end: ${await gap()}`);
    assert.match(await page.locator('.hook-chip').last().innerText(), /secrets-guard\s*lets it pass\s*12 µs/);
    await page.evaluate(() => window.scrollTo(0, 0));
    await page.waitForTimeout(100);
    mock.add('s-berths', { turn: 8, event: 'tool:post', data: { tool_name: 'bash', tool_input: {}, tool_result: 'done', success: true, duration_ms: 250, tool_call_id: 'c39' } });
    mock.add('s-berths', { turn: 8, event: 'tool:pre', data: { tool_name: 'bash', tool_input: { command: 'after' }, tool_call_id: 'after' } });
    await page.getByRole('button', { name: '1 new' }).waitFor();
    assert.equal(await page.evaluate(() => document.scrollingElement.scrollTop), 0);
    await page.getByRole('button', { name: '1 new' }).click();
    await page.waitForTimeout(100);
    assert.ok((await gap()) < 90);
    // What ends a call is told with the call, not as one more entry.
    assert.equal(await page.locator('.entry.tool').count(), 41);
    assert.match(await page.locator('.entry.tool').nth(39).innerText(), /250 ms/);
    assert.ok(mock.state.watches.some((one) => one.session === 's-berths'));
  });

  test('the timeline tells denials, hooks, injections where they landed, and who approved from where', async (t) => {
    const { page } = await visit(t, { hash: '#/sessions/s-harbour', auto: false });
    const denied = page.locator('.entry.denied');
    await denied.waitFor();
    assert.match(await denied.innerText(), /Denied by secrets-guard: The command sends what looks like a key/);
    assert.match(await page.locator('.approval-line').first().innerText(), /Allowed\s*Run `cargo test --workspace`\?\s*grace in the terminal after 6\.4 s/);
    assert.match(await page.locator('.injection-line').last().innerText(), /rustfmt\s*told the agent something, at the end of the tool's result/);
    assert.match(await page.locator('.message-line').innerText(), /80 % of its budget/);
    const entry = page.locator('.entry.tool').filter({ hasText: 'grep' }).first();
    await entry.getByText('Details').click();
    assert.match(await entry.innerText(), /Input[\s\S]*pattern[\s\S]*Output/);
    await page.getByText('Waits for an answer').waitFor();
  });

  test('thousands of entries stay quick', async (t) => {
    const mock = await startMock({ open: 0 });
    for (let n = 0; n < 6_000; n += 1) mock.state.add('s-berths', { turn: 8 + Math.floor(n / 100), event: 'tool:pre', data: { tool_name: 'bash', tool_input: { command: `step ${n}` }, tool_call_id: `c${n}` }, hooks: [{ hook: 'a', answer: 'continue', took_ns: 1 }] });
    const { page } = await visit(t, { mock, hash: '#/sessions/s-berths' });
    const began = Date.now();
    await page.getByText('step 5999').waitFor({ timeout: 20_000 });
    const took = Date.now() - began;
    assert.ok(took < 15_000, `${took} ms`);
    const nodes = await page.locator('.entry').count();
    assert.ok(nodes <= 1_800, `${nodes} entries on the page`);
    const frame = await page.evaluate(async () => {
      let worst = 0;
      let last = performance.now();
      for (let n = 0; n < 30; n += 1) {
        await new Promise(requestAnimationFrame);
        window.scrollBy(0, -400);
        worst = Math.max(worst, performance.now() - last);
        last = performance.now();
      }
      return worst;
    });
    assert.ok(frame < 500, `the slowest frame took ${frame} ms`);
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
      await page.waitForTimeout(400);
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
    const began = Date.now();
    await prompt.getByRole('button', { name: /show all/ }).click();
    await page.waitForFunction((n) => document.querySelector('.prompt-text')?.textContent?.endsWith('xxxx') && document.querySelectorAll('.prompt-text .mark').length > n, 19_000, { timeout: 20_000 });
    assert.ok(Date.now() - began < 15_000);
    for (const hash of ['#/sessions', '#/approvals/history', '#/audit', '#/hooks/broken-hook']) {
      await page.goto(mock.url + hash);
      await page.waitForTimeout(200);
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
        await page.waitForTimeout(SETTLED);
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
    const first = () => page.locator('tbody tr td').first().innerText();
    await page.waitForFunction(() => document.querySelector('tbody td')?.textContent === '1,284');
    await page.getByRole('button', { name: 'Older' }).click();
    await page.waitForFunction(() => document.querySelector('tbody td')?.textContent === '1,234');
    await page.getByLabel('Kind of record').selectOption('approval_decision');
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 7);
    assert.notEqual(await first(), '1,234');
    await page.locator('tbody a').first().click();
    await page.getByRole('heading', { name: /^Record / }).waitFor();
    await page.getByText('verified', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Show the proof' }).click();
    await page.getByText('checkpoint').first().waitFor();
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
    const { page, mock } = await visit(t, { mock: { open: 1 } });
    await dialog(page).waitFor();
    await page.waitForTimeout(SETTLED);
    const { port, state } = mock;
    await mock.stop();
    await page.locator('#question-offline').waitFor();
    await page.keyboard.press('1');
    await page.waitForTimeout(100);
    assert.deepEqual(state.answers, []);
    // The session finds the server a moment later than the browser does.
    const [asked] = state.approvals.splice(0);
    const again = await startMock({ port, state });
    t.after(() => again.stop());
    await page.waitForFunction(() => document.getElementById('link')?.textContent === 'Live', null, { timeout: 15_000 });
    await page.waitForTimeout(1_000);
    await page.keyboard.press('1');
    await page.waitForTimeout(100);
    assert.deepEqual(state.answers, []);
    assert.equal(await page.locator('.outcome').count(), 0);
    again.ask({ ...asked, nonce: 'another-nonce' });
    await page.locator('#question-offline').waitFor({ state: 'hidden' });
    assert.match(state.streams.at(-1), /after=1285/);
    await page.waitForTimeout(SETTLED);
    await page.keyboard.press('1');
    await answered(again, 1);
    assert.equal(state.answers[0].nonce, 'another-nonce');
  });

  test('a question that does not come back after a restart is not called denied', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 1 }, expectErrors: true });
    await dialog(page).waitFor();
    const { port, state } = mock;
    await mock.stop();
    await page.locator('#question-offline').waitFor();
    state.approvals = [];
    const again = await startMock({ port, state });
    t.after(() => again.stop());
    await page.getByText('This question is no longer open').first().waitFor({ timeout: 20_000 });
    assert.equal(await page.locator('.outcome').count(), 0);
    assert.equal(await page.locator('.option').count(), 0);
  });

  test('a lost connection is said, and so is that it is back', async (t) => {
    const { page, mock } = await visit(t, { auto: false });
    await page.getByText('Live', { exact: true }).waitFor();
    const { port, state } = mock;
    await mock.stop();
    await page.getByText('The connection to the server is lost').waitFor();
    const again = await startMock({ port, state });
    t.after(() => again.stop());
    await page.getByRole('button', { name: 'Try now' }).click({ timeout: 3_000 }).catch(() => {});
    await page.getByText('Connected again').waitFor({ timeout: 15_000 });
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
    t.after(() => stranger.close());
    await page.getByRole('heading', { name: 'Something else answers at this address' }).waitFor();
    assert.equal(await page.evaluate(() => localStorage.getItem('amplifier.key')), null);
    await page.evaluate(() => window.dispatchEvent(new Event('online')));
    await page.waitForTimeout(SETTLED);
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
  const VIEWS = ['#/sessions', '#/sessions/s-harbour', '#/sessions/s-odd', '#/approvals', '#/approvals/history', '#/approvals/rules', '#/hooks', '#/hooks/redact', '#/audit', '#/audit/12', 'dialog', 'broken', 'door'];
  for (const [colorScheme, viewport] of [['light', { width: 1400, height: 900 }], ['dark', { width: 390, height: 844 }]]) {
    test(`no view has a fault that axe finds, or is wider than the screen: ${colorScheme}, ${viewport.width} wide`, async (t) => {
      const axe = await readFile(new URL('node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
      for (const view of VIEWS) {
        const mock = await startMock({ open: 2 });
        if (view === 'broken') mock.setAudit(BROKEN);
        if (view === 'door') mock.state.known = false;
        const { page } = await visit(t, { mock, hash: view.startsWith('#') ? view : view === 'broken' ? '#/audit' : '#/sessions', auto: view === 'dialog', expectErrors: true, context: { colorScheme, viewport, bypassCSP: true } });
        await page.locator('h1').first().waitFor();
        await page.waitForTimeout(view === 'dialog' ? SETTLED : 250);
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

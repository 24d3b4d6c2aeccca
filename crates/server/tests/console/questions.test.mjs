// Questions on the page: how they are shown, answered, lost and closed.

import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { startMock } from './mock.mjs';
import { command, question } from './story.mjs';
import { answered, dialog, soon, visit } from './visit.mjs';
import { nothingSent, reads, settled, test, until } from './waits.mjs';

describe('questions', () => {
  test('a question opens by itself, is told in full, and is answered by a number key', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 0 } });
    await page.getByRole('heading', { name: 'Sessions' }).waitFor();
    const asked = question(7);
    mock.ask(asked);
    await dialog(page).waitFor();
    await page.getByRole('heading', { name: 'Allow write to config/production.toml?' }).waitFor();
    const told = await dialog(page).innerText();
    for (const part of ['production-guard', asked.reason, 'edit_file', 'requests_a_minute = 6000', 'The file is outside of the folders', asked.digest, '/home/ada/work/harbour', 'then denied']) assert.ok(told.includes(part), `${part} in ${told}`);
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

  test('a question that is here before its session says whose it is, and leads there', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 0 } });
    await page.getByRole('heading', { name: 'Sessions' }).waitFor();
    const known = mock.state.sessions.find((one) => one.id === 's-harbour');
    const session = { ...known, id: 's-fresh-abcdef', name: undefined, prompt: undefined, state: 'waiting' };
    const asked = question(7, { id: 's-fresh-abcdef.7', session: session.id, session_name: undefined });
    // The page hears of the question only; the server knows more when it is asked.
    mock.ask(asked);
    mock.state.sessions.push(session);
    mock.state.timelines[session.id] = [];
    await dialog(page).getByRole('link', { name: 'harbour · abcdef' }).click();
    await page.getByRole('heading', { name: 'harbour · abcdef' }).waitFor();
    await page.waitForFunction(() => document.title === '(1) harbour · abcdef · Amplifier');
  });

  test('a button answers as the key does', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 1 } });
    await dialog(page).waitFor();
    await settled(page);
    await dialog(page).getByRole('button', { name: /^Deny/ }).click();
    await answered(mock, 1);
    assert.equal(mock.state.answers[0].option, 'Deny');
  });

  test('what is folded is shown before it can be allowed, and denying needs no reading', async (t) => {
    const body = [...Array.from({ length: 900 }, (_, at) => ({ kind: 'plain', text: `step ${at + 1}` })), { kind: 'plain', text: `${'x'.repeat(40_000)} last word` }];
    const ask = async () => {
      const { page, mock, sent } = await visit(t, { mock: { open: 0 } });
      await page.getByRole('heading', { name: 'Sessions' }).waitFor();
      mock.ask(command(7, { preview: { title: 'bash', warnings: [], body, fields: [] } }));
      await dialog(page).waitFor();
      await settled(page);
      assert.equal(await dialog(page).getByText('step 850', { exact: true }).count(), 0);
      return { page, mock, sent };
    };
    const ways = { key: (page) => page.keyboard.press('1'), button: (page) => dialog(page).getByRole('button', { name: /^Allow for this project/ }).click() };
    for (const [way, press] of Object.entries(ways)) {
      const { page, mock, sent } = await ask();
      await press(page);
      await page.locator('#question-unfolded').waitFor();
      await reads(dialog(page).locator('.diff'), /step 850[\s\S]*last word/);
      assert.equal(await dialog(page).locator('button.more').count(), 0);
      await nothingSent(page, sent);
      await settled(page);
      await press(page);
      await answered(mock, 1);
      assert.match(mock.state.answers[0].option, /^Allow/, way);
    }
    const { page, mock } = await ask();
    await page.keyboard.press('3');
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
    mock.say({ type: 'approval_requested', approval: other });
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
    mock.ask({ ...asked, options: asked.options.filter((one) => one.effect !== 'allow_always'), preview: { ...asked.preview, summary: 'a new file' } });
    await dialog(page).waitFor();
    await dialog(page).getByRole('button', { name: /^Allow once/ }).waitFor();
    assert.equal(await dialog(page).getByRole('button', { name: /for this project/ }).count(), 0);
    assert.ok((await dialog(page).innerText()).includes('a new file'));
  });

  test('a question that is cut in the list is read in full before it can be answered', async (t) => {
    const { page, mock, sent } = await visit(t, { mock: { open: 0 }, still: true });
    const whole = question(7);
    let makeReadable;
    const isReadable = new Promise((resolve) => { makeReadable = resolve; });
    await page.route('**/api/approvals/s-harbour.7', (route) => isReadable.then(() => route.fulfill({ json: whole })));
    mock.ask({ ...whole, truncated: true, preview: { ...whole.preview, body: [] } });
    await dialog(page).waitFor();
    await page.clock.runFor(1_000);
    await page.keyboard.press('1');
    await nothingSent(page, sent);
    makeReadable();
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
    await reads(page.locator('#question-place'), /^Request 1 of 2$/);
    await page.clock.runFor(1_000);
    await page.keyboard.press('ArrowRight');
    await reads(page.locator('#question-place'), /^Request 2 of 2$/);
    await page.keyboard.press('1');
    await nothingSent(page, sent);
    await page.clock.runFor(1_000);
    await page.keyboard.press('1');
    await answered(mock, 1);
    // The other one comes up, and is not answered by the same key press.
    await reads(page.locator('#question-place'), /^One request$/);
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
    await page.getByRole('button', { name: 'Next request' }).click();
    await page.getByRole('heading', { name: 'Allow write to config/production.toml?' }).waitFor();
  });

  test('the way on from a closed question leads to what is open now, also if that was asked a moment ago', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 2 } });
    const onward = dialog(page).getByRole('button', { name: 'Next request' });
    await page.getByRole('heading', { name: 'Run this command on the staging host?' }).waitFor();
    mock.decide('s-harbour.8', false, { by: { name: 'grace', via: 'api' } });
    await page.locator('.outcome').waitFor();
    await onward.waitFor();
    mock.decide('s-harbour.7', false, { by: { name: 'grace', via: 'api' } });
    await onward.waitFor({ state: 'hidden' });
    await reads(page.locator('#question-place'), /^no other open request$/);
    mock.ask(command(9, { prompt: 'Run this one?' }));
    await onward.click();
    await page.getByRole('heading', { name: 'Run this one?' }).waitFor();
    await settled(page);
  });

  test('a session that dies while the answer is on its way is not said to wait for ever', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 1 }, still: true, expectErrors: true });
    await dialog(page).waitFor();
    const [asked] = mock.state.approvals;
    await page.route('**/answer', (route) => {
      mock.state.approvals = [];
      const decided = { ...asked, granted: false, basis: 'disconnected', reason: '', decided_at: new Date().toISOString(), seq: 0 };
      mock.state.decided.unshift(decided);
      mock.say({ type: 'approval_closed', id: asked.id, decided });
      return route.fulfill({ status: 504, json: { error: { code: 'unreachable', message: 'the connection to the session was lost' } } });
    });
    await page.clock.runFor(1_000);
    await settled(page);
    await page.keyboard.press('1');
    await reads(dialog(page).getByRole('alert'), /the connection to the session was lost/);
    await until(() => soon(page, dialog(page).getByText('The session did not send a decision'), 500), () => 'the page says that the question is gone');
    assert.equal(await page.locator('.outcome, .option').count(), 0);
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
    mock.ask(question(7, { created_at: new Date(now).toISOString(), deadline: new Date(now + 3_000).toISOString(), timeout_s: 3 }));
    await dialog(page).waitFor();
    const left = page.locator('.left');
    const arc = () => page.locator('.ring .arc').getAttribute('stroke-dashoffset').then(Number);
    await reads(left, /^0:03\s*then denied$/);
    const before = await arc();
    await page.clock.runFor(2_000);
    await reads(left, /^0:01\s*then denied$/);
    assert.ok((await arc()) > before);
    await page.clock.runFor(1_000);
    await reads(left, /^0:00\s*time is up: denied$/);
    await page.keyboard.press('1');
    await nothingSent(page, sent);
    mock.decide('s-harbour.7', false, { basis: 'timeout' });
    await reads(page.locator('.outcome'), /no answer in time/);
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
    await dialog(page).getByText('Your role (viewer)').waitFor();
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

  test('a gap in a change is told as one, and is none before the first line', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 0 } });
    await page.getByRole('heading', { name: 'Sessions' }).waitFor();
    const asked = question(7);
    const gap = (text) => ({ kind: 'gap', text });
    mock.ask({ ...asked, preview: { ...asked.preview, summary: '+1 −1', body: [gap('@@ -1,2 +1,2 @@'), { kind: 'removed', text: 'a', old: 1 }, { kind: 'added', text: 'b', new: 1 }, gap('@@ -40 +40 @@'), { kind: 'context', text: 'c', old: 40, new: 40 }] } });
    await dialog(page).waitFor();
    const rows = await page.locator('.diff tr').evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
    assert.deepEqual(rows, [['1', '', '−removed: ', 'a'], ['', '1', '+added: ', 'b'], ['', '', '⋯lines left out', ''], ['40', '40', '', 'c']]);
    await reads(page.locator('.what'), /^edit_file\s*config\/production\.toml\s*\+1 −1\s*\(1 line added, 1 removed\)$/);
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

  test('of a long command, on a phone that is held sideways, all can be read above the answers', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 0 }, context: { viewport: { width: 667, height: 375 } } });
    await page.getByRole('heading', { name: 'Sessions' }).waitFor();
    const long = `${'cargo test --workspace --no-fail-fast && '.repeat(12)}rm -rf ~/.cache`;
    mock.ask(command(9, { prompt: `Run \`${long}\`?`, preview: { title: 'Bash', warnings: [], body: [{ kind: 'plain', text: long }], fields: [] } }));
    await dialog(page).waitFor();
    const text = page.locator('#question-text');
    const room = await text.evaluate((node) => node.clientHeight / innerHeight);
    assert.ok(room > 0.5, `${room} of the height is left for it`);
    // The last line of the question, and of what will run.
    for (const [part, how] of [['#question-title', 'end'], ['.diff', 'end'], ['.digest', 'end']]) {
      const [bottom, lowest] = await page.locator(part).evaluate((node, block) => {
        node.scrollIntoView({ block });
        return [node.getBoundingClientRect().bottom, document.getElementById('question-text').getBoundingClientRect().bottom];
      }, how);
      assert.ok(bottom <= lowest + 1, `${part} ends at ${bottom}, and ${lowest} is the last that is seen`);
    }
    const { y, height } = await page.locator('.option').last().boundingBox();
    assert.ok(y + height <= 375, 'the answers are in sight');
  });

  test('too many questions: the page says so and offers a rule to look at, never a yes to all', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 2 }, auto: false });
    mock.setBusy({ asked: 14, seconds: 60, hook: 'shell-guard', pattern: 'Run this command on the staging host?' });
    await page.getByText('sent 14 approval requests in 60 seconds').waitFor();
    assert.equal(await page.getByRole('button', { name: /all/i }).filter({ hasText: /allow|yes|approve/i }).count(), 0);
    await page.getByRole('button', { name: 'Review rule…' }).click();
    assert.equal(await page.getByLabel('Requests of hook').inputValue(), 'shell-guard');
    await page.getByText('Matching open requests: 1').waitFor();
    assert.equal(await page.getByLabel('Decision').inputValue(), 'deny');
    await page.getByRole('button', { name: 'Create rule' }).click();
    await page.getByText('Rule created.').waitFor();
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
    const first = ['Approval request from production-guard', 'AllowU+202E this?', 's-harbour.7'];
    const second = ['Approval request from shell-guard', 'Allow that?', 's-harbour.8'];
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

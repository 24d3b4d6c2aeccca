// The list of sessions, and the timeline of one.

import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { startMock } from './mock.mjs';
import { nothing, question } from './story.mjs';
import { dialog, visit } from './visit.mjs';
import { changes, drawn, reads, test, unfold, until, within } from './waits.mjs';

describe('sessions', () => {
  test('those that wait come first, then the newest; states are words; search and filter find', async (t) => {
    const { page } = await visit(t, { auto: false });
    await page.locator('.session').first().waitFor();
    assert.deepEqual(await page.locator('.session .state').allInnerTexts(), ['Waiting for you', 'Running', 'Idle', 'Running', 'Ended', 'Failed', 'Gone']);
    await page.getByLabel('Search sessions').fill('tuesday');
    await page.waitForFunction(() => document.querySelectorAll('.session').length === 1);
    await page.getByLabel('Search sessions').fill('');
    await page.getByRole('button', { name: /^Gone/ }).click();
    await page.waitForFunction(() => document.querySelectorAll('.session').length === 1 && document.querySelector('.session')?.textContent?.includes('Nightly dependency check'));
  });

  test('a session is watched live, follows its end, and does not once somebody has scrolled up', async (t) => {
    const { page, mock } = await visit(t, { hash: '#/sessions/s-berths', auto: false });
    await page.getByRole('heading', { name: /Berth planner/ }).waitFor();
    for (let n = 0; n < 40; n += 1) mock.add('s-berths', { turn: 8, event: 'tool:pre', data: { tool_name: 'bash', tool_input: { command: `step ${n}` }, tool_call_id: `c${n}` }, hooks: [{ hook: 'secrets-guard', answer: 'continue', duration_ns: 12_345 }] });
    await page.getByText('step 39').waitFor();
    const gap = () => page.evaluate(() => document.scrollingElement.scrollHeight - document.scrollingElement.scrollTop - document.scrollingElement.clientHeight);
    await until(async () => (await gap()) < 90, () => 'the end is in sight');
    await reads(page.locator('.hook-chip').last(), /secrets-guard\s*continues\s*12 µs/);
    await within(page.evaluate(() => new Promise((resolve) => {
      addEventListener('scroll', resolve, { once: true });
      window.scrollTo(0, 0);
    })), () => 'the page is scrolled');
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
    await reads(page.locator('.injection-line').last(), /rustfmt\s*added context to the tool result/);
    await reads(page.locator('.message-line'), /80 % of its budget/);
    const entry = page.locator('.entry.tool').filter({ hasText: 'grep' }).first();
    await unfold(entry.locator('.more-of-it'));
    await reads(entry, /Input[\s\S]*pattern[\s\S]*Output/);
    await page.getByText('Waiting for an answer').waitFor();
  });

  test('hooks that let something pass are told in one, and the one that says something stands out', async (t) => {
    const { page, mock } = await visit(t, { hash: '#/sessions/s-berths', auto: false });
    const pass = (name, duration_ns) => ({ hook: name, answer: 'continue', duration_ns });
    mock.add('s-berths', { turn: 8, event: 'tool:pre', data: { tool_name: 'bash', tool_input: { command: 'make' }, tool_call_id: 'c' }, hooks: [pass('one', 1_000), pass('two', 2_000), { hook: 'style', answer: 'modify', duration_ns: 9_000 }, pass('three', 3_000)] });
    const entry = page.locator('.entry.tool').filter({ hasText: 'make' });
    await reads(entry, /style\s*modifies\s*9\.0 µs[\s\S]*3 hooks continued\s*6\.0 µs/);
    assert.equal(await entry.getByText('three').isVisible(), false);
    await entry.getByText('3 hooks continued').click();
    await reads(entry.getByRole('list', { name: 'Hooks that continued' }), /one\s*continues\s*1\.0 µs\s*two\s*continues\s*2\.0 µs\s*three\s*continues\s*3\.0 µs/);
  });

  test('a timeline that cannot be read at first is read again', async (t) => {
    const { page, mock } = await visit(t, { auto: false, expectErrors: true });
    await page.locator('.session').first().waitFor();
    let isFirst = true;
    await page.route('**/timeline?*', (route) => {
      if (!isFirst) return route.continue();
      isFirst = false;
      return route.abort();
    });
    await page.goto(`${mock.url}#/sessions/s-docs`);
    await page.getByText('The server is unreachable.').waitFor();
    await page.getByText('Session ended').waitFor();
    await page.getByText('The server is unreachable.').waitFor({ state: 'hidden' });
  });

  test('what runs says so until it has ended, or its session has', async (t) => {
    const { page, mock } = await visit(t, { hash: '#/sessions/s-berths', auto: false });
    const call = (n, event, more = {}) => mock.add('s-berths', { turn: 8, event, data: { tool_name: 'bash', tool_input: { command: `step ${n}` }, tool_call_id: `c${n}`, ...more } });
    call(1, 'tool:pre');
    const entry = page.locator('.entry.tool').first();
    await reads(entry, /step 1\s*running/);
    call(1, 'tool:post', { tool_result: 'done', success: true, duration_ms: 250 });
    await reads(entry, /step 1\s*250 ms/);
    call(2, 'tool:pre');
    await reads(page.locator('.entry.tool').nth(1), /step 2\s*running/);
    const session = mock.state.sessions.find((one) => one.id === 's-berths');
    await reads(page.locator('.strip'), /Started\s*31 min ago/);
    mock.say({ type: 'session', session: { ...session, state: 'gone', connected: false } });
    await page.locator('.took.runs').waitFor({ state: 'hidden' });
    await reads(page.locator('.strip'), /Duration\s*3\d min/);
  });

  test('a failure says why, where it happened, and a question is told once', async (t) => {
    const { page, mock } = await visit(t, { hash: '#/sessions/s-berths', auto: false });
    mock.add('s-berths', { turn: 8, event: 'tool:pre', data: { tool_name: 'Grep', tool_input: { path: '.', pattern: 'berth' }, tool_call_id: 'c' } });
    mock.add('s-berths', { turn: 8, event: 'user:notification', data: { notification_type: 'approval_required', message: 'Run that?' } });
    mock.add('s-berths', { turn: 8, event: 'tool:post', data: { tool_name: 'Grep', tool_input: {}, tool_result: { error: 'there is no such folder' }, success: false, duration_ms: 3, tool_call_id: 'c' } });
    mock.add('s-berths', { turn: 8, event: 'error:tool', data: { tool_name: 'Grep', error: { kind: 'failed', message: 'there is no such folder' } } });
    mock.add('s-berths', { turn: 8, event: 'provider:request', data: { provider: 'openai', model: 'small' } });
    mock.add('s-berths', { turn: 8, event: 'error:provider', data: { provider: 'openai', error: { kind: 'overloaded', message: 'try again later' } } });
    mock.add('s-berths', { event: 'session:end', data: { reason: 'error' } });
    await reads(page.locator('.entry').last(), /Session ended\s*after an error/);
    const entries = (await page.locator('.entry .content').allInnerTexts()).map((text) => text.replace(/\s*Details\s*/g, '').replace(/\s+/g, ' '));
    assert.deepEqual(entries.map((text) => text.replace(/ \d+ m?s /, ' TIME ')), ['Grep berth Failed TIME there is no such folder', 'Model small Failed TIME try again later', 'Session ended after an error']);
    await page.getByLabel('Show minor events').check();
    await page.getByText('Run that?').waitFor();
  });

  test('a session without a name is known by its prompt, and one that went away says so beside what it asked', async (t) => {
    const { page, mock } = await visit(t, { auto: false, mock: { open: 0 } });
    const session = { ...mock.state.sessions.find((one) => one.id === 's-gone'), id: 's-0-abcdef', name: undefined, state: 'running', connected: true };
    mock.state.sessions.push(session);
    mock.say({ type: 'session', session });
    const row = page.locator('.session').filter({ hasText: 's-0-abcdef'.slice(-6) });
    await reads(row, /Running[\s\S]*Check dependencies for advisories, and open one branch for each\.\s*harbour · abcdef/);
    mock.add(session.id, { turn: 1, event: 'tool:pre', decision: 'ask_user', data: { tool_name: 'bash', tool_input: { command: 'cargo audit' }, tool_call_id: 'c' }, approvals: [{ id: `${session.id}.1`, hook: 'shell-guard', prompt: 'Run it?', options: [] }] });
    await row.click();
    await page.getByRole('heading', { name: /^Check dependencies/ }).waitFor();
    await page.getByText('cargo audit').waitFor();
    assert.equal(await page.getByText('No answer').count(), 0);
    mock.say({ type: 'session', session: { ...session, state: 'gone', connected: false } });
    await reads(page.locator('.entry.tool'), /No answer\s*Run it\?\s*the session ended first/);
    await reads(page.locator('.session-head'), /Gone/);
  });

  test('late answers, results that are unknown, messages that nobody was shown and the size of injections are on the page', async (t) => {
    const { page, mock } = await visit(t, { hash: '#/sessions/s-gone', auto: false });
    const decision = { granted: false, basis: 'timeout', reason: 'Approval timed out, denied by default: Deploy?' };
    const late = [{ label: 'Allow once', by: { name: 'grace', via: 'api' } }];
    mock.add('s-gone', {
      turn: 1, event: 'tool:pre', data: { tool_name: 'bash', tool_input: { command: 'make deploy' }, tool_call_id: 'd' }, denied: true, decision: 'ask_user',
      approvals: [{ id: 's-gone.1', hook: 'guard', prompt: 'Deploy?', options: [], created_at: '2026-01-01T00:00:00Z', decided_at: '2026-01-01T00:05:00Z', decision, late_answers: late }],
    });
    mock.add('s-gone', {
      turn: 1, event: 'tool:pre', data: { tool_name: 'bash', tool_input: { command: 'make clean' }, tool_call_id: 'e' }, intent: { seq: 1, tool_call_id: 'e', unresolved: true },
      injections: [{ hook: 'lint', role: 'system', placement: 'next_call', bytes: 96, tokens: 24, status: 'injected', text: 'Two lines moved.' }],
      messages: [{ source: 'hook:lint', level: 'info', text: 'It was formatted.', shown: false }], failures: [{ part: 'display', error: 'it is gone' }],
    });
    const [denied, unknown] = [page.locator('.entry.tool').nth(0), page.locator('.entry.tool').nth(1)];
    await reads(denied, /Denied\s*Deploy\?\s*no answer in time after 5 min 00 s\s*too late: Allow once by grace over the API/);
    await reads(unknown, /make clean\s*Result unknown/);
    await reads(unknown, /96 bytes, 24 tokens/);
    await reads(unknown, /It was formatted\.\s*Not shown/);
    await reads(unknown, /Failed: display: it is gone/);
  });

  test('a question at a prompt that is answered after much else has happened is told with its prompt', async (t) => {
    const { page, mock } = await visit(t, { hash: '#/sessions/s-berths', auto: false });
    const asked = question(1, { id: 's-berths.1', session: 's-berths', event: 'prompt:submit', prompt: 'May this be worked on?' });
    mock.add('s-berths', { turn: 8, event: 'prompt:submit', decision: 'ask_user', data: { prompt: 'Fill Tuesday' }, approvals: [{ id: asked.id, hook: asked.hook, prompt: asked.prompt, options: [] }] });
    mock.ask(asked);
    const entry = page.locator('.entry.prompt').last();
    await reads(entry, /Fill Tuesday\s*Waiting for an answer: May this be worked on\?/);
    for (let n = 0; n < 12; n += 1) mock.add('s-berths', { turn: 8, event: 'provider:request', data: { model: `model ${n}` } });
    await page.getByText('model 11').waitFor();
    mock.decide(asked.id, true, { by: { name: 'grace', via: 'terminal' } });
    await reads(entry, /Fill Tuesday\s*Allowed\s*May this be worked on\?\s*grace in the terminal/);
    const session = mock.state.sessions.find((one) => one.id === 's-berths');
    mock.say({ type: 'session', session: { ...session, state: 'gone', connected: false } });
    await reads(page.locator('.session-head'), /Gone/);
    await drawn(page);
    assert.equal(await page.getByText('No answer').count(), 0);
  });

  test('what is there when a session is opened is not called new, and a session that is not there is said to be unknown', async (t) => {
    const { page, mock } = await visit(t, { hash: '#/sessions/s-docs', auto: false });
    await page.getByText('Session ended').waitFor();
    await drawn(page);
    assert.equal(await page.locator('.jump').isVisible(), false);
    await page.goto(`${mock.url}#/sessions/none`);
    await page.getByRole('alert').filter({ hasText: 'unknown session `none`' }).waitFor();
    assert.equal(await page.getByLabel('Show in the timeline').isVisible(), false);
  });

  test('who comes first is told what to run, and nothing is said to be verified', async (t) => {
    const { page, mock } = await visit(t, { mock: { state: nothing() } });
    await reads(page.locator('.empty'), /No session yet[\s\S]*amplifier chat --serve[\s\S]*appears here/);
    await reads(page.locator('#proven'), /^No records yet$/);
    for (const [hash, words] of [['#/approvals', 'No open approval requests.'], ['#/approvals/history', 'No decisions yet.'], ['#/approvals/rules', 'No rules.'], ['#/hooks', 'No hook calls yet.'], ['#/audit', 'No records yet']]) {
      await page.goto(mock.url + hash);
      await page.locator('main').getByText(words).waitFor();
      assert.equal(await page.locator('main table').filter({ visible: true }).count(), 0, hash);
    }
  });

  test('thousands of entries stay quick', async (t) => {
    // How quick the machine is right now is seen by a session of a hundred entries.
    const opened = async (entries) => {
      const mock = await startMock({ open: 0 });
      for (let n = 0; n < entries; n += 1) mock.state.add('s-berths', { turn: 8 + Math.floor(n / 100), event: 'tool:pre', data: { tool_name: 'bash', tool_input: { command: `step ${n}` }, tool_call_id: `c${n}` }, hooks: [{ hook: 'a', answer: 'continue', duration_ns: 1 }] });
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
    const timer = setInterval(() => mock.say({ type: 'session', session: { ...session, tool_calls: (session.tool_calls += 1), updated_at: new Date().toISOString() } }), 10);
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
    await page.getByText('Interrupt again to stop at once').waitFor();
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
    await page.getByText('End requested.').waitFor();
    await page.goto(`${mock.url}#/sessions/s-harbour`);
    await page.getByRole('button', { name: 'Interrupt' }).click();
    await page.getByText('Interrupt again to stop at once').waitFor();
    assert.deepEqual(mock.state.commands.map((one) => one.what), ['prompt', 'end', 'interrupt']);
  });
});

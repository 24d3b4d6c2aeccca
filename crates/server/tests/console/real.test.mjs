// The console in a real browser, against the real server and real sessions. What is done in the browser is checked at the other end as well: what
// the session did, and what the audit log says.

import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createServer } from 'node:http';
import { after, before, describe } from 'node:test';
import { fileURLToPath } from 'node:url';
import { faults } from './axe.mjs';
import { openBrowser } from './browser.mjs';
import { BUNDLE, FILES, RAISE } from './harbour.mjs';
import { Place } from './place.mjs';
import { HOSTILE, HOSTILE_LONG } from './story.mjs';
import { drawn, patient, reads, settled, test, unfold, until, within } from './waits.mjs';

/** @type {import('playwright-core').Browser} */
let browser;
before(async () => { browser = await openBrowser(); });
after(() => within(browser?.close(), () => 'the browser is closed'));

const TOUCH = [{ text: 'I make the file.', tools: [{ name: 'Bash', input: { command: 'touch made' } }] }, { text: 'Done.' }];

async function placed(t, { answers, ...how } = {}) {
  const place = await Place.make(how);
  t.after(() => place.remove());
  await place.serve({ answers });
  return place;
}

/** @type {WeakMap<import('playwright-core').Page, any[]>} everything that the server has told a page */
const heard = new WeakMap();
/** @type {WeakMap<import('playwright-core').Page, string>} the key that a page has sent last */
const keys = new WeakMap();

/** Lets a browser in by a link of its own. The test fails if the page breaks its own rules. */
async function enter(t, place, { name = 'ada', role = 'admin', hash = '', context = {} } = {}) {
  const opened = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', ...context });
  const page = await opened.newPage();
  await patient(page);
  heard.set(page, []);
  page.on('request', (request) => { if (request.headers()['x-amplifier-key']) keys.set(page, request.headers()['x-amplifier-key']); });
  page.on('websocket', (socket) => socket.on('framereceived', ({ payload }) => heard.get(page).push(JSON.parse(String(payload)))));
  const problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    if (/Content Security Policy|TypeError|ReferenceError/.test(message.text())) problems.push(message.text());
  });
  t.after(async () => {
    await within(opened.close(), () => 'the page is closed');
    assert.deepEqual(problems, []);
  });
  await page.goto(await place.link(name, role));
  await live(page);
  if (hash) await page.goto(`${place.server.url}/${hash}`);
  return page;
}

const live = (page) => page.waitForFunction(() => document.getElementById('link')?.textContent === 'Live');
/** Waits until the countdown shows another time, which takes up to a second. */
const otherTime = async (page) => {
  const time = dialog(page).locator('.left strong');
  const before = await time.innerText();
  await until(async () => (await time.innerText()) !== before, () => 'the countdown runs');
};

const dialog = (page) => page.getByRole('dialog');
const option = (page, label) => dialog(page).locator('.option').filter({ has: page.locator('.label', { hasText: new RegExp(`^${label}$`) }) });

/** Answers as soon as the dialog takes answers. */
async function answer(page, label) {
  const button = option(page, label);
  await button.and(page.locator('[aria-disabled="false"]')).waitFor();
  await button.click();
}

const asked = (page, prompt) => dialog(page).getByRole('heading', { name: prompt }).waitFor();
const decisions = async (place) => (await place.recorded('approval_decision')).map(({ hook, granted, basis, by }) => ({ hook, granted, basis, by: by ?? null }));

describe('questions', () => {
  test('allowed in the browser: it is done, and the log says who said so, and where', async (t) => {
    const place = await placed(t);
    const page = await enter(t, place, { name: 'grace', role: 'approver' });
    const run = await place.run('Make it', TOUCH);
    await asked(page, 'Run `touch made`?');
    assert.equal(place.has('harbour/made'), false);
    const told = await dialog(page).innerText();
    for (const part of ['confirm', 'Bash', 'touch made', 'tool:pre', place.at('harbour'), 'then denied']) assert.ok(told.includes(part), `${part} in ${told}`);
    assert.match(await dialog(page).locator('.digest').innerText(), /^[0-9a-f]{64}$/);
    await answer(page, 'Allow once');
    await dialog(page).waitFor({ state: 'hidden' });
    const { code, out, err } = await run.end;
    assert.deepEqual([code, out], [0, 'I make the file.\nDone.\n'], err);
    assert.equal(place.has('harbour/made'), true);
    assert.deepEqual(await decisions(place), [{ hook: 'confirm', granted: true, basis: 'answer', by: { name: 'grace', via: 'console' } }]);
    await page.goto(`${place.server.url}/#/approvals/history`);
    await page.getByRole('cell', { name: /grace in the console after/ }).waitFor();
  });

  test('denied in the browser: it is not done, and the agent is told', async (t) => {
    const place = await placed(t);
    const page = await enter(t, place);
    const run = await place.run('Make it', [TOUCH[0], { when: 'denied', text: 'Then I leave it.' }, { text: 'I went on.' }]);
    await asked(page, 'Run `touch made`?');
    await settled(page);
    await page.keyboard.press('3');
    const { code, out, err } = await run.end;
    assert.deepEqual([code, out], [3, 'I make the file.\nThen I leave it.\n'], err);
    assert.match(err, /User denied: Run `touch made`\?/);
    assert.equal(place.has('harbour/made'), false);
    assert.deepEqual(await decisions(place), [{ hook: 'confirm', granted: false, basis: 'answer', by: { name: 'ada', via: 'console' } }]);
  });

  test('nobody answers: it is denied when the time is up, the page says so, and a late answer is refused', async (t) => {
    const place = await placed(t, { rules: { 'confirm:Run `until *`?': 'allow' } });
    const page = await enter(t, place);
    const awaits = (file) => ({ tools: [{ name: 'Bash', input: { command: `until [ -e ${file} ]; do sleep 0.05; done` } }] });
    const script = [awaits('go'), TOUCH[0], awaits('over'), { text: 'Nobody is there.' }];
    const run = await place.run('Make it', script, { more: ['--approval-timeout', '10'] });
    // It asks when the server hears it, and stays until the late answer has come.
    await until(async () => (await place.api('GET', '/api/sessions')).body.sessions.some((session) => session.connected), () => `the session is connected: ${run.err}`);
    await place.write('harbour/go', '');
    await asked(page, 'Run `touch made`?');
    // Not asked for now: the time may be up already.
    const [question] = heard.get(page).filter((message) => message.type === 'approval_requested').map((message) => message.approval);
    await reads(page.locator('.outcome'), /Denied\s*no answer in time/);
    const late = await place.api('POST', `/api/approvals/${question.id}/answer`, { option: 'Allow once', nonce: question.nonce });
    assert.deepEqual([late.status, late.body.error.code], [409, 'late'], JSON.stringify(late));
    await place.write('harbour/over', '');
    const { code, out, err } = await run.end;
    assert.deepEqual([code, out], [3, 'I make the file.\nNobody is there.\n']);
    assert.match(err, /Approval timed out, denied by default: Run `touch made`\?/);
    assert.equal(place.has('harbour/made'), false);
    const decided = (await decisions(place)).filter(({ basis }) => basis !== 'rule');
    assert.deepEqual(decided, [{ hook: 'confirm', granted: false, basis: 'timeout', by: null }]);
    assert.deepEqual((await place.recorded('late_answer')).map(({ answer, by }) => [answer, by]), [['Allow once', { name: 'ada', via: 'api' }]]);
  });

  test('two browsers race: the first one counts, and the other is told by whom', async (t) => {
    const place = await placed(t);
    const page = await enter(t, place, { name: 'grace', role: 'approver' });
    const other = await enter(t, place, { name: 'bob', role: 'approver' });
    const run = await place.run('Make it', TOUCH);
    for (const one of [page, other]) await asked(one, 'Run `touch made`?');
    for (const one of [page, other]) await option(one, 'Deny').and(one.locator('[aria-disabled="false"]')).waitFor();
    // At the same moment, as far as that can be done. One says yes, the other no.
    await Promise.all([option(page, 'Allow once').evaluate((button) => button.click()), option(other, 'Deny').evaluate((button) => button.click())]);
    const { code, err } = await run.end;
    const [decided, ...more] = await decisions(place);
    assert.deepEqual(more, []);
    const winner = decided.by.name;
    assert.equal(code, winner === 'grace' ? 0 : 3, err);
    assert.deepEqual(decided, { hook: 'confirm', granted: winner === 'grace', basis: 'answer', by: { name: winner, via: 'console' } });
    assert.equal(place.has('harbour/made'), winner === 'grace');
    const loser = winner === 'grace' ? other : page;
    await reads(loser.locator('.outcome'), new RegExp(`${winner === 'grace' ? 'Allowed' : 'Denied'}\\s*Answered by ${winner} in the console`));
    await dialog(winner === 'grace' ? page : other).waitFor({ state: 'hidden' });
  });

  for (const signal of ['SIGTERM', 'SIGKILL']) {
    test(`the server is started anew (${signal}) while a question is open: page and question come back, and the answer counts`, async (t) => {
      const place = await placed(t);
      const page = await enter(t, place);
      const run = await place.run('Make it', TOUCH);
      await asked(page, 'Run `touch made`?');
      await place.stop(signal);
      await dialog(page).getByText('The connection to the session is lost. You can answer again').waitFor();
      assert.equal(await option(page, 'Allow once').getAttribute('aria-disabled'), 'true');
      await place.serve();
      await live(page);
      await answer(page, 'Allow once');
      const { code, err } = await run.end;
      assert.equal(code, 0, err);
      assert.equal(place.has('harbour/made'), true);
      assert.deepEqual(await decisions(place), [{ hook: 'confirm', granted: true, basis: 'answer', by: { name: 'ada', via: 'console' } }]);
      await page.goto(`${place.server.url}/#/audit`);
      await page.getByText(/Verified up to record/).first().waitFor();
      assert.match((await place.amplifier('audit', 'verify')).out, /^sound: /);
    });
  }

  test('a session that dies with a question open is not said to be denied, and nothing is done', async (t) => {
    const place = await placed(t);
    const page = await enter(t, place, { hash: '#/sessions' });
    const run = await place.run('Make it', TOUCH);
    await asked(page, 'Run `touch made`?');
    run.child.kill('SIGKILL');
    await dialog(page).getByText('The connection to the session is lost').waitFor();
    await dialog(page).getByText('This request is no longer open. The session did not send a decision').waitFor();
    assert.equal(await page.locator('.outcome').count(), 0);
    assert.equal(await dialog(page).locator('.option').count(), 0);
    assert.equal(place.has('harbour/made'), false);
    assert.deepEqual(await decisions(place), []);
    // The page learns that it is gone, though nothing more is recorded of it.
    await page.keyboard.press('Escape');
    await page.locator('.session.gone').filter({ hasText: 'Make it' }).click();
    await reads(page.locator('.entry.tool'), /No answer\s*Run `touch made`\?/);
  });

  test('a session that dies while its answer is on its way is not said to wait for ever', async (t) => {
    const place = await placed(t);
    const page = await enter(t, place);
    const run = await place.run('Make it', TOUCH);
    await asked(page, 'Run `touch made`?');
    await settled(page);
    // It takes no answer any more, and goes.
    run.child.kill('SIGSTOP');
    const sent = page.waitForRequest('**/answer');
    await answer(page, 'Allow once');
    await sent;
    run.child.kill('SIGKILL');
    await dialog(page).getByText('This request is no longer open. The session did not send a decision').waitFor();
    assert.deepEqual([await dialog(page).locator('.option').count(), place.has('harbour/made')], [0, false]);
  });

  test('a prompt that is allowed is told so where it stands, live', async (t) => {
    const place = await placed(t, { bundle: 'hooks:\n  - rule: gate\n    on: prompt:submit\n    ask: May this be worked on?\n    options: [Allow once, Deny]\n' });
    const page = await enter(t, place);
    const run = await place.run('Say it', [{ text: 'A word.' }]);
    await asked(page, 'May this be worked on?');
    await dialog(page).getByRole('link', { name: /^harbour · / }).click();
    const entry = page.locator('.entry.prompt');
    await entry.locator('.waiting-line').getByRole('button', { name: 'Open' }).click();
    await answer(page, 'Allow once');
    const { code, err } = await run.end;
    assert.equal(code, 0, err);
    await page.locator('.state.ended').waitFor();
    await reads(entry, /Say it\s*Allowed\s*May this be worked on\?\s*ada in the console/);
    assert.equal(await page.getByText('No answer').count(), 0);
  });

  test('with more sessions and questions than are told at first, all questions are there, and so is the session that waits', async (t) => {
    const place = await placed(t);
    await place.pretend('the-oldest', 1_120);
    for (let n = 0; n < 230; n += 1) await place.pretend(`one-of-many-${n}`);
    const { body: { approvals } } = await until(async () => {
      const listed = await place.api('GET', '/api/approvals?limit=500');
      return listed.body.pending === 1_120 && listed;
    }, () => 'all questions are asked');
    assert.equal(approvals.length, 500);
    const page = await enter(t, place, { hash: '#/sessions' });
    await page.waitForFunction(() => document.title.startsWith('(1120)'));
    for (const { id, nonce } of approvals) assert.equal((await place.api('POST', `/api/approvals/${id}/answer`, { option: 'Deny', nonce })).status, 200);
    await page.waitForFunction(() => document.title.startsWith('(620)'));
    await page.keyboard.press('Escape');
    await dialog(page).waitFor({ state: 'hidden' });
    await page.locator('#bar-asks').click();
    await asked(page, 'Run step 501?');
    await page.keyboard.press('Escape');
    await reads(page.locator('.session').first(), /Waiting for you[\s\S]*the-oldest/);
    await page.getByLabel('Search sessions').fill('one-of-many-0');
    await until(async () => (await page.locator('.session').count()) === 1, () => 'the search finds one session');
    await reads(page.locator('.session'), /one-of-many-0/);
  });

  test('the page of rules follows what is changed on the command line and with an editor', async (t) => {
    const place = await placed(t, { rules: { 'confirm:Run `ls`?': 'allow' } });
    const page = await enter(t, place, { hash: '#/approvals/rules' });
    await page.getByText('Requests of hook `confirm` with the prompt "Run `ls`?" are allowed without an approver').waitFor();
    assert.equal((await place.amplifier('approvals', 'revoke', '1')).code, 0);
    await page.getByText('No rules.').waitFor();
    await place.write('home/approvals.json', '{ "confirm:');
    await reads(page.locator('.unread li'), /approvals\.json: the approval rules are not of the form .*: EOF while parsing a string at line 1 column 11$/);
  });

  test('a session that is started over the API requests approval in the console', async (t) => {
    const place = await placed(t, { answers: TOUCH });
    const page = await enter(t, place);
    const { status, body: session } = await place.api('POST', '/api/sessions', { workspace: place.at('harbour'), prompt: 'Make it' });
    assert.equal(status, 201, JSON.stringify(session));
    await asked(page, 'Run `touch made`?');
    await answer(page, 'Allow once');
    await until(() => place.has('harbour/made'), () => 'the file is made');
    await page.goto(`${place.server.url}/#/sessions/${session.id}`);
    await reads(page.locator('.entry.tool .approval-line'), /Allowed\s*Run `touch made`\?\s*ada in the console after/);
    await page.getByText('Done.', { exact: true }).waitFor();
    await page.locator('.state.idle').waitFor();
    await page.getByRole('button', { name: 'End', exact: true }).click();
    await page.getByRole('button', { name: 'End session' }).click();
    await page.locator('.state.ended').waitFor();
    assert.deepEqual((await decisions(place)).map((one) => one.by), [{ name: 'ada', via: 'console' }]);
  });

  test('a session is started, prompted and answered all in the console', async (t) => {
    const place = await placed(t, { answers: [{ text: 'What shall I do?' }, ...TOUCH] });
    const page = await enter(t, place, { hash: '#/sessions' });
    await page.getByRole('button', { name: 'New session' }).click();
    await page.getByLabel('Folder').fill(place.at('harbour'));
    await page.getByLabel('First prompt').fill('Good morning');
    await page.getByRole('button', { name: 'Start' }).click();
    await page.getByText('What shall I do?').waitFor();
    await page.locator('.state.idle').waitFor();
    await page.getByLabel('Prompt', { exact: true }).fill('Make it');
    await page.keyboard.press('Enter');
    await asked(page, 'Run `touch made`?');
    await answer(page, 'Deny');
    await reads(page.locator('.entry.denied'), /Bash\s*touch made[\s\S]*Denied\s*Run `touch made`\?\s*ada in the console/);
    assert.equal(place.has('harbour/made'), false);
  });
});

describe('failing hooks', () => {
  const BROKEN = `hooks:
  - name: broken-observer
    command: "echo 'no <b>configuration</b>' >&2; exit 1"
    on: tool:post
  - name: broken-gate
    command: "echo 'no rules' >&2; exit 7"
    on: tool:pre
    when: tool_name == "Bash"
`;

  test('the timeline says once which hook has failed, why, and what came of it', async (t) => {
    const place = await placed(t, { bundle: BROKEN });
    const look = { name: 'Glob', input: { pattern: '*' } };
    const ran = await place.run('Make a file', [{ text: 'I look.', tools: [look] }, { text: 'Again.', tools: [look, { name: 'Bash', input: { command: 'touch made' } }] }, { text: 'It was denied.' }]);
    await ran.end;
    const sessions = async () => (await place.api('GET', '/api/sessions')).body.sessions;
    // The server reads the log a moment later.
    await until(async () => (await sessions()).length > 0, () => 'the session is listed');
    const { id } = (await sessions())[0];
    const page = await enter(t, place, { hash: `#/sessions/${id}` });
    await page.locator('.entry.denied').waitFor();
    const ends = (code, text) => `the command ended with exit code ${code}; its stderr ends with: ${text}`;
    assert.deepEqual(await page.locator('.message-line.warning').allInnerTexts(), [
      `Hook broken-observer: failed at tool:post: ${ends(1, 'no <b>configuration</b>')}; the operation went on without this hook`,
      `Hook broken-gate: failed at tool:pre: ${ends(7, 'no rules')}; the operation was denied`,
    ]);
    assert.equal(await page.locator('.entry.denied').innerText().then((text) => text.includes(`Denied by broken-gate: the hook failed: ${ends(7, 'no rules')}`)), true);
    await page.goto(`${place.server.url}/#/hooks/broken-gate`);
    const call = page.locator('tbody tr').first();
    await call.getByText('failed', { exact: true }).waitFor();
    // On one line: a name that is broken within is hard to read.
    assert.equal(await call.locator('td code').first().evaluate((code) => code.getClientRects().length), 1);
  });
});

describe('who gets in', () => {
  test('a link works once', async (t) => {
    const place = await placed(t);
    const link = await place.link('grace', 'approver');
    const first = await (await browser.newContext()).newPage();
    t.after(() => first.context().close());
    await first.goto(link);
    await live(first);
    await reads(first.locator('#me'), /grace\s*approver/);
    const second = await (await browser.newContext()).newPage();
    t.after(() => second.context().close());
    const refused = await second.goto(link);
    assert.equal(refused.status(), 403);
    assert.match(await second.locator('body').innerText(), /amplifier serve link/);
    await second.goto(place.server.url);
    await second.getByText('Sign in').waitFor();
    assert.equal((await second.context().cookies()).length, 0);
    // Whoever is in stays in while the console is open in a tab: the key is handed over, and kept nowhere.
    const tab = await first.context().newPage();
    await tab.goto(place.server.url);
    await live(tab);
    await first.reload();
    await live(first);
    await tab.close();
    await first.reload();
    await first.getByText('Sign in').waitFor();
    assert.equal((await first.context().cookies()).length, 1);
    await first.goto(await place.link('grace', 'approver'));
    await live(first);
  });

  test('a server on another port learns the cookie, and cannot answer with it', async (t) => {
    const place = await placed(t);
    const page = await enter(t, place, { name: 'ann', role: 'approver' });
    const learnt = [];
    const other = createServer((request, response) => {
      learnt.push(request.headers.cookie ?? '');
      response.end('a page of the agent');
    });
    await new Promise((resolve) => other.listen(0, '127.0.0.1', resolve));
    t.after(() => other.close());
    const run = await place.run('Make it', TOUCH);
    await asked(page, 'Run `touch made`?');
    const visit = await page.context().newPage();
    await visit.goto(`http://127.0.0.1:${other.address().port}/`);
    assert.match(learnt[0], /^amplifier_\d+=/);
    assert.equal(await visit.evaluate(() => localStorage.length), 0);
    await visit.close();
    const { body: { approvals: [question] } } = await place.api('GET', '/api/approvals');
    const response = await fetch(`${place.server.url}/api/approvals/${question.id}/answer`, { method: 'POST', headers: { cookie: learnt[0], origin: place.server.url, 'content-type': 'application/json' }, body: JSON.stringify({ option: 'Allow once', nonce: question.nonce }) });
    assert.equal(response.status, 401);
    assert.equal(place.has('harbour/made'), false);
    await place.api('POST', `/api/approvals/${question.id}/answer`, { option: 'Deny', nonce: question.nonce });
    await run.end;
  });

  test('who enters in another tab of the browser is who answers in all of them', async (t) => {
    const place = await placed(t);
    const page = await enter(t, place, { name: 'ann', role: 'admin' });
    const run = await place.run('Make it', TOUCH);
    await asked(page, 'Run `touch made`?');
    await settled(page);
    const other = await page.context().newPage();
    await other.goto(await place.link('bob', 'approver'));
    await live(other);
    await reads(page.locator('#me'), /bob\s*approver/);
    await asked(page, 'Run `touch made`?');
    await answer(page, 'Allow once');
    await run.end;
    assert.deepEqual((await decisions(place)).map((one) => one.by), [{ name: 'bob', via: 'console' }]);
  });

  test('an admin makes a link on the page, and who opens it is who it was made for', async (t) => {
    const place = await placed(t);
    const page = await enter(t, place);
    await page.getByRole('button', { name: /ada/ }).click();
    await dialog(page).getByLabel('Their name').fill('bob');
    await dialog(page).getByLabel('Their role').selectOption('approver');
    await dialog(page).getByRole('button', { name: 'Create link' }).click();
    const link = await dialog(page).getByLabel('The link').inputValue();
    const other = await (await browser.newContext()).newPage();
    t.after(() => other.context().close());
    await other.goto(link);
    await live(other);
    await reads(other.locator('#me'), /bob\s*approver/);
    await dialog(page).getByLabel('Their name').fill('b\u202Eob');
    await dialog(page).getByRole('button', { name: 'Create link' }).click();
    await dialog(page).getByRole('alert').waitFor();
  });

  test('a viewer sees a question, and cannot answer it, on the page or around it', async (t) => {
    const place = await placed(t);
    const page = await enter(t, place, { name: 'vera', role: 'viewer' });
    const run = await place.run('Make it', TOUCH);
    await asked(page, 'Run `touch made`?');
    await dialog(page).getByText('Your role (viewer)').waitFor();
    assert.equal(await dialog(page).locator('.option').count(), 0);
    // For longer than any question takes to settle.
    for (let n = 0; n < 2; n += 1) await otherTime(page);
    await page.keyboard.press('1');
    const { body: { approvals: [question] } } = await place.api('GET', '/api/approvals');
    const tried = await page.evaluate(async ({ id, nonce, key }) => {
      const response = await fetch(`/api/approvals/${id}/answer`, { method: 'POST', headers: { 'content-type': 'application/json', 'x-amplifier-key': key }, body: JSON.stringify({ option: 'Allow once', nonce }) });
      return [response.status, (await response.json()).error.code];
    }, { ...question, key: keys.get(page) });
    assert.deepEqual(tried, [403, 'role']);
    assert.equal(run.code, null);
    assert.equal(place.has('harbour/made'), false);
    const said = await place.api('POST', `/api/approvals/${question.id}/answer`, { option: 'Deny', nonce: question.nonce });
    assert.equal(said.status, 200);
    await reads(page.locator('.outcome'), /Denied\s*Answered by ada over the API/);
    await run.end;
    assert.deepEqual((await decisions(place)).map((one) => one.by), [{ name: 'ada', via: 'api' }]);
  });
});

const TESTS = `
tests:
  - name: production is asked about
    event: tool:pre
    data: { tool_name: Edit, tool_input: { file_path: config/production.toml } }
    expect: { decision: ask_user, by: production-guard }
  - name: staging is asked about
    event: tool:pre
    data: { tool_name: Edit, tool_input: { file_path: config/staging.toml } }
    expect: { decision: ask_user }
`;
test('a session is watched live: prompt, model, tools, hooks with their answers, injections, and who decided', async (t) => {
  const place = await placed(t, { files: FILES, bundle: BUNDLE });
  const page = await enter(t, place);
  const run = await place.run('Raise the request limit tenfold before the regatta, and prove that the workers sustain it.', RAISE);
  await asked(page, /^Run `echo/);
  await reads(dialog(page), /Task\s*Raise the request limit tenfold[\s\S]*Agent\s*That is not allowed, so I measure it here\./);
  await dialog(page).getByRole('link', { name: /^harbour · / }).click();
  const bash = page.locator('.entry.tool').filter({ hasText: 'sustained: 6,240' });
  await bash.locator('.waiting-line').getByRole('button', { name: 'Open' }).click();
  await answer(page, 'Allow once');
  await asked(page, 'Change the production configuration?');
  const diff = await dialog(page).locator('.diff tr').evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent).join('|')));
  assert.ok(diff.some((row) => /removed: \|workers = 4$/.test(row)) && diff.some((row) => /added: \|workers = 16$/.test(row)), diff.join('\n'));
  assert.match(await dialog(page).innerText(), /The deployment reads this file within a minute/);
  // The command's own guard does not ask about the same action once more.
  await answer(page, 'Allow once');
  const { code, err } = await run.end;
  // One command was denied.
  assert.equal(code, 3, err);
  assert.match(await place.read('harbour/config/production.toml'), /requests_a_minute = 6000/);
  await page.locator('.state.ended').waitFor();
  await page.getByText('The limit is 6,000 requests a minute now.').waitFor();

  await reads(page.locator('.prompt-text'), /before the regatta/);
  const denied = page.locator('.entry.denied');
  await reads(denied, /Bash[\s\S]*STAGING_TOKEN[\s\S]*Denied by secrets-guard: The command sends what looks like a secret/);
  await reads(denied.locator('.hook-chip').filter({ hasText: 'secrets-guard' }), /secrets-guard\s*denies\s*\d/);
  await reads(page.locator('.injection-line').first(), /house-style\s*added context/);
  await reads(page.locator('.message-line').first(), /80 % of the time/);
  await reads(bash, /Allowed\s*Run `echo[\s\S]*ada in the console[\s\S]*confirm\s*asks/);
  const edit = page.locator('.entry.tool').filter({ hasText: 'config/production.toml' }).last();
  await edit.locator('.approval-line').first().waitFor();
  const lines = await edit.locator('.approval-line').allInnerTexts();
  assert.equal(lines.length, 1, lines.join('\n'));
  for (const line of lines) assert.match(line, /Allowed[\s\S]*ada in the console after/);
  for (const chip of ['production-guard', 'confirm']) await reads(edit.locator('.hook-chip').filter({ hasText: chip }), /asks\s*\d/);
  await reads(page.locator('.strip'), /TURNS\s*1\b/i);
  await reads(page.locator('.strip'), /DENIALS\s*1\b/i);
  await page.goto(`${place.server.url}/#/hooks`);
  await page.getByRole('link', { name: 'secrets-guard' }).waitFor();
  // What was typed, run and denied is found again, and the day is summed up.
  await page.goto(`${place.server.url}/#/sessions`);
  for (const [words, part] of [['regatta', 'Prompt'], ['requests_a_minute', 'Input'], ['looks like a secret', 'Reason'], ['change the production', 'Request']]) {
    await page.getByLabel('Search sessions').fill(words);
    await reads(page.locator('.found'), new RegExp(`${part}[\\s\\S]*The whole log was searched`));
  }
  await page.goto(`${place.server.url}/#/`);
  await reads(page.locator('.shares'), /secrets-guard\s*1/);
  await reads(page.getByRole('region', { name: 'Activity' }), /Sessions\s*1\s*Prompts\s*1\s*Tool calls\s*4\s*Denials\s*1/);

  // What real sessions leave behind is as easy to use as what is made up for pictures.
  const { body: { sessions: [{ id }] } } = await place.api('GET', '/api/sessions');
  for (const [colorScheme, viewport] of [['dark', { width: 1280, height: 800 }], ['light', { width: 390, height: 844 }]]) {
    const other = await enter(t, place, { name: 'vera', role: 'admin', context: { colorScheme, viewport, bypassCSP: true } });
    for (const [hash, there] of [['#/', '.columns'], ['#/sessions', '.session'], [`#/sessions/${id}`, '.entry.denied'], ['#/approvals/history', 'tbody tr'], ['#/hooks', 'tbody tr'], ['#/hooks/confirm', 'tbody tr'], ['#/audit', 'tbody tr'], ['#/audit/3', '.facts']]) {
      await other.setViewportSize(viewport);
      await other.goto(`${place.server.url}/${hash}`);
      await other.locator(`main ${there}`).first().waitFor();
      assert.deepEqual(await faults(other), [], `${hash}, ${viewport.width} wide`);
    }
  }
});

test('hooks are tested and read again from the page', async (t) => {
  const place = await placed(t, { files: FILES, bundle: BUNDLE + TESTS, answers: [{ text: 'What shall I do?' }] });
  const page = await enter(t, place, { hash: '#/hooks' });
  await page.getByRole('button', { name: 'Test…' }).click();
  await page.getByRole('button', { name: 'Run tests' }).click();
  await dialog(page).getByText('1 passed, 1 failed.').first().waitFor();
  await reads(dialog(page).locator('.results li').nth(1), /Failed\s*staging is asked about[\s\S]*decision\s*ask_user\s*continue/);
  // The example that the page gives is one that works.
  await dialog(page).getByLabel('Bundle to test').selectOption('text');
  await page.getByRole('button', { name: 'Run tests' }).click();
  await dialog(page).getByText('1 passed, 0 failed.').first().waitFor();
  await dialog(page).getByLabel(/^The bundle/).fill('hooks: [{ rule: odd, on: tool:pre, when: tool_nam == 1, deny: no }]');
  await page.getByRole('button', { name: 'Run tests' }).click();
  await reads(dialog(page).getByRole('alert'), /tool_nam/);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Reload bundles' }).click();
  await page.getByText('No session is connected').first().waitFor();
  const { status } = await place.api('POST', '/api/sessions', { workspace: place.at('harbour'), prompt: 'Good morning' });
  assert.equal(status, 201);
  await until(async () => (await place.api('GET', '/api/sessions?state=idle')).body.sessions.length === 1, () => 'the session waits for a prompt');
  await page.getByRole('button', { name: 'Reload bundles' }).click();
  await page.getByText('Reload requested in 1 session').first().waitFor();
});

test('a log that somebody has changed: the page says from where on, and goes on showing what happens', async (t) => {
  const place = await placed(t);
  await (await place.run('Say it', [{ text: 'The first word.' }])).end;
  await (await place.run('Say more', [{ text: 'The second word.' }])).end;
  const page = await enter(t, place, { hash: '#/audit' });
  await page.getByText(/Verified up to record/).first().waitFor();
  await place.stop();
  const log = await place.read('home/audit/seg-000001.jsonl');
  const broken = log.split('\n').findIndex((line) => line.includes('The second word.'));
  await place.write('home/audit/seg-000001.jsonl', log.replaceAll('The second word.', 'The other word.'));
  await place.serve();
  await live(page);
  await reads(page.locator('.verdict'), new RegExp(`failed verification\\s*Intact up to record ${broken - 1}\\.`));
  await page.getByRole('link', { name: `Record ${broken}`, exact: true }).click();
  await page.getByText('The log is invalid here').waitFor();
  // The writer goes on with numbers that were given already.
  const run = await place.run('Go on', TOUCH);
  await asked(page, 'Run `touch made`?');
  await answer(page, 'Deny');
  await run.end;
  await page.goto(`${place.server.url}/#/sessions`);
  await page.locator('.session.ended').filter({ hasText: 'Go on' }).click();
  await reads(page.locator('.entry.denied'), /Run `touch made`\?\s*ada in the console/);
});

test('hostile text from a real session is harmless everywhere', async (t) => {
  const place = await placed(t);
  const page = await enter(t, place);
  await page.evaluate(() => { globalThis.hacked = undefined; });
  const command = `true ${HOSTILE_LONG.replaceAll('\u0000', '')}`;
  assert.ok(Buffer.byteLength(HOSTILE_LONG) > 100_000);
  const run = await place.run(HOSTILE_LONG, [{ text: HOSTILE_LONG, tools: [{ name: 'Bash', input: { command } }] }, { text: HOSTILE }]);
  const check = async (where) => {
    const found = await page.evaluate(() => [globalThis.hacked ?? null, document.querySelectorAll('main script, main img, main iframe, dialog script, dialog img, dialog pre + script').length, /[\u001b\u202a-\u202e\u2066-\u2069\u200b\u00ad\ufeff\u0007\u{e0041}]/u.test(document.body.textContent ?? ''), document.documentElement.scrollWidth <= innerWidth, /[\u001b\u202e\u200b]/.test(document.title)]);
    assert.deepEqual(found, [null, 0, false, true, false], where);
  };
  await asked(page, /Run `true/);
  await dialog(page).locator('.mark').first().waitFor();
  const told = await dialog(page).innerText();
  assert.ok(told.includes('<script>globalThis.hacked = 1</script>'), told.slice(0, 2_000));
  for (const mark of ['U+001B', 'U+202E', 'U+200B×3', 'U+2066']) assert.ok(told.includes(mark), `${mark} in ${told.slice(0, 2_000)}`);
  await check('the dialog');
  const box = await option(page, 'Deny').boundingBox();
  assert.ok(box && box.y + box.height <= 800 && box.x >= 0 && box.x + box.width <= 1280, `the buttons are in sight: ${JSON.stringify(box)}`);
  await answer(page, 'Deny');
  await run.end;
  // In the log the text is so long that it stands in a file of its own.
  const history = await until(async () => (await place.api('GET', '/api/approvals/history')).body.decisions[0], () => 'the decision is in the log');
  assert.deepEqual([history.granted, history.basis, history.by], [false, 'answer', { name: 'ada', via: 'console' }]);

  const { body: { sessions: [session] } } = await place.api('GET', '/api/sessions');
  for (const [hash, there] of [[`#/sessions/${session.id}`, '.entry.session'], ['#/sessions', '.session'], ['#/approvals/history', 'tbody tr'], ['#/audit', 'tbody tr'], ['#/hooks', 'tbody tr']]) {
    await page.goto(`${place.server.url}/${hash}`);
    await page.locator(`main ${there}`).last().waitFor();
    await drawn(page);
    await check(hash);
    if (!hash.includes(session.id)) continue;
    const prompt = await page.locator('.prompt-text').innerText();
    assert.ok(prompt.includes('<img src=x onerror=') && prompt.includes('U+202E') && prompt.includes('U+001B'), prompt.slice(0, 1_000));
    await reads(page.locator('.entry.denied .approval-line'), /Denied[\s\S]*ada in the console/);
    await page.getByText('Session ended').waitFor();
    for (const one of await page.locator('.more-of-it').all()) await unfold(one);
    await check('all details');
  }
});

test('a picture for the documentation', async (t) => {
  const place = await placed(t, { files: FILES, bundle: BUNDLE, rules: { 'confirm:*': 'allow' } });
  const page = await enter(t, place, { context: { colorScheme: 'light' } });
  const run = await place.run('Raise the request limit tenfold before the regatta, and prove that the workers sustain it.', RAISE);
  await asked(page, 'Change the production configuration?');
  const [approval] = (await place.api('GET', '/api/approvals')).body.approvals;
  await page.goto(`${place.server.url}/#/sessions/${approval.session}`);
  await page.locator('.entry.asks').waitFor();
  await settled(page);
  const picture = fileURLToPath(new URL(process.env.UPDATE_SCREENSHOT === '1' ? '../../../../docs/console.png' : '../../../../target/console.png', import.meta.url));
  await mkdir(dirname(picture), { recursive: true });
  await page.screenshot({ path: picture });
  await page.goto(await place.link('ada', 'admin'));
  await answer(page, 'Deny');
  assert.equal((await run.end).code, 3);
});

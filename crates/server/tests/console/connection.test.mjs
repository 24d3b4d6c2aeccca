// The page loses the server, and finds it again; or something else in its place.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { describe } from 'node:test';
import { KEY, startMock } from './mock.mjs';
import { answered, dialog, soon, visit } from './visit.mjs';
import { nothingSent, reads, settled, test, until } from './waits.mjs';

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
    await page.getByText('This request is no longer open').first().waitFor();
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
    await page.getByText('Reconnected').waitFor();
  });

  test('a session that is opened while the page connects is watched', async (t) => {
    const { page, mock } = await visit(t, { auto: false });
    await page.locator('.session').first().waitFor();
    const { port, state } = mock;
    await mock.stop();
    await page.getByText('The connection to the server is lost').waitFor();
    let open;
    Object.assign(state, { upgrades: 0, isOpen: new Promise((resolve) => { open = resolve; }) });
    const again = await startMock({ port, state });
    t.after(() => again.stop());
    await until(() => state.upgrades > 0, () => 'the page connects');
    await page.locator('.session a').filter({ hasText: 'Berth planner' }).click();
    await page.getByRole('heading', { name: /Berth planner/ }).waitFor();
    assert.deepEqual(state.watches, []);
    open();
    await until(() => state.watches.length > 0, () => 'the page says what it wants to hear of');
    assert.equal(state.watches.at(-1).session, 's-berths');
  });

  // What was decided is read twice in the beginning, because the log may be a moment behind.
  for (const [name, path, times, row, empty, change] of [
    ['rules', '/api/rules', 1, '.rule-card', 'No rules.', (state) => { state.rules = []; }],
    ['history', '/api/approvals/history', 2, 'tbody tr', 'No decisions yet.', (state) => { state.decided = []; }],
  ]) {
    test(`what has changed while the server was away is read again: ${name}`, async (t) => {
      const mock = await startMock();
      const asked = [];
      mock.state.delay = (what) => asked.push(what);
      const { page } = await visit(t, { mock, hash: `#/approvals/${name}`, auto: false });
      await page.locator(`main ${row}`).first().waitFor();
      await until(() => asked.filter((one) => one === path).length === times, () => `${path} ${times} times in ${asked}`);
      const { port, state } = mock;
      await mock.stop();
      await page.getByText('The connection to the server is lost').waitFor();
      change(state);
      const again = await startMock({ port, state });
      t.after(() => again.stop());
      await page.locator('main').getByText(empty).waitFor();
      assert.equal(await page.locator(`main ${row}`).count(), 0);
    });
  }

  test('a role that has changed is seen at once, in an open question too, which settles anew', async (t) => {
    const { page, mock, sent } = await visit(t, { mock: { open: 1, role: 'approver' }, still: true, hash: '#/approvals/rules' });
    await dialog(page).waitFor();
    await page.clock.runFor(1_000);
    await settled(page);
    const [whole] = mock.state.approvals;
    const masked = { ...whole, preview: { ...whole.preview, body: [{ kind: 'plain', text: 'without its secrets' }] } };
    let server = mock;
    const become = async (role, approval) => {
      const { port, state } = server;
      await server.stop();
      state.approvals = [approval];
      server = await startMock({ port, state, role });
      const { stop } = server;
      t.after(() => stop().catch(() => {}));
      await until(() => soon(page, page.locator('#me').getByText(role)), () => `the page knows that the role is ${role}`);
    };
    await become('viewer', masked);
    await dialog(page).getByText('Your role (viewer)').waitFor();
    await reads(page.locator('.diff'), /^\s*without its secrets\s*$/);
    assert.equal(await page.locator('.option').count(), 0);
    assert.equal(await page.getByRole('button', { name: 'Revoke', includeHidden: true }).count(), 0);
    await become('approver', whole);
    await reads(page.locator('.diff'), /requests_a_minute = 6000/);
    await page.getByRole('button', { name: 'Revoke', includeHidden: true }).first().waitFor({ state: 'attached' });
    await page.keyboard.press('1');
    await nothingSent(page, sent);
    await page.clock.runFor(1_000);
    await settled(page);
    await page.keyboard.press('1');
    await answered(server, 1);
  });

  test('who enters in another tab is who this page is from then on, and an open question settles anew for them', async (t) => {
    const { page, mock, sent } = await visit(t, { mock: { open: 1 }, still: true });
    await dialog(page).waitFor();
    await page.clock.runFor(1_000);
    await settled(page);
    await reads(page.locator('#me'), /ada\s*admin/);
    const other = await page.context().newPage();
    // As far as the server is concerned, the browser is bob's before this page can know of it.
    Object.assign(mock.state, { key: 'B'.repeat(43), name: 'bob', role: 'approver' });
    await other.goto(`${mock.url}enter?code=any`);
    await until(() => soon(page, page.locator('#me').getByText('bob')), () => 'the page is that of bob');
    await page.getByText('You are now signed in as bob, with the role approver').first().waitFor();
    await dialog(page).waitFor();
    await page.keyboard.press('1');
    await nothingSent(page, sent);
    assert.equal(await page.getByRole('button', { name: 'New session', includeHidden: true }).count(), 0);
    await page.clock.runFor(1_000);
    await settled(page);
    await page.keyboard.press('1');
    await answered(mock, 1);
    assert.deepEqual(mock.state.decided[0].by, { name: 'bob', via: 'console' });
  });

  test('a click that comes before this page knows of another person counts for nobody', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 1 }, expectErrors: true });
    await dialog(page).waitFor();
    await settled(page);
    Object.assign(mock.state, { key: 'B'.repeat(43), name: 'bob', role: 'approver' });
    // The other tab does not say that somebody has entered there until it is asked.
    const other = await page.context().newPage();
    await other.addInitScript(() => {
      const post = BroadcastChannel.prototype.postMessage;
      BroadcastChannel.prototype.postMessage = function (message) { if (!message.entered) post.call(this, message); };
    });
    await other.goto(`${mock.url}enter?code=any`);
    await other.locator('#me').getByText('bob').waitFor();
    await page.locator('.option').first().click();
    await reads(page.locator('#me'), /bob\s*approver/);
    assert.deepEqual(mock.state.answers, []);
    await settled(page);
    await page.keyboard.press('3');
    await answered(mock, 1);
    assert.deepEqual(mock.state.decided[0].by, { name: 'bob', via: 'console' });
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
    const { page, mock } = await visit(t, { mock: { open: 0 }, still: true });
    await mock.stop();
    await until(() => soon(page, page.getByText('Connection lost').first()), () => 'the page says that the connection is lost');
    const heard = [];
    const stranger = createServer((request, response) => {
      heard.push({ url: request.url, text: JSON.stringify(request.headers) });
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"proof":"none","name":"ada","role":"admin"}');
    });
    await new Promise((resolve) => stranger.listen(mock.port, '127.0.0.1', resolve));
    t.after(() => { stranger.close(); stranger.closeAllConnections(); });
    await until(() => soon(page, page.getByRole('heading', { name: 'Unknown server at this address' })), () => 'the page finds out');
    await page.evaluate(() => window.dispatchEvent(new Event('online')));
    // Longer than a page ever takes to try again; what it had sent would be heard before this.
    await page.clock.runFor(60_000);
    await page.evaluate(() => fetch('/after').then((response) => response.text()));
    assert.deepEqual(heard.map((one) => one.url.split('?')[0]), ['/proof', '/after']);
    assert.match(heard[0].url, /^\/proof\?challenge=[A-Za-z0-9_-]{43}$/);
    assert.ok(!heard[0].text.includes(KEY));
    // When the server is back, the page goes on.
    stranger.closeAllConnections();
    await new Promise((resolve) => stranger.close(resolve));
    const again = await startMock({ state: mock.state, port: mock.port });
    t.after(() => again.stop());
    await page.getByRole('button', { name: 'Check again' }).click();
    await until(() => soon(page, page.getByText('Live', { exact: true })), () => 'the page is live again');
    assert.ok(!(await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, history.state, window.name, location.href]))).includes(KEY));
  });

  test('who is not known is told how to get in', async (t) => {
    const mock = await startMock();
    mock.state.known = false;
    const { page } = await visit(t, { mock, expectErrors: true });
    await page.getByText('amplifier serve link').waitFor();
    assert.equal(await page.locator('.session').count(), 0);
    // To try again helps once the console is open in another tab.
    mock.state.known = true;
    const other = await page.context().newPage();
    await other.addInitScript(() => {
      const post = BroadcastChannel.prototype.postMessage;
      BroadcastChannel.prototype.postMessage = function (message) { if (!message.entered) post.call(this, message); };
    });
    await other.goto(`${mock.url}enter?code=any`);
    await other.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'Sessions' }).waitFor();
  });
});

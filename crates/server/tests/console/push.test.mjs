// Approval requests on a phone: push messages, read by somebody else's program, notifications in a browser, and links that work without scripts.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before } from 'node:test';
import { faults } from './axe.mjs';
import { openBrowser } from './browser.mjs';
import { Place } from './place.mjs';
import { PushService, subscriberKeys } from './push-service.mjs';
import { patient, settled, test, until, within } from './waits.mjs';

/** @type {import('playwright-core').Browser} */
let browser;
before(async () => { browser = await openBrowser(); });
after(() => within(browser?.close(), () => 'the browser is closed'));

const SECRET = 'ghp_0123456789abcdefghijABCDEFGHIJ012345';
const COMMAND = `touch made # ${SECRET}`;
const TOUCH = [{ tools: [{ name: 'Bash', input: { command: COMMAND } }] }, { text: 'Done.' }];

/** A server whose push service is this test. */
async function scene(t) {
  const keys = subscriberKeys();
  const service = await PushService.start(keys);
  const place = await Place.make();
  t.after(async () => {
    await place.remove();
    service.stop();
  });
  await place.write('home/config.toml', `push_services = ["${service.url}"]\n`);
  await place.serve();
  const subscription = { endpoint: service.endpoint, p256dh: keys.p256dh, auth: keys.auth };
  return { place, service, subscription };
}

test('a push message says little, only the device can read it, and its link answers on a page without scripts', async (t) => {
  const { place, service, subscription } = await scene(t);
  const { body: status } = await place.api('GET', '/api/push');
  assert.deepEqual((await place.api('POST', '/api/push', { ...subscription, answers: true })).status, 201);
  const run = await place.run('Make it', TOUCH);
  const opened = await service.next();
  const { body: { approvals: [question] } } = await place.api('GET', '/api/approvals');
  const { link, ...message } = opened.message;
  assert.deepEqual(message, { type: 'approval_requested', id: question.id, title: 'Approval request from confirm', text: message.text, deadline: question.deadline });
  assert.match(message.text, /^Run `touch made # \[redacted kind=.*\nBash in /);
  assert.ok(!JSON.stringify(opened.message).includes(SECRET), 'secrets stay on the server');
  assert.deepEqual([opened.key, opened.size], [status.key, 2_151]);
  assert.deepEqual(Object.keys(opened.claims).sort(), ['aud', 'exp'], 'the push service does not learn the address of this machine');

  const phone = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 390, height: 844 } });
  t.after(() => within(phone.close(), () => 'the page is closed'));
  const page = await phone.newPage();
  await patient(page);
  const referrers = [];
  page.on('request', (request) => referrers.push(request.headers().referer));
  await page.goto(link);
  const text = await page.locator('main').innerText();
  for (const part of [COMMAND, 'confirm', 'Bash', question.digest, place.at('harbour')]) assert.ok(text.includes(part), `${part} in ${text}`);
  assert.ok(await page.locator('.operation').evaluate((operation) => operation.getBoundingClientRect().bottom < document.querySelector('button').getBoundingClientRect().top), 'the operation is above the answers');
  const wide = await page.evaluate(() => [...document.querySelectorAll('main *')].filter((one) => one.getBoundingClientRect().right > 390).map((one) => one.outerHTML.slice(0, 200)));
  assert.deepEqual(wide, [], 'nothing is cut off on a phone');
  assert.equal(place.has('harbour/made'), false);
  await page.getByRole('button', { name: 'Allow once' }).click();
  await page.getByRole('heading', { name: 'Allowed once' }).waitFor();
  assert.equal((await run.end).code, 0, run.err);
  assert.equal(place.has('harbour/made'), true);
  assert.deepEqual(referrers.filter(Boolean), []);
  assert.equal(page.url(), `${place.server.url}/answer`, 'the secret has left the address');
  const [decision] = await place.recorded('approval_decision');
  assert.deepEqual([decision.granted, decision.by], [true, { name: 'ada', via: 'link' }]);

  const closed = await service.next();
  assert.deepEqual([closed.message, closed.topic, closed.size], [{ type: 'approval_closed', id: question.id }, opened.topic, opened.size]);
  await page.goto(link);
  await page.getByRole('heading', { name: 'This link is used or expired' }).waitFor();
  const code = new URL(link).searchParams.get('code');
  await place.stop();
  assert.ok(!(place.server.ran.out + place.server.ran.err).includes(code), 'the secret is not logged');
  assert.ok(!(await place.amplifier('audit', 'export')).out.includes(code), 'the secret is not recorded');
});

test('a link denies with a reason that the model reads', async (t) => {
  const { place, service, subscription } = await scene(t);
  await place.api('POST', '/api/push', { ...subscription, answers: true });
  const run = await place.run('Make it', [TOUCH[0], { when: 'denied', text: 'Then I leave it.' }]);
  const { message: { link } } = await service.next();
  const page = await browser.newPage({ javaScriptEnabled: false });
  t.after(() => within(page.close(), () => 'the page is closed'));
  await patient(page);
  await page.goto(link);
  await page.getByLabel(/Reason/).fill('make it later');
  await page.getByRole('button', { name: 'Deny' }).click();
  await page.getByRole('heading', { name: 'Denied' }).waitFor();
  assert.equal((await run.end).code, 3, run.err);
  const [decision] = await place.recorded('approval_decision');
  assert.match(decision.reason, /\nReason: make it later$/);
  assert.equal(place.has('harbour/made'), false);
});

/** A page whose browser subscribes at the push service of this test: its vendor's cannot be reached. */
async function enter(t, { place, subscription }, role) {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, permissions: ['notifications'], reducedMotion: 'reduce' });
  await context.addInitScript(({ endpoint, p256dh, auth }) => {
    if (!('PushManager' in window)) return;
    const stored = () => (localStorage.getItem('test.subscribed') ? { endpoint, toJSON: () => ({ endpoint, keys: { p256dh, auth } }), unsubscribe: async () => { localStorage.removeItem('test.subscribed'); return true; } } : null);
    PushManager.prototype.subscribe = async (options) => {
      localStorage.setItem('test.subscribed', String(options.applicationServerKey));
      return stored();
    };
    PushManager.prototype.getSubscription = async () => stored();
  }, subscription);
  const page = await context.newPage();
  await patient(page);
  const problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => { if (/Content Security Policy|TypeError|ReferenceError/.test(message.text())) problems.push(message.text()); });
  t.after(async () => {
    await within(context.close(), () => 'the page is closed');
    assert.deepEqual(problems, []);
  });
  await page.goto(await place.link('grace', role));
  await page.waitForFunction(() => document.getElementById('link')?.textContent === 'Live');
  return { context, page };
}

/** The service worker, and the protocol of the browser's developer tools for it. */
async function workerOf(context, page) {
  const worker = context.serviceWorkers()[0] ?? await context.waitForEvent('serviceworker');
  const tools = await context.newCDPSession(page);
  let registration;
  tools.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => { registration = registrations.at(-1)?.registrationId ?? registration; });
  await tools.send('ServiceWorker.enable');
  await until(() => registration, () => 'the service worker is registered');
  const shown = () => worker.evaluate(async () => (await self.registration.getNotifications()).map(({ title, body, tag, data }) => ({ title, body, tag, data })));
  /** Delivers a message until so many notifications are shown: the browser's tools lose one now and then. */
  const deliver = async (origin, message, count) => {
    let last = 0;
    await until(async () => {
      if (Date.now() - last > 3_000) {
        last = Date.now();
        await tools.send('ServiceWorker.deliverPushMessage', { origin, registrationId: registration, data: JSON.stringify(message) });
      }
      return (await shown()).length === count;
    }, () => `${count} notifications are shown after ${JSON.stringify(message)}`);
  };
  return { worker, shown, deliver };
}

test('the switch subscribes this browser, a request becomes a notification, a click opens it, and its end removes it', async (t) => {
  const here = await scene(t);
  const { place, service } = here;
  const { context, page } = await enter(t, here, 'approver');
  await page.getByRole('button', { name: /Access/ }).click();
  await page.getByLabel(/Notify this device/).check();
  await page.locator('#push-answers:not([disabled])').waitFor();
  assert.deepEqual(await faults(page), []);
  const { worker, shown, deliver } = await workerOf(context, page);
  const scopes = await page.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).map((one) => [new URL(one.scope).pathname, navigator.serviceWorker.controller]));
  assert.deepEqual(scopes, [['/console/', null]], 'the worker controls no page');
  await page.getByRole('button', { name: 'Close', exact: true }).click();

  const deny = async (run) => {
    await page.getByRole('dialog').getByRole('heading', { name: /touch made/ }).waitFor();
    await settled(page);
    await page.getByRole('dialog').getByRole('button', { name: /Deny/ }).first().click();
    assert.equal((await run.end).code, 3, run.err);
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
  };
  const first = await place.run('Make it', TOUCH);
  const opened = (await service.next()).message;
  assert.equal(opened.link, undefined, 'a link is sent only if it is wanted');
  await deliver(place.server.url, opened, 1);
  assert.deepEqual(await shown(), [{ title: 'Approval request from confirm', body: opened.text, tag: opened.id, data: { id: opened.id, link: undefined } }]);
  assert.deepEqual(await worker.evaluate(async () => (await self.registration.getNotifications()).flatMap((one) => one.actions)), [], 'a notification has no buttons');
  await deny(first);
  const closed = (await service.next()).message;
  assert.deepEqual(closed, { type: 'approval_closed', id: opened.id });
  await deliver(place.server.url, closed, 0);

  const second = await place.run('Make it', TOUCH);
  const { message } = await service.next();
  await page.getByRole('dialog').getByRole('heading', { name: /touch made/ }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  await deliver(place.server.url, message, 1);
  await worker.evaluate(async () => {
    const [notification] = await self.registration.getNotifications();
    // A click that a test makes gives no right to move the focus, so the page is only told.
    WindowClient.prototype.focus = async function focus() { return this; };
    self.dispatchEvent(new NotificationEvent('notificationclick', { notification }));
  });
  // The page opens the request, and shows it before an answer counts.
  await deny(second);

  await page.getByRole('button', { name: /Access/ }).click();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  assert.deepEqual(JSON.parse(await place.read('home/server/push.json')), []);
  assert.equal(await page.evaluate(() => localStorage.getItem('test.subscribed')), null);
});

test('with the second switch, a click opens the link if no page is in sight', async (t) => {
  const here = await scene(t);
  const { place, service } = here;
  const { context, page } = await enter(t, here, 'approver');
  await page.getByRole('button', { name: /Access/ }).click();
  await page.getByLabel(/Notify this device/).check();
  await page.getByLabel(/without signing in/).check();
  await until(async () => JSON.parse(await place.read('home/server/push.json'))[0]?.answers, () => 'the switch is stored');
  const { worker, deliver } = await workerOf(context, page);
  await page.goto('about:blank');
  const run = await place.run('Make it', TOUCH);
  const { message } = await service.next();
  await deliver(place.server.url, message, 1);
  const opened = await worker.evaluate(async () => {
    const links = [];
    self.clients.openWindow = async (link) => { links.push(link); };
    const notifications = await self.registration.getNotifications();
    const click = (data) => new Promise((resolve) => {
      const event = new NotificationEvent('notificationclick', { notification: notifications[0] });
      Object.defineProperty(event, 'notification', { value: { close() {}, data } });
      event.waitUntil = (opening) => resolve(opening);
      self.dispatchEvent(event);
    });
    await click(notifications[0].data);
    await click({ id: 'any', link: 'https://evil.example/answer?code=x' });
    return links;
  });
  assert.deepEqual(opened, [message.link, '/#/approvals'], 'a link of another server is not opened');
  await page.goto(message.link);
  await page.getByRole('button', { name: 'Deny' }).click();
  await page.getByRole('heading', { name: 'Denied' }).waitFor();
  await run.end;
  const [decision] = await place.recorded('approval_decision');
  assert.deepEqual(decision.by, { name: 'grace', via: 'link' });
});

test('signing out ends the links that a device has', async (t) => {
  const here = await scene(t);
  const { place, service } = here;
  const { page } = await enter(t, here, 'approver');
  await page.getByRole('button', { name: /Access/ }).click();
  await page.getByLabel(/Notify this device/).check();
  await page.getByLabel(/without signing in/).check();
  await until(async () => JSON.parse(await place.read('home/server/push.json'))[0]?.answers, () => 'the switch is stored');
  const run = await place.run('Make it', TOUCH);
  const { message } = await service.next();
  const other = await browser.newPage();
  t.after(() => within(other.close(), () => 'the page is closed'));
  await patient(other);
  await other.goto(message.link);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: /Access/ }).click();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await other.getByRole('button', { name: 'Allow once' }).click();
  await other.getByRole('heading', { name: 'This link is used or expired' }).waitFor();
  await other.goto(message.link);
  await other.getByRole('heading', { name: 'This link is used or expired' }).waitFor();
  assert.equal(place.has('harbour/made'), false);
  run.child.kill('SIGKILL');
});

test('a viewer is notified without links, and the switch for them is not there', async (t) => {
  const here = await scene(t);
  const { page } = await enter(t, here, 'viewer');
  await page.getByRole('button', { name: /Access/ }).click();
  await page.getByLabel(/Notify this device/).check();
  await until(async () => JSON.parse(await here.place.read('home/server/push.json').catch(() => '[]')).length === 1, () => 'the device is stored');
  assert.equal(await page.locator('#push-answers').count(), 0);
  const run = await here.place.run('Make it', TOUCH);
  const { message } = await here.service.next();
  assert.deepEqual(Object.keys(message).sort(), ['deadline', 'id', 'text', 'title', 'type']);
  run.child.kill('SIGKILL');
});

test('a webhook in the configuration gets a link, and answers by it are recorded under the name there', async (t) => {
  const place = await Place.make();
  const received = [];
  const server = createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part)).on('end', () => {
      received.push({ url: request.url, key: request.headers['x-key'], body: JSON.parse(Buffer.concat(parts).toString()) });
      response.end('ok');
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(async () => {
    await place.remove();
    server.closeAllConnections();
    server.close();
  });
  await place.write('home/config.toml', `[[notify]]\nservice = "json"\nurl = "http://127.0.0.1:${server.address().port}/hook"\nname = "release-team"\nheaders = { X-Key = "for \${USER}" }\n`);
  await place.serve();
  const run = await place.run('Make it', TOUCH);
  await until(() => received.length > 0, () => 'a message');
  const [{ url, key, body }] = received;
  assert.deepEqual([url, key, body.tool, body.hook], ['/hook', 'for ada', 'Bash', 'confirm']);
  assert.ok(!JSON.stringify(body).includes(SECRET), 'secrets stay on the server');
  const page = await browser.newPage({ javaScriptEnabled: false });
  t.after(() => within(page.close(), () => 'the page is closed'));
  await patient(page);
  await page.goto(body.link);
  await page.getByRole('button', { name: 'Allow once' }).click();
  await page.getByRole('heading', { name: 'Allowed once' }).waitFor();
  assert.equal((await run.end).code, 0, run.err);
  const [decision] = await place.recorded('approval_decision');
  assert.deepEqual(decision.by, { name: 'release-team', via: 'link' });
});

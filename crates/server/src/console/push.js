// Push messages to this device, also while no page is open. A service worker receives them, and a switch turns them on.

import { get, post, Refused, remove, words } from './api.js';
import { openApprovals } from './approval_dialog.js';
import { el, fill } from './dom.js';
import { failed } from './parts.js';
import { may, on, store } from './store.js';

/** @import {PushStatus} from './types.js' */
/** @typedef {{isOn: boolean, answers: boolean}} DeviceState */

const WORKER = '/console/worker.js';
/** The worker needs no page, so its scope has none. */
const SCOPE = '/console/';

let isOn = false;

/** `true` if push messages notify this device, so that pages need not. */
export function isPushed() {
  return isOn;
}

function isSupported() {
  return 'serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window;
}

/** Opens requests for notifications that were clicked, and ends the subscription of a user who is no longer signed in here. */
export function startPush() {
  if (!isSupported()) return;
  navigator.serviceWorker.addEventListener('message', ({ data }) => {
    if (typeof data?.open === 'string') openApprovals(data.open);
  });
  navigator.serviceWorker.startMessages();
  on('me', async () => {
    if (!store.me || Notification.permission !== 'granted' || !(await subscribed())) return;
    const state = await read().catch(() => null);
    if (state && !state.isOn) await forgetDevice();
  });
}

async function subscribed() {
  const registration = await navigator.serviceWorker.getRegistration(SCOPE);
  return (await registration?.pushManager.getSubscription()) ?? null;
}

/** @param {string} endpoint */
async function deviceId(endpoint) {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(endpoint)));
  return btoa(String.fromCharCode(...digest.slice(0, 16))).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** @returns {Promise<DeviceState>} */
async function read() {
  const subscription = await subscribed();
  /** @type {PushStatus | null} */
  const status = subscription ? await get('/api/push') : null;
  const id = subscription ? await deviceId(subscription.endpoint) : '';
  const device = status?.devices.find((one) => one.id === id);
  isOn = device !== undefined;
  return { isOn, answers: device?.answers ?? false };
}

/** @param {boolean} answers */
async function turnOn(answers) {
  // Browsers ask only after a click.
  if ((await Notification.requestPermission()) !== 'granted') throw new Error('Notifications are blocked in the settings of this browser.');
  /** @type {PushStatus} */
  const { key } = await get('/api/push');
  const registration = await navigator.serviceWorker.register(WORKER, { scope: SCOPE, updateViaCache: 'none' });
  await activated(registration);
  const options = { userVisibleOnly: true, applicationServerKey: key };
  const subscription = await registration.pushManager.subscribe(options).catch(async (error) => {
    // A subscription with the key of another server would never get a message.
    const old = await registration.pushManager.getSubscription();
    if (!old) throw error;
    await old.unsubscribe();
    return registration.pushManager.subscribe(options);
  });
  const { endpoint, keys } = subscription.toJSON();
  await post('/api/push', { endpoint, p256dh: keys?.p256dh, auth: keys?.auth, answers });
  isOn = true;
}

/** @param {ServiceWorkerRegistration} registration */
async function activated(registration) {
  const worker = registration.installing ?? registration.waiting;
  if (registration.active || !worker) return;
  await new Promise((resolve) => worker.addEventListener('statechange', () => { if (worker.state === 'activated') resolve(undefined); }));
}

async function turnOff() {
  const subscription = await subscribed();
  if (subscription) {
    await remove(`/api/push/${await deviceId(subscription.endpoint)}`).catch((error) => {
      if (!(error instanceof Refused) || error.status !== 404) throw error;
    });
  }
  await forgetDevice();
}

/** Ends the subscription in this browser. The server forgets a signed-out device by itself. */
export async function forgetDevice() {
  if (!isSupported()) return;
  isOn = false;
  const registration = await navigator.serviceWorker.getRegistration(SCOPE);
  await (await registration?.pushManager.getSubscription())?.unsubscribe();
  await registration?.unregister();
}

/** The switch "Notify this device". */
export function deviceSwitch() {
  const heading = el('h3', null, 'Notifications');
  if (!isSupported()) {
    return el('section', null, heading, el('p', { class: 'faint' }, 'This browser cannot receive push messages here. They need TLS, or a server on this machine.'));
  }
  const notify = el('input', { type: 'checkbox', id: 'push', disabled: true });
  const answers = el('input', { type: 'checkbox', id: 'push-answers', disabled: true, 'aria-describedby': 'push-hint' });
  const problem = el('div');
  const draw = (/** @type {DeviceState} */ state) => {
    notify.disabled = false;
    notify.checked = state.isOn;
    answers.checked = state.answers;
    answers.disabled = !state.isOn;
  };
  const change = async (/** @type {() => Promise<void>} */ step) => {
    notify.disabled = true;
    answers.disabled = true;
    fill(problem);
    try {
      await step();
    } catch (error) {
      fill(problem, failed(words(error)));
    }
    draw(await read().catch(() => ({ isOn: false, answers: false })));
  };
  notify.addEventListener('change', () => void change(() => (notify.checked ? turnOn(false) : turnOff())));
  answers.addEventListener('change', () => void change(() => turnOn(answers.checked)));
  void change(async () => {});
  return el('section', null, heading,
    el('label', { class: 'check', for: 'push' }, notify, 'Notify this device, also while the console is closed'),
    may('approver') ? el('label', { class: 'check', for: 'push-answers' }, answers, 'Let a notification open its request without signing in') : null,
    may('approver') ? el('p', { class: 'faint small', id: 'push-hint' }, 'Anyone who can read the files of this browser can then answer open requests. Use this on a phone, and not on a machine that runs agents.') : null,
    problem);
}

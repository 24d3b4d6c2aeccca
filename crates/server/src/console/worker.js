// The service worker: shows approval requests as notifications, also while no page is open.
//
// It controls no page and stores nothing. A notification has no buttons: the request is opened, and its operation is seen, before anything is
// answered.

/** @typedef {{type: 'approval_requested', id: string, title: string, text: string, deadline: string, link?: string}} OpenedMessage */
/** @typedef {{type: 'approval_closed', id: string}} ClosedMessage */

/** The types of the page do not have those of a service worker. */
const host = /** @type {any} */ (globalThis);

/** @param {OpenedMessage | ClosedMessage} message */
async function receiveMessage(message) {
  const { registration } = host;
  if (message.type === 'approval_requested') {
    const { id, title, text, link } = message;
    await registration.showNotification(title, { body: text, tag: id, data: { id, link }, requireInteraction: true });
  } else if (message.type === 'approval_closed') {
    for (const shown of await registration.getNotifications({ tag: message.id })) shown.close();
  }
}

/**
 * Opens the request of a notification: in a page that is in sight, by the link of this notification, or in a new page.
 * @param {{id: string, link?: string}} request
 */
async function openRequest({ id, link }) {
  const pages = await host.clients.matchAll({ type: 'window', includeUncontrolled: true });
  // A page that was opened by a sign-in link keeps that address here.
  const consoles = pages.filter((/** @type {any} */ page) => ['/', '/enter'].includes(new URL(page.url).pathname));
  const isOwn = link !== undefined && new URL(link).origin === host.location.origin;
  // A page in the background may be signed out or discarded by now, but the link works.
  const page = consoles.find((/** @type {any} */ page) => page.visibilityState === 'visible' || !isOwn);
  if (!page) return host.clients.openWindow(isOwn ? link : '/#/approvals');
  const focused = await page.focus();
  focused.postMessage({ open: id });
}

host.addEventListener('push', (/** @type {any} */ event) => {
  event.waitUntil(receiveMessage(event.data.json()));
});
host.addEventListener('notificationclick', (/** @type {any} */ event) => {
  event.notification.close();
  event.waitUntil(openRequest(event.notification.data));
});

// Alerts for a page in the background: title, icon and notifications.

import { byId } from './dom.js';
import { openApprovals } from './approval_dialog.js';
import { isPushed } from './push.js';
import { on, openCount, queue, store } from './store.js';
import { plain } from './text.js';

/** @import {OpenApproval} from './types.js' */

const icon = /** @type {HTMLLinkElement} */ (byId('favicon'));
const WANTED = 'amplifier.notify';
let title = 'Amplifier';
/** @type {Map<string, Notification>} */
const shownNow = new Map();
/** @type {Set<string>} */
const told = new Set();

/** @param {string} words */
export function setTitle(words) {
  title = words;
  mark();
}

function mark() {
  const open = openCount();
  const is = `${open ? `(${open}) ` : ''}${title}`;
  if (document.title !== is) document.title = is;
  const broken = store.audit?.sound === false;
  const href = open || broken ? `data:image/svg+xml,${encodeURIComponent(drawing(broken ? '!' : open > 9 ? '9+' : String(open)))}` : '/console/favicon.svg';
  if (icon.href !== href && icon.getAttribute('href') !== href) icon.href = href;
}

/** @param {string} words */
function drawing(words) {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#1f6f6b"/><path d="M7 17.8v-3.6M11.5 21V11M16 25V7" stroke="#fff" stroke-width="2.6" stroke-linecap="round" fill="none"/><circle cx="21.5" cy="21.5" r="10.5" fill="#c2410c"/><text x="21.5" y="26.5" font-family="sans-serif" font-weight="700" font-size="14" text-anchor="middle" fill="#fff">${words}</text></svg>`;
}

/** The state of notifications: on, off or unavailable. */
export function notifications() {
  if (!('Notification' in window) || Notification.permission === 'denied') return 'unavailable';
  return Notification.permission === 'granted' && localStorage.getItem(WANTED) === 'yes' ? 'on' : 'off';
}

/** Call this from a click: browsers ask for permission only then. */
export async function toggleNotifications() {
  if (notifications() === 'on') localStorage.setItem(WANTED, 'no');
  else if ('Notification' in window && (await Notification.requestPermission()) === 'granted') localStorage.setItem(WANTED, 'yes');
  return notifications();
}

export function startAlerts() {
  on('audit', mark);
  on('approvals', (/** @type {OpenApproval | undefined} */ asked) => {
    mark();
    for (const [id, one] of shownNow) {
      if (!store.approvals.has(id)) {
        one.close();
        shownNow.delete(id);
      }
    }
    const news = asked ? [asked] : queue();
    if (notifications() !== 'on' || isPushed() || !document.hidden) {
      for (const one of news) told.add(one.id);
      return;
    }
    for (const approval of news) {
      if (told.has(approval.id)) continue;
      told.add(approval.id);
      try {
        const note = new Notification(`Approval request from ${plain(approval.hook, 60)}`, { body: plain(approval.prompt), tag: approval.id, icon: '/console/favicon.svg' });
        note.addEventListener('click', () => {
          window.focus();
          openApprovals(approval.id);
          note.close();
        });
        shownNow.set(approval.id, note);
      } catch {
        // Some phones offer notifications to service workers only; the title and the icon still tell.
      }
    }
  });
  mark();
}

// The page: routing, navigation and bars.

import { openAccess } from './access.js';
import { startAlerts, setTitle } from './alerts.js';
import { approvalsView, ruleForm } from './approvals.js';
import { auditView, recordView } from './audit.js';
import { openApprovals, startApprovalDialog } from './approval_dialog.js';
import { add, announce, byId, el, fill, icon, toast } from './dom.js';
import { count } from './format.js';
import { hooksView, hookView } from './hooks.js';
import { openHelp, startKeyboard } from './keyboard.js';
import { overviewView } from './overview.js';
import { isOther, perFrame } from './parts.js';
import { startPush } from './push.js';
import { sessionView } from './session.js';
import { sessionsView } from './sessions.js';
import { recheckServer, may, on, openCount, queue, retryNow, start, store, whose } from './store.js';
import { plain, shown } from './text.js';

/** @import {View} from './dom.js' */

const main = byId('main');
/** @type {View | null} */
let view = null;
/** The user and role of the current view. */
let reader = '';
let isFirst = true;

/** @returns {View} */
function routed() {
  const [area = '', ...rest] = location.hash.replace(/^#\/?/, '').split('/').map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  const inner = rest.join('/');
  if (area === 'sessions' && inner) return sessionView(inner);
  if (area === 'approvals') return approvalsView(inner === 'history' || inner === 'rules' ? inner : 'open');
  if (area === 'hooks') return inner ? hookView(inner) : hooksView();
  if (area === 'audit') return /^\d{1,15}$/.test(inner) ? recordView(Number(inner)) : auditView();
  if (area === 'sessions') return sessionsView();
  if (area === '' || area === 'overview') return overviewView();
  return notFound();
}

/** @returns {View} */
function notFound() {
  return { title: 'Page not found', root: el('div', { class: 'view' }, el('header', { class: 'top' }, el('h1', { tabindex: -1 }, 'Page not found')), el('p', null, 'The console has no page at this address. ', el('a', { href: '#/' }, 'Go to the overview'), '.')) };
}

function route() {
  view?.close?.();
  view = null;
  if (store.link === 'unknown' || store.link === 'strange') {
    setTitle('Amplifier');
    fill(main, store.link === 'unknown' ? unknown() : strange());
    document.body.classList.add('outside');
    return;
  }
  document.body.classList.remove('outside');
  if (!store.me) return waiting();
  reader = whose();
  view = routed();
  name(view);
  fill(main, view.root);
  window.scrollTo(0, 0);
  if (!isFirst) /** @type {HTMLElement | null} */ (main.querySelector('h1'))?.focus({ preventScroll: true });
  isFirst = false;
  nav();
}

/** The view before the user is known. */
function waiting() {
  fill(main, el('div', { class: 'view' }, el('p', { class: 'faint' }, 'Waiting for the server…')));
}

/** Redraws the page when the signed-in user or role changes. */
function greet() {
  const isAnother = reader !== whose();
  if (!store.me || !reader || (view && !isAnother)) return;
  route();
  if (!isAnother) return;
  for (const one of document.querySelectorAll('dialog[open]:not(#question)')) /** @type {HTMLDialogElement} */ (one).close();
  toast(['You are now signed in as ', el('strong', null, shown(store.me.name, { limit: 60, more: false })), `, with the role ${store.me.role}.`]);
  announce(`You are now signed in as ${plain(store.me.name, 60)}, with the role ${store.me.role}.`);
}

/** @param {View} of */
function name(of) {
  setTitle(`${of.title} · Amplifier`);
}

/** The view without a signed-in user. */
function unknown() {
  return el('div', { class: 'view door' }, el('div', { class: 'card' }, icon('approvals'), el('h1', { tabindex: -1 }, 'Sign in'),
    el('p', null, 'Create a one-time link on the machine that runs the server:'), el('pre', null, 'amplifier serve link'),
    el('p', null, 'Open the link in this browser within ten minutes. You are then signed in.'),
    el('p', { class: 'faint' }, 'Your session may have expired. After a reload, you stay signed in only while the console is open in another tab, because the key of this browser is never written to disk.'),
    el('button', { type: 'button', class: 'primary', onclick: () => location.reload() }, 'Try again')));
}

/** The view when an unknown server replies. A reload would run that server's code. */
function strange() {
  return el('div', { class: 'view door' }, el('div', { class: 'card' }, icon('mark'), el('h1', { tabindex: -1 }, 'Unknown server at this address'),
    el('p', null, 'This is not the server that signed this browser in, so nothing is sent to it. Another program may be using the port.'),
    el('p', null, 'Do not reload this page. Find the program that uses the port, start the server again, and then:'),
    el('button', { type: 'button', class: 'primary', onclick: () => recheckServer() }, 'Check again')));
}

const AREAS = [['overview', 'Overview', 'overview'], ['sessions', 'Sessions', 'sessions'], ['approvals', 'Approvals', 'approvals'], ['hooks', 'Hooks', 'hooks'], ['audit', 'Audit log', 'audit']];

const nav = perFrame(() => {
  const at = location.hash.replace(/^#\/?/, '').split('/')[0] || 'overview';
  const list = byId('areas');
  if (list.childElementCount === 0) {
    for (const [id, label, sign] of AREAS) list.append(el('li', null, el('a', { href: id === 'overview' ? '#/' : `#/${id}`, id: `nav-${id}` }, icon(sign ?? ''), el('span', { class: 'label' }, label), el('span', { class: 'count num', id: `count-${id}` }))));
  }
  const waiting = openCount();
  const live = [...store.sessions.values()].filter((one) => one.state === 'running' || one.state === 'waiting').length;
  for (const [id = ''] of AREAS) {
    const link = byId(`nav-${id}`);
    if (id === at) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
    const badge = byId(`count-${id}`);
    const words = id === 'approvals' && waiting ? count(waiting) : id === 'sessions' && live ? count(live) : id === 'audit' && store.audit?.sound === false ? '!' : '';
    const told = id === 'approvals' ? ' open' : id === 'sessions' ? ' running' : ' the log is broken';
    if (badge.textContent !== (words ? words + told : '')) fill(badge, words, words ? el('span', { class: 'sr' }, told) : null);
    badge.classList.toggle('loud', id === 'approvals' || id === 'audit');
  }
  around();
}, 60);

/** The foot of the side bar, and the bars above the view. */
function around() {
  const audit = store.audit;
  if (isOther(byId('proven'), [audit?.sound, audit?.verified_to, audit?.size])) fill(byId('proven'), audit ? el('a', { href: '#/audit', class: audit.sound ? 'proven' : 'proven broken' }, icon(audit.sound ? 'approvals' : 'mark'),
    el('span', null, audit.sound ? (audit.verified_to > 0 ? `Verified up to record ${count(audit.verified_to - 1)}` : audit.size > 0 ? 'Verifying…' : 'No records yet') : 'The audit log is broken')) : null);
  if (isOther(byId('link'), store.link)) fill(byId('link'), el('span', { class: `link ${store.link}` }, el('span', { class: 'lamp', 'aria-hidden': 'true' }), store.link === 'live' ? 'Live' : store.link === 'lost' ? 'Connection lost' : 'Connecting…'));
  const held = document.activeElement?.id;
  if (isOther(byId('me'), store.me)) fill(byId('me'), store.me ? el('button', { type: 'button', class: 'quiet small', id: 'access', title: 'Access', onclick: openAccess }, icon('person'), el('span', { class: 'me-name' }, shown(store.me.name, { limit: 40, more: false })), el('span', { class: 'faint' }, store.me.role), el('span', { class: 'sr' }, 'Access')) : null);
  if (held === 'access') document.getElementById(held)?.focus();
  bars();
}

function bars() {
  const box = byId('bars');
  const seconds = store.link === 'lost' ? Math.max(0, Math.ceil((store.retryAt - Date.now()) / 1_000)) : 0;
  const open = openCount();
  const [first] = queue();
  const isAtAudit = location.hash.startsWith('#/audit');
  if (!isOther(box, [store.link, seconds, store.audit?.sound, store.audit?.problems[0], isAtAudit, store.busy, open, first?.prompt, store.me?.role])) return;
  const held = document.activeElement?.id;
  fill(box);
  if (store.link === 'lost') {
    add(box, el('div', { class: 'bar lost', role: 'status' }, icon('link'), el('span', null, 'The connection to the server is lost. Sessions continue. ', el('span', { class: 'num', 'aria-hidden': 'true' }, seconds > 0 ? `Next try in ${seconds} s.` : 'Trying…')), el('button', { type: 'button', id: 'retry', class: 'small', onclick: retryNow }, 'Try now')));
  }
  if (store.link !== 'unknown' && store.audit?.sound === false && !isAtAudit) {
    const first = store.audit.problems[0];
    add(box, el('a', { class: 'bar broken', href: '#/audit', id: 'bar-broken' }, icon('mark'), el('span', null, el('strong', null, 'The audit log failed verification'), first?.seq === undefined ? '.' : ` from record ${count(first.seq)} on.`)));
  }
  if (store.busy && store.link === 'live') {
    const busy = store.busy;
    add(box, el('div', { class: 'bar busy', role: 'status' }, icon('hooks'), el('span', null, el('strong', null, shown(busy.hook, { limit: 60, more: false })), ` sent ${count(busy.asked)} approval requests in ${count(busy.seconds)} seconds. `, may('approver') ? el('span', { class: 'aside' }, 'A rule can answer future requests. Open requests still need their own answers.') : ''),
      may('approver') ? el('button', { type: 'button', id: 'bar-rule', class: 'small', onclick: () => ruleForm({ hook: busy.hook, pattern: busy.pattern }) }, 'Review rule…') : null));
  }
  if (first && store.link !== 'unknown' && store.link !== 'strange') {
    add(box, el('button', { type: 'button', class: 'bar asks', id: 'bar-asks', onclick: () => openApprovals() }, icon('question'), el('span', null, el('strong', null, open === 1 ? '1 open approval request' : `${count(open)} open approval requests`), el('span', { class: 'bar-prompt' }, ': ', shown(first.prompt, { limit: 120, more: false }))), el('span', { class: 'go' }, may('approver') ? 'Answer' : 'View')));
  }
  if (held && ['retry', 'bar-rule', 'bar-asks', 'bar-broken'].includes(held)) document.getElementById(held)?.focus();
}

const THEME = 'amplifier.theme';
/** @type {Record<string, [string, string]>} the next one, and its name */
const THEMES = { auto: ['light', 'Auto'], light: ['dark', 'Light'], dark: ['auto', 'Dark'] };

function theme() {
  const button = byId('theme');
  const is = () => document.documentElement.dataset.theme ?? 'auto';
  const draw = () => {
    const name = THEMES[is()]?.[1] ?? '';
    fill(button, icon(is() === 'light' ? 'sun' : is() === 'dark' ? 'moon' : 'auto'), el('span', { class: 'label' }, name));
    button.setAttribute('aria-label', `Colours: ${name}`);
  };
  const set = (/** @type {string} */ to) => {
    if (to === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = to;
  };
  set(localStorage.getItem(THEME) ?? 'auto');
  button.addEventListener('click', () => {
    const to = THEMES[is()]?.[0] ?? 'auto';
    localStorage.setItem(THEME, to);
    set(to);
    draw();
  });
  draw();
}

// Sticky elements need the height of the bars.
new ResizeObserver(([entry]) => document.documentElement.style.setProperty('--bars', `${entry?.borderBoxSize[0]?.blockSize ?? 0}px`)).observe(byId('bars'));
// On a phone, notes are above the bars.
new ResizeObserver(([entry]) => document.documentElement.style.setProperty('--notes', `${entry?.borderBoxSize[0]?.blockSize ?? 0}px`)).observe(byId('toasts'));
theme();
// The fragment of the address is the route, so the skip link must not change it.
byId('skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
startApprovalDialog();
startAlerts();
startKeyboard();
byId('keys').addEventListener('click', openHelp);
startPush();
addEventListener('hashchange', route);
let was = store.link;
on('link', (link) => {
  if ([was, link].some((one) => one === 'unknown' || one === 'strange')) route();
  was = link;
  nav();
});
on('again', (wasLost) => {
  if (wasLost) toast('Reconnected. Nothing was missed.', 'good');
});
on('busy', nav);
on('me', () => {
  greet();
  nav();
});
on('sessions', () => {
  // A session's name may arrive after its page is open.
  if (view) name(view);
  nav();
});
on('approvals', nav);
on('audit', nav);
setInterval(() => {
  if (store.link === 'lost') bars();
}, 1_000);

// The first view is drawn when user and data are known, so that nothing jumps.
const begun = on('link', (link) => {
  if (link === 'unknown' || (link !== 'live' && !store.me)) return;
  begun();
  route();
});
void start().then(() => {
  if (!view && store.link === 'lost') waiting();
  nav();
});
window.addEventListener('error', (event) => toast(`Something went wrong on this page: ${plain(event.message)}`, 'bad'));

// The state of the page, and the stream that keeps it up to date. After a lost connection, the stream continues from its cursor.

import { doubt, get, onReplaced, onStrange, onUnknown, protocols, Refused, retryProof } from './api.js';
import { folderName, setClock, shortId } from './format.js';

/** @import {ApprovalFlood, AuditStatus, DecidedApproval, LogRecord, Me, OpenApproval, Session} from './types.js' */
/** @typedef {'connecting' | 'live' | 'lost' | 'unknown' | 'strange'} Link `unknown`: not signed in; `strange`: an unknown server replied */
/** @typedef {'me' | 'link' | 'sessions' | 'approvals' | 'closed' | 'busy' | 'rules' | 'audit' | 'records' | 'again'} Topic */
/**
 * The state received from the server.
 * @typedef {object} Told
 * @property {Me | null} me
 * @property {Map<string, Session>} sessions active ones, and the newest others
 * @property {boolean} hasOlder `true` if there are more
 * @property {Map<string, OpenApproval>} approvals
 * @property {number} unread number of open requests that are not loaded yet
 * @property {ApprovalFlood | null} busy
 * @property {AuditStatus | null} audit
 * @property {number | null} cursor
 */

/** @returns {Told} */
function nothing() {
  return { me: null, sessions: new Map(), hasOlder: false, approvals: new Map(), unread: 0, busy: null, audit: null, cursor: null };
}

export const store = {
  /** @type {Link} */
  link: 'connecting',
  /** When the next try is due, while the link is lost. */
  retryAt: 0,
  ...nothing(),
};

/** @type {Map<Topic, Set<(value: any) => void>>} */
const listeners = new Map();

/**
 * Subscribes to changes. Returns a function that unsubscribes.
 * @param {Topic} topic
 * @param {(value: any) => void} tell
 * @returns {() => void}
 */
export function on(topic, tell) {
  const those = listeners.get(topic) ?? new Set();
  listeners.set(topic, those);
  those.add(tell);
  return () => those.delete(tell);
}

/**
 * @param {Topic} topic
 * @param {any} [value]
 */
function tell(topic, value) {
  for (const one of [...(listeners.get(topic) ?? [])]) one(value);
}

/** @param {'approver' | 'admin'} role */
export function may(role) {
  const order = ['viewer', 'approver', 'admin'];
  return order.indexOf(store.me?.role ?? 'viewer') >= order.indexOf(role);
}

/** The user and role that the page is drawn for. */
export function whose() {
  return store.me ? `${store.me.role} ${store.me.name}` : '';
}

/** Time limit for the hello message: a connection without one is closed, or the page would wait for ever. */
const HELLO_MS = 15_000;
// Only a session's own page needs all of its events; elsewhere the beginnings and ends of sessions are enough.
const QUIET = { event: 'session:*' };
/** @type {{session?: string, event?: string}} */
let filter = QUIET;
/** @type {WebSocket | null} */
let socket = null;
let tries = 0;
/** @type {number | undefined} */
let timer;
let hasBeenLive = false;
/** Number of hello messages; responses to requests from before the last one are outdated. */
let hellos = 0;

/** Number of requests or sessions per page. */
const PAGE = 1_000;
/** Delay before a failed request is repeated. */
const AGAIN_MS = 2_000;

/** @param {string | null} session the session to receive all events of */
export function watch(session) {
  filter = session ? { session } : QUIET;
  choose();
}

/** Sends the filter of events, if connected. */
function choose() {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type: 'watch', ...filter, after: store.cursor ?? undefined }));
}

export async function start() {
  onUnknown(() => setLink('unknown'));
  onStrange(() => setLink('strange'));
  onReplaced(() => {
    setLink('connecting');
    forget();
    void connect();
  });
  addEventListener('online', () => retryNow());
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden && store.link === 'lost') retryNow();
  });
  await connect();
}

/** Makes the server at this address prove itself again. */
export function recheckServer() {
  if (store.link !== 'strange') return;
  retryProof();
  setLink('connecting');
  void connect();
}

/** Tries at once. */
export function retryNow() {
  if (store.link !== 'lost') return;
  clearTimeout(timer);
  void connect();
}

/** @param {Link} link */
function setLink(link) {
  store.link = link;
  tell('link', link);
  if (link === 'unknown' || link === 'strange') forget();
}

/** Drops all state when the user changes or is signed out. */
function forget() {
  clearTimeout(timer);
  const old = socket;
  socket = null;
  old?.close();
  hellos += 1;
  tries = 0;
  Object.assign(store, nothing());
  ordered = [];
  for (const topic of /** @type {Topic[]} */ (['me', 'sessions', 'approvals', 'busy', 'audit'])) tell(topic);
}

async function connect() {
  try {
    store.me = await get('/api/me');
    tell('me');
  } catch (error) {
    // A new sign-in has already started another attempt.
    const isOver = error instanceof Refused && error.code === 'replaced';
    if (!isOver && store.link !== 'unknown' && store.link !== 'strange') later();
    return;
  }
  // A stream that begins with a session is limited to that session; this one covers all.
  const query = new URLSearchParams(QUIET);
  if (store.cursor !== null) query.set('after', String(store.cursor));
  const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
  const mine = new WebSocket(`${scheme}://${location.host}/api/stream?${query}`, protocols());
  // A parallel attempt is dropped.
  socket?.close();
  socket = mine;
  const limit = setTimeout(() => {
    if (mine !== socket) return;
    socket = null;
    mine.close();
    later();
  }, HELLO_MS);
  mine.addEventListener('open', () => {
    if (filter !== QUIET) choose();
  });
  mine.addEventListener('message', (event) => {
    if (mine !== socket) return;
    clearTimeout(limit);
    let message;
    try {
      message = JSON.parse(event.data);
    } catch {
      return;
    }
    onMessage(message);
  });
  mine.addEventListener('close', () => {
    clearTimeout(limit);
    doubt();
    if (mine !== socket || store.link === 'unknown' || store.link === 'strange') return;
    later();
  });
}

function later() {
  tries += 1;
  const wait = Math.min(10_000, 400 * 1.7 ** Math.min(tries, 12)) * (0.75 + Math.random() / 2);
  store.retryAt = Date.now() + wait;
  clearTimeout(timer);
  timer = setTimeout(() => void connect(), wait);
  setLink('lost');
}

/** @param {any} message */
function onMessage(message) {
  switch (message.type) {
    case 'hello': {
      setClock(message.now);
      store.me = message.me ?? store.me;
      store.sessions = new Map((message.sessions ?? []).map((/** @type {Session} */ one) => [one.id, one]));
      store.hasOlder = message.known > store.sessions.size;
      before = undefined;
      store.approvals = new Map((message.approvals ?? []).map((/** @type {OpenApproval} */ one) => [one.id, one]));
      ordered = [...store.approvals.values()].sort((a, b) => Date.parse(a.deadline) - Date.parse(b.deadline));
      store.unread = Math.max(0, message.pending - store.approvals.size);
      settled.clear();
      hellos += 1;
      store.audit = message.audit ?? store.audit;
      store.cursor ??= message.cursor ?? null;
      store.busy = readBusy(message.busy);
      if (store.unread > 0) void readOpen();
      const again = hasBeenLive;
      const wasLost = store.link === 'lost';
      hasBeenLive = true;
      tries = 0;
      setLink('live');
      tell('me');
      tell('sessions');
      tell('approvals');
      tell('busy');
      tell('audit');
      // The server also sends hello again after skipped messages.
      if (again) tell('again', wasLost);
      break;
    }
    case 'records':
      store.cursor = message.cursor ?? store.cursor;
      tell('records', /** @type {LogRecord[]} */ (message.records ?? []));
      break;
    case 'session':
      store.sessions.set(message.session.id, message.session);
      tell('sessions', message.session);
      break;
    case 'approval_requested':
      settled.delete(message.approval.id);
      keep(message.approval);
      tell('approvals', message.approval);
      break;
    case 'approval_closed':
      drop(message.id);
      tell('closed', { id: message.id, decided: /** @type {DecidedApproval} */ (message.decided) });
      tell('approvals');
      break;
    case 'approval_flood':
      store.busy = readBusy(message.busy);
      tell('busy');
      break;
    case 'rules':
      tell('rules');
      break;
    case 'audit':
      store.audit = message.audit;
      tell('audit');
      break;
    default:
  }
}

/**
 * @param {any} busy
 * @returns {ApprovalFlood | null}
 */
function readBusy(busy) {
  if (!busy) return null;
  return { asked: busy.asked, seconds: busy.seconds, hook: busy.suggestion?.hook ?? busy.hook, pattern: busy.suggestion?.pattern ?? busy.pattern ?? '' };
}

/** @type {OpenApproval[]} the open requests, the most urgent first */
let ordered = [];
/** @type {Set<string>} requests closed since the last hello: a list that was being loaded may still contain them */
const settled = new Set();

/** The loaded open requests, the most urgent first. */
export function queue() {
  return ordered;
}

/** The number of open requests. */
export function openCount() {
  return store.approvals.size + store.unread;
}

/** @param {OpenApproval} approval */
function keep(approval) {
  if (store.approvals.has(approval.id)) ordered = ordered.filter((one) => one.id !== approval.id);
  store.approvals.set(approval.id, approval);
  // Binary search: there may be ten thousand requests, which arrive one by one.
  const deadline = Date.parse(approval.deadline);
  let [from, to] = [0, ordered.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (Date.parse(ordered[middle]?.deadline ?? '') <= deadline) from = middle + 1;
    else to = middle;
  }
  ordered.splice(from, 0, approval);
}

/** @param {string} id */
function drop(id) {
  if (settled.has(id)) return;
  settled.add(id);
  ordered = ordered.filter((one) => one.id !== id);
  if (!store.approvals.delete(id) && store.unread > 0) store.unread -= 1;
}

/**
 * Removes a request that the server's response reported as closed.
 * @param {string} id
 */
export function acceptClosed(id) {
  drop(id);
  tell('approvals');
}

/** Loads the requests that the first message omitted. Updates from the stream are newer than the loaded ones. */
async function readOpen() {
  const mine = hellos;
  /** @type {string | undefined} */
  let after;
  for (;;) {
    /** @type {{approvals: OpenApproval[], pending: number} | null} */
    const page = await get('/api/approvals', { after, limit: PAGE }).catch(() => null);
    if (mine !== hellos) return;
    if (!page) {
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      if (mine !== hellos || store.link !== 'live') return;
      continue;
    }
    for (const one of page.approvals) {
      if (!settled.has(one.id) && !store.approvals.has(one.id)) keep(one);
    }
    after = page.approvals.at(-1)?.created_at;
    const isEnd = page.approvals.length < PAGE;
    store.unread = isEnd ? 0 : Math.max(0, page.pending - store.approvals.size);
    tell('approvals');
    if (isEnd) return;
  }
}

/** @type {string | undefined} older sessions were last updated before this time */
let before;

/** Loads a page of older sessions. */
export async function readOlder() {
  const mine = hellos;
  /** @type {{sessions: Session[]}} */
  const page = await get('/api/sessions', { before, limit: PAGE });
  if (mine !== hellos) return;
  // Updates from the stream are newer.
  for (const one of page.sessions) if (!store.sessions.has(one.id)) store.sessions.set(one.id, one);
  before = page.sessions.at(-1)?.updated_at;
  store.hasOlder = page.sessions.length >= PAGE;
  tell('sessions');
}

/**
 * A session's name, or a substitute.
 * @param {string} id
 * @param {OpenApproval} [asked] a request of the session, which may arrive before the session
 */
export function sessionName(id, asked) {
  const session = store.sessions.get(id);
  return asked?.session_name || session?.name || `${folderName(session?.workspace ?? asked?.workspace) || 'session'} · ${shortId(id)}`;
}

/** @param {Session} session */
export function acceptSession(session) {
  onMessage({ type: 'session', session });
}

/** @param {AuditStatus} audit */
export function acceptAudit(audit) {
  onMessage({ type: 'audit', audit });
}

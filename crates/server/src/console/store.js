// What the page knows, and the stream that keeps it up to date. After a break the stream goes on from its cursor.

import { doubt, get, onStrange, onUnknown, protocols, trustAgain } from './api.js';
import { folderName, setClock } from './format.js';

/** @import {Approval, AuditStatus, Busy, Decided, LogRecord, Me, Session} from './types.js' */
/** @typedef {'connecting' | 'live' | 'lost' | 'unknown' | 'strange'} Link `unknown`: the server does not know who this is; `strange`: it is not the server */
/** @typedef {'me' | 'link' | 'sessions' | 'approvals' | 'closed' | 'busy' | 'rules' | 'audit' | 'events' | 'again'} Topic */

export const store = {
  /** @type {Me | null} */
  me: null,
  /** @type {Link} */
  link: 'connecting',
  /** When the next try is due, while the link is lost. */
  retryAt: 0,
  /** @type {Map<string, Session>} */
  sessions: new Map(),
  /** @type {Map<string, Approval>} */
  approvals: new Map(),
  /** @type {Busy | null} */
  busy: null,
  /** @type {AuditStatus | null} */
  audit: null,
  /** @type {number | null} */
  cursor: null,
};

/** @type {Map<Topic, Set<(value: any) => void>>} */
const listeners = new Map();

/**
 * Hears of changes. Gives back what stops that.
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

/** A server that is there says hello at once; a connection on which nothing comes is given up, or the page would wait for ever. */
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

/** @param {string | null} session the session whose events are wanted */
export function watch(session) {
  filter = session ? { session } : QUIET;
  choose();
}

/** Says which events are wanted, if somebody is there to hear it. */
function choose() {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type: 'watch', ...filter, after: store.cursor ?? undefined }));
}

export async function start() {
  onUnknown(() => setLink('unknown'));
  onStrange(() => setLink('strange'));
  addEventListener('online', () => retryNow());
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden && store.link === 'lost') retryNow();
  });
  await connect();
}

/** Asks what answers at this address once more who it is. */
export function askAgain() {
  if (store.link !== 'strange') return;
  trustAgain();
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
  if (link === 'unknown' || link === 'strange') {
    clearTimeout(timer);
    socket?.close();
  }
  tell('link', link);
}

async function connect() {
  try {
    store.me = await get('/api/me');
    tell('me');
  } catch {
    if (store.link !== 'unknown' && store.link !== 'strange') later();
    return;
  }
  // A stream that begins with a session tells of nothing else; this one is to hear of all of them.
  const query = new URLSearchParams(QUIET);
  if (store.cursor !== null) query.set('after', String(store.cursor));
  const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
  const mine = new WebSocket(`${scheme}://${location.host}/api/stream?${query}`, protocols());
  // One that was tried at the same time tells of nothing any more.
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
    hear(message);
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
function hear(message) {
  switch (message.type) {
    case 'hello': {
      setClock(message.now);
      store.me = message.me ?? store.me;
      store.sessions = new Map((message.sessions ?? []).map((/** @type {Session} */ one) => [one.id, one]));
      store.approvals = new Map((message.approvals ?? []).map((/** @type {Approval} */ one) => [one.id, one]));
      store.audit = message.audit ?? store.audit;
      store.cursor ??= message.cursor ?? null;
      if ('busy' in message) store.busy = readBusy(message.busy);
      else void get('/api/approvals').then((said) => hear({ type: 'busy', busy: said?.busy }), () => {});
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
      // The server also says hello again when it could not keep up with telling everything.
      if (again) tell('again', wasLost);
      break;
    }
    case 'events':
      store.cursor = message.cursor ?? store.cursor;
      tell('events', /** @type {LogRecord[]} */ (message.events ?? []));
      break;
    case 'session':
      store.sessions.set(message.session.id, message.session);
      tell('sessions', message.session);
      break;
    case 'asked':
      store.approvals.set(message.approval.id, message.approval);
      tell('approvals', message.approval);
      break;
    case 'closed':
      store.approvals.delete(message.id);
      tell('closed', { id: message.id, decided: /** @type {Decided} */ (message.decided) });
      tell('approvals');
      break;
    case 'busy':
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
 * @returns {Busy | null}
 */
function readBusy(busy) {
  if (!busy) return null;
  return { asked: busy.asked, seconds: busy.seconds, hook: busy.suggestion?.hook ?? busy.hook, pattern: busy.suggestion?.pattern ?? busy.pattern ?? '' };
}

/** The open questions, the most urgent first. */
export function queue() {
  return [...store.approvals.values()].sort((a, b) => Date.parse(a.deadline) - Date.parse(b.deadline));
}

/**
 * A session's name, or what stands for it.
 * @param {string} id
 * @param {Approval} [asked] a question of the session, which may be here before it
 */
export function sessionName(id, asked) {
  const session = store.sessions.get(id);
  // Ids begin with the time, so those of one morning differ at their ends only.
  return asked?.session_name || session?.name || `${folderName(session?.workspace ?? asked?.workspace) || 'session'} · ${id.slice(-6)}`;
}

/** @param {Session} session */
export function acceptSession(session) {
  hear({ type: 'session', session });
}

/** @param {AuditStatus} audit */
export function acceptAudit(audit) {
  hear({ type: 'audit', audit });
}

// Numbers and times for people.

import { el } from './dom.js';

/** Offset of the server's clock, in milliseconds. */
let ahead = 0;

/** @param {string | undefined} now the current server time */
export function setClock(now) {
  const at = Date.parse(now ?? '');
  if (!Number.isNaN(at)) ahead = at - Date.now();
}

/** The time by the server's clock. */
export function serverNow() {
  return Date.now() + ahead;
}

/** @param {number | undefined | null} value */
export function count(value) {
  return (value ?? 0).toLocaleString('en');
}

/**
 * A count with its noun: `1 record`, `2 records`.
 * @param {number | undefined | null} value
 * @param {string} thing
 */
export function counted(value, thing) {
  return `${count(value)} ${thing}${value === 1 ? '' : 's'}`;
}

/**
 * A sum of money. An incomplete one is a lower bound.
 * @param {{amount: number, currency: string, incomplete: boolean}} cost
 */
export function money({ amount, currency, incomplete }) {
  const digits = amount === 0 || amount >= 1 ? 2 : 4;
  return `${incomplete ? '≥ ' : ''}${amount.toFixed(digits)} ${currency}`;
}

/** @param {number | undefined | null} value */
export function short(value) {
  const n = value ?? 0;
  if (n < 10_000) return n.toLocaleString('en');
  if (n < 1_000_000) return `${(n / 1_000).toFixed(n < 100_000 ? 1 : 0)}k`;
  return `${(n / 1_000_000).toFixed(1)}M`;
}

/**
 * A length of time given in nanoseconds.
 * @param {number | undefined | null} ns
 */
export function nanos(ns) {
  const n = ns ?? 0;
  if (n < 1_000) return `${Math.round(n)} ns`;
  if (n < 1_000_000) return `${digits(n / 1_000)} µs`;
  if (n < 1_000_000_000) return `${digits(n / 1_000_000)} ms`;
  return `${digits(n / 1_000_000_000)} s`;
}

/** @param {number} n */
function digits(n) {
  return n < 10 ? n.toFixed(1) : Math.round(n).toString();
}

/**
 * A length of time given in milliseconds, as a person would say it.
 * @param {number} ms
 */
export function span(ms) {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  const s = ms / 1_000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 60) return `${Math.round(s)} s`;
  if (s < 3_600) return `${Math.floor(s / 60)} min ${String(Math.floor(s % 60)).padStart(2, '0')} s`;
  if (s < 86_400) return `${Math.floor(s / 3_600)} h ${String(Math.floor((s % 3_600) / 60)).padStart(2, '0')} min`;
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3_600)} h`;
}

/**
 * The remaining time.
 * @param {number} ms
 */
export function clock(ms) {
  const s = Math.max(0, Math.ceil(ms / 1_000));
  if (s >= 3_600) return `${Math.floor(s / 3_600)}:${String(Math.floor((s % 3_600) / 60)).padStart(2, '0')}:${String(s % 60).padStart(2, '0')}`;
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}`;
}

/** @param {string} at */
export function fullTime(at) {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? String(at).slice(0, 40) : date.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'long' });
}

/**
 * The time of day, as in a timeline.
 * @param {string} at
 */
export function timeOfDay(at) {
  const date = new Date(at);
  const text = Number.isNaN(date.getTime()) ? '–' : date.toLocaleTimeString('en-GB', { hour12: false });
  return el('time', { datetime: at, title: fullTime(at), class: 'num' }, text);
}

/** @param {string} at */
function relative(at) {
  const ms = serverNow() - Date.parse(at);
  if (Number.isNaN(ms)) return '–';
  if (ms < 10_000) return 'now';
  const s = ms / 1_000;
  if (s < 60) return `${Math.floor(s)} s ago`;
  if (s < 3_600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86_400) return `${Math.floor(s / 3_600)} h ago`;
  return new Date(at).toLocaleDateString(undefined, { day: 'numeric', month: 'short' });
}

/**
 * A relative time, kept up to date.
 * @param {string} at
 */
export function ago(at) {
  return el('time', { datetime: at, title: fullTime(at), class: 'num ago' }, relative(at));
}

setInterval(() => {
  for (const node of document.querySelectorAll('time.ago')) {
    const words = relative(node.getAttribute('datetime') ?? '');
    if (node.textContent !== words) node.textContent = words;
  }
}, 5_000);

/**
 * The short form of a session id, as the command prints it. Ids begin with the time, so those of one morning differ at their ends only.
 * @param {string} id
 */
export function shortId(id) {
  return id.slice(-6);
}

/**
 * The last part of a folder's path.
 * @param {string | undefined} path
 */
export function folderName(path) {
  const parts = (path ?? '').split('/').filter(Boolean);
  return parts.at(-1) ?? path ?? '';
}

/**
 * The agent program of a session, its version and its model.
 * @param {import('./types.js').Session} session
 */
export function agentName({ client, model }) {
  return [[client?.name, client?.version].filter(Boolean).join(' '), model].filter(Boolean).join(' · ');
}

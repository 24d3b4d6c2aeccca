// A period of time as a filter: a usual one, or from one day to another.

import { el } from './dom.js';
import { serverNow } from './format.js';

/** @typedef {{choice: string, from: string, to: string}} Period */

const HOUR = 3_600_000;
/** @type {[string, string, number][]} the value, its name, and its length in milliseconds */
const CHOICES = [['', 'Any time', 0], ['hour', 'Last hour', HOUR], ['day', 'Last 24 hours', 24 * HOUR], ['week', 'Last 7 days', 168 * HOUR], ['between', 'Between…', 0]];

/** @returns {Period} */
export function anyTime() {
  return { choice: '', from: '', to: '' };
}

/**
 * The bounds of a period, as times of the API. The last day belongs to it.
 * @param {Period} period
 * @returns {{since?: string, until?: string}}
 */
export function bounds({ choice, from, to }) {
  const length = CHOICES.find(([value]) => value === choice)?.[2] ?? 0;
  if (length) return { since: new Date(serverNow() - length).toISOString() };
  if (choice !== 'between') return {};
  const day = (/** @type {string} */ text, /** @type {number} */ days) => {
    const date = new Date(`${text}T00:00`);
    if (!text || Number.isNaN(date.getTime())) return undefined;
    date.setDate(date.getDate() + days);
    return date.toISOString();
  };
  const [since, until] = [day(from, 0), day(to, 1)];
  return { ...(since ? { since } : {}), ...(until ? { until } : {}) };
}

/**
 * Fields for a period.
 * @param {Period} period is changed
 * @param {() => void} changed
 */
export function periodFields(period, changed) {
  const choice = el('select', { 'aria-label': 'Time', class: 'period' }, CHOICES.map(([value, label]) => el('option', { value, selected: period.choice === value }, label)));
  const from = el('input', { type: 'date', 'aria-label': 'First day', value: period.from });
  const to = el('input', { type: 'date', 'aria-label': 'Last day', value: period.to });
  const days = el('span', { class: 'days', hidden: period.choice !== 'between' }, from, el('span', { class: 'faint', 'aria-hidden': 'true' }, '–'), to);
  const read = () => {
    Object.assign(period, { choice: choice.value, from: from.value, to: to.value });
    days.hidden = choice.value !== 'between';
    changed();
  };
  for (const one of [choice, from, to]) one.addEventListener('input', read);
  return [choice, days];
}

// The filter of sessions: text, state, client and time.

import { el, fill } from './dom.js';
import { count } from './format.js';
import { isOther, STATES } from './parts.js';
import { anyTime, bounds, periodFields } from './period.js';
import { plain } from './text.js';

/** @import {Session} from './types.js' */
/** @typedef {ReturnType<typeof newFilter>} Filter */

/** Sessions with denied operations, in any state. */
const DENIED = 'denied';
/** States with sessions that may not be loaded yet. */
const MAY_BE_OLDER = new Set(['', 'ended', 'failed', 'gone', DENIED]);

export function newFilter() {
  return { text: '', state: '', client: '', period: anyTime() };
}

/** @param {Filter} filter */
export function isFiltered({ text, state, client, period }) {
  return Boolean(text.trim() || state || client || period.choice);
}

/** @param {Filter} filter `true` if sessions that are not loaded yet may match */
export function mayBeOlder({ state }) {
  return MAY_BE_OLDER.has(state);
}

/**
 * `true` if the session matches everything but the text.
 * @param {Session} session
 * @param {Filter} filter
 */
export function fits(session, { state, client, period }) {
  const { since, until } = bounds(period);
  const [started, updated] = [Date.parse(session.started_at), Date.parse(session.updated_at)];
  return (!state || (state === DENIED ? session.denials > 0 : session.state === state))
    && (!client || session.client?.name === client)
    && (!since || updated >= Date.parse(since)) && (!until || started < Date.parse(until));
}

/**
 * `true` if the name, the folder, the prompt or the id of the session contains the text.
 * @param {Session} session
 * @param {string} text
 */
export function contains(session, text) {
  const wanted = text.trim().toLowerCase();
  return !wanted || [session.name, session.workspace, session.prompt, session.id].some((field) => field?.toLowerCase().includes(wanted));
}

/**
 * The fields of a filter.
 * @param {Filter} filter is changed
 * @param {() => void} changed
 */
export function filterFields(filter, changed) {
  const search = el('input', { type: 'search', placeholder: 'Search names and content', 'aria-label': 'Search sessions', value: filter.text });
  const chips = el('div', { class: 'chips', role: 'group', 'aria-label': 'State' });
  const client = el('select', { 'aria-label': 'Client', hidden: true });
  search.addEventListener('input', () => { filter.text = search.value; changed(); });
  client.addEventListener('input', () => { filter.client = client.value; changed(); });
  const root = el('div', null, el('div', { class: 'filters' }, search, client, periodFields(filter.period, changed)), chips);
  return {
    root,
    /**
     * @param {Session[]} all
     * @param {boolean} hasOlder
     */
    draw(all, hasOlder) {
      root.hidden = all.length === 0;
      /** @type {Record<string, number>} */
      const states = {};
      for (const one of all) states[one.state] = (states[one.state] ?? 0) + 1;
      const denied = all.filter((one) => one.denials > 0).length;
      if (isOther(chips, [states, denied, filter.state, hasOlder])) {
        const held = document.activeElement?.id;
        const chip = (/** @type {string} */ state, /** @type {string} */ label, /** @type {number} */ n) => el('button', { type: 'button', class: 'chip', id: `state-${state || 'all'}`, 'aria-pressed': String(filter.state === state), onclick: () => { filter.state = state; changed(); } }, label, ' ', el('span', { class: 'num faint' }, count(n), hasOlder && MAY_BE_OLDER.has(state) ? '+' : ''));
        fill(chips, chip('', 'All', all.length), Object.entries(STATES).filter(([state]) => states[state] || filter.state === state).map(([state, label]) => chip(state, state === 'waiting' ? 'Waiting' : label, states[state] ?? 0)),
          denied || filter.state === DENIED ? chip(DENIED, 'With denials', denied) : null);
        if (held?.startsWith('state-')) document.getElementById(held)?.focus();
      }
      const clients = [...new Set(all.map((one) => one.client?.name ?? '').filter(Boolean))].sort();
      client.hidden = clients.length === 0;
      if (isOther(client, clients)) fill(client, el('option', { value: '' }, 'Any client'), clients.map((name) => el('option', { value: name, selected: filter.client === name }, plain(name, 60))));
    },
  };
}

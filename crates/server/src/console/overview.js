// The first page: what needs attention, and the activity of the last day.

import { get, words } from './api.js';
import { columns, shares } from './charts.js';
import { el, fill, icon } from './dom.js';
import { ago, count, counted, folderName, money, short } from './format.js';
import { openApprovals } from './approval_dialog.js';
import { failed, isOther, perFrame, stateBadge } from './parts.js';
import { may, on, openCount, queue, sessionName, store } from './store.js';
import { plain, shown } from './text.js';

/** @import {View} from './dom.js' */
/** @import {Activity, ActivityCounts, Cost, Session} from './types.js' */

const DAY_MS = 86_400_000;
/** Interval of new figures. */
const EVERY_MS = 30_000;
/** Number of listed sessions of each kind. */
const MOST = 5;
/** @type {[string, string, number][]} the value, its name, and its hours */
const PERIODS = [['24', 'Last 24 hours', 24], ['168', 'Last 7 days', 168], ['744', 'Last 31 days', 744]];
/** The period; stays while the page is open. */
let hours = 24;

/** @returns {View} */
export function overviewView() {
  const attention = el('section', { class: 'attention', 'aria-label': 'Needs attention' });
  const figures = el('section', { 'aria-label': 'Activity' });
  const period = el('select', { 'aria-label': 'Period of the activity' }, PERIODS.map(([value, label, length]) => el('option', { value, selected: length === hours }, label)));
  let isClosed = false;
  let latest = 0;

  const drawAttention = perFrame(() => {
    if (isClosed) return;
    const recent = [...store.sessions.values()].filter((one) => Date.now() - Date.parse(one.updated_at) < DAY_MS).sort((a, b) => Date.parse(b.updated_at) - Date.parse(a.updated_at));
    const bad = recent.filter((one) => one.state === 'failed' || one.state === 'gone');
    const hooks = recent.filter((one) => one.errors > 0 && !bad.includes(one));
    const active = recent.filter((one) => (one.state === 'running' || one.state === 'waiting') && !hooks.includes(one));
    const audit = store.audit;
    if (!isOther(attention, [queue().slice(0, MOST), openCount(), bad, hooks, active, audit?.sound, audit?.problems[0], store.sessions.size])) return;
    const calm = openCount() === 0 && bad.length === 0 && hooks.length === 0 && audit?.sound !== false;
    fill(attention,
      el('h2', null, 'Needs attention'),
      audit?.sound === false ? el('a', { class: 'card alarm', href: '#/audit' }, icon('mark'), el('span', null, el('strong', null, 'The audit log failed verification.'), ' ', shown(audit.problems[0]?.text ?? '', { limit: 160, more: false }))) : null,
      openCount() ? group(counted(openCount(), 'open approval request'), queue().slice(0, MOST).map((one) => el('li', { class: 'asks' }, el('button', { type: 'button', class: 'row-button', onclick: () => openApprovals(one.id) }, el('span', { class: 'grow' }, shown(one.prompt, { limit: 140, more: false }), el('span', { class: 'faint small' }, shown(sessionName(one.session, one), { limit: 60, more: false }))), el('span', { class: 'go' }, may('approver') ? 'Answer' : 'View')))), '#/approvals', openCount()) : null,
      bad.length ? group('Failed or gone', bad.slice(0, MOST).map(line), '#/sessions', bad.length) : null,
      hooks.length ? group('Failing hooks', hooks.slice(0, MOST).map(line), '#/hooks', hooks.length) : null,
      calm ? el('p', { class: 'card calm' }, icon('check'), 'Nothing needs your attention.') : null,
      active.length ? group('Active now', active.slice(0, MOST).map(line), '#/sessions', active.length) : null);
  }, 200);

  const read = async () => {
    if (document.hidden) return;
    const mine = ++latest;
    try {
      /** @type {Activity} */
      const activity = await get('/api/activity', { hours });
      if (!isClosed && mine === latest) drawFigures(figures, activity);
    } catch (error) {
      if (!isClosed && mine === latest) fill(figures, failed(words(error)));
    }
  };
  period.addEventListener('input', () => {
    hours = Number(period.value);
    void read();
  });
  drawAttention();
  void read();
  const timer = setInterval(() => void read(), EVERY_MS);
  const offs = [on('sessions', drawAttention), on('approvals', drawAttention), on('audit', drawAttention), on('again', () => void read())];
  return {
    title: 'Overview',
    root: el('div', { class: 'view overview' }, el('header', { class: 'top' }, el('h1', { tabindex: -1 }, 'Overview')), attention,
      el('div', { class: 'top activity-top' }, el('h2', null, 'Activity'), period), figures),
    close() {
      isClosed = true;
      clearInterval(timer);
      offs.forEach((off) => off());
    },
  };
}

/**
 * @param {string} title
 * @param {Node[]} rows
 * @param {string} href the page with all of them
 * @param {number} all
 */
function group(title, rows, href, all) {
  return el('div', { class: 'card group' }, el('h3', null, title), el('ul', null, rows), all > rows.length ? el('a', { class: 'small', href }, `All ${count(all)}`) : null);
}

/** @param {Session} session */
function line(session) {
  return el('li', { class: session.state }, el('a', { href: `#/sessions/${encodeURIComponent(session.id)}`, class: 'row-button' }, stateBadge(session.state),
    el('span', { class: 'grow' }, shown(session.name || session.prompt || sessionName(session.id), { limit: 140, more: false }), el('span', { class: 'faint small' }, shown(session.name ? folderName(session.workspace ?? undefined) : sessionName(session.id), { limit: 60, more: false }), session.errors ? ` · ${counted(session.errors, 'hook error')}` : '')), ago(session.updated_at)));
}

/**
 * @param {HTMLElement} node
 * @param {Activity} activity
 */
function drawFigures(node, activity) {
  if (!isOther(node, activity)) return;
  const bars = hours > 48 ? byDay(activity) : activity.hours.map((hour) => ({ at: new Date(hour.at), counts: hour, costs: hour.costs }));
  const sum = (/** @type {keyof ActivityCounts} */ name) => activity.hours.reduce((all, hour) => all + hour[name], 0);
  const label = (/** @type {Date} */ at) => (hours > 48 ? at.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' }) : at.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' }));
  const fact = (/** @type {string} */ name, /** @type {keyof ActivityCounts} */ of, tone = '') => el('div', { class: sum(of) ? tone : '' }, el('dt', null, name), el('dd', { class: 'num' }, short(sum(of))));
  fill(node,
    el('dl', { class: 'strip' }, fact('Sessions', 'sessions'), fact('Prompts', 'prompts'), fact('Tool calls', 'tool_calls'), fact('Denials', 'denials', 'bad'), fact('Hook errors', 'hook_errors', 'bad'), fact('Failed sessions', 'failed_sessions', 'bad'), fact('Tokens', 'tokens'), activity.costs.map((cost) => el('div', null, el('dt', null, 'Cost'), el('dd', { class: 'num' }, shown(money(cost), { limit: 40, more: false }))))),
    el('div', { class: 'charts three' },
      el('figure', { class: 'card' }, el('figcaption', null, 'Tool calls', el('span', { class: 'key-of part' }, 'denials')), columns(bars.map(({ at, counts }) => ({ label: label(at), value: counts.tool_calls, part: Math.min(counts.denials, Math.max(counts.tool_calls, 1)), title: `${label(at)}: ${counted(counts.tool_calls, 'tool call')}, ${counted(counts.denials, 'denial')}` })), 'Tool calls')),
      el('figure', { class: 'card' }, el('figcaption', null, 'Tokens'), columns(bars.map(({ at, counts, costs }) => ({ label: label(at), value: counts.tokens, title: `${label(at)}: ${counted(counts.tokens, 'token')}${(costs ?? []).map((cost) => `, ${plain(money(cost), 40)}`).join('')}` })), 'Tokens')),
      el('figure', { class: 'card whole' }, el('figcaption', null, 'Denials by hook'), activity.denials_by_hook.length
        ? shares(activity.denials_by_hook.slice(0, 8).map((one) => ({ name: shown(one.hook, { limit: 40, more: false }), href: `#/hooks/${encodeURIComponent(one.hook)}`, value: one.denials })))
        : el('p', { class: 'faint' }, 'No denials.'))));
}

/**
 * The hours, summed by the days of this browser's time zone.
 * @param {Activity} activity
 */
function byDay(activity) {
  /** @type {Map<string, {at: Date, counts: ActivityCounts, costs?: Cost[]}>} */
  const days = new Map();
  for (const { at: time, costs: _, ...counts } of activity.hours) {
    const at = new Date(time);
    const day = days.get(at.toDateString());
    if (!day) days.set(at.toDateString(), { at, counts: { ...counts } });
    else for (const name of /** @type {(keyof ActivityCounts)[]} */ (Object.keys(counts))) day.counts[name] += counts[name];
  }
  return [...days.values()];
}

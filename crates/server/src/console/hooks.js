// Statistics of hooks: calls, results and durations.

import { backwards, get, NEWEST, words } from './api.js';
import { isBuiltIn } from './builtin.js';
import { openTests, reload } from './bundles.js';
import { histogram, sparkline } from './charts.js';
import { el, fill, icon, svg } from './dom.js';
import { ago, count, counted, nanos, short } from './format.js';
import { ANSWERS, badge, empty, failed } from './parts.js';
import { may, sessionName } from './store.js';
import { shown } from './text.js';

/** @import {View} from './dom.js' */
/** @import {HookStats, LogRecord} from './types.js' */
/** @typedef {'hook' | 'calls' | 'denials' | 'asks' | 'errors' | 'p50_ns' | 'p95_ns'} Column */

/** @type {{by: Column, down: boolean}} */
const order = { by: 'calls', down: true };
/** @type {[Column, string][]} */
const COLUMNS = [['hook', 'Hook'], ['calls', 'Calls'], ['denials', 'Denied'], ['asks', 'Asked'], ['errors', 'Errors'], ['p50_ns', 'Median'], ['p95_ns', '95 %']];

/** @type {Partial<Record<Column, string>>} */
const HINTS = { p50_ns: 'Half of the calls take no longer', p95_ns: '95 of 100 calls take no longer' };

/** @returns {View} */
export function hooksView() {
  const head = el('tr');
  const rows = el('tbody');
  const tail = el('div', { class: 'tail' });
  let showsBuiltIn = false;
  /** @type {HookStats[]} */
  let hooks = [];
  const draw = () => {
    const held = document.activeElement?.id;
    fill(head, COLUMNS.map(([name, label]) => el('th', { scope: 'col', class: name === 'hook' ? '' : 'number', title: HINTS[name] ?? null, 'aria-sort': order.by === name ? (order.down ? 'descending' : 'ascending') : null },
      el('button', { type: 'button', class: 'sort', id: `sort-${name}`, onclick: () => { order.down = order.by === name ? !order.down : name !== 'hook'; order.by = name; draw(); } }, label, el('span', { class: 'arrow', 'aria-hidden': 'true' }, order.by === name ? (order.down ? '↓' : '↑') : '')))),
    el('th', { scope: 'col' }, 'Latency'), el('th', { scope: 'col' }, 'Last 30 minutes'));
    if (held?.startsWith('sort-')) document.getElementById(held)?.focus();
    const sorted = [...hooks].sort((a, b) => (order.by === 'hook' ? a.hook.localeCompare(b.hook) : a[order.by] - b[order.by]) * (order.down ? -1 : 1));
    const held2 = document.activeElement?.getAttribute('href');
    const own = sorted.filter((one) => !isBuiltIn(one));
    const builtIn = sorted.filter(isBuiltIn);
    const isFold = document.activeElement?.id === 'built-in';
    const fold = builtIn.length ? el('tr', { class: 'fold' }, el('th', { scope: 'row', colspan: 9 }, el('button', { type: 'button', class: 'quiet small', id: 'built-in', 'aria-expanded': String(showsBuiltIn), onclick: () => { showsBuiltIn = !showsBuiltIn; draw(); } }, `${showsBuiltIn ? '▾' : '▸'} built-in`, el('span', { class: 'faint' }, ` ${counted(builtIn.length, 'hook')} of the program, ${counted(builtIn.reduce((sum, one) => sum + one.calls, 0), 'call')}`)))) : null;
    const drawRow = (/** @type {HookStats} */ one) => el('tr', null,
      el('th', { scope: 'row' }, el('a', { href: `#/hooks/${encodeURIComponent(one.hook)}`, class: 'hook-name' }, shown(one.hook, { limit: 80, more: false })), el('div', { class: 'faint small events' }, shown(one.events.join(' '), { limit: 120, more: false }))),
      number('Calls', one.calls), number('Denied', one.denials, 'bad'), number('Asked', one.asks, 'ask'), number('Errors', one.errors, 'bad'),
      el('td', { class: 'number num', 'data-label': 'Median' }, nanos(one.p50_ns)), el('td', { class: 'number num', 'data-label': '95 %' }, nanos(one.p95_ns)),
      el('td', { class: 'chart', 'data-label': 'Latency' }, histogram(one.latency, { width: 104 })), el('td', { class: 'chart', 'data-label': 'Last 30 minutes' }, sparkline(one.recent)));
    fill(rows, own.map(drawRow), fold, showsBuiltIn ? builtIn.map(drawRow) : null);
    if (isFold) document.getElementById('built-in')?.focus();
    if (held2) /** @type {HTMLElement | null} */ (rows.querySelector(`a[href="${CSS.escape(held2)}"]`))?.focus();
    fill(tail, hooks.length === 0 ? empty('hooks', 'No hook calls yet.', 'Hooks appear here as sessions run, with their calls, results and times.') : null);
  };
  const stop = keepReading(async () => {
    hooks = (await get('/api/hooks')).hooks;
    draw();
  }, (error) => fill(tail, failed(words(error))));
  const result = el('div', { class: 'reloaded' });
  const again = el('button', { type: 'button', title: 'Reload the bundles of connected sessions', onclick: async () => { again.disabled = true; await reload(result); again.disabled = false; } }, 'Reload bundles');
  const tools = may('admin') ? el('div', { class: 'row' }, el('button', { type: 'button', onclick: () => openTests() }, 'Test…'), again) : null;
  return {
    title: 'Hooks',
    root: el('div', { class: 'view' },
      el('header', { class: 'top' }, el('h1', { tabindex: -1 }, 'Hooks'), tools), result,
      el('div', { class: 'table-box', tabindex: 0, role: 'region', 'aria-label': 'Hooks' }, el('table', { class: 'table hooks stacks' }, el('thead', null, head), rows)), tail),
    close: stop,
  };
}

/**
 * @param {string} label
 * @param {number} n
 * @param {string} [tone]
 */
function number(label, n, tone = '') {
  return el('td', { class: `number num ${n ? tone : 'zero'}`, 'data-label': label }, short(n));
}

/**
 * Reads now, and every few seconds while the page is seen.
 * @param {() => Promise<void>} read
 * @param {(error: unknown) => void} fail
 */
function keepReading(read, fail) {
  let isClosed = false;
  const once = () => {
    if (!isClosed && !document.hidden) read().catch((error) => { if (!isClosed) fail(error); });
  };
  once();
  const timer = setInterval(once, 4_000);
  return () => {
    isClosed = true;
    clearInterval(timer);
  };
}

/**
 * @param {string} name
 * @returns {View}
 */
export function hookView(name) {
  const body = el('div');
  const recent = el('tbody');
  const none = el('div', { class: 'tail' });
  const stop = keepReading(async () => {
    /** @type {HookStats[]} */
    const hooks = (await get('/api/hooks')).hooks;
    const one = hooks.find((hook) => hook.hook === name);
    if (one) fill(body, facts(one));
    else fill(body, empty('hooks', 'No calls of this hook yet.'));
  }, (error) => fill(body, failed(words(error))));
  let isClosed = false;
  const draw = (/** @type {LogRecord[]} */ records) => {
    fill(recent, records.map((record) => el('tr', { class: record.body?.answer === 'deny' ? 'denied' : '' },
      el('td', { class: 'tight' }, ago(record.at)), el('td', { class: 'tight' }, el('code', null, shown(record.event ?? '', { limit: 60, more: false }))),
      el('td', { class: 'tight' }, record.body?.error ? badge('bad', 'failed', 'mark') : ANSWERS[record.body?.answer] ?? shown(record.body?.answer ?? '', { limit: 40, more: false })),
      el('td', { class: 'wide' }, shown(record.body?.error ?? record.body?.reason ?? '', { limit: 200 })),
      el('td', { class: 'number num', 'data-label': 'Took' }, nanos(record.body?.took_ns)),
      el('td', null, record.session ? el('a', { href: `#/sessions/${encodeURIComponent(record.session)}` }, shown(sessionName(record.session), { limit: 40, more: false })) : null),
      el('td', { class: 'number', 'data-label': 'Record' }, el('a', { class: 'num', href: `#/audit/${record.seq}` }, count(record.seq))))));
  };
  const latest = async () => {
    for await (const { records, isDone } of backwards({ hook: name, kind: 'hook_report' }, NEWEST, 30)) {
      if (isClosed) return;
      draw(records);
      fill(none, isDone && records.length === 0 ? el('p', { class: 'faint' }, 'No calls.') : null);
    }
  };
  latest().catch((error) => fill(none, failed(words(error))));
  return {
    title: 'Hook',
    root: el('div', { class: 'view' }, el('a', { href: '#/hooks', class: 'up' }, icon('back'), 'Hooks'), el('header', { class: 'top' }, el('h1', { tabindex: -1 }, shown(name, { limit: 120 }))), body,
      el('h2', null, 'Latest calls'),
      el('div', { class: 'table-box', tabindex: 0, role: 'region', 'aria-label': 'Latest calls' }, el('table', { class: 'table stacks' }, el('thead', null, el('tr', null, ['Time', 'Event', 'Result', 'Reason'].map((one) => el('th', { scope: 'col' }, one)), el('th', { scope: 'col', class: 'number' }, 'Duration'), el('th', { scope: 'col' }, 'Session'), el('th', { scope: 'col', class: 'number' }, 'Record'))), recent)), none),
    close() {
      isClosed = true;
      stop();
    },
  };
}

/** @param {HookStats} one */
function facts(one) {
  const fact = (/** @type {string} */ name, /** @type {string} */ value, tone = '') => el('div', { class: tone }, el('dt', null, name), el('dd', { class: 'num' }, value));
  const passes = Math.max(0, one.calls - one.denials - one.asks - one.modifies - one.injects - one.errors);
  /** @type {[string, number, string][]} */
  const mix = [['continued', passes, 'pass'], ['modified', one.modifies, 'modify'], ['added context', one.injects, 'inject'], ['asked', one.asks, 'ask'], ['denied', one.denials, 'deny'], ['failed', one.errors, 'error']];
  let x = 0;
  const sum = Math.max(1, mix.reduce((all, [, n]) => all + n, 0));
  return el('div', null,
    el('p', { class: 'sub' }, el('span', { class: 'faint' }, 'At '), one.events.map((event) => el('code', { class: 'tag' }, shown(event, { limit: 60, more: false })))),
    el('dl', { class: 'strip' }, fact('Calls', short(one.calls)), fact('Denied', short(one.denials), one.denials ? 'bad' : ''), fact('Asked', short(one.asks)), fact('Errors', short(one.errors), one.errors ? 'bad' : ''), fact('Median', nanos(one.p50_ns)), fact('95 % within', nanos(one.p95_ns)), fact('Slowest', nanos(one.max_ns))),
    el('div', { class: 'charts' },
      el('figure', { class: 'card' }, el('figcaption', null, 'Duration of calls'), histogram(one.latency, { width: 560, height: 170, axis: true })),
      el('figure', { class: 'card' }, el('figcaption', null, 'Calls a minute, last 30 minutes'), sparkline(one.recent, { width: 360, height: 90 }),
        el('figcaption', null, 'Results'),
        svg('svg', { class: 'mix', viewBox: '0 0 360 14', preserveAspectRatio: 'none', role: 'img', 'aria-label': mix.map(([name, n]) => `${name}: ${count(n)}`).join(', ') }, mix.filter(([, n]) => n > 0).map(([, n, tone]) => {
          const wide = Math.max(3, (n / sum) * 360);
          const bar = svg('rect', { class: tone, x: x.toFixed(1), y: 0, width: Math.max(1, wide - 1.5).toFixed(1), height: 14, rx: 2 });
          x += wide;
          return bar;
        })),
        el('ul', { class: 'legend' }, mix.filter(([, n]) => n > 0).map(([name, n, tone]) => el('li', null, el('span', { class: `swatch ${tone}`, 'aria-hidden': 'true' }), `${name} `, el('span', { class: 'num faint' }, count(n))))))));
}

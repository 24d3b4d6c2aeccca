// A session's timeline. The start and end of an operation (a tool call, a model call) are one entry, with the results of hooks.

import { isQuietBuiltIn } from './builtin.js';
import { el, icon } from './dom.js';
import { count, counted, nanos, span, timeOfDay } from './format.js';
import { tree } from './json.js';
import { ANSWERS, badge, decisionBadge, ended, isOver as isOverState, person, whoDecided } from './parts.js';
import { store } from './store.js';
import { openApprovals } from './approval_dialog.js';
import { plain, shown } from './text.js';

/** @import {ApprovalReport, HookReport, InjectionReport, TimelineItem} from './types.js' */
/** @typedef {'prompt' | 'model' | 'tool' | 'agent' | 'session' | 'minor'} Sort */
/** @typedef {{sort: Sort, first: TimelineItem, last: TimelineItem | null, node: HTMLElement | null, turn: number | null}} Entry */

/** @type {Record<string, string>} end event to start event */
const ENDS = { 'tool:post': 'tool:pre', 'provider:response': 'provider:request', 'error:provider': 'provider:request', 'agent:complete': 'agent:spawn' };
/** @type {Record<string, Sort>} */
const SORTS = {
  'prompt:submit': 'prompt', 'tool:pre': 'tool', 'tool:post': 'tool', 'provider:request': 'model', 'provider:response': 'model', 'agent:spawn': 'agent', 'agent:complete': 'agent',
  'session:start': 'session', 'session:end': 'session', 'session:resume': 'session', 'session:fork': 'session', 'error:provider': 'session', 'policy:violation': 'session',
  'context:pre_compact': 'session', 'cancel:requested': 'session', 'user:notification': 'session',
};

/** Number of later entries after which the server no longer holds the item of a request. */
const MOST_WAITING = 64;

/**
 * @param {TimelineItem} item
 * @returns {Sort}
 */
function sortOf(item) {
  // The request itself already shows this.
  if (item.event === 'user:notification' && item.data?.notification_type === 'approval_required') return 'minor';
  return SORTS[item.event] ?? 'minor';
}

/** The items of a session, put together. A state without a page. */
export class Timeline {
  /** @type {Map<number, Entry>} by the number of the first item */
  entries = new Map();
  /** @type {Entry[]} in order */
  order = [];
  /** @type {Map<string, Entry[]>} started and not ended */
  open = new Map();

  /**
   * Takes items, also ones that were there before and have changed. Gives the entries that are new or have changed.
   * @param {TimelineItem[]} items
   * @returns {Set<Entry>}
   */
  take(items) {
    /** @type {Set<Entry>} */
    const touched = new Set();
    for (const item of items) {
      const entry = this.takeOne(item);
      if (entry) touched.add(entry);
    }
    return touched;
  }

  /**
   * @param {TimelineItem} item
   * @returns {Entry | null} none if nothing is new
   */
  takeOne(item) {
    const known = this.entries.get(item.seq);
    if (known) {
      const isFirst = known.first.seq === item.seq;
      if (JSON.stringify(isFirst ? known.first : known.last) === JSON.stringify(item)) return null;
      if (isFirst) known.first = item;
      else known.last = item;
      return known;
    }
    const begin = ENDS[item.event];
    const key = begin ? pairing(begin, item) : '';
    const open = this.open.get(key);
    const begun = open?.pop();
    if (open?.length === 0) this.open.delete(key);
    if (begun) {
      begun.last = item;
      this.entries.set(item.seq, begun);
      return begun;
    }
    /** @type {Entry} */
    const entry = { sort: sortOf(item), first: item, last: null, node: null, turn: item.turn ?? null };
    if (Object.values(ENDS).includes(item.event) && !item.denied) {
      const key = pairing(item.event, item);
      const open = this.open.get(key);
      if (open) open.push(entry);
      else this.open.set(key, [entry]);
    }
    this.entries.set(item.seq, entry);
    this.order.push(entry);
    return entry;
  }

  /**
   * The next cursor: the server's, or the first request without a decision.
   * @param {number} cursor the server's cursor
   */
  since(cursor) {
    const asks = this.order.slice(-MOST_WAITING).find((entry) => openOf(entry).length > 0);
    return Math.min(cursor, asks?.first.seq ?? cursor);
  }
}

/**
 * The key that pairs the end of an operation with its start. Without an id, the operation that started last ends first, as in the audit log.
 * @param {string} event
 * @param {TimelineItem} item
 */
function pairing(event, item) {
  const data = item.data ?? {};
  return `${event} ${item.intent?.tool_call_id ?? item.result?.tool_call_id ?? data.tool_call_id ?? data.agent_name ?? ''}`;
}

/** @param {Entry} entry */
export function denied(entry) {
  return entry.first.denied || entry.last?.denied === true;
}

/** @param {Entry} entry `true` if started and not ended */
export function isOpen(entry) {
  return entry.last === null && Object.values(ENDS).includes(entry.first.event) && !denied(entry);
}

/** @param {Entry} entry */
function approvalsOf({ first, last }) {
  return [...first.approvals, ...(last?.approvals ?? [])];
}

/**
 * The requests of an entry without a decision.
 * @param {Entry} entry
 */
function openOf(entry) {
  return approvalsOf(entry).filter((one) => !one.decision);
}

/** @param {Entry} entry */
export function asked(entry) {
  return approvalsOf(entry).length > 0 || entry.first.decision === 'ask_user';
}

/** @type {Record<Sort, string>} */
const SIGNS = { prompt: 'prompt', model: 'model', tool: 'tool', agent: 'agent', session: 'dot', minor: 'dot' };

/**
 * @param {Entry} entry
 * @param {string} session
 * @returns {HTMLElement}
 */
export function drawEntry(entry, session) {
  const { first, last } = entry;
  const isBad = denied(entry);
  const hooks = [...first.hooks.map((one) => ({ ...one, at: first.event })), ...(last?.hooks ?? []).map((one) => ({ ...one, at: last?.event ?? '' }))];
  const waiting = isBad ? null : pendingOf(entry, session);
  const node = el('li', { class: `entry ${entry.sort}${isBad ? ' denied' : ''}${waiting ? ' asks' : ''}`, id: `seq-${first.seq}` },
    timeOfDay(first.time),
    el('span', { class: 'knot' }, icon(isBad ? 'close' : SIGNS[entry.sort])),
    el('div', { class: 'content' },
      head(entry, session, !waiting && isOpen(entry) && store.sessions.get(session)?.state === 'running'),
      isBad ? denial(entry) : null,
      waiting ? el('div', { class: 'waiting-line' }, icon('question'), el('span', null, 'Waiting for an answer: ', shown(waiting.prompt, { limit: 200, more: false })), el('button', { type: 'button', class: 'small primary', onclick: () => openApprovals(waiting.id) }, 'Open')) : null,
      waiting || isBad || !isOver(session) ? null : openOf(entry).map((one) => el('div', { class: 'approval-line' }, badge('quiet', 'No answer'), el('span', { class: 'question' }, shown(one.prompt ?? '', { limit: 200, more: false })), el('span', { class: 'who' }, 'the session ended first'))),
      approvalsOf(entry).map(approval),
      [...first.injections, ...(last?.injections ?? [])].map(injection),
      [...first.messages, ...(last?.messages ?? [])].map((one) => el('div', { class: `message-line ${one.level}` }, el('span', { class: 'faint' }, shown(one.source.replace(/^hook:/, 'Hook '), { limit: 80, more: false }), ': '), shown(one.text, { limit: 400 }), one.shown === false ? badge('warn', 'Not shown', 'mark') : null)),
      failure(entry),
      [...first.failures, ...(last?.failures ?? [])].map((one) => el('div', { class: 'message-line error' }, el('span', { class: 'bad-text' }, `Failed: ${one.part}: `), shown(one.error, { limit: 400 }))),
      el('div', { class: 'under' }, hooks.length ? hookLine(hooks) : null, details(entry))));
  entry.node = node;
  return node;
}

/** @param {string} session */
function isOver(session) {
  return isOverState(store.sessions.get(session)?.state);
}

/**
 * @param {Entry} entry
 * @param {string} session
 */
function pendingOf(entry, session) {
  for (const one of openOf(entry)) {
    const approval = one.id ? store.approvals.get(one.id) : undefined;
    if (approval) return approval;
  }
  if (entry.last || entry.first.decision !== 'ask_user') return null;
  const decided = new Set(entry.first.approvals.map((one) => one.id));
  return [...store.approvals.values()].find((one) => one.session === session && one.event === entry.first.event && !decided.has(one.id)) ?? null;
}

/**
 * @param {Entry} entry
 * @param {string} session
 * @param {boolean} runs
 */
function head(entry, session, runs) {
  const { first, last } = entry;
  const data = first.data ?? {};
  if (entry.sort === 'prompt') return el('div', { class: 'prompt-text' }, shown(data.prompt ?? '', { limit: 1_200 }));
  if (entry.sort === 'model') {
    const answer = (last?.event === 'error:provider' ? null : last?.data) ?? (first.event === 'provider:response' ? data : null);
    const usage = answer?.usage ?? {};
    const tokens = [usage.input_tokens, usage.output_tokens].every((n) => typeof n === 'number') ? `${counted(usage.input_tokens, 'token')} in, ${count(usage.output_tokens)} out` : null;
    return el('div', null,
      el('div', { class: 'line' }, el('span', { class: 'title' }, 'Model'), data.model ?? data.provider ? el('code', { class: 'faint' }, shown(data.model ?? data.provider, { limit: 80, more: false })) : null, tokens ? el('span', { class: 'faint num tokens' }, tokens) : null, state(entry, session), took(entry, runs)),
      answer?.content ? el('div', { class: 'answer' }, shown(answer.content, { limit: 1_200 })) : null);
  }
  if (entry.sort === 'tool') {
    return el('div', { class: 'line' }, el('span', { class: 'title' }, shown(data.tool_name ?? 'tool', { limit: 80, more: false })), el('code', { class: 'gist' }, shown(gist(data.tool_input), { limit: 260, more: false })), state(entry, session), took(entry, runs));
  }
  if (entry.sort === 'agent') return el('div', { class: 'line' }, el('span', { class: 'title' }, 'Agent ', shown(data.agent_name ?? '', { limit: 80, more: false })), el('span', { class: 'gist' }, shown(data.task ?? '', { limit: 260, more: false })), took(entry, runs));
  return el('div', { class: 'line' }, el('span', { class: 'title' }, shown(TITLES[first.event] ?? first.event, { limit: 80, more: false })), el('span', { class: 'gist faint' }, shown(about(first), { limit: 200, more: false })));
}

/** @type {Record<string, string>} */
const TITLES = { 'session:start': 'Session started', 'session:end': 'Session ended', 'session:resume': 'Session resumed', 'session:fork': 'Session forked', 'error:provider': 'The model failed', 'error:tool': 'A tool failed', 'context:pre_compact': 'Context compacted', 'cancel:requested': 'Interrupted', 'policy:violation': 'Policy violated', 'user:notification': 'User notification' };
const GIST = ['command', 'pattern', 'file_path', 'path', 'url', 'query', 'prompt', 'task', 'message', 'reason', 'source', 'error', 'status'];

/**
 * A summary of a single event.
 * @param {TimelineItem} item
 */
function about(item) {
  const data = item.data ?? {};
  if (item.event === 'session:start') return [data.mount_plan?.provider, data.mount_plan?.model].filter(Boolean).join(' · ');
  if (item.event === 'session:end') return ended(String(data.reason ?? ''));
  if (item.event === 'cancel:requested') return '';
  return typeof data.error?.message === 'string' ? data.error.message : gist(data);
}

/**
 * The most telling part of an input.
 * @param {any} input
 * @returns {string}
 */
function gist(input) {
  if (typeof input === 'string') return input;
  if (input === null || typeof input !== 'object') return '';
  for (const name of GIST) if (typeof input[name] === 'string') return input[name];
  const first = Object.entries(input).find(([name, value]) => typeof value === 'string' && name !== 'timestamp' && name !== 'session_id');
  return first ? `${first[0]}: ${first[1]}` : '';
}

/**
 * @param {Entry} entry
 * @param {string} session
 */
function state(entry, session) {
  const success = entry.last?.event === 'error:provider' ? false : entry.last?.data?.success ?? entry.first.result?.success;
  if (success === false) return badge('warn', 'Failed', 'mark');
  return entry.first.intent?.unresolved && isOver(session) ? badge('warn', 'Result unknown', 'mark') : null;
}

/**
 * Why a tool or the model has failed.
 * @param {Entry} entry
 */
function failure(entry) {
  const data = entry.last?.data;
  const why = entry.sort === 'model' ? data?.error?.message : data?.success === false ? data.tool_result?.error : null;
  return typeof why === 'string' ? el('div', { class: 'message-line error' }, shown(why, { limit: 400 })) : null;
}

/**
 * @param {Entry} entry
 * @param {boolean} runs
 */
function took(entry, runs) {
  if (runs) return el('span', { class: 'took runs' }, 'running');
  const ms = entry.last?.data?.duration_ms ?? entry.first.data?.duration_ms ?? (entry.last ? Date.parse(entry.last.time) - Date.parse(entry.first.time) : null);
  return typeof ms === 'number' && !Number.isNaN(ms) ? el('span', { class: 'took num faint' }, span(ms)) : null;
}

/** @param {Entry} entry */
function denial(entry) {
  const item = entry.first.denied ? entry.first : entry.last;
  // The line of the request shows a user's denial.
  if (!item?.denied_by && !item?.reason) return null;
  return el('div', { class: 'denial' }, el('strong', null, 'Denied'), item?.denied_by ? el('span', null, ' by ', el('span', { class: 'hook-name' }, shown(item.denied_by, { limit: 80, more: false }))) : null, item?.reason ? el('span', null, ': ', shown(item.reason, { limit: 600 })) : null);
}

/** @type {Record<string, string>} */
const LANDS = { history: ' to the history', next_call: ' to the next model call', last_tool_result: ' to the tool result' };

/**
 * An approval with its decision, and the answers that came too late.
 * @param {ApprovalReport} one
 */
function approval({ decision, ...one }) {
  if (!decision) return null;
  const late = (one.late_answers ?? []).map(({ label, by }) => el('span', { class: 'who' }, 'too late: ', shown(label, { limit: 60, more: false }), by ? [' by ', person(by)] : null));
  return el('div', { class: `approval-line ${decision.granted ? 'good' : 'bad'}` }, decisionBadge(decision.granted), el('span', { class: 'question' }, shown(one.prompt ?? '', { limit: 200, more: false })), whoDecided({ ...one, ...decision }), late);
}

/** @param {InjectionReport} one */
function injection(one) {
  const size = [counted(one.bytes, 'byte'), typeof one.tokens === 'number' ? counted(one.tokens, 'token') : null].filter(Boolean).join(', ');
  const dropped = one.status && !['injected', 'over_budget', 'warned', 'truncated'].includes(one.status);
  return el('details', { class: `injection-line${dropped ? ' dropped' : ''}` },
    el('summary', null, icon('inject'), el('span', { class: 'hook-name' }, shown(one.hook, { limit: 80, more: false })), el('span', null, dropped ? ' tried to add context' : ` added context${LANDS[one.placement ?? ''] ?? ''}`), one.status && one.status !== 'injected' ? badge('warn', plain(one.status.replaceAll('_', ' '), 40)) : null, el('span', { class: 'faint num' }, size)),
    el('div', { class: 'said' }, shown(one.text ?? '', { limit: 2_000 })));
}

/** @type {Record<string, string>} */
const TONES = { deny: 'bad', denied: 'bad', error: 'bad', failed: 'bad', timed_out: 'bad', ask_user: 'ask', modify: 'info', inject_context: 'info' };

/** @param {(HookReport & {at: string})[]} hooks */
function hookLine(hooks) {
  const two = new Set(hooks.map((one) => one.at)).size > 1;
  const tone = (/** @type {HookReport} */ one) => (one.error ? 'bad' : TONES[one.answer] ?? 'quiet');
  const chip = (/** @type {HookReport & {at: string}} */ one) => el('li', { class: `hook-chip ${tone(one)}`, title: plain([two ? one.at : '', one.reason ?? '', one.error ?? ''].filter(Boolean).join(' · '), 400) },
    el('span', { class: 'hook-name' }, shown(one.hook, { limit: 60, more: false })),
    el('span', { class: 'says' }, one.error ? 'failed' : ANSWERS[one.answer] ?? shown(one.answer, { limit: 40, more: false })),
    el('span', { class: 'num' }, nanos(one.duration_ns)));
  const quiet = hooks.filter((one) => tone(one) === 'quiet');
  if (quiet.length <= AT_ONCE && !quiet.some(isQuietBuiltIn)) return el('ul', { class: 'hook-line', 'aria-label': 'Hooks' }, hooks.map(chip));
  // Many that say nothing would hide the one that does.
  const isFew = quiet.filter((one) => !isQuietBuiltIn(one)).length <= AT_ONCE;
  const loud = hooks.filter((one) => tone(one) !== 'quiet' || (isFew && !isQuietBuiltIn(one)));
  const folded = hooks.filter((one) => !loud.includes(one));
  const sum = folded.reduce((all, one) => all + one.duration_ns, 0);
  return el('div', { class: 'hook-line' }, loud.length ? el('ul', { class: 'hook-line', 'aria-label': 'Hooks' }, loud.map(chip)) : null,
    el('details', { class: 'passes' }, el('summary', { class: 'hook-chip quiet' }, el('span', { class: 'says' }, folded.every(isQuietBuiltIn) ? 'built-in' : `${count(folded.length)} hooks continued`), el('span', { class: 'num' }, nanos(sum))),
      el('ul', { class: 'hook-line', 'aria-label': 'Hooks that continued' }, folded.map(chip))));
}

/** So many hooks that let something pass are shown one by one. */
const AT_ONCE = 2;

/** @param {Entry} entry */
function details(entry) {
  const { first, last } = entry;
  const box = el('details', { class: 'more-of-it' }, el('summary', null, 'Details'));
  box.addEventListener('toggle', () => {
    if (!box.open || box.childElementCount > 1) return;
    const data = first.data ?? {};
    const part = (/** @type {string} */ title, /** @type {unknown} */ value) => (value === undefined || value === null ? null : el('section', null, el('h4', null, title), typeof value === 'string' ? el('pre', null, shown(value, { limit: 4_000 })) : tree(value)));
    const reasons = [...first.hooks, ...(last?.hooks ?? [])].filter((one) => one.reason || one.error);
    box.append(el('div', { class: 'parts' },
      entry.sort === 'tool' ? [part('Input', data.tool_input), part('Output', last?.data?.tool_result)] : entry.sort === 'model' ? [part('Request', data), part('Response', last?.data)] : part('Data', data),
      reasons.length ? el('section', null, el('h4', null, 'Reasons from hooks'), el('ul', { class: 'plain-list' }, reasons.map((one) => el('li', null, el('span', { class: 'hook-name' }, shown(one.hook)), ': ', one.error ? el('span', { class: 'bad-text' }, 'failed: ', shown(one.error)) : shown(one.reason))))) : null,
      el('p', { class: 'faint small' }, el('code', null, shown(first.event)), ' · ', el('a', { href: `#/audit/${first.seq}` }, `record ${count(first.seq)}`), last ? [' · ', el('a', { href: `#/audit/${last.seq}` }, `record ${count(last.seq)}`)] : null)));
  });
  return box;
}

/**
 * The line between turns.
 * @param {number} turn
 */
export function turnLine(turn) {
  return el('li', { class: 'turn' }, el('h2', null, `Turn ${count(turn)}`));
}


// The audit log: verification status and records.

import { backwards, get, NEWEST, post, words } from './api.js';
import { el, fill, icon, svg, toast } from './dom.js';
import { save, stamp } from './download.js';
import { ago, count, counted, fullTime, timeOfDay } from './format.js';
import { tree } from './json.js';
import { ANSWERS, empty, ended, failed, perFrame } from './parts.js';
import { anyTime, bounds, periodFields } from './period.js';
import { acceptAudit, on, sessionName, store } from './store.js';
import { plain, shown } from './text.js';

/** @import {View} from './dom.js' */
/** @import {AuditStatus, LogRecord} from './types.js' */

const PAGE = 50;
/** Limit of exported records. `amplifier audit export` has none. */
const MOST_EXPORTED = 20_000;
const KINDS = ['event', 'hook_report', 'approval_request', 'approval_decision', 'late_answer', 'injection', 'message', 'intent', 'outcome', 'failure', 'checkpoint', 'segment', 'seal', 'gap', 'breach'];

/** @returns {View} */
export function auditView() {
  const status = el('section', { class: 'audit-status', 'aria-label': 'Verification status' });
  const verify = el('button', { type: 'button', onclick: () => void check() }, 'Verify now');
  const check = async () => {
    verify.disabled = true;
    fill(verify, 'Verifying…');
    try {
      const said = await post('/api/audit/verify');
      acceptAudit(said);
      toast(said.sound ? `Verified: ${counted(said.size, 'record')}.` : 'The log failed verification.', said.sound ? 'good' : 'bad');
    } catch (error) {
      toast(shown(words(error), { limit: 300 }), 'bad');
    } finally {
      verify.disabled = false;
      fill(verify, 'Verify now');
    }
  };
  const draw = perFrame(() => {
    if (store.audit) fill(status, drawStatus(store.audit));
  });
  if (store.audit) draw();
  else get('/api/audit').then(acceptAudit, (error) => fill(status, failed(words(error))));
  const list = records();
  const off = on('audit', () => { draw(); list.changed(); });
  return {
    title: 'Audit log',
    root: el('div', { class: 'view' }, el('header', { class: 'top' }, el('h1', { tabindex: -1 }, 'Audit log'), verify), status, el('h2', null, 'Records'), list.root),
    close() {
      off();
      list.close();
    },
  };
}

/** @param {number} n one more than the last record */
function upTo(n) {
  return n > 0 ? `record ${count(n - 1)}` : 'no record yet';
}

/** @param {AuditStatus} audit */
function drawStatus(audit) {
  if (audit.sound && audit.size === 0) return el('div', { class: 'card proof' }, el('div', { class: 'verdict' }, el('span', { class: 'seal plain' }, icon('audit')), el('div', null, el('p', { class: 'big' }, 'No records yet'), el('p', null, 'New records appear here as sessions run, and are verified on arrival.'))));
  const part = audit.size ? audit.verified_to / audit.size : 1;
  const place = audit.problems.find((one) => typeof one.seq === 'number')?.seq ?? undefined;
  const bar = svg('svg', { class: 'meter', viewBox: '0 0 1000 8', preserveAspectRatio: 'none', role: 'img', 'aria-label': `${count(audit.verified_to)} of ${counted(audit.size, 'record')} verified` },
    svg('rect', { class: 'track', x: 0, y: 0, width: 1000, height: 8 }), svg('rect', { class: 'done', x: 0, y: 0, width: (part * 1000).toFixed(1), height: 8 }),
    place === undefined || !audit.size ? null : svg('rect', { class: 'break', x: Math.max(0, (place / audit.size) * 1000 - 3).toFixed(1), y: 0, width: 6, height: 8 }));
  const fact = (/** @type {string} */ name, /** @type {import('./dom.js').Child} */ value) => el('div', null, el('dt', null, name), el('dd', { class: 'num' }, value));
  const sound = soundTo(audit);
  return el('div', { class: `card proof ${audit.sound ? 'sound' : 'broken'}` },
    el('div', { class: 'verdict', role: audit.sound ? null : 'alert' },
      el('span', { class: 'seal' }, icon(audit.sound ? 'approvals' : 'mark')),
      el('div', null,
        el('p', { class: 'big' }, audit.sound ? (audit.size && !audit.verified_to ? 'Verifying…' : `Verified up to ${upTo(audit.verified_to)}`) : 'This log failed verification'),
        el('p', null, audit.sound
          ? audit.verified_to >= audit.size ? 'Log verified: no record is changed, missing or moved.' : `Verifying ${counted(audit.size - audit.verified_to, 'newer record')}.`
          : sound > 0 ? `Intact up to ${upTo(sound)}. Later records cannot be trusted.` : 'No record of this log can be trusted.'))),
    bar,
    audit.problems.length ? el('ol', { class: 'problems' }, audit.problems.slice(0, 20).map((one) => el('li', null, one.seq === undefined ? null : el('a', { href: `#/audit/${one.seq}`, class: 'num' }, `Record ${count(one.seq)}`), one.seq === undefined ? null : ': ', shown(one.text, { limit: 500 }))), audit.problems.length > 20 ? el('li', null, `and ${count(audit.problems.length - 20)} more`) : null) : null,
    audit.sound ? null : el('p', { class: 'advice' }, 'Leave the files as they are. Run ', el('code', null, 'amplifier audit verify'), ' for details. An anchored checkpoint proves the earlier state.'),
    el('dl', { class: 'strip' }, fact('Records', count(audit.size)), fact('Last checkpoint covers', audit.checkpoint ? counted(audit.checkpoint.size, 'record') : 'none'), fact('Signed', audit.checkpoint ? ago(audit.checkpoint.at) : '–'), fact('Records not anchored', count(audit.exposed)), fact('Log', el('code', { title: plain(audit.log) }, shown(audit.log, { limit: 12, more: false })))),
    el('details', { class: 'proves' }, el('summary', null, 'Guarantees and limits'),
      el('div', { class: 'two' },
        el('div', null, el('h3', null, 'Proven'), el('ul', null, audit.proves.map((one) => el('li', null, icon('check'), el('span', null, shown(one)))))),
        el('div', null, el('h3', null, 'Not proven'), el('ul', null, audit.cannot_prove.map((one) => el('li', null, icon('dot'), el('span', null, shown(one)))))))));
}

function records() {
  const rows = el('tbody');
  const foot = el('div', { class: 'pager' });
  const field = (/** @type {string} */ name, /** @type {string} */ label) => el('input', { type: 'search', name, placeholder: label, 'aria-label': label, autocomplete: 'off' });
  const kind = el('select', { 'aria-label': 'Kind of record' }, el('option', { value: '' }, 'Every kind'), KINDS.map((one) => el('option', { value: one }, one.replaceAll('_', ' '))));
  const event = field('event', 'Event, such as tool:*');
  const hook = field('hook', 'Hook');
  const session = field('session', 'Session');
  const text = field('text', 'Text');
  const period = anyTime();
  let isClosed = false;
  /** The page has the records before this one. */
  let before = NEWEST;
  /** @type {number[]} the same of the pages with newer records */
  let newer = [];
  let seenTo = 0;
  let latest = 0;
  /** @type {LogRecord[]} */
  let found = [];

  const filters = () => ({ kind: kind.value, event: event.value.trim(), hook: hook.value.trim(), session: session.value.trim(), text: text.value, ...bounds(period) });
  const isFiltered = () => Object.values(filters()).some(Boolean);
  const exports = el('button', { type: 'button', id: 'export', title: 'Save the matching records as a file', onclick: () => void exported(exports, filters()) }, icon('save'), 'Export');
  const go = (/** @type {number} */ to, /** @type {number[]} */ over) => {
    before = to;
    newer = over;
    void read();
  };
  const draw = () => fill(rows, found.flatMap((record, index) => [...border(record, index === 0 ? before : found[index - 1]?.seq ?? 0), row(record)]));
  const read = async () => {
    const mine = ++latest;
    seenTo = store.audit?.size ?? 0;
    try {
      for await (const { records, next, isEnd, isDone } of backwards(filters(), before, PAGE)) {
        if (isClosed || mine !== latest) return;
        found = records;
        draw();
        const held = document.activeElement?.id;
        fill(foot,
          el('button', { type: 'button', id: 'page-newest', class: 'quiet', onclick: () => go(NEWEST, []) }, 'Newest'),
          el('button', { type: 'button', id: 'page-newer', disabled: newer.length === 0, onclick: () => go(newer.at(-1) ?? NEWEST, newer.slice(0, -1)) }, icon('back'), 'Newer'),
          el('span', { class: 'num faint', role: 'status' }, isDone ? (found.length ? `${count(found[0]?.seq)} – ${count(found.at(-1)?.seq)}` : '') : `Searching before record ${count(next)}…`),
          el('button', { type: 'button', id: 'page-older', disabled: isEnd || !isDone, onclick: () => go(next, [...newer, before]) }, 'Older', icon('next')),
          isDone && found.length === 0 ? isFiltered() ? empty('audit', 'No record matches.') : null : null);
        if (held?.startsWith('page-')) document.getElementById(held)?.focus();
      }
    } catch (error) {
      if (!isClosed && mine === latest) fill(foot, failed(words(error)));
    }
  };
  /** @type {number | undefined} */
  let timer;
  const changed = () => {
    clearTimeout(timer);
    timer = setTimeout(() => go(NEWEST, []), 250);
  };
  for (const one of [kind, event, hook, session, text]) one.addEventListener('input', changed);
  void read();
  return {
    root: el('div', null, el('div', { class: 'filters' }, kind, event, hook, session, text, periodFields(period, () => changed()), exports),
      el('div', { class: 'table-box', tabindex: 0, role: 'region', 'aria-label': 'Records' }, el('table', { class: 'table records stacks' }, el('thead', null, el('tr', null, el('th', { scope: 'col', class: 'number' }, 'Record'), ['Time', 'Kind', 'Event', 'Session', 'Content'].map((name) => el('th', { scope: 'col' }, name)))), rows)), foot),
    /** Called when the status of the log has changed. */
    changed() {
      draw();
      const size = store.audit?.size ?? 0;
      const button = document.getElementById('page-newest');
      if (button && size > seenTo && !isFiltered()) button.textContent = `Newest (${count(size - seenTo)} more)`;
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

/**
 * Saves matching records as lines of JSON, the newest first.
 * @param {HTMLButtonElement} button
 * @param {Record<string, string>} filter
 */
async function exported(button, filter) {
  button.disabled = true;
  try {
    /** @type {LogRecord[]} */
    let found = [];
    for await (const { records, next, isDone } of backwards(filter, NEWEST, MOST_EXPORTED)) {
      found = records;
      fill(button, isDone ? 'Saving…' : `${count(records.length)}, before ${count(next)}…`);
    }
    save(`records-${stamp()}.jsonl`, 'application/x-ndjson', found.map((one) => JSON.stringify(one)));
    toast(found.length >= MOST_EXPORTED ? `The newest ${counted(found.length, 'record')} saved. For more, use \`amplifier audit export\`.` : `${counted(found.length, 'record')} saved.`, 'good');
  } catch (error) {
    toast(shown(words(error), { limit: 300 }), 'bad');
  } finally {
    button.disabled = false;
    fill(button, icon('save'), 'Export');
  }
}

/** @param {AuditStatus} audit @returns {number} one more than the last record that is sound */
function soundTo(audit) {
  return Math.min(audit.verified_to, audit.problems.find((one) => one.seq !== undefined)?.seq ?? audit.verified_to);
}

/**
 * A line that marks the end of the intact part of a broken log, also where a filter hides the invalid record.
 * @param {LogRecord} record
 * @param {number} above the number of the record above
 */
function border(record, above) {
  const audit = store.audit;
  if (!audit || audit.sound || record.seq >= soundTo(audit) || above < soundTo(audit)) return [];
  return [el('tr', { class: 'border' }, el('td', { colspan: 6 }, icon('mark'), soundTo(audit) > 0 ? `Intact up to ${upTo(soundTo(audit))}. Records above this line cannot be trusted.` : 'No record of this log can be trusted.'))];
}

/** @param {LogRecord} record */
function row(record) {
  const broken = store.audit?.problems.some((one) => one.seq === record.seq);
  const doubtful = store.audit?.sound === false && record.seq >= soundTo(store.audit);
  return el('tr', { class: broken ? 'broken' : doubtful ? 'doubtful' : record.body?.decision === 'deny' || record.body?.granted === false ? 'denied' : '' },
    el('td', { class: 'number' }, el('a', { class: 'num', href: `#/audit/${record.seq}` }, count(record.seq)), broken ? el('span', { class: 'sr' }, ' (broken)') : null),
    el('td', { class: 'tight' }, timeOfDay(record.at)),
    el('td', { class: 'tight' }, shown(record.kind.replaceAll('_', ' '), { limit: 40, more: false })),
    el('td', { class: 'tight' }, el('code', null, shown(record.event ?? '', { limit: 40, more: false }))),
    el('td', null, el('div', { class: 'one-line from' }, record.session ? shown(sessionName(record.session), { limit: 80, more: false }) : '')),
    el('td', { class: 'wide' }, el('div', { class: 'one-line' }, shown(told(record), { limit: 160, more: false }))));
}

/** @type {Record<string, string>} what came of an event */
const WORDS = { deny: 'denied', ask_user: 'approval requested', modify: 'changed', inject_context: 'context added' };

/** @param {LogRecord} record */
function told(record) {
  const body = record.body ?? {};
  const data = body.data ?? {};
  switch (record.kind) {
    case 'hook_report': return [body.hook, body.error ? `failed: ${body.error}` : ANSWERS[body.answer] ?? body.answer, body.reason].filter(Boolean).join(' · ');
    case 'event': return [body.decision === 'continue' ? '' : WORDS[body.decision] ?? body.decision, data.tool_name ?? data.prompt ?? data.content ?? data.message ?? data.error?.message ?? data.selected_tool ?? data.model ?? data.response, body.reason].filter((one) => typeof one === 'string' && one).join(' · ');
    case 'intent': return 'started';
    case 'outcome': return body.success === false ? 'failed' : 'finished';
    case 'checkpoint': return `signed, over ${counted(Number(String(body.note).split('\n')[1]), 'record')}`;
    case 'segment': return 'new file';
    case 'seal': return `${ended(String(body.reason ?? ''))}, after ${counted(body.records, 'record')}`;
    case 'breach': return String(body.what ?? '');
    default:
  }
  for (const name of ['reason', 'text', 'prompt', 'error', 'answer', 'digest', 'note']) if (typeof body[name] === 'string') return body[name];
  return JSON.stringify(body).slice(0, 200);
}

/**
 * @param {number} seq
 * @returns {View}
 */
export function recordView(seq) {
  const body = el('div', null, el('p', { class: 'faint' }, 'Reading…'));
  const proof = el('div');
  let isClosed = false;
  const read = async () => {
    try {
      const page = await get('/api/audit/records', { after: Math.max(0, seq - 1) || undefined, limit: 3 });
      if (isClosed) return;
      /** @type {LogRecord | undefined} */
      const record = page.records.find((/** @type {LogRecord} */ one) => one.seq === seq);
      const problems = store.audit?.problems.filter((one) => one.seq === seq) ?? [];
      const breaks = problems.map((one) => el('div', { class: 'notice bad', role: 'alert' }, icon('mark'), el('div', null, el('strong', null, 'The log is invalid here: '), shown(one.text))));
      if (!record) return fill(body, breaks, breaks.length ? el('p', { class: 'faint' }, 'The line at this number is not a valid record.') : empty('audit', `Record ${count(seq)} not found.`));
      const isVerified = store.audit && seq < store.audit.verified_to && problems.length === 0;
      const fact = (/** @type {string} */ name, /** @type {import('./dom.js').Child} */ value) => (value ? [el('dt', null, name), el('dd', null, value)] : []);
      fill(body,
        breaks,
        el('dl', { class: 'facts card' },
          fact('Time', fullTime(record.at)), fact('Kind', shown(record.kind)), fact('Event', record.event ? el('code', null, shown(record.event)) : null),
          fact('Session', record.session ? el('a', { href: `#/sessions/${encodeURIComponent(record.session)}` }, shown(sessionName(record.session), { limit: 80, more: false })) : null), fact('Turn', record.turn === undefined || record.turn === null ? null : count(record.turn)),
          fact('Writer', el('code', null, shown(record.writer, { limit: 100 }))), fact('Hash', el('code', { class: 'digest' }, shown(record.hash, { limit: 140 }))),
          fact('State', isVerified ? el('span', { class: 'good-text' }, 'verified') : problems.length ? el('span', { class: 'bad-text' }, 'broken') : 'not verified yet')),
        el('h2', null, 'Content'), el('div', { class: 'card' }, tree(record.body)),
        el('h2', null, 'Proof'), proof);
      fill(proof, el('p', { class: 'faint' }, 'A proof shows that a checkpoint covers this record. Checking a proof takes only the public key.'),
        el('button', { type: 'button', onclick: () => void prove() }, 'Show proof'));
    } catch (error) {
      if (!isClosed) fill(body, failed(words(error)));
    }
  };
  const prove = async () => {
    try {
      const said = await get(`/api/audit/proof/${seq}`);
      const text = JSON.stringify(said, null, 2);
      fill(proof, el('div', { class: 'card' }, tree(said)),
        el('p', { class: 'row below' }, el('button', { type: 'button', onclick: () => void navigator.clipboard.writeText(text).then(() => toast('Copied.', 'good'), () => toast('The browser does not allow copying here.', 'bad')) }, 'Copy'), el('span', { class: 'faint' }, 'Check it with ', el('code', null, 'amplifier audit prove --check FILE --key PUBLIC_KEY'))));
    } catch (error) {
      fill(proof, failed(words(error)));
    }
  };
  void read();
  return {
    title: `Record ${plain(String(seq))}`,
    root: el('div', { class: 'view' }, el('a', { href: '#/audit', class: 'up' }, icon('back'), 'Audit log'),
      el('header', { class: 'top' }, el('h1', { tabindex: -1 }, `Record ${count(seq)}`), el('div', { class: 'row' }, seq > 0 ? el('a', { class: 'button', href: `#/audit/${seq - 1}`, 'aria-label': 'Previous record' }, icon('back')) : null, el('a', { class: 'button', href: `#/audit/${seq + 1}`, 'aria-label': 'Next record' }, icon('next')))), body),
    close() {
      isClosed = true;
    },
  };
}

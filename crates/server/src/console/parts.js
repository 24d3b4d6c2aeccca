// Pieces that several views share.

import { el, icon } from './dom.js';
import { counted, span } from './format.js';
import { shown } from './text.js';

/** @import {Actor, DecisionBasis, OpenApproval, PreviewRow, SessionState} from './types.js' */

/** @type {Record<string, string>} */
const TITLES = {
  away: 'The connection is lost. A running session reconnects within seconds.',
  gone: 'The session stopped without an end record.',
  failed: 'The session ended after an error.',
};

/** @type {Record<SessionState, string>} */
export const STATES = { running: 'Running', waiting: 'Waiting for you', idle: 'Idle', away: 'Not connected', ended: 'Ended', failed: 'Failed', gone: 'Gone' };

/** @param {SessionState | undefined} state `true` if nothing more happens in such a session */
export function isOver(state) {
  return state === 'ended' || state === 'failed' || state === 'gone';
}

/** @param {SessionState} state */
export function stateBadge(state) {
  return el('span', { class: `state ${state}`, title: TITLES[state] ?? null }, el('span', { class: 'lamp', 'aria-hidden': 'true' }), STATES[state] ?? state);
}

/**
 * @param {string} tone
 * @param {string} words
 * @param {string} [sign]
 */
export function badge(tone, words, sign) {
  return el('span', { class: `badge ${tone}` }, sign ? icon(sign) : null, words);
}

/** @param {boolean} granted */
export function decisionBadge(granted) {
  return granted ? badge('good', 'Allowed', 'check') : badge('bad', 'Denied', 'close');
}

/** @type {Record<string, string>} the action of a hook */
export const ANSWERS = { continue: 'continues', deny: 'denies', ask_user: 'asks', modify: 'modifies', inject_context: 'adds context', respond: 'responds' };

/** @type {Record<string, string>} */
const ENDINGS = { complete: 'task finished', user_exit: 'by the user', error: 'after an error' };

/** @param {string} reason the reason of the end */
export function ended(reason) {
  return ENDINGS[reason] ?? reason;
}

/** @type {Record<string, string>} */
const PLACES = { terminal: 'in the terminal', console: 'in the console', api: 'over the API', link: 'by link' };
/** @type {Record<string, string>} */
const BASES = {
  answer: 'answered', rule: 'by a rule', remembered: 'by an earlier answer in this session', timeout: 'no answer in time', cancelled: 'cancelled',
  not_offered: 'invalid option', failed: 'request failed', no_system: 'no approver available',
};

/** @param {Actor} by */
export function person(by) {
  return el('span', null, el('strong', null, shown(by.name, { limit: 60, more: false })), ' ', PLACES[by.via] ?? el('span', null, 'via ', shown(by.via, { limit: 40, more: false })));
}

/** @typedef {{basis: DecisionBasis, by?: Actor | null, created_at?: string | null, decided_at?: string | null}} Decision */

/**
 * The actor or basis of a decision, the channel and the duration.
 * @param {Decision} decided
 */
export function whoDecided(decided) {
  const basis = BASES[decided.basis] ?? null;
  return el('span', { class: 'who' },
    decided.by ? person(decided.by) : basis ?? shown(decided.basis, { limit: 60, more: false }),
    decided.by && decided.basis !== 'answer' && basis ? el('span', null, ', ', basis) : null,
    // Otherwise nobody was waited for.
    after(decided) === null || !(decided.by || decided.basis === 'timeout') ? null : el('span', { class: 'faint' }, ` after ${span(after(decided) ?? 0)}`));
}

/**
 * The time until the decision, in milliseconds.
 * @param {Decision} decided
 */
function after(decided) {
  const ms = Date.parse(decided.decided_at ?? '') - Date.parse(decided.created_at ?? '');
  return Number.isNaN(ms) ? null : ms;
}

/** @type {Record<string, [string, string]>} */
const SIGNS = { added: ['+', 'added'], removed: ['−', 'removed'], context: ['', ''], plain: ['', ''], gap: ['⋯', 'lines left out'], note: ['', 'note'] };

/**
 * An action, line by line: a diff has numbers and signs, so that it does not depend on colours.
 * @param {PreviewRow[]} rows
 */
export function diff(rows) {
  // Nothing is left out before the first line.
  if (rows[0]?.kind === 'gap' && [rows[1]?.old, rows[1]?.new].includes(1)) rows = rows.slice(1);
  const numbered = rows.some((row) => row.old !== undefined || row.new !== undefined);
  const body = el('tbody');
  const put = (/** @type {number} */ from) => {
    for (const row of rows.slice(from, from + 400)) {
      const [sign, word] = SIGNS[row.kind] ?? ['', ''];
      body.append(el('tr', { class: row.kind === 'note' ? 'remark' : row.kind },
        numbered ? el('td', { class: 'line' }, row.old ?? '') : null,
        numbered ? el('td', { class: 'line' }, row.new ?? '') : null,
        el('td', { class: 'sign' }, el('span', { 'aria-hidden': 'true' }, sign), word ? el('span', { class: 'sr' }, row.kind === 'gap' ? word : `${word}: `) : null),
        // The line numbers show the gap.
        el('td', { class: 'code' }, row.kind === 'gap' && numbered ? null : shown(row.text, { limit: 2_000 }))));
    }
    if (from + 400 < rows.length) {
      const more = el('tr', null, el('td', { colspan: 4 }, el('button', { type: 'button', class: 'more', onclick: () => { more.remove(); put(from + 400); } }, `show more (${counted(rows.length - from - 400, 'line')} left)`)));
      body.append(more);
    }
  };
  put(0);
  return el('div', { class: 'diff', tabindex: 0, role: 'region', 'aria-label': numbered ? 'The change, line by line' : 'Operation, line by line' }, el('table', null, body));
}

/** The number of lines that a change adds and removes, as a summary has it. */
const COUNTS = /^\+(\d+) −(\d+)$/;

/**
 * The effect of the operation in a few words.
 * @param {OpenApproval} approval
 */
export function summary(approval) {
  const said = approval.preview.summary;
  const counts = said ? COUNTS.exec(said) : null;
  if (!counts) return said ? el('span', { class: 'faint' }, shown(said, { limit: 200 })) : null;
  const [added, removed] = [Number(counts[1]), Number(counts[2])];
  return el('span', { class: 'changed' }, el('span', { class: 'plus' }, `+${added}`), ' ', el('span', { class: 'minus' }, `−${removed}`), el('span', { class: 'sr' }, ` (${counted(added, 'line')} added, ${removed} removed)`));
}

/**
 * A confirmation before an irreversible step. Resolves to `true` if the user agrees.
 * @param {string} question
 * @param {Node | string} explanation
 * @param {string} yes
 * @returns {Promise<boolean>}
 */
export function confirmed(question, explanation, yes) {
  return new Promise((resolve) => {
    const dialog = modal('confirm', question, el('p', null, explanation),
      el('div', { class: 'row end' },
        el('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'),
        el('button', { type: 'button', class: 'danger', onclick: () => dialog.close('yes') }, yes)));
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'));
  });
}

/**
 * Opens a dialog, which is gone when it is closed.
 * @param {string} id
 * @param {string} title
 * @param {...import('./dom.js').Child} children
 */
export function modal(id, title, ...children) {
  const dialog = el('dialog', { class: 'small', id, 'aria-labelledby': `${id}-title` }, el('h2', { id: `${id}-title` }, title), children,
    // Content outside of a modal dialog is neither visible nor read out.
    el('div', { class: 'toasts' }), el('div', { class: 'sr', 'aria-live': 'polite' }), el('div', { class: 'sr', 'aria-live': 'assertive' }));
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/**
 * A placeholder for an empty view.
 * @param {string} sign
 * @param {string} title
 * @param {...import('./dom.js').Child} words
 */
export function empty(sign, title, ...words) {
  return el('div', { class: 'empty' }, icon(sign), el('p', { class: 'strong' }, title), words.length ? el('p', { class: 'faint' }, words) : null);
}

/**
 * Calls at most once a frame, however often it is asked to; and not more often than every `least` milliseconds.
 * @param {() => void} draw
 * @param {number} [least]
 */
export function perFrame(draw, least = 0) {
  let due = false;
  let last = -Infinity;
  const now = () => {
    due = false;
    last = performance.now();
    draw();
  };
  return () => {
    if (due) return;
    due = true;
    const wait = last + least - performance.now();
    if (wait <= 0) requestAnimationFrame(now);
    else setTimeout(() => requestAnimationFrame(now), wait);
  };
}

/**
 * `true` if the state of a part of the page has changed. An unchanged part is not redrawn: a button that is redrawn while it is pressed loses
 * the click.
 * @param {Element} node
 * @param {unknown} state
 */
export function isOther(node, state) {
  const key = JSON.stringify(state);
  if (drawn.get(node) === key) return false;
  drawn.set(node, key);
  return true;
}

/** @type {WeakMap<Element, string>} */
const drawn = new WeakMap();

/**
 * A notice that something could not be read.
 * @param {string} words
 */
export function failed(words) {
  return el('div', { class: 'notice bad', role: 'alert' }, icon('mark'), el('div', null, shown(words)));
}

// Keys of the page, and their help. Keys in the dialog of an approval request are in approval_dialog.js.

import { el } from './dom.js';
import { modal } from './parts.js';

/** @type {[string[], string][]} */
const HELP = [
  [['?'], 'Show this help'],
  [['/'], 'Search'],
  [['g', 'o'], 'Go to the overview'],
  [['g', 's'], 'Go to sessions'],
  [['g', 'a'], 'Go to approvals'],
  [['g', 'h'], 'Go to hooks'],
  [['g', 'l'], 'Go to the audit log'],
  [['Esc'], 'Close a dialog. Esc never answers an approval request'],
];
/** @type {[string[], string][]} */
const REQUEST = [
  [['1', '–', '9'], 'Answer with this option'],
  [['←', '→'], 'Previous or next request'],
  [['Enter'], 'In the field for a reason: deny with the reason'],
];
/** @type {Record<string, string>} */
const PLACES = { o: '#/', s: '#/sessions', a: '#/approvals', h: '#/hooks', l: '#/audit' };
/** Time for the second key, in milliseconds. */
const PAUSE = 1_500;

export function startKeyboard() {
  let goes = -Infinity;
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat || event.isComposing || isTyping(event.target) || document.querySelector('dialog[open]')) return;
    const isSecond = performance.now() - goes < PAUSE;
    goes = -Infinity;
    const place = isSecond ? PLACES[event.key] : undefined;
    if (place) location.hash = place;
    else if (event.key === 'g') goes = performance.now();
    else if (event.key === '?') openHelp();
    else if (event.key !== '/' || !search()) return;
    event.preventDefault();
  });
}

/** @param {EventTarget | null} target */
function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName));
}

/** Moves to the search field of the view, or to the one of all sessions. */
function search() {
  const field = /** @type {HTMLInputElement | null} */ (document.querySelector('main input[type="search"]'));
  if (field) field.focus();
  else location.hash = '#/sessions';
  return true;
}

/** Opens the list of keys. */
export function openHelp() {
  const rows = (/** @type {[string[], string][]} */ keys) => el('dl', { class: 'help' }, keys.flatMap(([names, meaning]) => [el('dt', null, names.map((name) => (name === '–' ? ' – ' : el('kbd', null, name)))), el('dd', null, meaning)]));
  const dialog = modal('help', 'Keys', rows(HELP), el('h3', null, 'In an approval request'), rows(REQUEST),
    el('div', { class: 'row end' }, el('button', { type: 'button', autofocus: true, onclick: () => dialog.close() }, 'Close')));
}

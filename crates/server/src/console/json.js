// Data as a tree that opens bit by bit. Nothing is built before it is opened.

import { add, el } from './dom.js';
import { shown } from './text.js';

const AT_ONCE = 100;

/**
 * @param {unknown} value
 * @param {{open?: boolean}} [how]
 * @returns {HTMLElement}
 */
export function tree(value, how = {}) {
  return el('div', { class: 'tree' }, node(null, value, how.open ?? true));
}

/**
 * @param {string | number | null} key
 * @param {unknown} value
 * @param {boolean} open
 * @returns {HTMLElement}
 */
function node(key, value, open) {
  const name = key === null ? null : [el('span', { class: typeof key === 'number' ? 'key index' : 'key' }, shown(String(key), { limit: 200 })), el('span', { class: 'colon' }, ':')];
  if (value === null || typeof value !== 'object') return el('div', { class: 'leaf' }, name, leaf(value));
  const entries = Array.isArray(value) ? value.map((one, index) => /** @type {[number, unknown]} */ ([index, one])) : Object.entries(value);
  const brackets = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  if (entries.length === 0) return el('div', { class: 'leaf' }, name, el('span', { class: 'faint' }, brackets.join('')));
  const inner = el('div', { class: 'inner' });
  let built = 0;
  const build = () => {
    const button = inner.querySelector(':scope > button');
    button?.remove();
    for (const [k, v] of entries.slice(built, built + AT_ONCE)) add(inner, node(k, v, false));
    built += AT_ONCE;
    if (built < entries.length) add(inner, el('button', { type: 'button', class: 'more', onclick: build }, `show more (${entries.length - built} left)`));
  };
  if (key === null && open) {
    build();
    return inner;
  }
  const details = el('details', open ? { open: true } : null,
    el('summary', null, name, el('span', { class: 'faint' }, `${brackets[0]} ${entries.length} ${brackets[1]}`)), inner);
  details.addEventListener('toggle', () => {
    if (details.open && built === 0) build();
  });
  if (open) build();
  return details;
}

/** @param {unknown} value */
function leaf(value) {
  if (typeof value === 'string') return el('span', { class: 'value string' }, shown(value, { limit: 1_000 }));
  return el('span', { class: `value ${value === null ? 'null' : typeof value}` }, String(value));
}

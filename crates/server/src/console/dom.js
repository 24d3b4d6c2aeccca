// Small helpers to build the page. Nothing here or elsewhere parses HTML: text only ever becomes text nodes.

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Makes an element. `class`, `on…` listeners and attributes; `true` is an attribute without a value, `false` and `null` none.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, any> | null} [props]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, props, ...children) {
  const node = document.createElement(tag);
  set(node, props);
  add(node, ...children);
  return node;
}

/**
 * Makes an SVG element.
 * @param {string} tag
 * @param {Record<string, any> | null} [props]
 * @param {...(Child | Child[])} children
 * @returns {SVGElement}
 */
export function svg(tag, props, ...children) {
  const node = /** @type {SVGElement} */ (document.createElementNS('http://www.w3.org/2000/svg', tag));
  set(node, props);
  add(node, ...children);
  return node;
}

/**
 * @param {Element} node
 * @param {Record<string, any> | null | undefined} props
 */
function set(node, props) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : String(value));
  }
}

/**
 * @param {Node} node
 * @param {...(Child | Child[])} children
 */
export function add(node, ...children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    node.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/**
 * Replaces all children.
 * @param {Element} node
 * @param {...(Child | Child[])} children
 */
export function fill(node, ...children) {
  node.replaceChildren();
  add(node, ...children);
}

/**
 * The element that the page must have.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const node = document.getElementById(id);
  if (!node) throw new Error(`the page has no #${id}`);
  return node;
}

/** @type {Record<string, string[]>} */
const ICONS = {
  overview: ['M4 13h6V4H4z', 'M14 20h6v-9h-6z', 'M4 20h6v-3H4z', 'M14 7h6V4h-6z'],
  sessions: ['M4 5h16v11H4z', 'M9 20h6', 'M12 16v4'],
  approvals: ['M12 3l8 3v6c0 4.6-3.3 7.9-8 9-4.7-1.1-8-4.4-8-9V6z', 'M8.8 12l2.3 2.3 4.2-4.6'],
  hooks: ['M15.5 3.5a2 2 0 1 0 .1 0z', 'M15.5 7.5v7.5a4.75 4.75 0 0 1-9.5 0v-3.5', 'M3.5 13.5L6 11l2.5 2.5'],
  audit: ['M6 3h9l4 4v14H6z', 'M14 3v5h5', 'M9 13h7', 'M9 17h5'],
  prompt: ['M5 5h14v10H11l-4 4v-4H5z'],
  model: ['M12 3l2.2 5.8L20 11l-5.8 2.2L12 19l-2.2-5.8L4 11l5.8-2.2z'],
  tool: ['M14.5 5.5a4 4 0 0 0-5 5L4 16v4h4l5.5-5.5a4 4 0 0 0 5-5l-2.6 2.6-2.6-.6-.6-2.6z'],
  agent: ['M6 5h5v5H6z', 'M13 14h5v5h-5z', 'M8.5 10v6.5H13'],
  mark: ['M12 8v5', 'M12 16.5v.1', 'M12 3l9.5 17h-19z'],
  dot: ['M12 9.5a2.5 2.5 0 1 0 .1 0z'],
  clock: ['M12 7v5l3 2', 'M12 3a9 9 0 1 0 .1 0z'],
  inject: ['M12 4v10', 'M8 10l4 4 4-4', 'M5 19h14'],
  question: ['M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4', 'M12 17.5v.1', 'M12 3a9 9 0 1 0 .1 0z'],
  sun: ['M12 8a4 4 0 1 0 .1 0z', 'M12 3v1.5', 'M12 19.5V21', 'M3 12h1.5', 'M19.5 12H21', 'M5.6 5.6l1.1 1.1', 'M17.3 17.3l1.1 1.1', 'M5.6 18.4l1.1-1.1', 'M17.3 6.7l1.1-1.1'],
  moon: ['M20 14.5A8 8 0 0 1 9.5 4a8 8 0 1 0 10.5 10.5z'],
  auto: ['M12 3a9 9 0 1 0 .1 0z', 'M12 3v18', 'M12 8h5', 'M12 12h8', 'M12 16h6'],
  bell: ['M6 17V11a6 6 0 0 1 12 0v6l1.5 1.5h-15z', 'M10.5 21h3'],
  back: ['M15 5l-7 7 7 7'],
  next: ['M9 5l7 7-7 7'],
  close: ['M6 6l12 12', 'M18 6L6 18'],
  check: ['M5 12.5l4.5 4.5L19 7.5'],
  stop: ['M7 7h10v10H7z'],
  person: ['M12 4a4 4 0 1 0 .1 0z', 'M4.5 20c.6-4 3.6-6 7.5-6s6.9 2 7.5 6'],
  folder: ['M3.5 6h6l2 2.5h9V19h-17z'],
  link: ['M10 14a4 4 0 0 0 5.7 0l3-3a4 4 0 0 0-5.7-5.7l-1 1', 'M14 10a4 4 0 0 0-5.7 0l-3 3A4 4 0 0 0 11 18.7l1-1'],
  save: ['M12 4v11', 'M7.5 11l4.5 4.5 4.5-4.5', 'M5 20h14'],
  down: ['M12 5v14', 'M6 13l6 6 6-6'],
  plus: ['M12 5v14', 'M5 12h14'],
};

/**
 * A line drawing, hidden from screen readers: a text label is next to it.
 * @param {string} name
 * @returns {SVGElement}
 */
export function icon(name) {
  return svg('svg', { class: 'icon', viewBox: '0 0 24 24', 'aria-hidden': 'true', focusable: 'false' }, (ICONS[name] ?? ICONS.dot ?? []).map((d) => svg('path', { d })));
}


/**
 * Tells something to a screen reader, without moving the focus.
 * @param {string} words
 * @param {'polite' | 'assertive'} [how]
 */
export function announce(words, how = 'polite') {
  // While a modal dialog is open, nothing outside of it is read out.
  const region = document.querySelector(`dialog[open] > [aria-live="${how}"]`) ?? document.querySelector(`body > [aria-live="${how}"]`);
  if (!region) return;
  region.textContent = '';
  // A separate change, so that a repeated text is announced again.
  setTimeout(() => { region.textContent = words; }, 30);
}

/**
 * A short note at the edge of the page, which goes away by itself.
 * @param {Child | Child[]} words
 * @param {'good' | 'bad' | 'plain'} [tone]
 */
export function toast(words, tone = 'plain') {
  const note = el('div', { class: `toast ${tone}` }, icon(tone === 'bad' ? 'mark' : tone === 'good' ? 'check' : 'dot'), el('div', null, words));
  const close = el('button', { class: 'quiet small', type: 'button', 'aria-label': 'Close this note', onclick: () => note.remove() }, icon('close'));
  note.append(close);
  // A modal dialog hides everything behind it, so the note goes where it is seen.
  const open = document.querySelector('dialog[open] .toasts');
  (open ?? byId('toasts')).append(note);
  setTimeout(() => note.remove(), tone === 'bad' ? 12_000 : 5_000);
}

/**
 * A view: it draws itself into the page once, and takes itself down.
 * @typedef {object} View
 * @property {string} title
 * @property {HTMLElement} root
 * @property {() => void} [close]
 */

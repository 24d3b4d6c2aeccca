// The one way in which text from outside gets onto the page: prompts, commands, names, reasons, everything.
//
// It becomes text nodes, so markup stays text. Characters that cannot be seen, or that change how others are seen (controls, escape
// sequences, text direction, zero width, odd spaces), become visible marks with their code point; the terminal and Python mark the same
// ones (conformance/text/characters.json). What is long is cut.

import { add, el } from './dom.js';

// New lines and tabs are shown unchanged. A joiner or a variation selector inside an emoji is part of the visible character.
const HIDDEN = new RegExp(
  [
    '(?<=\\p{Extended_Pictographic})\\ufe0f',
    '(?<=\\p{Extended_Pictographic}\\ufe0f?|\\p{Emoji_Modifier})\\u200d(?=\\p{Extended_Pictographic})',
    '((?![\\n\\t ])[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Co}\\p{Cn}\\p{Zl}\\p{Zp}\\p{Zs}\\p{Default_Ignorable_Code_Point}\\u2800])\\1*',
  ].join('|'),
  'gu',
);

/** @type {Record<number, string>} */
const NAMES = {
  0x00: 'null', 0x07: 'bell', 0x08: 'backspace', 0x0b: 'vertical tab', 0x0c: 'form feed', 0x0d: 'carriage return', 0x1b: 'escape', 0x7f: 'delete',
  0x9b: 'control sequence introducer', 0xa0: 'no-break space', 0xad: 'soft hyphen', 0x61c: 'arabic letter mark', 0x200b: 'zero width space',
  0x200c: 'zero width non-joiner', 0x200d: 'zero width joiner', 0x200e: 'left-to-right mark', 0x200f: 'right-to-left mark', 0x2028: 'line separator',
  0x2029: 'paragraph separator', 0x202a: 'left-to-right embedding', 0x202b: 'right-to-left embedding', 0x202c: 'pop directional formatting',
  0x202d: 'left-to-right override', 0x202e: 'right-to-left override', 0x2060: 'word joiner', 0x2066: 'left-to-right isolate',
  0x2067: 'right-to-left isolate', 0x2068: 'first strong isolate', 0x2069: 'pop directional isolate', 0x3000: 'ideographic space', 0xfeff: 'byte order mark',
};

/** Number of characters that "show all" adds at a time, so that a megabyte does not freeze the page. */
const CHUNK = 8_000;

/**
 * Untrusted text, made harmless. `limit` is the number of characters shown at first; `more: false` omits the button for the rest.
 * @param {unknown} text
 * @param {{limit?: number, more?: boolean, block?: boolean}} [how]
 * @returns {HTMLElement}
 */
export function shown(text, how = {}) {
  const { limit = 2_000, more = true, block = false } = how;
  const all = typeof text === 'string' ? text : text === null || text === undefined ? '' : String(text);
  const root = el('span', { class: block ? 'out block' : 'out' });
  const end = fits(all, limit);
  put(root, all.slice(0, end));
  if (end >= all.length) return root;
  if (!more) {
    add(root, '…');
    return root;
  }
  const button = el('button', { type: 'button', class: 'more' }, `… show all (${(all.length - end).toLocaleString('en')} more characters)`);
  button.addEventListener('click', (event) => {
    event.preventDefault();
    event.stopPropagation();
    button.remove();
    root.classList.add('unfolding');
    let at = end;
    const step = () => {
      const next = whole(all, at + CHUNK);
      put(root, all.slice(at, next));
      at = next;
      if (at < all.length && root.isConnected) requestAnimationFrame(step);
      else root.classList.remove('unfolding');
    };
    step();
  });
  root.append(button);
  return root;
}

/**
 * The same as a plain string, for titles, labels and notifications, where there are no elements.
 * @param {unknown} text
 * @param {number} [limit]
 * @returns {string}
 */
export function plain(text, limit = 200) {
  const all = typeof text === 'string' ? text : String(text ?? '');
  const end = fits(all, limit);
  const cut = all.slice(0, end).replace(HIDDEN, (run, hidden) => (hidden ? mark(hidden, run) : run)).replace(/\s+/gu, ' ');
  return end < all.length ? `${cut}…` : cut;
}

/**
 * @param {HTMLElement} root
 * @param {string} text
 */
function put(root, text) {
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    const [run, hidden] = match;
    if (!hidden) continue;
    if (match.index > from) root.append(text.slice(from, match.index));
    const code = hidden.codePointAt(0) ?? 0;
    root.append(el('span', { class: 'mark', title: NAMES[code] ?? 'invisible character' }, mark(hidden, run)));
    from = match.index + run.length;
  }
  if (from < text.length) root.append(text.slice(from));
}

/**
 * @param {string} hidden
 * @param {string} run
 */
function mark(hidden, run) {
  const times = run.length / hidden.length;
  const code = (hidden.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  return times > 1 ? `U+${code}×${times}` : `U+${code}`;
}

/**
 * The number of characters shown at first. A mark takes more room than its character, so a text of marks is cut sooner.
 * @param {string} text
 * @param {number} limit
 */
function fits(text, limit) {
  const end = whole(text, limit);
  let room = limit;
  let at = 0;
  for (const match of text.slice(0, end).matchAll(HIDDEN)) {
    const stop = match.index + match[0].length;
    room -= match.index - at + (match[1] ? 8 : match[0].length);
    if (room <= 0) return stop;
    at = stop;
  }
  return end;
}

/**
 * The end of the last whole character within the limit.
 * @param {string} text
 * @param {number} limit
 */
function whole(text, limit) {
  if (text.length <= limit) return text.length;
  const code = text.charCodeAt(limit - 1);
  return code >= 0xd800 && code < 0xdc00 ? limit - 1 : limit;
}

// Files that the page makes of what is filtered. Nothing leaves the browser.

import { el } from './dom.js';

/**
 * Saves a text as a file.
 * @param {string} name
 * @param {string} type
 * @param {string[]} lines
 */
export function save(name, type, lines) {
  const url = URL.createObjectURL(new Blob(lines.map((line) => `${line}\n`), { type }));
  const link = el('a', { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  // The browser reads the content after the click.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/**
 * A line of comma-separated values. A spreadsheet would run a text that begins like a formula, so such a text is quoted.
 * @param {unknown[]} values
 */
export function csv(values) {
  return values.map((value) => {
    const text = value === null || value === undefined ? '' : String(value);
    const safe = /^[=+\-@\t\r]/.test(text) && typeof value !== 'number' ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }).join(',');
}

/** The time for a file name: `2026-01-31-0915`. */
export function stamp() {
  return new Date().toISOString().slice(0, 16).replace('T', '-').replace(':', '');
}

// Search in the content of the log: prompts, inputs of tools, reasons, approval requests.

import { get, words } from './api.js';
import { announce, el, fill } from './dom.js';
import { ago, count, counted } from './format.js';
import { failed } from './parts.js';
import { sessionName } from './store.js';
import { plain, shown } from './text.js';

/** @import {SearchMatch} from './types.js' */

/** @type {Record<SearchMatch['part'], string>} */
const PARTS = { prompt: 'Prompt', input: 'Input', reason: 'Reason', approval: 'Request' };
/** Number of matches that are looked for at a time, and of requests that look for them. */
const ENOUGH = 30;
const MOST_REQUESTS = 8;
/** Number of matches of a session that are shown at first. */
const FIRST = 3;
const DELAY_MS = 300;

/**
 * The results of a search, with what was searched. `wanted` decides which sessions are shown.
 * @param {(session: string) => boolean} wanted
 */
export function searchResults(wanted) {
  const root = el('section', { class: 'found', 'aria-label': 'Matches in content', hidden: true });
  /** @type {number | undefined} */
  let timer;
  let latest = 0;
  /** @type {SearchMatch[]} */
  let matches = [];
  let text = '';

  const draw = (/** @type {string} */ state, /** @type {(() => void) | null} */ more) => {
    /** @type {Map<string, SearchMatch[]>} */
    const groups = new Map();
    for (const one of matches) if (wanted(one.session)) groups.set(one.session, [...(groups.get(one.session) ?? []), one]);
    const shownMatches = [...groups.values()].reduce((sum, group) => sum + group.length, 0);
    fill(root, el('h2', null, 'In content'),
      [...groups].map(([session, group]) => el('article', { class: 'found-session card' },
        el('h3', null, el('a', { href: `#/sessions/${encodeURIComponent(session)}` }, shown(sessionName(session), { limit: 100, more: false })), el('span', { class: 'faint' }, ` ${group.length === 1 ? '1 match' : `${count(group.length)} matches`}`)),
        el('ul', null, group.slice(0, FIRST).map(line)),
        group.length > FIRST ? el('details', null, el('summary', null, `${count(group.length - FIRST)} more`), el('ul', null, group.slice(FIRST).map(line))) : null)),
      el('p', { class: 'faint small', role: 'status' }, shownMatches ? '' : 'No match in prompts, inputs, reasons and requests. ', state),
      more ? el('button', { type: 'button', id: 'search-more', onclick: more }, 'Search older records') : null);
  };
  const line = (/** @type {SearchMatch} */ one) => el('li', null, el('span', { class: 'tag part' }, PARTS[one.part] ?? one.part), el('a', { href: `#/audit/${one.seq}`, 'aria-label': `Record ${one.seq}: ${plain(one.excerpt, 120)}` }, marked(one.excerpt, text)), ago(one.at));

  /**
   * @param {Record<string, string>} filter
   * @param {string | undefined} cursor
   */
  const read = async (filter, cursor) => {
    const mine = ++latest;
    const enough = matches.length + ENOUGH;
    let since = '';
    try {
      for (let n = 0; n < MOST_REQUESTS; n += 1) {
        draw('Searching…', null);
        /** @type {{matches: SearchMatch[], cursor?: string, searched_since?: string}} */
        const page = await get('/api/search', { ...filter, text, cursor, limit: ENOUGH });
        if (mine !== latest) return;
        matches.push(...page.matches);
        cursor = page.cursor;
        since = page.searched_since ?? since;
        if (!cursor || matches.length >= enough) break;
      }
      const state = cursor ? `Searched back to ${new Date(since).toLocaleString()}.` : 'The whole log was searched.';
      draw(state, cursor ? () => void read(filter, cursor) : null);
      announce(`${counted(matches.length, 'record')} found. ${state}`);
    } catch (error) {
      if (mine === latest) fill(root, el('h2', null, 'In content'), failed(words(error)));
    }
  };
  return {
    root,
    /**
     * Searches again, a moment after the last change.
     * @param {string} wantedText
     * @param {Record<string, string>} filter
     */
    search(wantedText, filter) {
      clearTimeout(timer);
      latest += 1;
      text = wantedText.trim();
      matches = [];
      root.hidden = text.length < 2;
      if (!root.hidden) timer = setTimeout(() => void read(filter, undefined), DELAY_MS);
    },
    close() {
      clearTimeout(timer);
      latest += 1;
    },
  };
}

/**
 * A text with its matches marked.
 * @param {string} excerpt
 * @param {string} text the searched words
 */
function marked(excerpt, text) {
  const found = text.split(/\s+/).filter(Boolean).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const parts = found.length ? excerpt.split(new RegExp(`(${found.join('|')})`, 'giu')) : [excerpt];
  return el('span', { class: 'excerpt' }, parts.map((part, index) => (index % 2 ? el('mark', null, shown(part, { limit: 300, more: false })) : part ? shown(part, { limit: 300, more: false }) : null)));
}

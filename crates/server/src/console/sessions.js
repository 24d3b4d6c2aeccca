// The list of sessions.

import { post, words } from './api.js';
import { el, fill, icon, toast } from './dom.js';
import { csv, save, stamp } from './download.js';
import { ago, agentName, count, folderName, money, short } from './format.js';
import { empty, failed, isOther, modal, perFrame, stateBadge } from './parts.js';
import { bounds } from './period.js';
import { searchResults } from './search.js';
import { contains, filterFields, fits, isFiltered, mayBeOlder, newFilter } from './session_filter.js';
import { may, on, readOlder, sessionName, store } from './store.js';
import { plain, shown } from './text.js';

/** @import {View} from './dom.js' */
/** @import {Session} from './types.js' */

/** The filter; stays while the page is open. */
const wanted = newFilter();
const AT_ONCE = 200;

/** @returns {View} */
export function sessionsView() {
  let most = AT_ONCE;
  const list = el('ul', { class: 'sessions', 'aria-label': 'Sessions' });
  const tail = el('div', { class: 'tail' });
  /** @type {Map<string, {node: HTMLElement, key: string}>} */
  const rows = new Map();
  let isReading = false;
  /** @type {string | null} */
  let problem = null;
  const results = searchResults((id) => {
    const session = store.sessions.get(id);
    // An unknown session is older than the loaded ones, and passes unless its state or client is wanted.
    return session ? fits(session, wanted) : !wanted.state && !wanted.client;
  });
  const search = () => results.search(wanted.text, bounds(wanted.period));
  const changed = () => {
    search();
    draw();
  };
  /** A search loads all older sessions; otherwise one page is loaded. */
  const older = async () => {
    isReading = true;
    problem = null;
    draw();
    try {
      do await readOlder();
      while (store.hasOlder && isFiltered(wanted));
      most += AT_ONCE;
    } catch (error) {
      problem = words(error);
    }
    isReading = false;
    draw();
  };
  const matching = () => [...store.sessions.values()]
    .filter((one) => fits(one, wanted) && contains(one, wanted.text))
    .sort((a, b) => Number(b.state === 'waiting') - Number(a.state === 'waiting') || Date.parse(b.updated_at) - Date.parse(a.updated_at));

  const draw = perFrame(() => {
    const all = [...store.sessions.values()];
    fields.draw(all, store.hasOlder);
    const held = document.activeElement?.id;
    const found = matching();
    const shownNow = found.slice(0, most);
    const ids = new Set(shownNow.map((one) => one.id));
    for (const [id, row] of rows) {
      if (!ids.has(id)) {
        row.node.remove();
        rows.delete(id);
      }
    }
    // Rows are reused, and moved only if their position has changed, so that focus and scroll position stay.
    let before = list.firstElementChild;
    for (const session of shownNow) {
      const key = JSON.stringify(session);
      let row = rows.get(session.id);
      row ??= { node: el('li', null, el('a', { href: `#/sessions/${encodeURIComponent(session.id)}` })), key: '' };
      if (row.key !== key) {
        row.key = key;
        rows.set(session.id, row);
        fillLine(row.node, session);
      }
      if (before === row.node) before = before.nextElementSibling;
      else list.insertBefore(row.node, before);
    }
    const isOlder = store.hasOlder && mayBeOlder(wanted);
    if (isOther(tail, [found.length, most, all.length === 0, store.link, isOlder, isFiltered(wanted), isReading, problem])) {
      fill(tail,
        found.length > most ? el('button', { type: 'button', onclick: () => { most += AT_ONCE; draw(); } }, `Show ${Math.min(AT_ONCE, found.length - most)} more of ${count(found.length)}`) : null,
        found.length === 0 && all.length > 0 && wanted.text.trim().length > 1 ? el('p', { class: 'faint' }, isOlder ? 'None of the newest sessions has this in its name, folder or prompt.' : 'No session has this in its name, folder or prompt.') : found.length === 0 && all.length > 0 ? empty('sessions', isOlder ? 'None of the newest sessions matches.' : 'No session matches.') : null,
        isOlder && found.length <= most ? el('button', { type: 'button', id: 'older', disabled: isReading, onclick: () => void older() }, isReading ? 'Reading…' : isFiltered(wanted) ? 'Search older sessions too' : 'Show older sessions') : null,
        problem ? failed(problem) : null,
        all.length === 0 && store.link !== 'connecting' ? first() : null);
      if (held === 'older') document.getElementById(held)?.focus();
    }
    saves.hidden = found.length === 0;
  }, 150);

  const fields = filterFields(wanted, changed);
  const saves = el('button', { type: 'button', id: 'export', title: 'Save the listed sessions as a file', onclick: () => save(`sessions-${stamp()}.csv`, 'text/csv', table(matching())) }, icon('save'), 'Export');
  const root = el('div', { class: 'view' },
    el('header', { class: 'top' }, el('h1', { tabindex: -1 }, 'Sessions'), el('div', { class: 'row' }, saves, may('admin') ? el('button', { type: 'button', class: 'primary', onclick: () => begin() }, icon('plus'), 'New session') : null)),
    fields.root, list, tail, results.root);
  draw();
  if (wanted.text) search();
  const off = on('sessions', draw);
  return {
    title: 'Sessions',
    root,
    close() {
      off();
      results.close();
    },
  };
}

/** @type {(keyof Session)[]} */
const FIELDS = ['id', 'state', 'name', 'workspace', 'started_at', 'updated_at', 'turns', 'tool_calls', 'denials', 'errors', 'tokens', 'ended', 'parent', 'prompt'];

/**
 * Sessions as the lines of a table.
 * @param {Session[]} sessions
 */
function table(sessions) {
  return [csv(['client', 'cost', 'currency', ...FIELDS]), ...sessions.map((one) => csv([one.client?.name, one.cost?.amount, one.cost?.currency, ...FIELDS.map((name) => one[name])]))];
}

/**
 * @param {HTMLElement} node
 * @param {Session} session
 */
function fillLine(node, session) {
  const number = (/** @type {number} */ n, /** @type {string} */ word, tone = '', more = '') => el('span', { class: `figure ${n ? tone : 'zero'}` }, el('span', { class: 'num' }, short(n)), el('span', { class: 'unit' }, n === 1 ? word : `${word}s`), more ? el('span', { class: 'unit num' }, shown(more, { limit: 30, more: false })) : null);
  const prompt = shown(session.prompt, { limit: 220, more: false });
  // The name of a sub-agent is that of its kind.
  const title = session.parent ? undefined : session.name;
  const none = el('span', { class: 'faint' }, 'no prompt yet');
  node.className = `session ${session.state}`;
  const link = node.querySelector('a');
  if (link) {
    fill(link,
      el('span', { class: 'when' }, stateBadge(session.state), ago(session.updated_at)),
      el('span', { class: 'about' },
        el('span', { class: 'name' }, title ? shown(title, { limit: 120, more: false }) : session.prompt ? prompt : none),
        title ? el('span', { class: 'prompt' }, session.prompt ? prompt : none) : null,
        el('span', { class: 'folder', title: plain(session.workspace ?? '') }, icon(session.parent ? 'agent' : 'folder'), el('span', null, shown(title ? folderName(session.workspace ?? undefined) : sessionName(session.id), { limit: 80, more: false }), session.parent ? ` in ${plain(sessionName(session.parent), 60)}` : null), agentName(session) ? el('span', { class: 'agent' }, shown(agentName(session), { limit: 80, more: false })) : null)),
      el('span', { class: 'figures' },
        session.pending ? el('span', { class: 'figure asks' }, el('span', { class: 'num' }, session.pending), el('span', { class: 'unit' }, session.pending === 1 ? 'request' : 'requests')) : null,
        number(session.turns, 'turn'), number(session.tool_calls, 'tool call'), number(session.denials, 'denial', 'bad'), number(session.errors, 'hook error', 'bad'), number(session.tokens, 'token', '', session.cost ? money(session.cost) : '')));
  }
}

/** The view without any sessions. */
function first() {
  return el('div', { class: 'empty' }, icon('sessions'), el('p', { class: 'strong' }, 'No session yet'),
    el('p', { class: 'faint' }, "Run this in a terminal, in the agent's working folder:"), el('pre', null, 'amplifier chat --serve'),
    el('p', { class: 'faint' }, 'The session appears here with its timeline and approval requests.'));
}

function begin() {
  const folder = el('input', { type: 'text', id: 'new-folder', autocomplete: 'off', placeholder: "the server's own folder" });
  const prompt = el('textarea', { id: 'new-prompt', rows: 4, placeholder: 'Task for the agent' });
  const problem = el('div', { role: 'alert' });
  const dialog = modal('new', 'New session', el('p', { class: 'faint' }, 'The session runs in the server, with the hooks of the folder.'),
    el('label', { for: 'new-folder' }, 'Folder'), folder, el('label', { for: 'new-prompt' }, 'First prompt'), prompt, problem,
    el('div', { class: 'row end' }, el('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'), el('button', { type: 'button', class: 'primary', onclick: () => void go() }, 'Start')));
  const go = async () => {
    try {
      const session = await post('/api/sessions', { ...(folder.value.trim() ? { workspace: folder.value.trim() } : {}), ...(prompt.value.trim() ? { prompt: prompt.value } : {}) });
      dialog.close();
      toast('The session has started.', 'good');
      location.hash = `#/sessions/${encodeURIComponent(session.id)}`;
    } catch (error) {
      fill(problem, el('div', { class: 'notice bad' }, icon('mark'), shown(words(error))));
    }
  };
}

// One session: facts, live timeline and commands.

import { get, post, Refused, words } from './api.js';
import { el, fill, icon, toast } from './dom.js';
import { ago, agentName, count, money, short, shortId, span } from './format.js';
import { confirmed, empty, ended, failed, isOther, isOver, perFrame, stateBadge } from './parts.js';
import { acceptSession, may, on, sessionName, store, watch } from './store.js';
import { plain, shown } from './text.js';
import { asked, denied, drawEntry, isOpen, Timeline, turnLine } from './timeline.js';

/** @import {View} from './dom.js' */
/** @import {LogRecord, Session, TimelineItem} from './types.js' */
/** @import {Entry} from './timeline.js' */

const PAGE = 500;
const BATCH = 60;
const MOST = 1_500;
const RETRY_MS = 2_000;
const shows = { only: 'all', minor: false };

/**
 * @param {string} id
 * @returns {View}
 */
export function sessionView(id) {
  const timeline = new Timeline();
  let cursor = 0;
  let isReading = false;
  let again = false;
  let isClosed = false;
  let isLoaded = false;
  /** `true` once the first entries are drawn. */
  let isDrawn = false;
  let follows = true;
  let unseen = 0;
  /** @type {Entry[]} */
  let waiting = [];
  /** The first entry that is on the page. */
  let from = 0;
  /** `true` if the page shows earlier entries, and new ones are not appended. */
  let isEarlier = false;
  let lastTurn = -1;

  const head = el('header', { class: 'session-head' });
  const list = el('ol', { class: 'timeline', 'aria-label': 'Timeline' });
  const above = el('div', { class: 'tail' });
  const below = el('div', { class: 'tail' }, el('p', { class: 'faint' }, 'Reading…'));
  const jump = el('button', { type: 'button', class: 'jump', hidden: true, onclick: () => { follows = true; toEnd(); } });
  const box = promptBox(id);

  const only = el('select', { 'aria-label': 'Show in the timeline' }, [['all', 'Everything'], ['tools', 'Tool calls'], ['gates', 'Denials and requests']].map(([value, label]) => el('option', { value, selected: shows.only === value }, label)));
  only.addEventListener('change', () => { shows.only = only.value; redraw(); });
  const minor = el('input', { type: 'checkbox', id: 'minor', checked: shows.minor });
  minor.addEventListener('change', () => { shows.minor = minor.checked; redraw(); });

  const wanted = (/** @type {Entry} */ entry) => {
    if (shows.only === 'tools') return entry.sort === 'tool';
    if (shows.only === 'gates') return denied(entry) || asked(entry);
    return entry.sort !== 'minor' || shows.minor || denied(entry) || asked(entry) || Boolean(entry.first.injections.length || entry.first.messages.length);
  };

  const toEnd = () => {
    unseen = 0;
    jump.hidden = true;
    const page = document.scrollingElement;
    if (page) page.scrollTop = page.scrollHeight;
  };

  /** Draws new entries, a batch in each frame. */
  const flush = perFrame(() => {
    if (isClosed) return;
    const some = waiting.splice(0, BATCH);
    // The first entries do not count as new.
    const wasDrawn = isDrawn;
    let added = 0;
    for (const entry of some) {
      if (entry.node) {
        const open = [...entry.node.querySelectorAll('details')].map((one) => one.open);
        const old = entry.node;
        const held = old.contains(document.activeElement);
        old.replaceWith(drawEntry(entry, id));
        entry.node?.querySelectorAll('details').forEach((one, index) => { one.open = open[index] ?? false; });
        if (held) /** @type {HTMLElement | null} */ (entry.node?.querySelector('summary'))?.focus();
        continue;
      }
      if (!wanted(entry) || (isEarlier && !stretch.has(entry))) continue;
      if (entry.turn !== null && entry.turn !== lastTurn && entry.turn > 0) {
        lastTurn = entry.turn;
        list.append(turnLine(entry.turn));
      }
      list.append(drawEntry(entry, id));
      added += 1;
    }
    while (list.childElementCount > MOST + 200) {
      list.firstElementChild?.remove();
      from += 1;
    }
    if (list.childElementCount > MOST) trim();
    if (isLoaded && !waiting.length) isDrawn = true;
    if (waiting.length) flush();
    else if (isLoaded) fill(below, isEarlier ? el('button', { type: 'button', onclick: () => redraw() }, 'Show the newest entries') : list.childElementCount === 0 ? empty('sessions', timeline.order.length ? 'No matching entries.' : 'No events yet.') : null);
    if (added && isLoaded) {
      if (follows) toEnd();
      else if (wasDrawn) {
        unseen += added;
        jump.hidden = false;
        fill(jump, icon('down'), `${count(unseen)} new`);
      }
    }
  });

  /** @type {Set<Entry>} the entries of an earlier stretch */
  let stretch = new Set();
  const trim = () => {
    fill(above, el('button', { type: 'button', onclick: () => redraw(Math.max(0, from - MOST)) }, 'Show earlier entries'));
  };

  const redraw = (start = Math.max(0, timeline.order.length - MOST)) => {
    for (const entry of timeline.order) entry.node = null;
    list.replaceChildren();
    fill(above);
    lastTurn = -1;
    from = start;
    waiting = timeline.order.slice(start, start + MOST);
    isEarlier = start + MOST < timeline.order.length;
    stretch = new Set(isEarlier ? waiting : []);
    if (isEarlier) follows = false;
    if (start > 0) trim();
    flush();
  };

  const read = async () => {
    if (isReading) {
      again = true;
      return;
    }
    isReading = true;
    try {
      for (;;) {
        /** @type {{items: TimelineItem[], cursor: number}} */
        const page = await get(`/api/sessions/${encodeURIComponent(id)}/timeline`, { after: cursor || undefined, limit: PAGE });
        if (isClosed) return;
        const fresh = timeline.take(page.items);
        // A first reading of a long session draws its end only.
        if (!isLoaded && timeline.order.length > MOST) from = timeline.order.length - MOST;
        waiting.push(...[...fresh].filter((entry) => !waiting.includes(entry)));
        const isMore = page.items.length >= PAGE && page.cursor > cursor;
        cursor = page.cursor;
        if (!isMore) break;
      }
      if (!isLoaded) {
        isLoaded = true;
        const state = store.sessions.get(id)?.state;
        follows = state === 'running' || state === 'waiting';
        if (from > 0) {
          waiting = timeline.order.slice(from);
          trim();
        }
      }
      flush();
    } catch (error) {
      if (!isClosed && !isLoaded) fill(below, unreadable(id, error));
      // A failure that is not a refusal is tried again.
      if (!isClosed && !(error instanceof Refused && error.status >= 400 && error.status < 429)) soon(RETRY_MS);
    } finally {
      isReading = false;
      cursor = timeline.since(cursor);
      if (again && !isClosed) {
        again = false;
        soon();
      }
    }
  };

  /** @type {number | undefined} */
  let timer;
  const soon = (wait = 120) => {
    timer ??= setTimeout(() => {
      timer = undefined;
      void read();
    }, wait);
  };

  const drawHead = perFrame(() => {
    const session = store.sessions.get(id);
    if (session) fillHead(head, session);
    filters.hidden = !session;
    box.show(session);
  });

  const scrolled = () => {
    const page = document.scrollingElement;
    if (!page) return;
    const atEnd = page.scrollHeight - page.scrollTop - page.clientHeight < 90;
    follows = atEnd;
    if (atEnd) {
      unseen = 0;
      jump.hidden = true;
    }
  };

  const filters = el('div', { class: 'filters' }, only, el('label', { class: 'check', for: 'minor' }, minor, 'Show minor events'));
  const root = el('div', { class: 'view session-view' },
    el('a', { href: '#/sessions', class: 'up' }, icon('back'), 'Sessions'), head, filters,
    above, list, below, el('div', { class: 'dock' }, jump, box.root));

  /** Loads an old session. The stream sends only active ones and the newest others. */
  function know() {
    get(`/api/sessions/${encodeURIComponent(id)}`).then((session) => {
      if (!isClosed) acceptSession(session);
    }, (error) => {
      if (isClosed || isLoaded) return;
      fill(head, el('h1', { tabindex: -1 }, 'Session'));
      fill(below, unreadable(id, error));
      filters.hidden = true;
    });
  }

  const known = store.sessions.get(id);
  if (known) {
    fillHead(head, known);
    box.show(known);
  }
  else know();
  void read();
  watch(id);
  let lastState = known?.state;
  /** Redraws entries that run or wait, because the timeline does not show changes of that. */
  const drawOpen = () => {
    waiting.push(...timeline.order.slice(-30).filter((entry) => entry.node && (asked(entry) || isOpen(entry))));
    flush();
  };
  const offs = [
    on('sessions', (session) => {
      if (session && session.id !== id) return;
      if (!session && store.link === 'live' && !store.sessions.has(id)) know();
      drawHead();
      const state = store.sessions.get(id)?.state;
      if (state !== lastState) drawOpen();
      lastState = state;
    }),
    on('records', (/** @type {LogRecord[]} */ records) => { if (records.some((one) => one.session === id)) soon(); }),
    on('approvals', () => { drawOpen(); soon(); }),
    on('again', () => soon()),
  ];
  addEventListener('scroll', scrolled, { passive: true });
  // A user who opens an entry wants to read it in place.
  list.addEventListener('click', (event) => {
    if (/** @type {Element} */ (event.target).closest('summary, .more')) follows = false;
  }, true);
  // The end stays visible while the page grows and the user follows it.
  let tall = 0;
  const grows = new ResizeObserver(() => {
    if (follows && isLoaded && root.scrollHeight > tall) toEnd();
    tall = root.scrollHeight;
  });
  grows.observe(root);
  return {
    get title() { return plain(sessionName(id), 60); },
    root,
    close() {
      isClosed = true;
      clearTimeout(timer);
      offs.forEach((off) => off());
      removeEventListener('scroll', scrolled);
      grows.disconnect();
      watch(null);
    },
  };
}

/**
 * The notice that a session cannot be read.
 * @param {string} id
 * @param {unknown} error
 */
function unreadable(id, error) {
  if (!(error instanceof Refused && error.status === 404)) return failed(words(error));
  return el('div', null, failed(`Unknown session \`${id}\`. It is not in the audit log of this server.`), el('p', null, el('a', { href: '#/sessions' }, 'Go to the sessions')));
}

/**
 * @param {HTMLElement} head
 * @param {Session} session
 */
function fillHead(head, session) {
  const act = async (/** @type {string} */ what, /** @type {string} */ done) => {
    try {
      await post(`/api/sessions/${encodeURIComponent(session.id)}/${what}`);
      toast(done, 'good');
    } catch (error) {
      toast(shown(words(error), { limit: 300 }), 'bad');
    }
  };
  const isLive = session.state === 'running' || session.state === 'waiting';
  const fact = (/** @type {string} */ name, /** @type {import('./dom.js').Child} */ value, tone = '') => el('div', { class: tone }, el('dt', null, name), el('dd', { class: 'num' }, value));
  // The containers stay; only changed parts are redrawn.
  if (!head.querySelector('.top')) {
    fill(head, el('div', { class: 'top' }, el('div', null, el('h1', { tabindex: -1 }), el('p', { class: 'sub' })), el('div', { class: 'row buttons' })), el('dl', { class: 'strip' }));
  }
  const place = (/** @type {string} */ where, /** @type {unknown} */ state, /** @type {() => import('./dom.js').Child[]} */ children) => {
    const node = head.querySelector(where);
    if (!node || !isOther(node, state)) return;
    const held = node.contains(document.activeElement) ? document.activeElement?.id : null;
    fill(node, children());
    if (held) document.getElementById(held)?.focus({ preventScroll: true });
  };
  place('h1', [session.name, session.workspace, session.prompt], () => [shown(session.name || session.prompt || sessionName(session.id), { limit: 160, more: false })]);
  place('.sub', [session.state, session.workspace, session.ended, session.mode, session.client, session.model], () => [
    el('span', null, stateBadge(session.state), session.ended && session.state !== 'failed' ? el('span', { class: 'faint' }, ', ', shown(ended(session.ended), { limit: 120, more: false })) : null), session.workspace ? el('span', { class: 'folder' }, icon('folder'), shown(session.workspace, { limit: 200, more: false })) : null,
    session.mode ? el('span', { class: session.mode === 'ask' ? 'faint' : '', id: 'mode', title: 'Approval mode' }, 'mode: ', shown(session.mode, { limit: 32, more: false })) : null,
    agentName(session) ? el('span', { class: 'faint', id: 'agent', title: 'Agent and model' }, shown(agentName(session), { limit: 100, more: false })) : null,
    el('code', { class: 'faint', title: `Session ${plain(session.id, 80)}` }, shown(shortId(session.id), { limit: 12, more: false })),
  ]);
  place('.buttons', [session.connected, isLive, store.me?.role], () => [
    session.connected && isLive && may('approver') ? el('button', { type: 'button', id: 'interrupt', onclick: () => void act('interrupt', 'Interrupting. Interrupt again to stop at once.') }, icon('stop'), 'Interrupt') : null,
    session.connected && may('admin') ? el('button', { type: 'button', id: 'end', class: 'danger-quiet', onclick: async () => { if (await confirmed('End this session?', 'The running turn is interrupted, and open approval requests are denied.', 'End session')) await act('end', 'End requested.'); } }, 'End') : null,
  ]);
  place('.strip', session, () => [
    fact('Turns', short(session.turns)), fact('Tool calls', short(session.tool_calls)), fact('Denials', short(session.denials), session.denials ? 'bad' : ''), fact('Hook errors', short(session.errors), session.errors ? 'bad' : ''), fact('Tokens', short(session.tokens)), session.cost ? fact('Cost', shown(money(session.cost), { limit: 40, more: false })) : null,
    isOver(session.state) ? fact('Duration', span(Date.parse(session.updated_at) - Date.parse(session.started_at))) : fact('Started', ago(session.started_at)), fact('Last activity', ago(session.updated_at)),
  ]);
}

/** @param {string} id */
function promptBox(id) {
  const text = el('textarea', { rows: 1, placeholder: 'Prompt this session', 'aria-label': 'Prompt', enterkeyhint: 'send' });
  const send = el('button', { type: 'submit', class: 'primary' }, 'Send');
  const problem = el('div', { role: 'alert' });
  const form = el('form', { class: 'prompt-box', hidden: true }, problem, el('div', { class: 'row' }, text, send));
  const fit = () => {
    text.style.height = 'auto';
    text.style.height = `${Math.min(220, text.scrollHeight + 2)}px`;
  };
  text.addEventListener('input', fit);
  text.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const said = text.value;
    if (!said.trim() || send.disabled) return;
    send.disabled = true;
    fill(problem);
    try {
      await post(`/api/sessions/${encodeURIComponent(id)}/prompt`, { text: said });
      text.value = '';
      fit();
    } catch (error) {
      fill(problem, el('div', { class: 'notice bad' }, icon('mark'), shown(error instanceof Refused && error.code === 'busy' ? `Busy: ${error.message}` : words(error))));
    } finally {
      send.disabled = false;
      text.focus();
    }
  });
  return {
    root: form,
    /** @param {Session | undefined} session */
    show(session) {
      form.hidden = !(session?.connected && session.takes_prompts && may('admin'));
      text.placeholder = session?.state === 'idle' ? 'Prompt this session' : 'Prompt, after the running turn';
    },
  };
}

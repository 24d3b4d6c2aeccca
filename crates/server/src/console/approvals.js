// Open approval requests, decisions and approval rules.

import { get, post, remove, words } from './api.js';
import { notifications, toggleNotifications } from './alerts.js';
import { openApprovals, opensAlone, setOpensAlone } from './approval_dialog.js';
import { el, fill, icon, toast } from './dom.js';
import { ago, clock, count, folderName, serverNow } from './format.js';
import { badge, confirmed, decisionBadge, empty, failed, modal, perFrame, summary, whoDecided } from './parts.js';
import { may, on, openCount, queue, sessionName, store } from './store.js';
import { plain, shown } from './text.js';

/** @import {View} from './dom.js' */
/** @import {DecidedApproval, ListedRule, UnreadableFile} from './types.js' */

const PAGE = 50;
/** Limit of listed requests, the most urgent first. */
const AT_ONCE = 200;

/** @param {'open' | 'history' | 'rules'} part
 * @returns {View} */
export function approvalsView(part) {
  const tab = (/** @type {string} */ name, /** @type {string} */ href, /** @type {string} */ label) => el('a', { href, 'aria-current': part === name ? 'page' : null }, label);
  const inner = part === 'history' ? history() : part === 'rules' ? rules() : open();
  return {
    title: part === 'history' ? 'Decisions' : part === 'rules' ? 'Rules' : 'Approvals',
    root: el('div', { class: 'view' },
      el('header', { class: 'top' }, el('h1', { tabindex: -1 }, 'Approvals'), inner.tools ?? null),
      el('nav', { class: 'tabs', 'aria-label': 'Approvals' }, tab('open', '#/approvals', 'Open'), tab('history', '#/approvals/history', 'Decided'), tab('rules', '#/approvals/rules', 'Rules')),
      inner.root),
    close: inner.close,
  };
}

function open() {
  const list = el('ul', { class: 'cards' });
  const draw = perFrame(() => {
    const all = queue();
    fill(list, all.slice(0, AT_ONCE).map((one) => el('li', { class: 'card question-card' },
      el('div', { class: 'grow' },
        el('p', { class: 'strong' }, shown(one.prompt, { limit: 200, more: false })),
        el('p', { class: 'faint' }, el('span', { class: 'hook-name' }, shown(one.hook, { limit: 60, more: false })), ' · ', shown(sessionName(one.session, one), { limit: 60, more: false }), ' · ', ago(one.created_at), summary(one) ? ' · ' : null, summary(one))),
      el('span', { class: 'num countdown-text', 'data-deadline': one.deadline }, clock(Date.parse(one.deadline) - serverNow())),
      el('button', { type: 'button', class: 'primary', onclick: () => openApprovals(one.id) }, may('approver') ? 'Review and answer' : 'View'))),
    openCount() > AT_ONCE ? el('li', { class: 'faint' }, `${count(openCount() - AT_ONCE)} more`) : null,
    openCount() === 0 ? el('li', null, empty('approvals', 'No open approval requests.', 'New requests appear here, in the page title, and in notifications if you turn them on.')) : null);
  });
  draw();
  const timer = setInterval(() => {
    for (const node of list.querySelectorAll('[data-deadline]')) node.textContent = clock(Date.parse(node.getAttribute('data-deadline') ?? '') - serverNow());
  }, 500);
  const off = on('approvals', draw);
  const auto = el('input', { type: 'checkbox', id: 'auto', checked: opensAlone() });
  auto.addEventListener('change', () => setOpensAlone(auto.checked));
  const bell = el('button', { type: 'button', id: 'notify' });
  const drawBell = () => {
    const is = notifications();
    bell.disabled = is === 'unavailable';
    fill(bell, icon('bell'), is === 'on' ? 'Notifications are on' : is === 'off' ? 'Notify me' : 'Notifications are blocked');
    bell.setAttribute('aria-pressed', String(is === 'on'));
  };
  bell.addEventListener('click', async () => { await toggleNotifications(); drawBell(); });
  drawBell();
  return {
    root: el('div', null, list, el('div', { class: 'settings' }, el('label', { class: 'check', for: 'auto' }, auto, 'Open new requests automatically'), bell)),
    tools: undefined,
    close() {
      clearInterval(timer);
      off();
    },
  };
}

function history() {
  const rows = el('tbody');
  const more = el('div', { class: 'tail' });
  /** @type {number | undefined} */
  let before;
  let isClosed = false;
  const hook = el('input', { type: 'search', placeholder: 'Hook', 'aria-label': 'Hook' });
  const read = async (/** @type {boolean} */ anew) => {
    try {
      /** @type {{decisions: DecidedApproval[]}} */
      const page = await get('/api/approvals/history', { before: anew ? undefined : before, limit: PAGE, hook: hook.value.trim() });
      if (isClosed) return;
      if (anew) rows.replaceChildren();
      rows.append(...page.decisions.map(decision));
      before = page.decisions.at(-1)?.seq;
      fill(more, page.decisions.length >= PAGE ? el('button', { type: 'button', onclick: () => void read(false) }, 'Show older') : rows.childElementCount === 0 ? (hook.value.trim() ? empty('approvals', 'No decision matches.') : empty('approvals', 'No decisions yet.', 'Every decision is listed here with its request, approver, channel and time.')) : null);
    } catch (error) {
      fill(more, failed(words(error)));
    }
  };
  /** @type {number | undefined} */
  let timer;
  hook.addEventListener('input', () => { clearTimeout(timer); timer = setTimeout(() => void read(true), 250); });
  // A decision reaches the log a moment later.
  const soon = () => { clearTimeout(timer); timer = setTimeout(() => void read(true), 600); };
  void read(true);
  soon();
  const offs = [on('closed', soon), on('again', soon)];
  return {
    root: el('div', null, el('div', { class: 'filters' }, hook),
      el('div', { class: 'table-box', tabindex: 0, role: 'region', 'aria-label': 'Decisions' }, el('table', { class: 'table history stacks' }, el('thead', null, el('tr', null, ['Time', 'Decision', 'Request', 'Decided by', 'Session'].map((name) => el('th', { scope: 'col' }, name)))), rows)), more),
    tools: undefined,
    close() {
      isClosed = true;
      clearTimeout(timer);
      offs.forEach((off) => off());
    },
  };
}

/** @param {DecidedApproval} one */
function decision(one) {
  return el('tr', { class: one.granted ? '' : 'denied' },
    el('td', { class: 'tight' }, ago(one.decided_at)),
    el('td', { class: 'tight' }, decisionBadge(one.granted)),
    el('td', { class: 'wide' }, el('div', null, shown(one.prompt, { limit: 240 })), el('div', { class: 'faint small' }, el('span', { class: 'hook-name' }, shown(one.hook, { limit: 60, more: false })), one.seq ? [' · ', el('a', { href: `#/audit/${one.seq}` }, `record ${count(one.seq)}`)] : null)),
    el('td', null, whoDecided(one)),
    el('td', null, el('a', { href: `#/sessions/${encodeURIComponent(one.session)}` }, shown(sessionName(one.session), { limit: 60, more: false }))));
}

/** @type {Record<string, string>} */
const SCOPES = { session: 'One session', project: 'One project', user: 'All sessions' };

function rules() {
  const list = el('ul', { class: 'cards' });
  const unread = el('div', { class: 'unread' });
  let isClosed = false;
  const read = async () => {
    try {
      /** @type {{rules: ListedRule[], unreadable?: UnreadableFile[]}} */
      const said = await get('/api/rules');
      if (isClosed) return;
      fill(unread, said.unreadable?.length ? el('div', { class: 'notice bad', role: 'alert' }, icon('mark'), el('div', null,
        el('strong', null, 'Some rule files could not be read. This list may be incomplete.'),
        el('ul', { class: 'plain-list' }, said.unreadable.map((one) => el('li', null, el('code', null, shown(one.file, { limit: 300 })), ': ', shown(one.reason, { limit: 400 })))))) : null);
      fill(list, said.rules.map((rule) => el('li', { class: 'card rule-card' },
        el('div', { class: 'grow' },
          el('p', { class: 'rule-line' }, rule.decision === 'allow' ? badge('good', 'Allow', 'check') : badge('bad', 'Deny', 'close'), el('span', { class: 'hook-name' }, shown(rule.hook, { limit: 80, more: false })), el('code', null, shown(rule.operation ?? rule.pattern ?? '', { limit: 240 }))),
          el('p', null, shown(rule.explanation, { limit: 400 })),
          el('p', { class: 'faint small' }, SCOPES[rule.scope] ?? rule.scope, rule.project ? [': ', el('span', { title: plain(rule.project) }, shown(rule.project, { limit: 160, more: false }))] : null, rule.session ? [': ', el('a', { href: `#/sessions/${encodeURIComponent(rule.session)}` }, shown(sessionName(rule.session), { limit: 60, more: false }))] : null,
            rule.by ? [' · by ', shown(rule.by.name, { limit: 60, more: false })] : null)),
        may('approver') ? el('button', { type: 'button', class: 'danger-quiet', onclick: () => void revoke(rule) }, 'Revoke') : null)),
      said.rules.length === 0 ? el('li', null, empty('approvals', 'No rules.', 'Every approval request needs an answer.')) : null);
    } catch (error) {
      fill(list, el('li', null, failed(words(error))));
    }
  };
  const revoke = async (/** @type {ListedRule} */ rule) => {
    const yes = await confirmed('Revoke this rule?', el('span', null, 'These requests will need an answer again: ', el('code', null, shown(`${rule.hook}: ${rule.operation ?? rule.pattern ?? ''}`, { limit: 300 }))), 'Revoke');
    if (!yes) return;
    try {
      await remove(`/api/rules/${encodeURIComponent(rule.id)}`);
      toast('Rule revoked.', 'good');
      void read();
    } catch (error) {
      toast(shown(words(error), { limit: 300 }), 'bad');
    }
  };
  void read();
  const offs = [on('rules', () => void read()), on('again', () => void read())];
  return {
    root: el('div', null, unread, list),
    tools: may('approver') ? el('button', { type: 'button', onclick: () => ruleForm({ hook: '', pattern: '' }) }, icon('plus'), 'New rule') : undefined,
    close() {
      isClosed = true;
      offs.forEach((off) => off());
    },
  };
}

/**
 * A form for a rule, with a preview of matching requests.
 * @param {{hook: string, pattern: string}} suggested
 */
export function ruleForm(suggested) {
  const first = queue().find((one) => one.hook === suggested.hook) ?? queue()[0];
  const hook = el('input', { type: 'text', id: 'rule-hook', value: suggested.hook, autocomplete: 'off', spellcheck: 'false' });
  const pattern = el('textarea', { id: 'rule-pattern', rows: 2, spellcheck: 'false' });
  pattern.value = suggested.pattern;
  const folders = [...new Set([...(first ? [first.workspace] : []), ...[...store.sessions.values()].map((one) => one.workspace ?? '')].filter(Boolean))];
  const scope = el('select', { id: 'rule-scope' }, folders.slice(0, 50).map((folder) => el('option', { value: `project ${folder}` }, `Project ${plain(folderName(folder), 40)} (${plain(folder, 80)})`)), el('option', { value: 'user' }, 'All my sessions'));
  const decision = el('select', { id: 'rule-decision' }, el('option', { value: 'deny' }, 'Deny'), el('option', { value: 'allow' }, 'Allow'));
  const preview = el('div', { class: 'preview', 'aria-live': 'polite' });
  const problem = el('div', { role: 'alert' });
  const dialog = modal('rule', 'New approval rule',
    el('p', { class: 'faint' }, 'Open approval requests are not affected.'),
    el('label', { for: 'rule-hook' }, 'Requests of hook'), hook,
    el('label', { for: 'rule-pattern' }, 'Prompt (', el('code', null, '*'), ' matches any text)'), pattern,
    el('label', { for: 'rule-scope' }, 'Scope'), scope,
    el('label', { for: 'rule-decision' }, 'Decision'), decision, preview, problem,
    el('div', { class: 'row end' }, el('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'), el('button', { type: 'button', class: 'primary', onclick: () => void save() }, 'Create rule')));
  const draw = () => {
    const same = queue().filter((one) => one.hook === hook.value.trim() && matches(pattern.value, one.prompt));
    const yes = decision.value === 'allow';
    fill(preview,
      yes && /^\**$/.test(pattern.value.trim()) ? el('div', { class: 'notice bad' }, icon('mark'), 'This rule allows every request of the hook.') : null,
      el('p', null, same.length ? `Matching open requests: ${count(same.length)}` : 'No open request matches.'),
      same.length ? el('ul', { class: 'plain-list' }, same.slice(0, 4).map((one) => el('li', null, shown(one.prompt, { limit: 160, more: false })))) : null);
  };
  for (const field of [hook, pattern, decision]) field.addEventListener('input', draw);
  draw();
  const save = async () => {
    const [kind, ...rest] = scope.value.split(' ');
    try {
      await post('/api/rules', { scope: kind, ...(kind === 'project' ? { project: rest.join(' ') } : {}), hook: hook.value.trim(), pattern: pattern.value.trim(), decision: decision.value });
      dialog.close();
      toast('Rule created.', 'good');
    } catch (error) {
      fill(problem, el('div', { class: 'notice bad' }, icon('mark'), shown(words(error))));
    }
  };
}

/**
 * @param {string} pattern
 * @param {string} text
 */
function matches(pattern, text) {
  const parts = pattern.trim().split(/\*+/);
  let at = 0;
  for (const [index, part] of parts.entries()) {
    const found = index === parts.length - 1 && parts.length > 1 ? Math.max(text.length - part.length, at) : text.indexOf(part, at);
    if (found < at || text.slice(found, found + part.length) !== part || (index === 0 && found !== 0)) return false;
    at = found + part.length;
  }
  return parts.length > 1 || at === text.length;
}

// The dialog for approval requests.
//
// Guards against accidental answers: input is ignored for a moment after a request appears, and each key press extends that moment. A request
// that closes shows its decision instead of the next request. Escape closes the dialog without an answer.

import { get, post, Refused, words } from './api.js';
import { ring } from './charts.js';
import { add, announce, byId, el, fill, icon, toast } from './dom.js';
import { clock, count, serverNow } from './format.js';
import { decisionBadge, diff, isOther, person, summary, whoDecided } from './parts.js';
import { requestContext } from './request_context.js';
import { acceptClosed, may, on, openCount, queue, sessionName, store, whose } from './store.js';
import { plain, shown } from './text.js';
import { choicesTitle, isChoosing, ruleChoices, showRules } from './rule_choices.js';

/** @import {DecidedApproval, OpenApproval} from './types.js' */
/** @import {Choice} from './rule_choices.js' */

const SETTLING_MS = 600;
/** A session reconnects within two seconds. */
const GRACE_MS = 5_000;
/** The basis reported when the server has lost the session. It is not a decision. */
const DISCONNECTED = 'disconnected';
const AUTO = 'amplifier.open-questions';

/** @type {Record<string, string>} */
const EFFECTS = { allow: 'this time', allow_once: 'this time', allow_always: 'this and identical requests, until the session ends', deny: 'this time', deny_always: 'this and identical requests, until the session ends' };

const dialog = /** @type {HTMLDialogElement} */ (byId('question'));
const text = byId('question-text');
const body = byId('question-body');
const circle = ring(46);

/** @type {OpenApproval | null} the request on the screen */
let current = null;
/** The user and role of the shown request. Another user may see different details, and answers under another name. */
let reader = '';
/** @type {DecidedApproval | null} the decision, once closed */
let outcome = null;
/** @type {string | null} */
let problem = null;
let settledAt = 0;
let isSending = false;
/** @type {string | null} the request that was answered from this page */
let mine = null;
/** @type {{id: string, decided: DecidedApproval} | null} its decision, if received before the response */
let early = null;
/** @type {Set<string>} requests that were shown once, so that they do not open again automatically */
const seen = new Set();
/** @type {Set<number>} */
const said = new Set();
/** @type {HTMLElement | null} */
let left = null;
/** @type {HTMLElement | null} */
let options = null;
/** The reason that is typed for a denial of a request. */
let reason = { id: '', text: '' };
/** @type {number | undefined} */
let ticker;
/** @type {number | undefined} */
let absence;

/** `true` if requests open automatically. */
export function opensAlone() {
  return localStorage.getItem(AUTO) !== 'no';
}

/** @param {boolean} yes */
export function setOpensAlone(yes) {
  localStorage.setItem(AUTO, yes ? 'yes' : 'no');
}

/** @param {string} [id] the request to open first */
export function openApprovals(id) {
  const first = (id ? store.approvals.get(id) : undefined) ?? queue()[0];
  if (first) show(first);
}

export function startApprovalDialog() {
  dialog.addEventListener('close', () => {
    // The dialog may have been opened again before this event.
    if (dialog.open) return;
    clearInterval(ticker);
    current = null;
    outcome = null;
  });
  dialog.addEventListener('keydown', key);
  on('approvals', () => changed());
  on('closed', ({ id, decided }) => closed(id, decided));
  on('link', () => {
    if (dialog.open) lamp();
  });
}

function changed() {
  if (reader !== whose()) otherReader();
  const back = outcome?.basis === DISCONNECTED && current ? store.approvals.get(current.id) : undefined;
  // A session that reconnects late announces its request again.
  if (back) show(back);
  if (current && !outcome) {
    const fresh = store.approvals.get(current.id);
    if (fresh && isSame(fresh, current)) {
      // After a server restart the request is the same with a new nonce. Details that were loaded stay.
      current = { ...current, nonce: fresh.nonce, deadline: fresh.deadline };
      lamp();
    } else if (fresh) {
      // Another request has this id: an answer to the shown one must not be sent.
      show(fresh);
    } else if (store.link === 'live' && mine !== current.id) {
      missing(current.id);
    }
  }
  if (dialog.open) {
    heading();
    onward();
    return;
  }
  const news = queue().find((one) => !seen.has(one.id));
  // Another dialog would interrupt the user's input.
  if (news && opensAlone() && !document.querySelector('dialog[open]')) show(news);
}

/** Redraws or closes the dialog when another user or role is signed in. */
function otherReader() {
  reader = whose();
  seen.clear();
  if (!current) return;
  const fresh = outcome ? undefined : store.approvals.get(current.id);
  if (fresh) return show(fresh);
  current = null;
  outcome = null;
  dialog.close();
}

/**
 * `true` if nothing that matters for the decision differs.
 * @param {OpenApproval} one
 * @param {OpenApproval} other
 */
function isSame(one, other) {
  const parts = (/** @type {OpenApproval} */ { digest, prompt, options, offers, created_at }) => JSON.stringify([digest, prompt, options, offers, created_at]);
  return parts(one) === parts(other);
}

/**
 * Loads the preview of a long request, which lists omit. An answer is possible only afterwards.
 * @param {OpenApproval} approval
 */
async function whole(approval) {
  const asked = reader;
  const read = await get(`/api/approvals/${encodeURIComponent(approval.id)}`).catch(() => null);
  if (reader !== asked || current?.id !== approval.id || !current.truncated || outcome) return;
  if (read?.preview && isSame(read, current)) return show({ ...read, truncated: false });
  problem = 'This request could not be loaded completely. Close and reopen the request.';
  foot();
}

/**
 * Handles a request that the server does not have (any more). After a restart, its session takes a moment to announce it again.
 * @param {string} id
 */
function missing(id) {
  lamp();
  clearTimeout(absence);
  absence = setTimeout(async () => {
    const stillMissing = () => current?.id === id && !outcome && !store.approvals.has(id) && store.link === 'live';
    if (!stillMissing()) return;
    const decided = await get(`/api/approvals/${encodeURIComponent(id)}`).catch(() => null);
    if (stillMissing()) closed(id, typeof decided?.granted === 'boolean' && decided.basis !== DISCONNECTED ? decided : null);
  }, GRACE_MS);
}

/** @param {OpenApproval} approval */
function show(approval) {
  current = approval;
  reader = whose();
  outcome = null;
  problem = null;
  isSending = false;
  said.clear();
  seen.add(approval.id);
  showRules(approval, null);
  draw();
  settle();
  if (!dialog.open) dialog.showModal();
  byId('question-title').focus();
  text.scrollTop = 0;
  clearInterval(ticker);
  ticker = setInterval(tick, 200);
  tick();
  if (approval.truncated) return void whole(approval);
  announce(`Approval request from hook ${plain(approval.hook, 60)}: ${plain(approval.prompt)}`, 'assertive');
}

/**
 * Unfolds hidden text. An operation that was not fully visible cannot be allowed.
 * @returns {boolean} `true` if text was hidden
 */
function unfold() {
  const folded = () => /** @type {HTMLElement | null} */ (text.querySelector('button.more'));
  if (!folded()) return false;
  for (let button = folded(); button; button = folded()) button.click();
  const told = byId('question-unfolded');
  told.hidden = false;
  announce(told.textContent ?? '', 'assertive');
  settle();
  return true;
}

function settle() {
  settledAt = performance.now() + SETTLING_MS;
  lamp();
}

/** `true` if an answer is accepted now. */
function ready() {
  return performance.now() >= settledAt && !isSending && !current?.truncated && !text.querySelector('.unfolding') && !outcome && store.link === 'live' && reader === whose() && current !== null && store.approvals.has(current.id) && remaining() > 0;
}

function remaining() {
  return current ? Date.parse(current.deadline) - serverNow() : 0;
}

/** Updates the state of the buttons. Disabled ones keep the focus for keyboard users. */
function lamp() {
  const is = ready();
  for (const button of options?.querySelectorAll('button') ?? []) button.setAttribute('aria-disabled', String(!is));
  options?.classList.toggle('settling', !is && !outcome && performance.now() < settledAt);
  const offline = document.getElementById('question-offline');
  if (offline) offline.hidden = store.link === 'live' && (!current || store.approvals.has(current.id) || isSending);
}

function tick() {
  if (!current || outcome) return;
  const ms = remaining();
  circle.show(ms / (current.timeout_s * 1_000));
  circle.root.classList.toggle('urgent', ms < 30_000);
  const then = current.default === 'allow' ? 'allowed' : 'denied';
  if (left) {
    const time = ms > 0 ? clock(ms) : '0:00';
    if (left.firstChild?.textContent !== time) fill(left, el('strong', { class: 'num' }, time), el('span', null, ms > 0 ? `then ${then}` : `time is up: ${then}`));
  }
  for (const at of [60, 30, 10]) {
    if (ms > 0 && ms <= at * 1_000 && ms > (at - 3) * 1_000 && !said.has(at)) {
      said.add(at);
      announce(`${at} seconds left, then ${then}.`);
    }
  }
  lamp();
}

/**
 * @param {OpenApproval} approval
 * @returns {Choice[]}
 */
function choices(approval) {
  const rules = ruleChoices(approval);
  if (rules) return rules;
  const offered = approval.options.map((option) => ({ label: option.label, hint: EFFECTS[option.effect] ?? option.effect, effect: option.effect, option }));
  // A truncated request has no option that lasts.
  const yes = approval.options.find((one) => one.effect === 'allow_always');
  // A `*` in the prompt would make the rule match more than this request.
  if (!yes || approval.prompt.includes('*')) return offered;
  return [...offered, { label: 'Allow for this project', hint: 'creates a rule for this folder', effect: 'project', option: yes, scope: /** @type {const} */ ('project') }];
}

/** The line at the top: position in the queue, and buttons to other requests. */
function heading() {
  const all = queue();
  const at = current ? all.findIndex((one) => one.id === current?.id) : -1;
  const isOneOfMany = at >= 0 && all.length > 1;
  const open = openCount();
  const bar = byId('question-bar');
  if (!isOther(bar, [current?.id, at, isOneOfMany, open])) return;
  const held = document.activeElement?.id;
  fill(bar,
    el('span', { class: 'faint num', id: 'question-place' }, at < 0 ? (open ? `${count(open)} more open` : 'no other open request') : open > 1 ? `Request ${count(at + 1)} of ${count(open)}` : 'One request'),
    isOneOfMany ? el('button', { type: 'button', class: 'quiet', id: 'question-before', 'aria-label': 'Previous request', title: 'Previous request (←)', onclick: () => move(-1) }, icon('back')) : null,
    isOneOfMany ? el('button', { type: 'button', class: 'quiet', id: 'question-next', 'aria-label': 'Next request', title: 'Next request (→)', onclick: () => move(1) }, icon('next')) : null,
    el('button', { type: 'button', class: 'quiet', id: 'question-close', 'aria-label': 'Close without answering', title: 'Close without answering (Esc)', onclick: () => dialog.close() }, icon('close')));
  if (held?.startsWith('question-')) document.getElementById(held)?.focus();
}

/**
 * Shows another open request.
 * @param {number} by
 */
function move(by) {
  const all = queue();
  const at = all.findIndex((one) => one.id === current?.id);
  const next = at < 0 ? all[0] : all[(at + by + all.length) % all.length];
  if (next) show(next);
}

/** The buttons after a closed request: close, or the next one. */
function onward() {
  const row = byIdMaybe('question-onward');
  const isMore = queue().length > 0;
  if (!row || !isOther(row, isMore)) return;
  const held = document.activeElement?.id;
  fill(row, el('button', { type: 'button', id: 'question-done', onclick: () => dialog.close() }, 'Close'), isMore ? el('button', { type: 'button', id: 'question-forward', class: 'primary', onclick: forward }, 'Next request') : null);
  if (held?.startsWith('question-')) byIdMaybe(held)?.focus();
}

function draw() {
  const approval = current;
  if (!approval) return;
  const { preview } = approval;
  heading();
  left = el('span', { class: 'left' });
  fill(byId('question-head'),
    el('div', { class: 'asker' },
      el('span', { class: 'hook-name' }, icon('hooks'), shown(approval.hook, { limit: 80, more: false })),
      el('span', { class: 'faint' }, ' requests approval in '), el('a', { href: `#/sessions/${encodeURIComponent(approval.session)}`, onclick: () => dialog.close() }, shown(sessionName(approval.session, approval), { limit: 60, more: false }))),
    outcome ? null : el('div', { class: 'countdown', role: 'timer', 'aria-label': 'Time left' }, circle.root, left));
  fill(byId('question-title'), shown(approval.prompt, { limit: 600 }));
  fill(body,
    approval.reason ? el('p', { class: 'reason' }, el('span', { class: 'strong' }, 'Why it asks: '), shown(approval.reason, { limit: 1_000 })) : null,
    requestContext(approval),
    el('section', { class: 'action', 'aria-label': 'Operation' },
      el('div', { class: 'what' }, el('span', { class: 'tool-name' }, shown(preview.title, { limit: 120 })), preview.target ? el('code', null, shown(preview.target, { limit: 400 })) : null, summary(approval)),
      (preview.warnings ?? []).map((warning) => el('div', { class: 'note' }, icon('mark'), el('span', null, shown(warning, { limit: 600 })))),
      (preview.body ?? []).length ? diff((preview.body ?? [])) : null,
      (preview.fields ?? []).length ? el('dl', { class: 'fields' }, (preview.fields ?? []).flatMap((field) => [el('dt', null, shown(field.name, { limit: 80 })), el('dd', null, shown(field.value, { limit: 400 }))])) : null),
    el('dl', { class: 'facts' },
      el('dt', null, 'Event'), el('dd', null, el('code', null, shown(approval.event, { limit: 80 }))),
      approval.machine ? [el('dt', null, 'Machine'), el('dd', null, el('code', null, shown(approval.machine, { limit: 130 })))] : null,
      el('dt', null, 'Folder'), el('dd', null, el('code', null, shown(approval.workspace, { limit: 300 }))),
      el('dt', null, 'Digest'), el('dd', null, el('code', { class: 'digest faint', title: 'SHA-256 of the operation. Only an operation with this digest will run.' }, shown(approval.digest, { limit: 100 })))));
  foot();
}

function foot() {
  const approval = current;
  const foot = byId('question-foot');
  if (!approval) return;
  options = null;
  if (outcome) {
    fill(foot,
      outcome.basis === DISCONNECTED ? el('div', { class: 'notice plain', role: 'status' }, icon('question'), 'This request is no longer open. The session did not send a decision.') : el('div', { class: `outcome ${outcome.granted ? 'good' : 'bad'}`, role: 'status' }, decisionBadge(outcome.granted), el('span', null, outcome.by ? el('span', null, 'Answered by ', person(outcome.by)) : whoDecided(outcome), '.')),
      problem ? el('div', { class: 'notice bad', role: 'alert' }, icon('mark'), el('div', null, shown(problem))) : null,
      el('div', { class: 'row end', id: 'question-onward' }));
    onward();
    return;
  }
  fill(foot);
  add(foot, el('div', { class: 'notice plain', id: 'question-offline', hidden: true }, icon('link'), 'The connection to the session is lost. You can answer again when the session reconnects.'));
  add(foot, el('div', { class: 'notice plain', id: 'question-unfolded', hidden: true }, icon('mark'), 'Part of the operation was hidden, and is now shown. Review the operation, then answer again.'));
  if (problem) add(foot, el('div', { class: 'notice bad', role: 'alert' }, icon('mark'), el('div', null, shown(problem))));
  if (!may('approver')) {
    add(foot, el('div', { class: 'notice plain' }, icon('question'), 'Your role (viewer) cannot answer approval requests.'));
    return;
  }
  options = el('div', { class: isChoosing(approval) ? 'options rules' : 'options', role: 'group', 'aria-label': choicesTitle(approval) });
  if (isChoosing(approval)) add(foot, el('p', { class: 'strong' }, choicesTitle(approval)));
  choices(approval).forEach((choice, index) => {
    const tone = choice.effect === 'project' || (choice.effect === 'choose' && isChoosing(approval)) ? 'extra' : choice.effect.startsWith('deny') ? 'deny' : 'allow';
    options?.append(el('button', { type: 'button', class: `option ${tone}`, 'data-effect': choice.effect, onclick: () => void answer(choice) },
      index < 9 ? el('kbd', { 'aria-hidden': 'true' }, index + 1) : null,
      el('span', { class: 'words' }, el('span', { class: 'label' }, shown(choice.label, { limit: 80, more: false })), el('span', { class: 'hint' }, choice.hint))));
  });
  if (reason.id !== approval.id) reason = { id: approval.id, text: '' };
  const denial = choices(approval).find((choice) => choice.effect === 'deny');
  const why = denial ? el('input', { type: 'text', id: 'question-reason', value: reason.text, maxlength: 2000, autocomplete: 'off', placeholder: 'Reason for the agent, sent if you deny', 'aria-label': 'Reason for the agent, sent if you deny', oninput: (/** @type {Event} */ event) => { reason.text = /** @type {HTMLInputElement} */ (event.target).value; } }) : null;
  add(foot, options, why, el('p', { class: 'keys faint' }, el('kbd', null, '1'), '–', el('kbd', null, String(Math.min(9, choices(approval).length))), ' answer · ', el('kbd', null, 'Esc'), ' closes without answering'));
  lamp();
}

/** @param {KeyboardEvent} event */
function key(event) {
  if (event.key === 'Tab') return trap(event);
  if (event.target instanceof HTMLInputElement && event.target.id === 'question-reason') {
    // Digits are text here. Enter denies, and nothing typed here can allow.
    const denial = event.key === 'Enter' && current && !event.isComposing && choices(current).find((choice) => choice.effect === 'deny');
    if (denial) void answer(denial);
    return;
  }
  if (event.key === 'Escape' || event.key === 'Shift') return;
  // The user was typing elsewhere, and needs time to notice the dialog.
  if (current && !outcome && performance.now() < settledAt) {
    if (/^[0-9]$/.test(event.key) || event.key === 'Enter' || event.key === ' ') event.preventDefault();
    return settle();
  }
  if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
  if (event.key === 'ArrowRight' || event.key === 'ArrowLeft') {
    if (document.activeElement?.closest('.diff')) return;
    byIdMaybe(event.key === 'ArrowRight' ? 'question-next' : 'question-before')?.click();
    return;
  }
  if (!/^[1-9]$/.test(event.key) || !current || !options) return;
  const choice = choices(current)[Number(event.key) - 1];
  if (!choice) return;
  event.preventDefault();
  void answer(choice);
}

/** @param {string} id */
function byIdMaybe(id) {
  return document.getElementById(id);
}

/** @param {KeyboardEvent} event */
function trap(event) {
  const able = [...dialog.querySelectorAll('button, a[href], input, [tabindex="0"]')].filter((one) => /** @type {HTMLElement} */ (one).offsetParent !== null);
  const first = /** @type {HTMLElement | undefined} */ (able[0]);
  const last = /** @type {HTMLElement | undefined} */ (able.at(-1));
  const at = document.activeElement;
  if (event.shiftKey && (at === first || at?.id === 'question-title')) {
    event.preventDefault();
    last?.focus();
  } else if (!event.shiftKey && at === last) {
    event.preventDefault();
    first?.focus();
  }
}

/** @param {Choice} choice */
async function answer(choice) {
  const approval = current;
  const answering = reader;
  if (!approval || !may('approver')) return;
  if (!ready()) return lamp();
  if (!choice.effect.startsWith('deny') && unfold()) return;
  if (choice.effect === 'choose') {
    showRules(approval, choice.shows ?? null);
    foot();
    // A second press of the same key must not choose.
    settle();
    /** @type {HTMLElement | null} */ (options?.querySelector('button') ?? null)?.focus();
    return;
  }
  isSending = true;
  problem = null;
  mine = approval.id;
  lamp();
  try {
    const said = await post(`/api/approvals/${encodeURIComponent(approval.id)}/answer`, { option: choice.option.label, nonce: approval.nonce, ...(choice.effect.startsWith('deny') && reason.id === approval.id && reason.text.trim() ? { reason: reason.text } : {}), ...(choice.scope ? { scope: choice.scope } : {}), ...(choice.rule ? { rule: choice.rule } : {}) });
    acceptClosed(approval.id);
    toast([el('strong', null, said?.granted ? 'Allowed' : 'Denied'), ': ', shown(approval.prompt, { limit: 120, more: false })], said?.granted ? 'good' : 'plain');
    announce(said?.granted ? 'Allowed.' : 'Denied.');
    if (current?.id === approval.id) forward();
  } catch (error) {
    const refused = error instanceof Refused ? error : new Refused(0, 'failed', words(error));
    const isShown = () => current?.id === approval.id && reader === answering && !outcome;
    mine = null;
    if (!isShown()) {
      toast(shown(refused.message, { limit: 300 }), 'bad');
      return changed();
    }
    isSending = false;
    problem = refused.status === 0 ? 'The server is unreachable, so the result of your answer is unknown. The result appears here when the connection is back.' : `${refused.code === 'late' ? 'Too late: ' : ''}${refused.message}`;
    const isOver = ['answered', 'late', 'closed'].includes(refused.code);
    if (isOver) acceptClosed(approval.id);
    const decided = early?.id === approval.id ? early.decided : isOver ? await get(`/api/approvals/${encodeURIComponent(approval.id)}`).catch(() => null) : null;
    if (!isShown()) return;
    if (typeof decided?.granted === 'boolean') return closed(approval.id, decided);
    if (isOver && refused.by) problem += ` Answered by ${refused.by.name}.`;
    announce(plain(problem), 'assertive');
    foot();
    // Applies changes that arrived while the answer was being sent.
    changed();
  }
}

function forward() {
  const next = queue()[0];
  if (next) show(next);
  else dialog.close();
}

/**
 * @param {string} id
 * @param {DecidedApproval | null} decided
 */
function closed(id, decided) {
  // A disconnected session still waits or has ended; the next seconds will tell.
  if (decided?.basis === DISCONNECTED) {
    if (id !== mine && current?.id === id && !outcome) missing(id);
    return;
  }
  if (id === mine && decided) early = { id, decided };
  if (id === mine || current?.id !== id || outcome) return;
  outcome = decided ?? { session: current.session, hook: current.hook, event: current.event, prompt: current.prompt, granted: false, basis: DISCONNECTED, reason: '', decided_at: new Date().toISOString(), seq: 0 };
  isSending = false;
  announce(outcome.basis === DISCONNECTED ? 'This request is no longer open.' : outcome.by ? `Answered by ${plain(outcome.by.name, 60)}: ${outcome.granted ? 'allowed' : 'denied'}.` : `The request is closed: ${outcome.granted ? 'allowed' : 'denied'}.`, 'assertive');
  draw();
  // The button that had the focus is gone.
  if (!dialog.contains(document.activeElement) || document.activeElement === document.body) byId('question-title').focus();
}


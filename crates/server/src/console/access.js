// Who you are here, and how others get in.

import { post, words } from './api.js';
import { announce, el, fill, icon, toast } from './dom.js';
import { timeOfDay } from './format.js';
import { failed, modal } from './parts.js';
import { may, store } from './store.js';
import { plain, shown } from './text.js';

/** @import {Role} from './types.js' */

/** @type {Record<Role, string>} */
const MAY = {
  viewer: 'look at everything, and verify the audit log',
  approver: 'look at everything, answer questions, interrupt sessions, and give and take back rules',
  admin: 'do everything: also start, prompt and end sessions, reload and test hooks, and let others in',
};

/** Shows who is here, and what they may do. */
export function openAccess() {
  const me = store.me;
  if (!me) return;
  const dialog = modal('access', 'Who gets in',
    el('p', null, 'You are ', el('strong', null, shown(me.name, { limit: 60, more: false })), `, ${me.role === 'viewer' ? 'a' : 'an'} ${me.role}: you may ${MAY[/** @type {Role} */ (me.role)] ?? 'look'}. Your answers are recorded under that name.`),
    may('admin') ? invitation() : el('p', { class: 'faint' }, 'Only an admin can let others in: here, or with ', el('code', null, 'amplifier serve link --name NAME --role ROLE'), '.'),
    el('div', { class: 'row ends' }, el('button', { type: 'button', class: 'danger-quiet', onclick: () => void leave() }, 'Leave'), el('button', { type: 'button', autofocus: !may('admin'), onclick: () => dialog.close() }, 'Close')));
}

/** A link for somebody else. It is shown once, so it stays until it is replaced. */
function invitation() {
  const name = el('input', { type: 'text', id: 'link-name', autocomplete: 'off', spellcheck: 'false', maxlength: 64, required: true });
  const role = el('select', { id: 'link-role', 'aria-describedby': 'link-may' }, Object.keys(MAY).map((one) => el('option', { value: one }, one)));
  const hint = el('p', { class: 'faint small', id: 'link-may' });
  const make = el('button', { type: 'submit', class: 'primary' }, icon('link'), 'Make a link');
  const made = el('div');
  const describe = () => fill(hint, `They may ${MAY[/** @type {Role} */ (role.value)]}.`);
  role.addEventListener('input', describe);
  describe();
  const form = el('form', null, el('h3', null, 'Let somebody in'),
    el('div', { class: 'pair' }, el('div', null, el('label', { for: 'link-name' }, 'Their name'), name), el('div', null, el('label', { for: 'link-role' }, 'Their role'), role)),
    hint, el('div', { class: 'row' }, make), made);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    make.disabled = true;
    try {
      const link = await post('/api/links', { name: name.value.trim(), role: role.value });
      fill(made, card(link, name.value.trim()));
      made.querySelector('input')?.select();
      announce('The link is made.');
    } catch (error) {
      fill(made, failed(words(error)));
    } finally {
      make.disabled = false;
    }
  });
  return form;
}

/**
 * @param {{url: string, expires_at: string}} link
 * @param {string} name
 */
function card(link, name) {
  const url = el('input', { type: 'text', id: 'link-url', readonly: true, spellcheck: 'false', value: plain(link.url, 500), 'aria-label': 'The link', class: 'secret' });
  url.addEventListener('focus', () => url.select());
  return el('div', { class: 'made' },
    el('div', { class: 'row nowrap' }, url, el('button', { type: 'button', onclick: () => void copied(link.url) }, 'Copy')),
    el('p', { class: 'small' }, 'It lets one browser in, once, until ', timeOfDay(link.expires_at), '. Whoever opens it is ', el('strong', null, shown(name, { limit: 60, more: false })), ', so send it to nobody else. It is not shown again.'));
}

/** @param {string} text */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast('Copied.', 'good');
  } catch {
    toast('The browser does not allow copying here: it is selected, copy it by hand.', 'bad');
    /** @type {HTMLInputElement | null} */ (document.getElementById('link-url'))?.focus();
  }
}

async function leave() {
  try {
    await post('/api/leave');
  } finally {
    location.reload();
  }
}

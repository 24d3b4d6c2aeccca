// The signed-in user, and invitations for others.

import { post, words } from './api.js';
import { announce, el, fill, icon, toast } from './dom.js';
import { timeOfDay } from './format.js';
import { failed, modal } from './parts.js';
import { deviceSwitch, forgetDevice } from './push.js';
import { may, store } from './store.js';
import { plain, shown } from './text.js';

/** @import {Role} from './types.js' */

/** @type {Record<Role, string>} */
const MAY = {
  viewer: 'view everything, and verify the audit log',
  approver: 'view everything, answer approval requests, interrupt sessions, and add and revoke rules',
  admin: 'do everything: also start, prompt and end sessions, reload and test hooks, and invite others',
};

/** Shows the signed-in user and their permissions. */
export function openAccess() {
  const me = store.me;
  if (!me) return;
  const dialog = modal('access', 'Access',
    el('p', null, 'You are ', el('strong', null, shown(me.name, { limit: 60, more: false })), `, ${me.role === 'viewer' ? 'a' : 'an'} ${me.role}: you may ${MAY[/** @type {Role} */ (me.role)] ?? 'view'}. Your answers are recorded under this name.`),
    deviceSwitch(),
    may('admin') ? invitation() : el('p', { class: 'faint' }, 'Only an admin can invite others: here, or with ', el('code', null, 'amplifier serve link --name NAME --role ROLE'), '.'),
    el('div', { class: 'row ends' }, el('button', { type: 'button', class: 'danger-quiet', onclick: () => void leave() }, 'Sign out'), el('button', { type: 'button', autofocus: !may('admin'), onclick: () => dialog.close() }, 'Close')));
}

/** A form that creates a sign-in link for another user. The link is shown once, so it stays until replaced. */
function invitation() {
  const name = el('input', { type: 'text', id: 'link-name', autocomplete: 'off', spellcheck: 'false', maxlength: 64, required: true });
  const role = el('select', { id: 'link-role', 'aria-describedby': 'link-may' }, Object.keys(MAY).map((one) => el('option', { value: one }, one)));
  const hint = el('p', { class: 'faint small', id: 'link-may' });
  const make = el('button', { type: 'submit', class: 'primary' }, icon('link'), 'Create link');
  const made = el('div');
  const describe = () => fill(hint, `They may ${MAY[/** @type {Role} */ (role.value)]}.`);
  role.addEventListener('input', describe);
  describe();
  const form = el('form', null, el('h3', null, 'Invitation'),
    el('div', { class: 'pair' }, el('div', null, el('label', { for: 'link-name' }, 'Their name'), name), el('div', null, el('label', { for: 'link-role' }, 'Their role'), role)),
    hint, el('div', { class: 'row' }, make), made);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    make.disabled = true;
    try {
      const link = await post('/api/links', { name: name.value.trim(), role: role.value });
      fill(made, card(link, name.value.trim()));
      made.querySelector('input')?.select();
      announce('Link created.');
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
    el('p', { class: 'small' }, 'This link signs one browser in, once, until ', timeOfDay(link.expires_at), '. The browser acts as ', el('strong', null, shown(name, { limit: 60, more: false })), ', so send the link only to this user. It is not shown again.'));
}

/** @param {string} text */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast('Copied.', 'good');
  } catch {
    toast('The browser does not allow copying. The link is selected: copy it by hand.', 'bad');
    /** @type {HTMLInputElement | null} */ (document.getElementById('link-url'))?.focus();
  }
}

async function leave() {
  try {
    await forgetDevice().catch(() => {});
    await post('/api/leave');
  } finally {
    location.reload();
  }
}

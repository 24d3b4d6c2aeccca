// The rules that an answer may create, from narrow to wide: each is shown with its sentence before it is chosen.

import { plain } from './text.js';

/** @import {ApprovalOption, ChosenRule, OpenApproval, RuleScope} from './types.js' */

/** @typedef {{label: string, hint: string, effect: string, option: ApprovalOption, scope?: 'project', rule?: ChosenRule, shows?: RuleScope | null}} Choice */

/** @type {Record<string, string>} */
const PLACES = { session: 'In this session', project: 'In this project', user: 'In all my sessions' };

/** The request whose rules are on the screen, and their scope. */
let open = { id: '', scope: /** @type {RuleScope | null} */ (null) };

/**
 * `true` if the rules of this request are on the screen.
 * @param {OpenApproval} approval
 */
export function isChoosing(approval) {
  return open.id === approval.id && open.scope !== null;
}

/**
 * Shows the rules of a scope, or the options again.
 * @param {OpenApproval} approval
 * @param {RuleScope | null} scope
 */
export function showRules(approval, scope) {
  open = { id: approval.id, scope };
}

/**
 * Returns the choices for a request that offers rules; none for other requests.
 * @param {OpenApproval} approval
 * @returns {Choice[] | null}
 */
export function ruleChoices(approval) {
  const offers = approval.offers ?? [];
  const option = approval.options.find((one) => one.effect === 'allow_always');
  if (!option || offers.length === 0) return null;
  const scopes = [...new Set(offers.map((offer) => offer.scope))];
  if (!isChoosing(approval)) {
    const hint = 'choose what is allowed from now on';
    return approval.options.map((one) => one === option ? { label: `${one.label} …`, hint, effect: 'choose', option, shows: scopes[0] } : { label: one.label, hint: 'this time', effect: one.effect, option: one });
  }
  const rules = offers.filter((offer) => offer.scope === open.scope);
  return [
    ...rules.map(({ label, explanation, operations, scope }) => ({ label: plain(label, 200), hint: plain(explanation, 600), effect: 'rule', option, rule: { operations, scope } })),
    ...scopes.filter((scope) => scope !== open.scope).map((scope) => ({ label: PLACES[scope] ?? scope, hint: 'show these rules', effect: 'choose', option, shows: scope })),
    { label: 'Back', hint: 'to the other answers', effect: 'choose', option, shows: null },
  ];
}

/**
 * Returns the name of the group of choices.
 * @param {OpenApproval} approval
 */
export function choicesTitle(approval) {
  return isChoosing(approval) ? `Allow without asking: ${(PLACES[open.scope ?? ''] ?? '').toLowerCase()}` : 'Answers';
}

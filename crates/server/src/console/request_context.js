// The context of an approval request: the task of the session, and the model's last text.

import { el, fill } from './dom.js';
import { isOther } from './parts.js';
import { on, store } from './store.js';
import { shown } from './text.js';

/** @import {OpenApproval} from './types.js' */

/** @type {{node: HTMLElement, approval: OpenApproval} | null} the one on the screen */
let open = null;

/**
 * The context of a request. It follows the session: the model's text reaches the page a moment after the request.
 * @param {OpenApproval} approval
 */
export function requestContext(approval) {
  open = { node: el('section', { class: 'context', 'aria-label': 'Context' }), approval };
  draw();
  return open.node;
}

on('sessions', () => draw());

function draw() {
  if (!open) return;
  const { node, approval } = open;
  // What the agent says after a decision was not the context of it.
  if (node.isConnected && !store.approvals.has(approval.id)) return;
  const session = store.sessions.get(approval.session);
  const outer = store.sessions.get(approval.parent_session ?? session?.parent ?? '');
  const task = session?.prompt ?? outer?.prompt;
  const said = session?.last_message;
  if (!isOther(node, [task, said])) return;
  node.hidden = !task && !said;
  fill(node, el('dl', { class: 'facts' },
    task ? [el('dt', null, 'Task'), el('dd', null, shown(task, { limit: 200, more: false }))] : null,
    said ? [el('dt', null, 'Agent'), el('dd', { class: 'said-last' }, shown(said, { limit: 300, more: false }))] : null));
}

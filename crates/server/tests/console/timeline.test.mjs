// The entries of a timeline: what has begun, with what has ended it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

// A timeline needs no elements, and Node has none.
const source = readFileSync(new URL('../../src/console/timeline.js', import.meta.url), 'utf8').replace(/^import .*$/gm, '');
const { Timeline } = await import(`data:text/javascript,${encodeURIComponent(source)}`);

/** The entries of a timeline with these items, by the numbers of their first and last item. */
function entries(...items) {
  const timeline = new Timeline();
  timeline.take(items.map((item, seq) => ({ seq, kind: 'event', session: 's', ...item })));
  return timeline.order.map((entry) => [entry.first.seq, entry.last?.seq]);
}

const spawn = { event: 'agent:spawn', data: { agent_name: 'finder' } };
const complete = { event: 'agent:complete', data: { agent_name: 'finder' } };

test('two agents of one name are two entries, each with its own end', () => {
  const of = (item, call) => ({ ...item, data: { ...item.data, tool_call_id: call } });
  assert.deepEqual(entries(of(spawn, 'a'), of(spawn, 'b'), of(complete, 'a'), of(complete, 'b')), [[0, 2], [1, 3]]);
  assert.deepEqual(entries(spawn, spawn, complete, complete), [[0, 3], [1, 2]]);
});

test('an operation whose data was erased ends by the call that its intent and its result are about', () => {
  const begin = (call) => ({ event: 'tool:pre', intent: { seq: 0, tool_call_id: call } });
  const end = (call) => ({ event: 'tool:post', result: { success: true, tool_call_id: call } });
  assert.deepEqual(entries(begin('a'), begin('b'), end('a'), end('b')), [[0, 2], [1, 3]]);
});

// Bundles: reloads and tests.

import { post, words } from './api.js';
import { announce, el, fill } from './dom.js';
import { count, counted, nanos } from './format.js';
import { badge, empty, failed, modal } from './parts.js';
import { sessionName } from './store.js';
import { shown } from './text.js';

/** @import {SessionReload} from './types.js' */
/** @typedef {{test: string, event: string, passed: boolean, took_us: number, expected?: Record<string, unknown>, found?: Record<string, unknown>, failures?: {hook: string, cause: string}[]}} Tested */

/** @type {Record<string, [string, string, string]>} tone, word and explanation */
const RESULTS = {
  changed: ['good', 'New version', 'the new hooks are active'],
  unchanged: ['quiet', 'Unchanged', 'the bundle has not changed'],
  refused: ['bad', 'Refused', 'invalid bundle; the old version stays active'],
  not_trusted: ['warn', 'Not trusted', "the project's bundle differs from the trusted version"],
  no_answer: ['warn', 'No answer', 'the session did not reply in time'],
};

/**
 * Reloads the bundles of connected sessions, and shows the results.
 * @param {HTMLElement} place
 */
export async function reload(place) {
  try {
    /** @type {{sessions: number, results?: SessionReload[]}} */
    const said = await post('/api/hooks/reload');
    const sum = said.sessions === 0 ? 'No session is connected. Bundles are read when a session starts.' : `Reload requested in ${counted(said.sessions, 'session')}.`;
    const lines = (said.results ?? []).map((one) => {
      const [tone, word, meaning] = RESULTS[one.result] ?? ['quiet', one.result, ''];
      return el('li', null, badge(tone, word, tone === 'good' ? 'check' : tone === 'bad' ? 'close' : undefined),
        el('a', { href: `#/sessions/${encodeURIComponent(one.session)}` }, shown(sessionName(one.session), { limit: 80, more: false })),
        el('span', { class: 'faint' }, one.message ? shown(one.message, { limit: 600 }) : meaning));
    });
    fill(place, el('div', { class: 'card result' }, el('p', { class: 'strong' }, sum), lines.length ? el('ul', { class: 'results' }, lines) : null));
    announce(sum);
  } catch (error) {
    fill(place, failed(words(error)));
  }
}

const EXAMPLE = `hooks:
  - rule: production-guard
    on: tool:pre
    when: tool_name == "Bash" && tool_input.command.contains("production")
    ask: Do this to production?
tests:
  - name: production is asked about
    event: tool:pre
    data: { tool_name: Bash, tool_input: { command: deploy production } }
    expect: { decision: ask_user, by: production-guard }
`;

/** Opens the dialog that runs the tests of a bundle. */
export function openTests() {
  const which = el('select', { id: 'test-which' }, el('option', { value: 'own' }, "The bundle of the server's folder"), el('option', { value: 'text' }, 'A pasted bundle'));
  const text = el('textarea', { id: 'test-text', rows: 12, spellcheck: 'false', class: 'code' });
  text.value = EXAMPLE;
  const field = el('div', { class: 'field', hidden: true }, el('label', { for: 'test-text' }, 'The bundle. Each test has an event, its data and the expected result'), text);
  const run = el('button', { type: 'submit', class: 'primary' }, 'Run tests');
  const result = el('div', { class: 'test-results', tabindex: -1 });
  which.addEventListener('input', () => { field.hidden = which.value === 'own'; });
  const form = el('form', null, el('label', { for: 'test-which' }, 'Bundle to test'), which, field,
    el('div', { class: 'row end' }, el('button', { type: 'button', onclick: () => dialog.close() }, 'Close'), run), result);
  const dialog = modal('tests', 'Test hooks', el('p', { class: 'faint' }, "Runs the bundle's tests. No tool runs, and no approval request is sent."), form);
  dialog.classList.add('large');
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    run.disabled = true;
    fill(run, 'Running…');
    try {
      /** @type {{tests: Tested[], passed: number, failed: number}} */
      const said = await post('/api/hooks/test', which.value === 'own' ? {} : { bundle: text.value });
      fill(result, tested(said));
      announce(summed(said));
      result.focus();
      result.scrollIntoView({ block: 'nearest' });
    } catch (error) {
      fill(result, failed(words(error)));
    } finally {
      run.disabled = false;
      fill(run, 'Run tests');
    }
  });
}

/** @param {{passed: number, failed: number}} said */
function summed(said) {
  return `${count(said.passed)} passed, ${count(said.failed)} failed.`;
}

/** @param {{tests: Tested[], passed: number, failed: number}} said */
function tested(said) {
  if (said.tests.length === 0) return empty('hooks', 'The bundle has no tests.', 'Add tests under ', el('code', null, 'tests'), ', each with an event, its data and the expected result.');
  return el('div', null, el('h3', null, summed(said)), el('ul', { class: 'results' }, said.tests.map((one) => el('li', { class: one.passed ? '' : 'failed' },
    badge(one.passed ? 'good' : 'bad', one.passed ? 'Passed' : 'Failed', one.passed ? 'check' : 'close'),
    el('span', { class: 'strong' }, shown(one.test, { limit: 200, more: false })),
    el('span', { class: 'faint' }, el('code', null, shown(one.event, { limit: 80, more: false })), ' ', el('span', { class: 'num' }, nanos(one.took_us * 1_000))),
    one.passed ? null : difference(one),
    (one.failures ?? []).map((failure) => el('p', null, 'Hook ', shown(failure.hook, { limit: 80, more: false }), ' failed: ', shown(failure.cause, { limit: 400 })))))));
}

/**
 * The difference between expected and found values.
 * @param {Tested} one
 */
function difference(one) {
  const told = (/** @type {unknown} */ value) => shown(typeof value === 'string' ? value || '–' : JSON.stringify(value ?? null), { limit: 400 });
  return el('table', { class: 'table difference' }, el('thead', null, el('tr', null, ['Field', 'Expected', 'Found'].map((name) => el('th', { scope: 'col' }, name)))),
    el('tbody', null, Object.keys(one.expected ?? {}).map((name) => el('tr', null, el('th', { scope: 'row' }, shown(name, { limit: 40, more: false })), el('td', null, told(one.expected?.[name])), el('td', null, told(one.found?.[name]))))));
}

// Search in content, filters and exports.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe } from 'node:test';
import { settled, reads, test, until, within } from './waits.mjs';
import { dialog, visit } from './visit.mjs';

/** Clicks, and gives what is saved. */
async function saved(page, button) {
  const [file] = await within(Promise.all([page.waitForEvent('download'), button.click()]), () => 'a file is saved');
  return { name: file.suggestedFilename(), text: await readFile(await file.path(), 'utf8') };
}

describe('search', () => {
  test('finds prompts, paths, commands and reasons, says what was searched, and goes on with older records', async (t) => {
    const { page, mock } = await visit(t, { auto: false });
    await page.locator('.session').first().waitFor();
    const search = page.getByLabel('Search sessions');
    const found = page.locator('.found');
    await search.fill('production.toml');
    await reads(found, /Move the harbour API[\s\S]*Input\s*config\/production\.toml/);
    await reads(found, /The whole log was searched\./);
    assert.equal(await found.locator('mark').first().innerText(), 'production.toml');
    for (const [words, part] of [['link tides', 'Prompt'], ['what looks like a key', 'Reason'], ['CARGO TEST', 'Input']]) {
      await search.fill(words);
      await reads(found, new RegExp(part));
    }
    // Each request reads a part of the log; the next one begins where it ended.
    const requests = mock.state.searches.filter((one) => one.text === 'CARGO TEST');
    assert.equal(requests[0].cursor, undefined);
    assert.ok(requests.length > 1 && requests.every((one, at) => at === 0 || one.cursor), JSON.stringify(requests));
    await search.fill('nothing has this');
    await reads(found, /No match in prompts, inputs, reasons and requests\. The whole log was searched\./);
    await search.fill('');
    await found.waitFor({ state: 'hidden' });
  });

  test('a match leads to its record, and hostile text in it stays text', async (t) => {
    const { page } = await visit(t, { auto: false });
    await page.locator('.session').first().waitFor();
    await page.getByLabel('Search sessions').fill('onerror');
    await page.locator('.found mark').first().waitFor();
    assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
    await page.getByLabel('Search sessions').fill('production.toml');
    await page.locator('.found li a').filter({ hasText: 'config/production.toml' }).first().click();
    await page.waitForFunction(() => /#\/audit\/\d+$/.test(location.hash));
    await page.getByRole('heading', { name: /^Record/ }).waitFor();
  });
});

describe('filters', () => {
  const names = (page) => page.locator('.session .name').allInnerTexts();

  test('sessions are filtered by state, denials, client and time', async (t) => {
    const { page, mock } = await visit(t, { auto: false });
    await page.locator('.session').first().waitFor();
    const shows = (...wanted) => until(async () => JSON.stringify((await names(page)).map((name) => name.slice(0, 12))) === JSON.stringify(wanted), async () => JSON.stringify(await names(page)));
    await page.getByRole('button', { name: /^Failed/ }).click();
    await shows('Compare the ');
    await page.getByRole('button', { name: /^With denials/ }).click();
    await until(async () => (await names(page)).length === 3, () => 'three have denials');
    await page.getByRole('button', { name: /^All/ }).click();
    await page.getByLabel('Client').selectOption('python');
    await shows('Compare the ');
    await page.getByLabel('Client').selectOption('');
    await page.getByLabel('Time', { exact: true }).selectOption('hour');
    await until(async () => !(await names(page)).some((name) => /Nightly|Compare/.test(name)), () => 'older ones are gone');
    await page.getByLabel('Search sessions').fill('config');
    await until(() => mock.state.searches.some((one) => one.since), () => 'the search has the same bounds');
    await page.getByLabel('Search sessions').fill('');
    await page.getByLabel('Time', { exact: true }).selectOption('between');
    await page.getByLabel('First day').fill('2020-01-01');
    await page.getByLabel('Last day').fill('2020-01-02');
    await page.getByText('No session matches.').waitFor();
  });

  test('the filtered sessions are saved as a table, and nothing in it runs in a spreadsheet', async (t) => {
    const { page, mock } = await visit(t, { auto: false, mock: { open: 0 } });
    const session = { ...mock.state.sessions.find((one) => one.id === 's-failed'), id: 's-formula', prompt: '=HYPERLINK("http://x")' };
    mock.state.sessions.push(session);
    mock.say({ type: 'session', session });
    await page.getByRole('button', { name: /^Failed 2/ }).click();
    await until(async () => (await names(page)).length === 2, () => 'two have failed');
    const { name, text } = await saved(page, page.locator('#export'));
    assert.match(name, /^sessions-\d{4}-\d\d-\d\d-\d{4}\.csv$/);
    const lines = text.trim().split('\n');
    assert.match(lines[0], /^client,cost,currency,id,state,name,workspace,/);
    assert.equal(lines.length, 3);
    assert.ok(lines.slice(1).every((line) => line.startsWith('python,,,s-f') && line.includes(',failed,')), text);
    assert.ok(text.includes(`"'=HYPERLINK(""http://x"")"`), text);
  });

  test('the filtered records are saved as lines of JSON', async (t) => {
    const { page } = await visit(t, { hash: '#/audit', auto: false });
    await page.locator('main tbody tr').first().waitFor();
    await page.getByLabel('Kind of record').selectOption('approval_decision');
    await page.waitForFunction(() => document.querySelectorAll('main tbody tr').length === 7);
    const { name, text } = await saved(page, page.locator('#export'));
    assert.match(name, /\.jsonl$/);
    const records = text.trim().split('\n').map((line) => JSON.parse(line));
    assert.deepEqual([...new Set(records.map((one) => one.kind))], ['approval_decision']);
    assert.equal(records.length, 7);
  });
});

describe('what is easy to miss', () => {
  test('a failed session looks failed in the list and on its page', async (t) => {
    const { page, mock } = await visit(t, { auto: false });
    const row = page.locator('.session.failed');
    await reads(row, /Failed[\s\S]*Compare the tariffs/);
    await page.goto(`${mock.url}#/sessions/s-failed`);
    await reads(page.locator('.session-head .state'), /^Failed$/);
    await reads(page.locator('.session-head .sub'), /python/);
  });

  test('hooks of the program are folded under one line, unless they did more than continue', async (t) => {
    const { page, mock } = await visit(t, { hash: '#/hooks', auto: false });
    const fold = page.getByRole('button', { name: /built-in/ });
    await reads(fold, /built-in\s*2 hooks of the program, 3,684 calls/);
    assert.equal(await page.getByRole('link', { name: 'session-bundles' }).count(), 0);
    await fold.click();
    await page.getByRole('link', { name: 'session-bundles' }).waitFor();
    await fold.click();
    await page.getByRole('link', { name: 'session-bundles' }).waitFor({ state: 'detached' });
    mock.state.hooks.find((one) => one.hook === 'json').denials = 1;
    await page.getByRole('link', { name: 'json', exact: true }).waitFor();
    await page.goto(`${mock.url}#/sessions/s-berths`);
    mock.add('s-berths', { turn: 8, event: 'provider:request', data: { model: 'small' }, hooks: [{ hook: 'session-bundles', answer: 'continue', duration_ns: 900 }, { hook: 'guard', answer: 'continue', duration_ns: 800 }] });
    const entry = page.locator('.entry.model').last();
    await reads(entry, /guard\s*continues\s*800 ns[\s\S]*built-in\s*900 ns/);
    assert.equal(await entry.getByText('session-bundles').isVisible(), false);
  });

  test('a request shows the task, the last text of the agent, and why the guard asks', async (t) => {
    const { page, mock } = await visit(t);
    await settled(page);
    await reads(dialog(page), /Why it asks: It changes the database schema\.[\s\S]*Task\s*Good\. Adjust the limits too\.\s*Agent\s*Sixteen workers sustain/);
    // The text of the agent may arrive after the request.
    const session = mock.state.sessions.find((one) => one.id === 's-harbour');
    mock.say({ type: 'session', session: { ...session, last_message: 'Now I migrate the database.' } });
    await reads(dialog(page), /Agent\s*Now I migrate the database\./);
  });

  test('tokens and costs of a session are in the list and on its page; an unknown price makes the cost a lower bound', async (t) => {
    const { page, mock } = await visit(t, { auto: false });
    await reads(page.locator('.session').filter({ hasText: 'Berth planner' }), /412k\s*tokens\s*≥ 1\.24 USD/);
    await page.goto(`${mock.url}#/sessions/s-harbour`);
    await reads(page.locator('.strip'), /Tokens\s*54\.3k\s*Cost\s*0\.1629 USD/);
    await page.goto(`${mock.url}#/sessions/s-idle`);
    await reads(page.locator('.strip'), /Tokens\s*31\.2k\s*Started/);
  });

  test('the short id of a session is the same as in the command', async (t) => {
    const { page, mock } = await visit(t, { auto: false, mock: { open: 0 } });
    const session = { ...mock.state.sessions.find((one) => one.id === 's-gone'), id: '01a1ec66-9ed5-7000-8000-000000dca68d', name: undefined };
    mock.state.sessions.push(session);
    mock.say({ type: 'session', session });
    await reads(page.locator('.session').filter({ hasText: 'dca68d' }), /harbour · dca68d/);
  });
});

// Hooks, rules, and who gets in.

import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { startMock } from './mock.mjs';
import { dialog, visit } from './visit.mjs';
import { reads, test } from './waits.mjs';

describe('hooks, rules, and who gets in', () => {
  test('hooks have figures and charts with words, and sort by their columns', async (t) => {
    const { page } = await visit(t, { hash: '#/hooks', auto: false });
    await page.getByRole('link', { name: 'secrets-guard' }).waitFor();
    const names = () => page.locator('tbody th a').allInnerTexts();
    assert.equal((await names())[0], 'redact');
    await page.getByRole('button', { name: 'Denied' }).click();
    assert.equal((await names())[0], 'shell-guard');
    assert.match(await page.locator('.histogram').first().getAttribute('aria-label'), /Time of calls. up to/);
    await page.getByRole('link', { name: 'redact' }).click();
    await page.getByRole('heading', { name: 'redact' }).waitFor();
    await page.getByText('Latest calls').waitFor();
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length > 5);
  });

  test('what was decided says who, from where and after how long; rules are explained and revoked', async (t) => {
    const { page, mock } = await visit(t, { hash: '#/approvals/history', auto: false });
    await page.getByRole('cell', { name: 'grace in the terminal after 6.4 s' }).waitFor();
    await page.getByRole('cell', { name: 'no answer in time after 5 min 00 s' }).waitFor();
    await page.getByRole('link', { name: 'Rules' }).click();
    await page.getByText('Until this session ends, the same question is answered with yes.').waitFor();
    await page.locator('.rule-card').nth(1).getByRole('button', { name: 'Revoke' }).click();
    await dialog(page).getByRole('button', { name: 'Revoke' }).click();
    await page.waitForFunction(() => document.querySelectorAll('.rule-card').length === 2);
    assert.deepEqual(mock.state.rules.map((one) => one.id), ['r1', 'r3']);
  });

  test('bundles are read again, and what came of it is said for each session', async (t) => {
    const { page, mock } = await visit(t, { hash: '#/hooks', auto: false });
    await page.getByRole('button', { name: 'Reload bundles' }).click();
    await page.getByText('Reload requested in 3 sessions.').first().waitFor();
    mock.state.reloads = [
      { session: 's-berths', result: 'changed' }, { session: 's-harbour', result: 'refused', message: 'bundle.yaml:3: unknown name `tool_nam`' },
      { session: 's-idle', result: 'not_trusted', message: 'run `amplifier hooks trust`' }, { session: 's-odd', result: 'no_answer' },
    ];
    await page.getByRole('button', { name: 'Reload bundles' }).click();
    await page.locator('.results li').first().waitFor();
    const lines = await page.locator('.results li').allInnerTexts();
    for (const [n, pattern] of [/New version\s*Berth planner[\s\S]*are active/, /Refused\s*Move the harbour API[\s\S]*bundle\.yaml:3: unknown name/, /Not trusted\s*Release notes[\s\S]*hooks trust/, /No answer/].entries()) assert.match(lines[n], pattern);
  });

  test('the tests of a bundle are run: that of the server, or one that is written here', async (t) => {
    const { page, mock } = await visit(t, { hash: '#/hooks', auto: false });
    await page.getByRole('button', { name: 'Test…' }).click();
    await dialog(page).getByRole('button', { name: 'Run tests' }).click();
    await dialog(page).getByText('1 passed, 1 failed.').first().waitFor();
    assert.deepEqual(mock.state.tested, {});
    await reads(dialog(page).locator('.results li').first(), /Passed\s*production is asked about\s*tool:pre\s*84 µs/);
    await reads(dialog(page).locator('.results li').nth(1), /Failed\s*forced pushes are denied[\s\S]*decision\s*deny\s*continue\s*by\s*shell-guard\s*–/);
    await dialog(page).getByLabel('Bundle to test').selectOption('text');
    const text = dialog(page).getByLabel(/^The bundle/);
    assert.match(await text.inputValue(), /^hooks:[\s\S]*tests:[\s\S]*event: tool:pre/);
    await text.fill('hooks: 7');
    await dialog(page).getByRole('button', { name: 'Run tests' }).click();
    await dialog(page).getByRole('alert').filter({ hasText: 'expected a list' }).waitFor();
    assert.deepEqual(mock.state.tested, { bundle: 'hooks: 7' });
    await page.keyboard.press('Escape');
    await dialog(page).waitFor({ state: 'hidden' });
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Test…');
  });

  test('an admin lets somebody in with a link, by keyboard alone; others are told who can', async (t) => {
    const { page, mock } = await visit(t, { auto: false, context: { permissions: ['clipboard-read', 'clipboard-write'] } });
    await page.getByRole('button', { name: /ada/ }).focus();
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'link-name');
    await page.keyboard.type('grace');
    await page.keyboard.press('Tab');
    await dialog(page).getByText('They may view everything, and verify the audit log.').waitFor();
    await page.keyboard.type('approver');
    await dialog(page).getByText(/^They may view everything, answer approval requests/).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    const url = await dialog(page).getByLabel('The link').inputValue();
    assert.match(url, /^http:\/\/127\.0\.0\.1:7878\/enter\?code=/);
    assert.deepEqual(mock.state.links, [{ name: 'grace', role: 'approver' }]);
    await dialog(page).getByText('It is not shown again.').waitFor();
    await dialog(page).getByRole('button', { name: 'Copy' }).click();
    await dialog(page).getByText('Copied.').waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), url);
    for (const role of ['viewer', 'approver']) {
      const { page: other } = await visit(t, { auto: false, mock: { role }, hash: '#/hooks' });
      await other.getByRole('button', { name: /ada/ }).click();
      await dialog(other).getByText('Only an admin can invite others').waitFor();
      assert.equal(await dialog(other).getByRole('button', { name: 'Create link' }).count(), 0);
      await dialog(other).getByRole('button', { name: 'Close' }).click();
      await other.locator('main tbody tr').first().waitFor();
      for (const name of ['Test…', 'Reload bundles']) assert.equal(await other.getByRole('button', { name }).count(), 0, `${role}: ${name}`);
    }
  });

  test('rules that cannot be read are said', async (t) => {
    const mock = await startMock({ open: 0 });
    mock.state.unreadable = [{ file: '/home/ada/.config/amplifier/approvals.json', reason: 'line 3: expected a value' }];
    const { page } = await visit(t, { mock, hash: '#/approvals/rules' });
    await reads(page.getByRole('alert'), /Some rule files could not be read[\s\S]*approvals\.json: line 3: expected a value/);
    assert.equal(await page.locator('.rule-card').count(), 3);
  });
});

// The audit log: what is proven, and what a break looks like.

import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { startMock } from './mock.mjs';
import { BROKEN } from './story.mjs';
import { visit } from './visit.mjs';
import { reads, test, until } from './waits.mjs';

describe('the audit log', () => {
  test('the log says up to where it is verified, and pages through its records', async (t) => {
    const { page } = await visit(t, { hash: '#/audit', auto: false });
    await page.getByText('Verified up to record 1,284').first().waitFor();
    await page.getByText('Guarantees and limits').click();
    await page.getByText('no checkpoint kept elsewhere covers them yet').waitFor();
    const first = page.locator('main tbody td').first();
    await reads(first, /^1,284$/);
    await page.getByRole('button', { name: 'Older' }).click();
    await reads(first, /^1,234$/);
    await page.getByRole('button', { name: 'Newer' }).click();
    await reads(first, /^1,284$/);
    await page.locator('main tbody a').first().click();
    await page.getByRole('heading', { name: /^Record / }).waitFor();
    await page.getByText('verified', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Show proof' }).click();
    await page.getByText('checkpoint').first().waitFor();
  });

  test('under a filter, the newest records come first too, and pages go back to the first', async (t) => {
    const { page, mock } = await visit(t, { hash: '#/audit', auto: false });
    const numbers = () => page.locator('main tbody tr:not(.border) td:first-child').allInnerTexts().then((all) => all.map((one) => Number(one.replace(/\D/g, ''))));
    const of = (kind) => mock.state.records.filter((one) => one.kind === kind).map((one) => one.seq).reverse();
    const shows = (wanted) => until(async () => JSON.stringify(await numbers()) === JSON.stringify(wanted), () => `${wanted.length} records from ${wanted[0]}`);
    await page.getByLabel('Kind of record').selectOption('event');
    const events = of('event');
    assert.ok(events.length > 100);
    for (let at = 0; at < events.length; at += 50) {
      await shows(events.slice(at, at + 50));
      if (at + 50 < events.length) await page.getByRole('button', { name: 'Older' }).click();
    }
    assert.equal(await page.getByRole('button', { name: 'Older' }).isDisabled(), true);
    await page.getByRole('button', { name: 'Newest' }).click();
    await shows(events.slice(0, 50));
    // What is rare is far back: the server is asked until it is found.
    await page.getByLabel('Kind of record').selectOption('approval_decision');
    await shows(of('approval_decision'));
    assert.equal(of('approval_decision').length, 7);
    await page.getByText('Verified up to record 1,284').first().waitFor();
    await page.getByLabel('Text').fill('no such text');
    await page.getByText('No record matches.').waitFor();
  });

  test('where the log breaks is seen among the records, also if a filter hides the one that breaks it', async (t) => {
    const mock = await startMock({ open: 0 });
    mock.setAudit(BROKEN);
    const { page } = await visit(t, { mock, hash: '#/audit', auto: false });
    await page.getByLabel('Hook').fill('secrets-guard');
    await page.getByText('Intact up to record 811').first().waitFor();
    // Before the filter applies, the line is among all records, and goes again.
    await until(async () => {
      const rows = await page.locator('main tbody tr:not(.border)').allInnerTexts();
      return rows.length > 0 && rows.every((row) => row.includes('secrets-guard'));
    }, () => 'the filter applies');
    const line = page.locator('main tbody tr.border');
    await until(async () => {
      if (await line.count()) return true;
      await page.getByRole('button', { name: 'Older' }).click();
      return false;
    }, () => 'the line is found');
    const around = await line.evaluate((row) => [row.previousElementSibling, row.nextElementSibling].map((one) => Number(one?.querySelector('td')?.textContent?.replace(/\D/g, ''))));
    assert.ok(around[0] > 811 && around[1] <= 811, String(around));
    await reads(line, /Intact up to record 811\. Records above this line cannot be trusted/);
    assert.equal(await page.locator('main tbody tr.doubtful').count() > 0, true);
  });

  test('records say in words what they are', async (t) => {
    const mock = await startMock({ open: 0 });
    const add = (kind, body) => mock.state.log(kind, 's-berths', 'tool:pre', body, 8);
    for (const [kind, body] of [['intent', { digest: 'd'.repeat(64) }], ['outcome', { success: false }], ['checkpoint', { note: 'amplifier-audit/1\n1284\nroot' }], ['seal', { reason: 'complete', records: 39 }], ['hook_report', { hook: 'guard', answer: 'ask_user', took_ns: 1 }]]) add(kind, body);
    const { page } = await visit(t, { mock, hash: '#/audit', auto: false });
    await page.locator('main tbody tr').nth(5).waitFor();
    const said = (await page.locator('main tbody td:last-child').allInnerTexts()).slice(0, 5);
    assert.deepEqual(said, ['guard · asks', 'task finished, after 39 records', 'signed, over 1,284 records', 'failed', 'started']);
  });

  test('a log in which nothing can be trusted says so, and a record that cannot be read is where it breaks', async (t) => {
    const mock = await startMock({ open: 0 });
    mock.setAudit({ ...BROKEN, verified_to: 0 });
    mock.state.records = mock.state.records.filter((one) => one.seq !== 812);
    const { page } = await visit(t, { mock, hash: '#/audit', auto: false });
    await page.getByText('No record of this log can be trusted.').waitFor();
    await page.getByRole('link', { name: 'Record 812' }).click();
    await page.getByText('The log is invalid here').waitFor();
    await page.getByText('The line at this number is not a valid record.').waitFor();
  });

  test('a broken log is loud everywhere, and says where and what', async (t) => {
    const { page, mock } = await visit(t, { auto: false });
    await page.getByText('Verified up to record').first().waitFor();
    mock.setAudit(BROKEN);
    await page.getByText('The audit log failed verification').waitFor();
    await page.locator('#bar-broken').click();
    await page.getByRole('alert').filter({ hasText: 'This log failed verification' }).waitFor();
    await page.getByText('the hash does not fit what the record says').waitFor();
    await page.getByText('Intact up to record 811').waitFor();
    await page.getByRole('link', { name: 'Record 812' }).click();
    await page.getByText('The log is invalid here').waitFor();
  });
});

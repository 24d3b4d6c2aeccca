// The first page, and the keys of every page.

import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { nothing } from './story.mjs';
import { dialog, visit } from './visit.mjs';
import { drawn, reads, settled, test } from './waits.mjs';

describe('the overview', () => {
  test('is the first page, and begins with what needs attention', async (t) => {
    const { page } = await visit(t, { hash: '', auto: false });
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const attention = page.locator('.attention');
    await reads(attention, /2 open approval requests\s*Run this command on the staging host\?[\s\S]*Answer/);
    await reads(attention, /Failed or gone\s*Failed\s*Compare the tariffs[\s\S]*Gone\s*Nightly dependency check/);
    await reads(attention, /Failing hooks[\s\S]*1 hook error/);
    await reads(attention, /Active now[\s\S]*Berth planner/);
    await attention.getByText('Allow write to config/production.toml?').click();
    await dialog(page).getByRole('heading', { name: 'Allow write to config/production.toml?' }).waitFor();
  });

  test('says so if nothing needs attention', async (t) => {
    const { page } = await visit(t, { hash: '', mock: { state: nothing() } });
    await reads(page.locator('.attention'), /Nothing needs your attention\./);
    await reads(page.getByRole('region', { name: 'Activity' }), /No denials\./);
  });

  test('has the activity of the last day, and denials by hook, in figures and in charts with words', async (t) => {
    const { page } = await visit(t, { hash: '#/', auto: false });
    const activity = page.getByRole('region', { name: 'Activity' });
    await reads(activity, /Tool calls\s*\d+[\s\S]*Denials\s*\d+[\s\S]*Tokens\s*1\.7M\s*Cost\s*5\.\d\d USD/);
    assert.equal(await activity.locator('.columns').first().locator('g').count(), 24);
    assert.match(await activity.getByRole('img', { name: /^Tool calls:/ }).getAttribute('aria-label'), /\d\d:00: \d+ tool calls, \d+ denials?; /);
    assert.match(await activity.getByRole('img', { name: /^Tokens:/ }).getAttribute('aria-label'), /tokens, 0\.\d{4} USD/);
    await reads(activity.locator('.shares'), /^shell-guard\s*12\s*secrets-guard\s*7\s*production-guard\s*2$/);
    await page.getByLabel('Period of the activity').selectOption('168');
    await page.waitForFunction(() => [7, 8].includes(document.querySelectorAll('.columns')[0]?.querySelectorAll('g').length ?? 0));
  });

  test('an unknown address is not another page', async (t) => {
    const { page } = await visit(t, { hash: '#/nonsense', auto: false });
    await page.getByRole('heading', { name: 'Page not found' }).waitFor();
    await page.locator('main').getByRole('link', { name: 'Go to the overview' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });
});

describe('keys', () => {
  test('`?` lists the keys, `g` goes to a page, `/` searches, and a text field takes them as text', async (t) => {
    const { page, mock } = await visit(t, { hash: '#/', auto: false, mock: { open: 0 } });
    await page.locator('.columns').first().waitFor();
    await page.keyboard.press('?');
    await reads(page.getByRole('dialog', { name: 'Keys' }), /Go to sessions[\s\S]*Esc\s*Close a dialog\. Esc never answers/);
    // No key works behind a dialog.
    await page.keyboard.press('g');
    await page.keyboard.press('s');
    assert.match(page.url(), /#\/$/);
    await page.keyboard.press('Escape');
    await page.locator('#help').waitFor({ state: 'detached' });
    for (const [key, name] of [['s', 'Sessions'], ['a', 'Approvals'], ['h', 'Hooks'], ['l', 'Audit log'], ['o', 'Overview']]) {
      await page.keyboard.press('g');
      await page.keyboard.press(key);
      await page.getByRole('heading', { name, level: 1 }).waitFor();
    }
    await page.goto(`${mock.url}#/sessions`);
    await page.locator('.session').first().waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('g?s/');
    assert.equal(await page.getByLabel('Search sessions').inputValue(), 'g?s/');
    assert.equal(await page.locator('#help').count(), 0);
  });

  test('Esc closes every dialog, and answers nothing', async (t) => {
    const { page, mock } = await visit(t, { auto: true });
    await settled(page);
    await page.keyboard.press('Escape');
    await dialog(page).waitFor({ state: 'hidden' });
    for (const [button, id] of [['New session', '#new'], ['Access', '#access']]) {
      await page.getByRole('button', { name: button }).click();
      await dialog(page).waitFor();
      await page.keyboard.press('Escape');
      await page.locator(`dialog${id}`).waitFor({ state: 'detached' });
    }
    // Also from the field for a reason.
    await page.locator('#bar-asks').click();
    await settled(page);
    await page.locator('#question-reason').fill('because');
    await page.keyboard.press('Escape');
    await dialog(page).waitFor({ state: 'hidden' });
    assert.deepEqual(mock.state.answers, []);
  });
});

describe('notes on a phone', () => {
  test('a note after an answer covers no button of the next request', async (t) => {
    const { page } = await visit(t, { auto: true, context: { viewport: { width: 390, height: 844 } } });
    await settled(page);
    await page.locator('#question .option.deny').click();
    await page.locator('#question .toast').waitFor();
    await settled(page);
    await drawn(page);
    const covered = () => page.evaluate(() => [...document.querySelectorAll('#question button')].filter((button) => {
      const { left, top, width, height } = button.getBoundingClientRect();
      if (!width || button.closest('.toast')) return false;
      const there = document.elementFromPoint(left + width / 2, top + height / 2);
      return there !== button && !button.contains(there);
    }).map((button) => button.textContent || button.ariaLabel));
    assert.ok(await page.locator('#question .toast').isVisible());
    assert.deepEqual(await covered(), []);
  });

  test('a note outside of dialogs is above the bars, and covers neither them nor the areas', async (t) => {
    const { page } = await visit(t, { hash: '#/audit', auto: false, context: { viewport: { width: 390, height: 844 } } });
    await page.locator('main tbody tr').first().waitFor();
    await page.getByRole('button', { name: 'Verify now' }).click();
    await page.locator('#toasts .toast').waitFor();
    await page.evaluate(() => window.scrollTo(0, 600));
    await drawn(page);
    const covered = await page.evaluate(() => [...document.querySelectorAll('#bars button, #areas a')].filter((one) => {
      const { left, top, width, height } = one.getBoundingClientRect();
      const there = document.elementFromPoint(left + width / 2, top + height / 2);
      return there !== one && !one.contains(there);
    }).map((one) => one.id));
    assert.deepEqual(covered, []);
  });
});

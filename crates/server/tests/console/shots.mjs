// Takes a picture of every view, in three widths, dark and light, with something and with nothing in it: `node shots.mjs [FOLDER] [PART OF A NAME]`.

import { mkdir } from 'node:fs/promises';
import { openBrowser } from './browser.mjs';
import { startMock } from './mock.mjs';
import { BROKEN, nothing } from './story.mjs';
import { drawn, settled, unfold, until } from './waits.mjs';

const folder = process.argv[2] ?? 'shots';
const only = process.argv[3];
const SIZES = { wide: { width: 1440, height: 900 }, medium: { width: 900, height: 1000 }, phone: { width: 390, height: 844 } };
/** Each with what is there when it is drawn, and what is done first. */
const VIEWS = {
  sessions: ['#/sessions', '.session'],
  session: ['#/sessions/s-harbour', '.entry'],
  ended: ['#/sessions/s-docs', '.entry', (page) => unfold(page.locator('.entry.tool .more-of-it').first())],
  hostile: ['#/sessions/s-odd', '.entry'],
  approvals: ['#/approvals', '.question-card'],
  history: ['#/approvals/history', 'main tbody tr'],
  rules: ['#/approvals/rules', '.rule-card'],
  hooks: ['#/hooks', 'main tbody tr'],
  reload: ['#/hooks', 'main tbody tr', async (page) => { await page.getByRole('button', { name: 'Reload' }).click(); await page.locator('.results').waitFor(); }],
  tests: ['#/hooks', 'main tbody tr', async (page) => { await page.getByRole('button', { name: 'Test…' }).click(); await page.getByRole('button', { name: 'Run tests' }).click(); await page.locator('.results').waitFor(); }],
  hook: ['#/hooks/redact', '.charts'],
  audit: ['#/audit', 'main tbody tr', (page) => page.locator('.proves summary').click()],
  filtered: ['#/audit', 'main tbody tr', async (page) => { await page.getByLabel('Kind of record').selectOption('approval_decision'); await page.waitForFunction(() => document.querySelectorAll('main tbody tr').length === 7); }],
  record: ['#/audit/12', '.facts', (page) => page.getByRole('button', { name: 'Show proof' }).click()],
  broken: ['#/audit', '.proof.broken'],
  border: ['#/audit', '.proof.broken', async (page) => {
    await page.getByLabel('Hook').fill('redact');
    await until(async () => (await page.locator('tr.border').count()) || page.getByRole('button', { name: 'Older' }).click().then(() => false), () => 'the place of the break');
    await page.locator('tr.border').evaluate((row) => row.scrollIntoView({ block: 'center' }));
  }],
  access: ['#/sessions', '.session', async (page) => { await page.locator('#access').click(); await page.locator('#link-name').fill('grace'); await page.keyboard.press('Enter'); await page.locator('.made').waitFor(); }],
  begin: ['#/sessions', '.session', (page) => page.getByRole('button', { name: 'New session' }).click()],
  dialog: ['#/sessions', '.option', settled],
  diff: ['#/sessions', '.option', settled],
  busy: ['#/sessions', '#bar-rule', (page) => page.locator('#bar-rule').click()],
  lost: ['#/sessions', '.session', async (page, mock) => { await mock.stop(); await page.locator('.bar.lost').waitFor(); }],
  door: ['#/sessions', '.door'],
};
const EMPTY = { sessions: '#/sessions', session: '#/sessions/none', approvals: '#/approvals', history: '#/approvals/history', rules: '#/approvals/rules', hooks: '#/hooks', hook: '#/hooks/none', audit: '#/audit' };

async function shoot(browser, name, viewport, colorScheme, { state, hash, there, first, opens }) {
  const mock = await startMock({ open: name.startsWith('diff') ? 1 : 2, ...(state ? { state } : {}) });
  mock.state.reloads = [{ session: 's-berths', result: 'changed' }, { session: 's-harbour', result: 'refused', message: 'bundle.yaml:3:11: unknown name `tool_nam`: did you mean `tool_name`?' }, { session: 's-idle', result: 'unchanged' }];
  if (/^(broken|border)/.test(name)) mock.setAudit(BROKEN);
  if (name.startsWith('busy')) mock.setBusy({ asked: 14, seconds: 60, hook: 'shell-guard', pattern: 'Run this command on the staging host?' });
  if (name.startsWith('door')) mock.state.known = false;
  const context = await browser.newContext({ viewport, colorScheme, deviceScaleFactor: 1, reducedMotion: 'reduce' });
  const page = await context.newPage();
  page.on('pageerror', (error) => console.log(name, error.message));
  if (!opens) await page.addInitScript(() => localStorage.setItem('amplifier.open-questions', 'no'));
  await page.goto(`${mock.url}enter?code=any${hash}`);
  await page.locator(there).first().waitFor();
  await first?.(page, mock);
  await drawn(page);
  await page.screenshot({ path: `${folder}/${name}.png` });
  await context.close();
  await mock.stop();
}

await mkdir(folder, { recursive: true });
const browser = await openBrowser();
for (const [size, viewport] of Object.entries(SIZES)) {
  for (const colorScheme of ['light', 'dark']) {
    const wanted = (name) => !only || `${name}-${size}-${colorScheme}`.includes(only);
    for (const [name, [hash, there, first]] of Object.entries(VIEWS)) {
      if (wanted(name)) await shoot(browser, `${name}-${size}-${colorScheme}`, viewport, colorScheme, { hash, there, first, opens: name === 'dialog' || name === 'diff' });
    }
    for (const [name, hash] of Object.entries(EMPTY)) {
      if (wanted(`empty-${name}`)) await shoot(browser, `empty-${name}-${size}-${colorScheme}`, viewport, colorScheme, { state: nothing(), hash, there: '.empty, .notice, .seal.plain' });
    }
  }
}
await browser.close();

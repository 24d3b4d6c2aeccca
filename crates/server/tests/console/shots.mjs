// Takes a picture of every view, wide and narrow, dark and light: `node shots.mjs [FOLDER]`.

import { mkdir } from 'node:fs/promises';
import { openBrowser } from './browser.mjs';
import { KEY, startMock } from './mock.mjs';
import { BROKEN } from './story.mjs';

const folder = process.argv[2] ?? 'shots';
const only = process.argv[3];
await mkdir(folder, { recursive: true });
const browser = await openBrowser();
const VIEWS = [
  ['sessions', '#/sessions'], ['session', '#/sessions/s-harbour'], ['ended', '#/sessions/s-docs'], ['hostile', '#/sessions/s-odd'], ['approvals', '#/approvals'], ['history', '#/approvals/history'], ['rules', '#/approvals/rules'],
  ['hooks', '#/hooks'], ['hook', '#/hooks/redact'], ['audit', '#/audit'], ['record', '#/audit/12'], ['dialog', '#/sessions'], ['diff', '#/sessions'], ['broken', '#/audit'], ['busy', '#/sessions'], ['door', '#/sessions'],
];
for (const [size, viewport] of [['wide', { width: 1400, height: 900 }], ['narrow', { width: 390, height: 844 }]]) {
  for (const colorScheme of ['light', 'dark']) {
    for (const [name, hash] of VIEWS) {
      if (only && !`${name}-${size}-${colorScheme}`.includes(only)) continue;
      const mock = await startMock({ open: name === 'diff' ? 1 : 2 });
      if (name === 'broken') mock.setAudit(BROKEN);
      if (name === 'busy') mock.setBusy({ asked: 14, seconds: 60, hook: 'shell-guard', pattern: 'Run this command on the staging host?' });
      if (name === 'door') mock.state.known = false;
      const context = await browser.newContext({ viewport, colorScheme, deviceScaleFactor: 1, reducedMotion: 'reduce' });
      const page = await context.newPage();
      page.on('console', (message) => { if (message.type() === 'error' && name !== 'door') console.log(name, message.text()); });
      page.on('pageerror', (error) => console.log(name, error.message));
      const opens = name === 'dialog' || name === 'diff';
      if (!opens) await page.addInitScript(() => localStorage.setItem('amplifier.open-questions', 'no'));
      await page.addInitScript((key) => localStorage.setItem('amplifier.key', key), KEY);
      await page.goto(mock.url + hash);
      await page.waitForTimeout(opens ? 1_200 : 500);
      if (name === 'ended') await page.locator('.entry.tool .more-of-it summary').first().click();
      if (name === 'record') await page.getByRole('button', { name: 'Show the proof' }).click();
      if (name === 'audit') await page.locator('.proves summary').click();
      if (name === 'busy') await page.locator('#bar-rule').click();
      await page.waitForTimeout(150);
      await page.screenshot({ path: `${folder}/${name}-${size}-${colorScheme}.png` });
      await context.close();
      await mock.stop();
    }
  }
}
await browser.close();

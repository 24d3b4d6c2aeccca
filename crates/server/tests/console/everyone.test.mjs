// The page for everyone: colours, screen readers, keyboards, small screens. And what its files keep to.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { describe } from 'node:test';
import { fileURLToPath } from 'node:url';
import { faults } from './axe.mjs';
import { startMock } from './mock.mjs';
import { BROKEN, nothing } from './story.mjs';
import { visit } from './visit.mjs';
import { test } from './waits.mjs';

const CONSOLE = new URL('../../src/console/', import.meta.url);

describe('for everyone', () => {
  // With each view, what it shows once it has read everything.
  const VIEWS = [
    ['#/', '.columns'], ['#/sessions', '.session'], ['search', '.found-session'], ['help', '#help'], ['#/sessions/s-harbour', '.entry'], ['#/sessions/s-odd', '.entry'], ['#/approvals', '.question-card'], ['#/approvals/history', 'tbody tr'], ['#/approvals/rules', '.rule-card'],
    ['#/hooks', 'tbody tr'], ['#/hooks/redact', '.charts'], ['#/audit', 'tbody tr'], ['#/audit/12', '.facts'], ['dialog', '.option[aria-disabled="false"]'], ['access', '.made'], ['tests', '.results'], ['broken', '.proof.broken'], ['empty', '.empty'], ['door', '.door'],
  ];
  for (const [colorScheme, viewport] of [['light', { width: 1400, height: 900 }], ['dark', { width: 390, height: 844 }]]) {
    test(`no view has a fault that axe finds, or is wider than the screen: ${colorScheme}, ${viewport.width} wide`, async (t) => {
      for (const [view, there] of VIEWS) {
        const mock = await startMock(view === 'empty' ? { state: nothing() } : { open: 2 });
        if (view === 'broken') mock.setAudit(BROKEN);
        if (view === 'door') mock.state.known = false;
        const { page } = await visit(t, { mock, hash: view.startsWith('#') ? view : view === 'help' ? '#/' : view === 'broken' ? '#/audit' : view === 'tests' ? '#/hooks' : '#/sessions', auto: view === 'dialog', expectErrors: true, context: { colorScheme, viewport, bypassCSP: true } });
        if (view === 'access') {
          await page.locator('#access').click();
          await page.locator('#link-name').fill('grace');
          await page.keyboard.press('Enter');
        }
        if (view === 'help') {
          await page.locator('.columns').first().waitFor();
          await page.keyboard.press('?');
        }
        if (view === 'search') await page.getByLabel('Search sessions').fill('config');
        if (view === 'tests') {
          await page.getByRole('button', { name: 'Test…' }).click();
          await page.locator('#test-which').selectOption('text');
          await page.getByRole('button', { name: 'Run tests' }).click();
        }
        await page.locator(there).first().waitFor();
        assert.deepEqual(await faults(page), [], view);
        await page.context().close();
        await mock.stop();
      }
    });
  }

  test('colours follow the system, and the switch wins and is remembered', async (t) => {
    const { page, mock } = await visit(t, { auto: false, context: { colorScheme: 'dark' } });
    await page.locator('.session').first().waitFor();
    const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const dark = await background();
    await page.getByRole('button', { name: 'Colours: Auto' }).click();
    const light = await background();
    assert.notEqual(dark, light);
    await page.goto(`${mock.url}enter?code=again#/sessions`);
    await page.locator('.session').first().waitFor();
    assert.equal(await background(), light);
  });

  test('the whole page works with the keyboard: skip, go to a view, open a session, come back', async (t) => {
    const { page } = await visit(t, { auto: false, mock: { open: 0 } });
    await page.locator('.session').first().waitFor();
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Skip to content');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'main');
    assert.match(page.url(), /#\/sessions$/);
    for (let i = 0; i < 24 && !(await page.evaluate(() => document.activeElement?.closest('.session'))); i += 1) await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => location.hash.startsWith('#/sessions/'));
    await page.waitForFunction(() => document.activeElement?.tagName === 'H1');
    await page.keyboard.press('Tab');
    assert.ok(await page.evaluate(() => document.activeElement !== document.body));
  });
});

describe('the files', () => {
  test('the types fit', () => {
    const here = (path) => fileURLToPath(new URL(path, import.meta.url));
    const checked = spawnSync(process.execPath, [here('node_modules/typescript/bin/tsc'), '-p', here('tsconfig.json')], { encoding: 'utf8' });
    assert.deepEqual([checked.status, checked.stdout], [0, '']);
  });

  test('no file parses HTML or evaluates text, and the page has no inline script or style', async () => {
    for (const name of await readdir(CONSOLE)) {
      const text = await readFile(new URL(name, CONSOLE), 'utf8');
      assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setHTMLUnsafe|createContextualFragment|DOMParser/, name);
      if (name === 'index.html') assert.doesNotMatch(text, /\son[a-z]+=|\sstyle=|<style|<script(?![^>]*src=)/i);
      assert.doesNotMatch(text, /https?:\/\/(?!www\.w3\.org\/)/, `${name} loads nothing from elsewhere`);
    }
  });
});

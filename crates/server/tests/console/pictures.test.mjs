// Pictures of the views, wide and narrow, light and dark. Each is checked: nothing is wider than the screen, and nothing covers a control.
// `PICTURES=FOLDER node --test pictures.test.mjs` saves them; `DOCS=1` renews those of the documentation.

import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { describe } from 'node:test';
import { fileURLToPath } from 'node:url';
import { nothing } from './story.mjs';
import { visit } from './visit.mjs';
import { drawn, settled, tall, test } from './waits.mjs';

const SIZES = { 1400: { width: 1400, height: 900 }, 390: { width: 390, height: 844 } };
const SCHEMES = /** @type {const} */ (['light', 'dark']);
const DOCS = fileURLToPath(new URL('../../../../docs/', import.meta.url));
/** Each with its address, what is there when it is drawn, and what is done first. */
const VIEWS = {
  overview: ['#/', '.columns'],
  sessions: ['#/sessions', '.session'],
  search: ['#/sessions', '.session', async (page) => {
    await page.getByLabel('Search sessions').fill('config');
    await page.locator('.found').getByText('The whole log was searched.').waitFor();
  }],
  between: ['#/sessions', '.session', (page) => page.getByLabel('Time', { exact: true }).selectOption('between')],
  failed: ['#/sessions/s-failed', '.session-head h1'],
  session: ['#/sessions/s-harbour', '.entry'],
  hooks: ['#/hooks', 'tbody tr', (page) => page.getByRole('button', { name: /built-in/ }).click()],
  audit: ['#/audit', 'tbody tr'],
  help: ['#/', '.columns', (page) => page.keyboard.press('?')],
  dialog: ['#/', '.columns', async (page) => {
    await page.locator('#bar-asks').click();
    await settled(page);
  }],
  note: ['#/', '.columns', async (page) => {
    await page.locator('#bar-asks').click();
    await settled(page);
    await page.locator('#question .option.deny').click();
    await page.locator('#question .toast').waitFor();
    await settled(page);
  }],
  empty: ['#/', '.calm'],
};
/** Pictures of the documentation, with the height of the window. */
const SHOWN = { 'overview-1400-light': 1060, 'search-1400-light': 760, 'dialog-390-dark': 844 };

/** The controls that something else covers. The areas of a phone are above what can be scrolled. */
const covered = (page) => page.evaluate(() => {
  const inner = document.querySelector('dialog[open]') ?? document.body;
  const areas = document.getElementById('areas');
  const isBelow = areas && inner === document.body && getComputedStyle(areas).position === 'fixed';
  return [...inner.querySelectorAll('button, a[href], input, select, textarea, summary')].flatMap((one) => {
    const { left, top, width, height } = one.getBoundingClientRect();
    // What is scrolled away inside of its own box is reached by scrolling.
    if (!one.checkVisibility() || width < 2 || one.closest('.table-box, #question-text, .skip') || top + height / 2 > innerHeight || (isBelow && !areas.contains(one) && top + height > areas.getBoundingClientRect().top) || top + height / 2 < 0) return [];
    const there = document.elementFromPoint(left + width / 2, top + height / 2);
    // What has scrolled below a bar is reached by scrolling, too.
    const isScrolled = inner === document.body && there?.closest('#bars, .session-head > .top, .dock');
    const isFree = isScrolled || there && (one.contains(there) || there.contains(one) || there.closest('label')?.getAttribute('for') === one.id);
    return isFree ? [] : [`${one.tagName} ${one.id || one.textContent?.slice(0, 40)} under ${there?.className ?? 'nothing'}`];
  });
});

describe('pictures', () => {
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of SCHEMES) {
      test(`every view fits, and no control is covered: ${size} wide, ${colorScheme}`, async (t) => {
        const folder = process.env.PICTURES;
        if (folder) await mkdir(folder, { recursive: true });
        for (const [name, [hash, there, first]] of Object.entries(VIEWS)) {
          const { page } = await visit(t, { hash, auto: false, mock: name === 'empty' ? { state: nothing() } : { open: 2 }, context: { viewport, colorScheme, deviceScaleFactor: 1 } });
          await page.locator(there).first().waitFor();
          await first?.(page);
          await drawn(page);
          const full = `${name}-${size}-${colorScheme}`;
          assert.deepEqual(await covered(page), [], full);
          assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, full);
          if (process.env.DOCS && SHOWN[full]) {
            await page.setViewportSize({ width: viewport.width, height: SHOWN[full] });
            await drawn(page);
            await page.screenshot({ path: `${DOCS}console-${name}.png` });
          }
          if (folder) {
            if (!['dialog', 'help', 'note'].includes(name)) await tall(page);
            await page.screenshot({ path: `${folder}/${full}.png` });
          }
          await page.context().close();
        }
      });
    }
  }
});

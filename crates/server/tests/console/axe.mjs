// Faults that make a page hard to use for some, as axe finds them. Its page has to be opened with `bypassCSP`.

import { readFile } from 'node:fs/promises';
import { tall, within } from './waits.mjs';

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** What is wrong with all of a page; also if it is wider than the screen. */
export async function faults(page) {
  await tall(page);
  await page.evaluate(await readFile(new URL('node_modules/axe-core/axe.min.js', import.meta.url), 'utf8'));
  const found = await within(page.evaluate((runOnly) => globalThis.axe.run(document, { runOnly }), RULES), () => 'axe has looked at the page');
  const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  return [...found.violations.map((one) => [one.id, one.nodes.slice(0, 4).map((node) => `${node.target} ${node.any[0]?.message ?? node.failureSummary ?? ''}`)]), ...(isWide ? ['wider than the screen'] : [])];
}

// Answers the first approval request in the console, with a browser: `approve_on_page.mjs CONSOLE_TESTS LINK OPTION REASON`.

import { pathToFileURL } from 'node:url';

const [folder, link, option, reason] = process.argv.slice(2);
const { openBrowser } = await import(pathToFileURL(`${folder}/browser.mjs`).href);
const browser = await openBrowser();
const page = await browser.newPage();
page.setDefaultTimeout(60_000);
await page.goto(link);
const dialog = page.getByRole('dialog');
const button = dialog.locator('.option').filter({ has: page.locator('.label', { hasText: new RegExp(`^${option}$`) }) });
await button.and(page.locator('[aria-disabled="false"]')).waitFor();
if (reason) await dialog.locator('#question-reason').fill(reason);
await button.click();
await dialog.waitFor({ state: 'hidden' });
await browser.close();

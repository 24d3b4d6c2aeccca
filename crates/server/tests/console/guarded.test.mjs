// Two guarded agents in the console: their hooks are called with payloads of real ones, and the real daemon decides.
// `DOCS=1 node --test guarded.test.mjs` renews the picture of the documentation.

import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openBrowser } from './browser.mjs';
import { call, endDaemon, install } from './guarded.mjs';
import { FILES } from './harbour.mjs';
import { Place } from './place.mjs';
import { drawn, patient, settled, test, within } from './waits.mjs';

const DOCS = fileURLToPath(new URL('../../../../docs/', import.meta.url));
const RULES = `
hooks:
  - rule: no-force-push
    on: tool:pre
    when: tool_name == "Bash" && shell(tool_input.command).force_push
    deny: ask before you overwrite history
  - rule: production
    on: tool:pre
    when: tool_name in ["Write", "Edit"] && path_matches(tool_input.file_path, ["config/**"])
    ask: Change the production configuration?
    options: [Allow once, Allow always, Deny]
`;

/** @type {import('playwright-core').Browser} */
let browser;
before(async () => { browser = await openBrowser(); });
after(() => within(browser?.close(), () => 'the browser is closed'));

test('sessions of guarded agents show client, version and model, and the page answers them', async (t) => {
  const place = await Place.make({ files: FILES });
  t.after(async () => {
    endDaemon(place);
    await place.remove();
  });
  await place.write('home/bundle.yaml', RULES);
  for (const folder of ['.claude', '.codex']) await mkdir(place.at(folder));
  await install(place, 'claude', 'codex');
  await place.serve();
  const claude = { session_id: '7d0c2f7e-51c9-4a43-9d6b-3f2a91c07b1e', model: 'claude-sonnet-4-5' };
  const codex = { session_id: '0199a8f4-6c1d-7b52-8e4f-5a6b7c8d9e0f' };
  await call(place, 'claude', 'SessionStart', 'startup', { ...claude, source: 'startup' });
  await call(place, 'claude', 'UserPromptSubmit', 'bypassPermissions', { ...claude, prompt: 'Raise the limits of the harbour.' });
  await call(place, 'codex', 'SessionStart', 'startup bypassPermissions', codex);
  await call(place, 'codex', 'UserPromptSubmit', 'bypassPermissions', { ...codex, prompt: 'Publish the branch again.' });
  const pushed = await call(place, 'codex', 'PreToolUse', 'Bash bypassPermissions', { ...codex, tool_input: { command: 'git push --force origin main' } });
  assert.equal(pushed.code, 2);
  assert.match(pushed.err, /Denied by hook no-force-push/);

  const context = await browser.newContext({ viewport: { width: 1400, height: 560 }, reducedMotion: 'reduce', colorScheme: 'light' });
  const page = await context.newPage();
  await patient(page);
  t.after(() => within(context.close(), () => 'the page is closed'));
  await page.addInitScript(() => localStorage.setItem('amplifier.open-questions', 'no'));
  await page.goto(await place.link('ada', 'admin'));
  await page.goto(`${place.server.url}/#/sessions`);
  const input = { file_path: place.at('harbour/config/production.toml'), content: FILES['config/production.toml'].replace('= 600', '= 6000') };
  const asking = call(place, 'claude', 'PreToolUse', 'Write bypassPermissions', { ...claude, tool_input: input });
  await page.getByText('claude 2.1.325 · claude-sonnet-4-5').waitFor();
  await page.getByText('codex · gpt-5.5').waitFor();
  await page.locator('.session.waiting').waitFor();
  await drawn(page);
  if (process.env.DOCS) await page.screenshot({ path: `${DOCS}console-agents.png` });
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/agents.png` });

  await page.goto(`${place.server.url}/#/sessions/${claude.session_id}`);
  await page.locator('#agent', { hasText: 'claude 2.1.325 · claude-sonnet-4-5' }).waitFor();
  await page.locator('#bar-asks').click();
  await settled(page);
  await page.locator('#question .option').filter({ hasText: 'Allow once' }).click();
  const allowed = await within(asking, () => 'the agent has its answer');
  assert.deepEqual([allowed.code, allowed.err], [0, '']);
  const { body } = await place.api('GET', `/api/sessions/${codex.session_id}`);
  assert.deepEqual([body.client.name, body.model, body.denials], ['codex', 'gpt-5.5', 1]);
});

// Takes a picture of every view of the real server with real sessions, wide and narrow, dark and light: `node tour.mjs [FOLDER] [PART OF A NAME]`.
// The sessions do what sessions do: they change files, are denied, ask, wait too long, fail, delegate, are interrupted and killed.

import { chmod, mkdir } from 'node:fs/promises';
import { openBrowser } from './browser.mjs';
import { BUNDLE, FILES, RAISE } from './harbour.mjs';
import { Place } from './place.mjs';
import { drawn, settled, tall, unfold, until } from './waits.mjs';

const folder = process.argv[2] ?? 'shots';
const only = process.argv[3];
const SIZES = { wide: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };

/** Beside the guards of the harbour: one that checks what was written, and one whose program is gone. */
const CHECKED = `${BUNDLE}
  - command: ./check.sh
    name: format-check
    on: tool:post
    when: tool_name in ["Write", "Edit"]
  - command: ./gone.sh
    name: old-linter
    on: tool:post
    when: tool_name == "Write"
`;
const tool = (text, name, input) => ({ text, tools: [{ name, input }] });
/** The same task, written down before the end. */
const WRITTEN = [...RAISE.slice(0, 3), tool('I write down what I found.', 'Write', { file_path: 'CHANGES.md', content: '# Changes\n\n- `requests_a_minute`: 600 → 6000. Measured: 6,240 on 16 workers.\n' }), ...RAISE.slice(3)];
const bash = (command) => tool('I run it.', 'Bash', { command });

async function question(place, prompt) {
  return until(async () => (await place.api('GET', '/api/approvals')).body.approvals.find((one) => one.prompt === prompt || prompt.test?.(one.prompt)), () => `the question ${prompt}`);
}

async function answer(place, prompt, option, more = {}) {
  const { id, nonce } = await question(place, prompt);
  const said = await place.api('POST', `/api/approvals/${id}/answer`, { option, nonce, ...more });
  if (said.status !== 200) throw new Error(JSON.stringify(said));
}

/** What there is before the pictures are taken. */
async function played(place) {
  await place.write('check.sh', '#!/bin/sh\ncat >/dev/null\necho \'{"action": "inject_context", "context_injection": "taplo: config/production.toml is formatted; keys are not sorted (warning)."}\'\n');
  await place.write('gone.sh', '#!/bin/sh\necho "ruff: command not found" >&2\nexit 127\n');
  for (const name of ['check.sh', 'gone.sh']) await chmod(place.at(name), 0o755);
  await place.serve({ answers: [{ text: 'Good morning. What shall I do?' }, tool('I look.', 'Glob', { pattern: '**/*.toml' }), { text: 'There is one configuration file: `config/production.toml`.' }] });

  // One that is done, with all that hooks can say.
  const raise = await place.run('Raise the request limit tenfold before the regatta, and prove that the workers sustain it.', WRITTEN);
  await answer(place, /^Run `echo/, 'Allow always');
  await answer(place, /^Write to `CHANGES/, 'Allow once', { scope: 'project' });
  await answer(place, 'Change the production configuration?', 'Allow once');
  await answer(place, /^Edit `config/, 'Allow once');
  await raise.end;

  // One whose question nobody answers, one that is denied, one that fails, one that delegates.
  await (await place.run('Clean the build folder.', [bash('rm -rf build'), { text: 'Nobody was there to ask, so I left it.' }], { more: ['--approval-timeout', '1.5'] })).end;
  const force = await place.run('Publish the branch.', [bash('git push --force origin main'), { text: 'Then I leave it.' }]);
  await answer(place, /git push/, 'Deny');
  await force.end;
  await (await place.run('Summarise the last incident.', [])).end;
  await (await place.run('Find out who calls the limits, and tell me in one sentence.', [tool('I let somebody look.', 'Task', { task: 'List the callers of REQUESTS_A_MINUTE.' }), tool('I search.', 'Grep', { pattern: 'REQUESTS_A_MINUTE', path: 'src' }), { text: 'Only `src/limits.rs` names it.' }, { text: 'Nobody calls the limits yet: only `src/limits.rs` names them.' }])).end;
  const killed = await place.run('Watch the queue.', [bash('tail -f queue.log')]);
  await question(place, /tail -f/);
  killed.child.kill('SIGKILL');
  await killed.end;

  // One inside of the server, and one that runs.
  const { body: idle } = await place.api('POST', '/api/sessions', { workspace: place.at('harbour'), prompt: 'Good morning' });
  await until(async () => (await place.api('GET', `/api/sessions/${idle.id}`)).body.state === 'idle', () => 'it is idle');
  await place.run('Run the long test until it fails.', [bash('sleep 600'), { text: 'It has not failed.' }]);
  await answer(place, /sleep 600/, 'Allow once');
  const sessions = await until(async () => {
    const all = (await place.api('GET', '/api/sessions')).body.sessions;
    return all.some((one) => one.prompt?.startsWith('Run the long')) && all;
  }, () => 'all sessions are recorded');
  const of = (prompt) => sessions.find((one) => one.prompt?.startsWith(prompt))?.id;
  return { raise: of('Raise'), clean: of('Clean'), force: of('Publish'), failed: of('Summarise'), task: of('Find out'), gone: of('Watch'), idle: idle.id, running: of('Run the long') };
}

await mkdir(folder, { recursive: true });
const browser = await openBrowser();
const place = await Place.make({ files: FILES, bundle: CHECKED });
try {
  const ids = await played(place);
  const at = [];
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of ['light', 'dark']) {
      const context = await browser.newContext({ viewport, colorScheme, deviceScaleFactor: 1, reducedMotion: 'reduce' });
      const page = await context.newPage();
      page.on('pageerror', (error) => console.log(size, colorScheme, error.message));
      await page.addInitScript(() => localStorage.setItem('amplifier.open-questions', 'no'));
      await page.goto(await place.link('ada', 'admin'));
      await page.waitForFunction(() => document.getElementById('link')?.textContent === 'Live');
      const shoot = async (name, hash, there, first, { full = false } = {}) => {
        if (only && !`${name}-${size}-${colorScheme}`.includes(only)) return;
        if (hash) {
          await page.goto(`${place.server.url}/${hash}`);
          await page.locator(there).first().waitFor();
        }
        await first?.(page);
        await drawn(page);
        if (full) await tall(page);
        await page.screenshot({ path: `${folder}/${name}-${size}-${colorScheme}.png` });
        if (full) await page.setViewportSize(viewport);
      };
      at.push({ size, colorScheme, page, shoot });
    }
  }
  const each = async (take) => { for (const one of at) await take(one); };
  await each(async ({ shoot, page }) => {
    await shoot('sessions', '#/sessions', '.session');
    for (const name of Object.keys(ids)) await shoot(`session-${name}`, `#/sessions/${ids[name]}`, '.entry', null, { full: true });
    await shoot('session-details', `#/sessions/${ids.raise}`, '.entry', async () => { await unfold(page.locator('.entry.tool .more-of-it').nth(2)); await unfold(page.locator('.entry.model .more-of-it').nth(0)); for (const one of await page.locator('.injection-line summary').all()) await one.click(); }, { full: true });
    await shoot('session-minor', `#/sessions/${ids.raise}`, '.entry', async () => { await page.getByLabel('Show minor events').check(); }, { full: true });
    if (await page.getByLabel('Show minor events').isVisible()) await page.getByLabel('Show minor events').uncheck();
    await shoot('history', '#/approvals/history', 'main tbody tr');
    await shoot('rules', '#/approvals/rules', '.rule-card');
    await shoot('approvals-none', '#/approvals', '.empty');
    await shoot('hooks', '#/hooks', 'main tbody tr', null, { full: true });
    await shoot('hook', '#/hooks/confirm', '.charts', (p) => p.locator('main tbody tr').first().waitFor(), { full: true });
    await shoot('audit', '#/audit', 'main tbody tr', async () => { await page.locator('.proves summary').click(); });
    await shoot('record', '#/audit/18', '.facts', async () => { await page.getByRole('button', { name: 'Show proof' }).click(); await page.getByRole('button', { name: 'Copy' }).waitFor(); }, { full: true });
    await shoot('begin', '#/sessions', '.session', async () => { await page.getByRole('button', { name: 'New session' }).click(); });
    await page.keyboard.press('Escape');
    await shoot('access', '#/sessions', '.session', async () => { await page.locator('#access').click(); });
    await page.keyboard.press('Escape');
  });
  // A question with a diff, and one in the terminal's words.
  await place.run('Raise the limit again.', [tool('I raise it.', 'Edit', { file_path: 'config/production.toml', old_string: 'requests_a_minute = 6000\nbody_kib = 512', new_string: 'requests_a_minute = 60000\nbody_kib = 4096\n# raised for the regatta' }), { text: 'Done.' }]);
  const asked = await question(place, 'Change the production configuration?');
  await each(async ({ shoot, page }) => {
    await shoot('asks-session', `#/sessions/${asked.session}`, '.entry.asks', null, { full: true });
    await shoot('dialog', '#/approvals', '.question-card', async () => { await page.getByRole('button', { name: 'Review and answer' }).click(); await settled(page); });
    await page.keyboard.press('Escape');
    await shoot('approvals', '#/approvals', '.question-card');
  });
  await answer(place, 'Change the production configuration?', 'Deny');
  // Too many questions.
  await place.run('Check every berth.', [...Array.from({ length: 9 }, (_, n) => bash(`./berth ${n + 1} --check`)), { text: 'All are checked.' }]);
  for (let n = 1; n < 7; n += 1) await answer(place, new RegExp(`berth ${n} `), 'Deny');
  await question(place, /berth 7/);
  await each(async ({ shoot, page }) => {
    await shoot('busy', '#/approvals', '#bar-rule');
    await shoot('busy-rule', '#/approvals', '#bar-rule', async () => { await page.locator('#bar-rule').click(); });
    await page.keyboard.press('Escape');
    await shoot('busy-dialog', '#/approvals', '.question-card', async () => { await page.getByRole('button', { name: 'Review and answer' }).click(); await settled(page); });
    await page.keyboard.press('Escape');
  });
  // The server goes away; meanwhile somebody changes the log.
  await place.stop();
  await each(async ({ shoot, page }) => {
    await page.locator('.bar.lost').waitFor();
    await shoot('lost', null);
  });
  const log = 'home/audit/seg-000001.jsonl';
  await place.write(log, (await place.read(log)).replace('sustained: 6,240', 'sustained: 9,240'));
  await place.serve();
  await each(async ({ shoot, page }) => {
    await page.waitForFunction(() => document.getElementById('link')?.textContent === 'Live');
    await shoot('broken', '#/audit', '.proof.broken', null, { full: true });
    await shoot('broken-sessions', '#/sessions', '#bar-broken');
    await page.goto(`${place.server.url}/#/audit`);
    await page.locator('.problems a').first().click();
    await page.getByText('The log is invalid here').waitFor();
    await shoot('broken-record', null);
  });
} finally {
  await browser.close();
  await place.remove();
}

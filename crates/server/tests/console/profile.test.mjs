// What a browser writes to its disk lets nobody answer: neither a command of the agent that reads it, nor whoever has the cookie.

import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openProfile } from './browser.mjs';
import { Place } from './place.mjs';
import { patient, settled, test, until, within } from './waits.mjs';

const touch = (name) => [{ tools: [{ name: 'Bash', input: { command: `touch ${name}` } }] }, { text: 'Done.' }];
const live = (page) => page.waitForFunction(() => document.getElementById('link')?.textContent === 'Live');
const asked = (page, prompt) => page.getByRole('dialog').getByRole('heading', { name: prompt }).waitFor();

/** The files of the profile that hold one of the texts, in any of the ways in which a browser writes text. */
async function filesWith(folder, texts) {
  const found = [];
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath ?? entry.path, entry.name);
    const bytes = await readFile(path).catch(() => Buffer.alloc(0));
    if (texts.some((text) => ['utf8', 'utf16le'].some((form) => bytes.includes(Buffer.from(text, form))))) found.push(path);
  }
  return found;
}

/** What a command of an agent can try: every secret it finds, as a token, and as a key with the cookie, which it is given. */
const ATTACK = `
import json, os, re, sys, urllib.request, urllib.error
url, cookie, question, nonce, folders = json.load(open('known.json'))
secrets = {cookie.split('=')[1], 'x' * 43}
for folder in folders:
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                data = open(os.path.join(root, name), 'rb').read()
            except OSError:
                continue
            for text in (data, data.replace(b'\\0', b'')):
                secrets.update(found.decode() for found in re.findall(rb'(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])', text))
tried = []
def send(path, body, headers):
    headers = {'content-type': 'application/json', 'origin': url, **headers}
    try:
        status = urllib.request.urlopen(urllib.request.Request(url + path, json.dumps(body).encode(), headers), timeout=30).status
    except urllib.error.HTTPError as refused:
        status = refused.code
    tried.append(status)
answer = ('/api/approvals/' + question + '/answer', {'option': 'Allow once', 'nonce': nonce})
for path, body in (answer, ('/api/rules', {'hook': 'confirm', 'pattern': '*', 'answer': 'allow'}), ('/api/links', {'name': 'me', 'role': 'admin'})):
    send(path, body, {'cookie': cookie})
for secret in sorted(secrets):
    send(*answer, {'cookie': cookie, 'x-amplifier-key': secret})
    send(*answer, {'authorization': 'Bearer ' + secret})
json.dump(tried, open('tried.json', 'w'))
`;

test('the key is in the memory of open tabs alone, and nothing that is on the disk answers', async (t) => {
  const place = await Place.make({ files: { 'attack.py': ATTACK }, rules: { 'confirm:Run `python3 attack.py`?': 'allow' } });
  t.after(() => place.remove());
  await place.serve();
  const profile = place.at('.config/chromium');
  const first = await openProfile(profile);
  t.after(() => within(first.close(), () => 'the browser is closed'));
  let key = '';
  first.on('request', (request) => { key = request.headers()['x-amplifier-key'] ?? key; });
  const page = await first.newPage();
  await patient(page);
  await page.goto(await place.link('grace', 'approver'));
  await live(page);
  assert.match(key, /^[A-Za-z0-9_-]{43}$/);
  assert.equal(page.url(), `${place.server.url}/`);

  // The page answers, and so does a second tab that has the key from it.
  for (const name of ['one', 'two']) {
    const run = await place.run('Make it', touch(name));
    const tab = name === 'one' ? page : await first.newPage();
    if (tab !== page) {
      await patient(tab);
      await tab.goto(place.server.url);
      await live(tab);
      await page.reload();
      await live(page);
    }
    await asked(tab, `Run \`touch ${name}\`?`);
    await settled(tab);
    await tab.keyboard.press('1');
    await run.end;
    assert.ok(place.has(`harbour/${name}`));
  }

  // What the page keeps is found on the disk in the end, and the key is not.
  await page.evaluate(() => localStorage.setItem('amplifier.theme', 'a-word-to-look-for'));
  const [{ name, value }] = await first.cookies();
  await within(first.close(), () => 'the browser is closed');
  await until(async () => (await filesWith(profile, ['a-word-to-look-for'])).length > 0, () => 'the profile is written');
  assert.deepEqual(await filesWith(profile, [key]), []);
  assert.deepEqual(await filesWith(place.at('home'), [key]), []);

  const run = await place.run('Make it', touch('three'));
  const { approvals: [question] } = await until(async () => {
    const { body } = await place.api('GET', '/api/approvals');
    return body.approvals.length > 0 && body;
  }, () => 'the question is asked');
  await place.write('harbour/known.json', JSON.stringify([place.server.url, `${name}=${value}`, question.id, question.nonce, [profile, place.at('home')]]));
  const attack = await place.run('Look around', [{ tools: [{ name: 'Bash', input: { command: 'python3 attack.py' } }] }, { text: 'Done.' }]);
  assert.equal((await attack.end).code, 0);
  const tried = JSON.parse(await place.read('harbour/tried.json'));
  assert.ok(tried.length >= 7, tried.join(' '));
  assert.deepEqual(tried.filter((status) => ![401, 403, 429].includes(status)), []);
  assert.equal(place.has('harbour/three'), false);

  // The browser that comes back is not in: it has to get a new link.
  const again = await openProfile(profile);
  t.after(() => within(again.close(), () => 'the browser is closed'));
  const back = await again.newPage();
  await patient(back);
  await back.goto(place.server.url);
  await back.getByText('Sign in').waitFor();
  await back.goto(await place.link('grace', 'approver'));
  await asked(back, 'Run `touch three`?');
  await settled(back);
  await back.keyboard.press('3');
  await run.end;
  assert.equal(place.has('harbour/three'), false);
  const answers = (await place.recorded('approval_decision')).filter((one) => one.by?.via === 'console');
  assert.deepEqual(answers.map((one) => one.granted), [true, true, false]);
});

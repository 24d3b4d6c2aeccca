// More sessions and questions than the server tells by itself.

import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { startMock } from './mock.mjs';
import { question } from './story.mjs';
import { answered, dialog, visit } from './visit.mjs';
import { reads, settled, test } from './waits.mjs';

describe('crowds', () => {
  test('ten thousand open questions are all counted, and each of them gets its turn', async (t) => {
    const mock = await startMock({ open: 0 });
    const now = Date.now();
    mock.state.approvals = Array.from({ length: 10_000 }, (_, n) => question(n, { prompt: `Question ${n}?`, created_at: new Date(now - 30_000 + n).toISOString(), deadline: new Date(now + 3_600_000 + n).toISOString(), timeout_s: 3_700 }));
    const { page } = await visit(t, { mock, auto: false, hash: '#/approvals' });
    await page.waitForFunction(() => document.title === '(10000) Approvals · Amplifier');
    await reads(page.locator('#bar-asks'), /10,000 open approval requests: Question 0\?/);
    await page.getByText('9,800 more', { exact: true }).waitFor();
    // Those that the first message had are answered elsewhere.
    for (let n = 0; n < 500; n += 1) mock.decide(`s-harbour.${n}`, false, { by: { name: 'grace', via: 'api' } });
    await page.waitForFunction(() => document.title === '(9500) Approvals · Amplifier');
    await page.locator('#bar-asks').click();
    await page.getByRole('heading', { name: 'Question 500?' }).waitFor();
    await reads(page.locator('#question-place'), /^Request 1 of 9,500$/);
    await page.keyboard.press('Escape');
    // The most urgent is none of those that came first.
    mock.ask(question(10_000, { prompt: 'Now?', deadline: new Date(now + 600_000).toISOString(), timeout_s: 600 }));
    await reads(page.locator('#bar-asks'), /9,501 open approval requests: Now\?/);
    await page.locator('#bar-asks').click();
    await settled(page);
    await page.keyboard.press('3');
    await answered(mock, 1);
    await page.getByRole('heading', { name: 'Question 500?' }).waitFor();
  });

  test('a question that is answered while the others are being read does not come back', async (t) => {
    const mock = await startMock({ open: 0 });
    const now = Date.now();
    mock.state.approvals = Array.from({ length: 502 }, (_, n) => question(n, { prompt: `Question ${n}?`, created_at: new Date(now - 30_000 + n).toISOString() }));
    let read;
    const isRead = new Promise((resolve) => { read = resolve; });
    // The list is made while the question is open, and comes when it is closed.
    mock.state.delay = async (path) => {
      if (path !== '/api/approvals') return;
      read();
      await mock.state.isClosed;
    };
    let close;
    mock.state.isClosed = new Promise((resolve) => { close = resolve; });
    const { page } = await visit(t, { mock, auto: false, hash: '#/approvals' });
    await isRead;
    await page.waitForFunction(() => document.title === '(502) Approvals · Amplifier');
    mock.decide('s-harbour.501', false, { by: { name: 'grace', via: 'api' } });
    await page.waitForFunction(() => document.title === '(501) Approvals · Amplifier');
    close();
    await page.getByText('301 more', { exact: true }).waitFor();
    assert.match(await page.title(), /^\(501\)/);
    mock.decide('s-harbour.500', false, { by: { name: 'grace', via: 'api' } });
    await page.waitForFunction(() => document.title === '(500) Approvals · Amplifier');
  });

  test('a session that waits is there however old it is, and older ones are found when they are looked for', async (t) => {
    const mock = await startMock({ open: 0 });
    const [first] = mock.state.sessions;
    const old = (n, more) => ({ ...first, id: `s-old-${n}`, name: `Old ${n}`, state: 'ended', connected: false, pending: 0, started_at: new Date(0).toISOString(), updated_at: new Date(1_000_000_000_000 - n * 1_000).toISOString(), ...more });
    mock.state.sessions.push(...Array.from({ length: 1_300 }, (_, n) => old(n)), old(1_300, { name: 'Forgotten', state: 'waiting', connected: true, pending: 1 }));
    const { page } = await visit(t, { mock, auto: false });
    await reads(page.locator('.session').first(), /Waiting for you[\s\S]*Forgotten/);
    await reads(page.locator('.chips'), /Waiting\s*1\s/);
    await reads(page.locator('#state-all'), /^All\s*201\+$/);
    const search = page.getByLabel('Search sessions');
    await search.fill('old 1299');
    await page.getByText('None of the newest sessions has this in its name, folder or prompt.').waitFor();
    await page.getByRole('button', { name: 'Search older sessions too' }).click();
    await reads(page.locator('.session'), /Old 1299/);
    await reads(page.locator('#state-all'), /^All\s*1,308$/);
    await search.fill('nobody');
    await page.getByText('No session has this in its name, folder or prompt.').waitFor();
    assert.equal(await page.locator('#older').count(), 0);
    // One that the page was not told of can be looked at, and stays when the server says once more how things are.
    await page.goto(`${mock.url}enter?code=any#/sessions/s-old-900`);
    await page.getByRole('heading', { name: 'Old 900' }).waitFor();
    mock.greet();
    await page.getByLabel('Show in the timeline').waitFor();
  });
});

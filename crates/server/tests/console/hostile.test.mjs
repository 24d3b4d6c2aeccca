// Text that is meant to deceive or to run is only shown.

import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { HOSTILE, HOSTILE_LONG, question } from './story.mjs';
import { answered, dialog, visit } from './visit.mjs';
import { drawn, settled, test } from './waits.mjs';

describe('hostile text', () => {
  test('markup stays text, hidden characters are marks, long text is cut; nothing runs', async (t) => {
    const { page, mock } = await visit(t, { mock: { open: 0 }, hash: '#/sessions/s-odd' });
    const prompt = page.locator('.prompt-text');
    await prompt.waitFor();
    const text = await prompt.innerText();
    assert.ok(text.includes('<script>globalThis.hacked = 1</script>'), 'markup is text');
    for (const mark of ['U+001B', 'U+202E', 'U+200B×3', 'U+2066', 'U+FEFF', 'U+0007', 'U+000D', 'U+E0041', 'U+00AD']) assert.ok(text.includes(mark), mark);
    assert.ok(text.length < 3_000);
    const raw = await page.evaluate(() => /[\u001b\u202a-\u202e\u2066-\u2069\u200b\u00ad\ufeff\u0007\u{e0041}]/u.test(document.body.textContent ?? ''));
    assert.equal(raw, false, 'no such character is left anywhere on the page');
    await prompt.getByRole('button', { name: /show all/ }).click();
    await page.waitForFunction((n) => document.querySelector('.prompt-text')?.textContent?.endsWith('xxxx') && document.querySelectorAll('.prompt-text .mark').length > n, 19_000);
    for (const [hash, there] of [['#/sessions', '.session'], ['#/approvals/history', 'tbody tr'], ['#/audit', 'tbody tr'], ['#/hooks/broken-hook', 'tbody tr']]) {
      await page.goto(mock.url + hash);
      await page.locator(there).first().waitFor();
      await drawn(page);
    }
    assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
    assert.equal(await page.locator('main script, main img, main iframe, dialog script, dialog img').count(), 0);
  });

  test('a hostile question is harmless, and its buttons stay in sight', async (t) => {
    for (const viewport of [{ width: 1400, height: 900 }, { width: 390, height: 844 }]) {
      await t.test(`${viewport.width} wide`, async (t) => {
        const { page, mock } = await visit(t, { mock: { open: 0 }, context: { viewport } });
        await page.getByRole('heading', { name: 'Sessions' }).waitFor();
        mock.ask(question(7, {
          prompt: HOSTILE_LONG, reason: HOSTILE_LONG, hook: HOSTILE, session_name: HOSTILE, digest: HOSTILE, options: [{ label: 'Allow', effect: 'allow_once' }, { label: HOSTILE, effect: 'deny' }],
          preview: { title: HOSTILE, target: HOSTILE, summary: HOSTILE_LONG, warnings: [HOSTILE_LONG], body: Array.from({ length: 1_000 }, (_, n) => ({ kind: 'added', text: n === 0 ? HOSTILE_LONG : HOSTILE, new: n + 1 })), fields: [{ name: HOSTILE, value: HOSTILE_LONG }] },
        }));
        await dialog(page).waitFor();
        await settled(page);
        const check = async () => {
          const button = await page.locator('.option').first().boundingBox();
          assert.ok(button && button.y + button.height <= viewport.height && button.x >= 0 && button.x + button.width <= viewport.width, JSON.stringify(button));
          assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
          assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
          assert.ok(!/[\u001b\u202e\u200b]/.test(await page.title()));
        };
        await check();
        // The first key shows all of it, and the second one allows.
        await page.keyboard.press('1');
        await page.locator('#question-unfolded').waitFor();
        await settled(page);
        await check();
        await page.keyboard.press('1');
        await answered(mock, 1);
        assert.equal(mock.state.answers[0].option, 'Allow');
      });
    }
  });

  test('emoji and other scripts are left alone', async (t) => {
    const { page } = await visit(t, { mock: { open: 0 } });
    const marks = await page.evaluate(async () => {
      const { shown, plain } = await import('/console/text.js');
      const count = (text) => shown(text).querySelectorAll('.mark').length;
      return [count('👩‍💻 ❤️ 🇫🇷 日本語 العربية שלום\tok\nline'), count('a\u00a0b'), count('x\u200dy'), count('\ud800'), plain('a\u202eb\nc'), shown('👍'.repeat(3), { limit: 3, more: false }).textContent];
    });
    assert.deepEqual(marks, [0, 1, 1, 1, 'aU+202Eb c', '👍…']);
  });
});

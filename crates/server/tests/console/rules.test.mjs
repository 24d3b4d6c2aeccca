// The rules that an answer may create: seen before they are chosen.

import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { command, question } from './story.mjs';
import { answered, dialog, visit } from './visit.mjs';
import { nothingSent, settled, test } from './waits.mjs';

const names = [['run cargo test --lib', 'exactly `cargo test --lib`'], ['run cargo test *', '`cargo test` with any arguments']];
const offers = ['session', 'project'].flatMap((scope) => names.map(([operation, label]) => ({ operations: [operation], label, scope, explanation: `Operations of the kind \`${operation}\` are allowed (${scope}).` })));
const asked = () => command(7, { offers, options: [{ label: 'Allow once', effect: 'allow_once' }, { label: 'Allow always', effect: 'allow_always' }, { label: 'Deny', effect: 'deny' }] });

async function open(t) {
  const { page, mock, sent } = await visit(t, { mock: { open: 0 } });
  await page.getByRole('heading', { name: 'Sessions' }).waitFor();
  mock.ask(asked());
  await dialog(page).waitFor();
  await settled(page);
  return { page, mock, sent };
}

describe('rules of an answer', () => {
  test('each rule is shown with its sentence, and a number chooses it', async (t) => {
    const { page, mock, sent } = await open(t);
    assert.equal(await dialog(page).getByText('for this project').count(), 0);
    await page.keyboard.press('2');
    await dialog(page).getByText('Allow without asking: in this session').waitFor();
    for (const offer of offers.slice(0, 2)) await dialog(page).getByText(offer.explanation).waitFor();
    await nothingSent(page, sent);
    await settled(page);
    await page.keyboard.press('2');
    await answered(mock, 1);
    const { option, rule, scope } = mock.state.answers[0];
    assert.deepEqual({ option, rule, scope }, { option: 'Allow always', rule: { operations: ['run cargo test *'], scope: 'session' }, scope: undefined });
  });

  test('a rule for the project is one button away, and back are the other answers', async (t) => {
    const { page, mock } = await open(t);
    await dialog(page).getByRole('button', { name: /^Allow always/ }).click();
    await settled(page);
    await dialog(page).getByRole('button', { name: /^In this project/ }).click();
    await dialog(page).getByText(offers[2].explanation).waitFor();
    await settled(page);
    await dialog(page).getByRole('button', { name: /^Back/ }).click();
    await settled(page);
    await dialog(page).getByRole('button', { name: /^Allow always/ }).click();
    await settled(page);
    await dialog(page).getByRole('button', { name: /^In this project/ }).click();
    await settled(page);
    await dialog(page).getByRole('button', { name: /^exactly/ }).click();
    await answered(mock, 1);
    assert.deepEqual(mock.state.answers[0].rule, { operations: ['run cargo test --lib'], scope: 'project' });
  });

  test('the next request shows its answers, not the rules of the last one', async (t) => {
    const { page, mock } = await open(t);
    await page.keyboard.press('2');
    await settled(page);
    mock.ask(question(8));
    await dialog(page).getByRole('button', { name: 'Next request' }).click();
    await settled(page);
    await dialog(page).getByRole('button', { name: /^Allow once/ }).waitFor();
    assert.equal(await dialog(page).getByText('Allow without asking').count(), 0);
  });
});

// The console marks the characters that the terminal and Python mark.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const read = (path) => readFileSync(new URL(path, import.meta.url), 'utf8');

test('characters are shown as the table says', async () => {
  // Elements are not needed for plain text, and Node has none.
  const source = read('../../src/console/text.js').replace(/^import .*$/m, '');
  const { plain } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
  for (const { name, text, page } of JSON.parse(read('../../../../conformance/text/characters.json')).cases) {
    assert.equal(plain(text), page, name);
  }
});

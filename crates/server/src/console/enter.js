// The page that a link leads to: it keeps the key of this browser, and goes on to the console.

import { keep } from './api.js';

const key = /** @type {HTMLMetaElement | null} */ (document.querySelector('meta[name="amplifier-key"]'))?.content;
try {
  if (key) keep(key);
  location.replace('/');
} catch {
  const told = document.getElementById('told');
  if (told) told.textContent = 'This browser keeps nothing for this page, so it cannot be let in: allow it to keep data (localStorage), and get another link.';
}

// The browser that tests drive: Debian's, or the one that CHROMIUM names. Nothing is downloaded.

import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

const PLACES = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

function how() {
  const executablePath = PLACES.find((place) => place && existsSync(place));
  if (!executablePath) throw new Error('no browser found: install `chromium`, or set CHROMIUM to the path of one');
  // A container has no room for Chromium's own sandbox when everything runs as root.
  return { executablePath, args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] };
}

export function openBrowser() {
  return chromium.launch(how());
}

/**
 * A browser that keeps what it keeps in a folder.
 * @param {string} folder
 */
export function openProfile(folder) {
  return chromium.launchPersistentContext(folder, { viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', ...how() });
}

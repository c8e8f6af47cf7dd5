import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';
import { endWithFile } from './started.js';

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const QUIET = (
  '--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking ' +
  '--disable-component-update --disable-sync'
).split(' ');

/** A headless Chromium of the machine, which ends with the file at the latest. @throws naming what is missing */
export async function openBrowser(): Promise<Browser> {
  const given = process.env['CHROMIUM'];
  const executablePath = given ?? PLACES.find((path) => existsSync(path));
  if (executablePath === undefined)
    throw new Error('Chromium is missing: `node tools/test-partners.mjs` installs it or says how');
  const browser = await chromium.launch({ executablePath, args: QUIET });
  endWithFile(() => browser.close());
  return browser;
}

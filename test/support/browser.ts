import { type Browser, chromium } from 'playwright-core';
import { findChromium } from '../../tools/chromium.mjs';
import { endWithFile } from './started.js';

const QUIET = (
  '--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking ' +
  '--disable-component-update --disable-sync'
).split(' ');

/** A headless Chromium of the machine, which ends with the file at the latest. @throws naming what is missing */
export async function openBrowser(): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === undefined)
    throw new Error('Chromium is missing: `node tools/test-partners.mjs` installs it or says how');
  const browser = await chromium.launch({ executablePath, args: QUIET });
  endWithFile(() => browser.close());
  return browser;
}

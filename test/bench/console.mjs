// `npm run bench -- console`: what the operators' page weighs, and how long until there is something to see.
import { chromium } from 'playwright-core';
import { findChromium } from '../../tools/chromium.mjs';
import { median } from './load.mjs';
import { HEADERS, startParley } from './works.mjs';

const service = await startParley({ console: { operators: ['bench'] } });
const { origin } = new URL(service.url);
const browser = await chromium.launch({
  executablePath: findChromium(),
  args: ['--no-sandbox', '--disable-gpu'],
});

/** Bytes over the wire, headers included, and milliseconds of the browser's own clock. */
async function visit() {
  const context = await browser.newContext();
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  await session.send('Network.enable');
  let bytes = 0;
  let requests = 0;
  session.on('Network.loadingFinished', ({ encodedDataLength }) => {
    bytes += encodedDataLength;
    requests += 1;
  });
  await page.goto(`${origin}/console#/live`);
  await page.waitForSelector('form');
  const firstPaint = await page.evaluate(
    `new Promise((resolve) => new PerformanceObserver((list) => resolve(list.getEntries()[0].startTime))
      .observe({ type: 'paint', buffered: true }))`,
  );
  const form = await page.evaluate('performance.now()');
  const weight = { bytes, requests };
  await page.fill('input[name=key]', HEADERS['x-mcp-api-key']);
  await page.keyboard.press('Enter');
  await page.waitForSelector('.dot.good');
  await page.reload();
  await page.waitForSelector('h1');
  const signedIn = await page.evaluate('performance.now()');
  await context.close();
  return { ...weight, firstPaint, form, signedIn };
}

await visit();
const visits = [];
for (let round = 0; round < 7; round += 1) visits.push(await visit());
const usual = (name) => median(visits.map((one) => one[name]));
console.log(`page weight       ${(usual('bytes') / 1024).toFixed(1)} KB in ${usual('requests')} requests`);
console.log(`first paint       ${usual('firstPaint').toFixed(0)} ms`);
console.log(`form to sign in   ${usual('form').toFixed(0)} ms`);
console.log(`live calls, again ${usual('signedIn').toFixed(0)} ms`);
await browser.close();
process.exit(0);

// `npm run bench -- console`: what the operators' page weighs, and how long until there is something to see.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { stringify } from 'yaml';
import { folderWith, root, start } from './processes.mjs';

const KEY = 'key-of-the-operator';
const executablePath =
  process.env.CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((path) => existsSync(path));

const service = await start(['--enable-source-maps', join(root, 'dist/bundle/main.js')], {
  cwd: folderWith({
    'parley.yaml': stringify({
      server: { port: 0, requestRateLimit: { limit: 1_000_000_000, window: 60 }, maxRunningCalls: null },
      agents: { operator: { rateLimit: 1_000_000 } },
      auth: [{ apiKey: KEY, agent: 'operator' }],
      console: { operators: ['operator'] },
      policy: { unlistedClasses: 'allow', suppressMasterKeyWarning: true },
    }),
  }),
  ready: /Parley listening on (\S+)/,
});
const { origin } = new URL(service.url);
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });

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
  await page.fill('input[name=key]', KEY);
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
const median = (name) => visits.map((one) => one[name]).sort((a, b) => a - b)[3];
console.log(`page weight       ${(median('bytes') / 1024).toFixed(1)} KB in ${median('requests')} requests`);
console.log(`first paint       ${median('firstPaint').toFixed(0)} ms`);
console.log(`form to sign in   ${median('form').toFixed(0)} ms`);
console.log(`live calls, again ${median('signedIn').toFixed(0)} ms`);
await browser.close();
process.exit(0);

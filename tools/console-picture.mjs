// `node tools/console-picture.mjs [FILE]`: makes docs/images/console.png, the overview of the console after an hour of calls to the
// demo. The service counts by a clock that this moves on, minute by minute: the hour takes seconds.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { parse, stringify } from 'yaml';
import { SeededRandom } from '../test/proof/support/seeded-random.mjs';
import { build } from './build/build.mjs';
import { findChromium } from './chromium.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = process.argv[2] ?? join(root, 'docs', 'images', 'console.png');
const MINUTE = 60_000;
const MINUTES = 60;
/** Where the clock of the service begins: an hour ago, at the begin of a minute. */
const began = Date.now();
const ahead = -MINUTES * MINUTE - (began % MINUTE);

if (build({ ifNeeded: true }) !== 0) process.exit(1);
const executablePath = findChromium();
if (executablePath === undefined) throw new Error('Chromium is missing: `node tools/test-partners.mjs`');

const agent = { tenantId: 'northside', rateLimit: 100_000 };
/** @type {Record<string, object>} */
const agents = {
  chief: { ...agent, permissions: 'admin' },
  analyst: { ...agent, permissions: 'readonly' },
  'night-report': { ...agent, permissions: 'readonly' },
  support: { ...agent, permissions: 'admin' },
};
const folder = mkdtempSync(join(tmpdir(), 'parley-picture-'));
const demo = parse(readFileSync(join(root, 'parley.yaml'), 'utf8'));
const configuration = {
  ...demo,
  server: { ...demo.server, port: 0 },
  database: { uri: 'embedded', seed: join(root, 'demo', 'seed.json') },
  agents,
  auth: Object.keys(agents).map((name) => ({ apiKey: `key-of-${name}`, agent: name })),
  policy: { ...demo.policy, requireApprovalFor: ['write', 'admin'] },
  approvals: { mode: 'desk', approvers: ['chief'], expiry: 600 },
  console: { operators: ['chief'] },
  logging: { format: 'plain' },
};
const [file, clock] = [join(folder, 'parley.yaml'), join(folder, 'clock')];
writeFileSync(file, stringify(configuration));

const service = spawn(process.execPath, [join(root, 'dist', 'bundle', 'main.js')], {
  cwd: folder,
  env: {
    PATH: process.env.PATH,
    NODE_OPTIONS: `--import=${new URL('../test/support/shifted-clock.mjs', import.meta.url).href}`,
    CLOCK_AHEAD: String(ahead),
    CLOCK_FILE: clock,
    PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true',
    PARSE_AGENT_ALLOW_RAW_CRUD: 'true',
  },
  stdio: ['ignore', 'ignore', 'pipe'],
});
let said = '';
service.stderr.setEncoding('utf8').on('data', (part) => (said += part));
/** @param {RegExp} line */
async function heard(line) {
  while (!line.test(said)) {
    if (service.exitCode !== null) throw new Error(`the service ended:\n${said}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return line.exec(said)?.[1] ?? '';
}

/** Sets the clock of the service. @param {number} passed milliseconds since it began, beside those of this machine */
async function pass(passed) {
  said = '';
  writeFileSync(clock, `${ahead} ${passed}`);
  service.kill('SIGUSR2');
  await heard(/the clock is set/);
}

const READS = [
  ['query_class', { class_name: 'Order', where: { status: 'shipped' }, limit: 20 }],
  ['query_class', { class_name: 'Album', where: { genre: 'jazz' }, include: ['artist'], limit: 30 }],
  ['query_class', { class_name: 'Listing', limit: 50 }],
  ['count_objects', { class_name: 'Review', where: { rating: 5 } }],
  ['group_by', { class_name: 'Order', field: 'status' }],
  ['get_schema', { class_name: 'Order' }],
];
const REFUSED = [
  ['query_class', { class_name: 'SupplierContract' }],
  ['query_class', { class_name: 'Listing', where: { costPrice: { $gt: 3 } } }],
  ['query_class', { class_name: 'Customer', limit: -1 }],
];

const url = await heard(/Parley listening on (\S+)/);
/** @param {string} name @param {readonly unknown[]} call */
async function call(name, [tool, args]) {
  const params = { name: tool, arguments: args };
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-MCP-API-Key': `key-of-${name}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  });
  await response.text();
}

const random = new SeededRandom(1, 'picture', 0);
for (let minute = 0; minute < MINUTES; minute += 1) {
  await pass(minute * MINUTE - (Date.now() - began));
  const busy = Math.round(8 + 5 * Math.sin(minute / 7) + random.below(4));
  for (let at = 0; at < busy; at += 1) {
    const name = random.pick(['analyst', 'analyst', 'night-report', 'support']);
    await call(name, random.pick(random.below(12) === 0 ? REFUSED : READS));
  }
}
await pass(-ahead);
const row = { class_name: 'Order', object_id: 'UDNQ8XlgzX', fields: { status: 'returned' } };
call('support', ['update_object', row]).catch(() => undefined);

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
const page = await browser.newPage({
  viewport: { width: 1280, height: 940 },
  colorScheme: 'light',
  locale: 'en-GB',
  timezoneId: 'UTC',
  reducedMotion: 'reduce',
});
await page.goto(`${new URL(url).origin}/console#/overview`);
await page.getByLabel('API key or access token').fill('key-of-chief');
await page.keyboard.press('Enter');
await page.getByRole('link', { name: /^Approvals waiting 1/ }).waitFor();
await page.getByRole('region', { name: 'Refused or failed by gate' }).getByRole('link').first().waitFor();
await page.screenshot({ path: out });
await browser.close();
service.kill('SIGTERM');
await once(service, 'exit');
rmSync(folder, { recursive: true });

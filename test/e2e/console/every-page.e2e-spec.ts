import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { AxeResults } from 'axe-core';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisServer, startRedis } from '#state/contracts';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { openBrowser } from '../../support/browser.js';
import { BEYOND, PALE } from '../../support/page-checks.js';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PATIENT = { timeout: 30_000 };
const admin = { rateLimit: 1_000_000, tenantId: 'acme', permissions: 'admin' };
const AGENTS = {
  operator: admin,
  writer: admin,
  'proposer-of-a-rather-long-name': { ...admin, writes: 'proposed' },
};
const PROPOSER = 'proposer-of-a-rather-long-name';
const as = (agent: keyof typeof AGENTS) => ({ 'X-MCP-API-Key': `key-of-${agent}` });
/** In outages axe, which is slow, judges each scheme and each width once. */
const LOOKS = [
  { colorScheme: 'light', width: 1280, inOutages: true },
  { colorScheme: 'dark', width: 1280, inOutages: false },
  { colorScheme: 'dark', width: 390, inOutages: true },
  { colorScheme: 'light', width: 390, inOutages: false },
] as const;
const PLACES =
  'overview approvals changes live audit policy explain work health agent?name=writer nowhere'.split(' ');

const folder = makeFolder('pages');
const clock = join(folder, 'clock');
let redis: RedisServer;
let database: Database;
let service: Service;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let other: Page;
const waiting: Promise<unknown>[] = [];

beforeAll(async () => {
  [redis, database, browser] = await Promise.all([startRedis(), startDatabase(POSTS_SEED), openBrowser()]);
  service = await startService({
    config: {
      server: { stateKey: 'a key of thirty-two characters, or more' },
      redis: { url: redis.url },
      database: { uri: database.uri, name: 'parley' },
      agents: AGENTS,
      auth: Object.keys(AGENTS).map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
      policy: { ...POSTS_POLICY, requireApprovalFor: ['admin'] },
      approvals: { mode: 'desk', approvers: ['operator'], expiry: 600 },
      console: { operators: ['operator'] },
      changes: { record: 'all' },
      audit: { sinks: [{ kind: 'file', path: join(folder, 'audit.jsonl') }] },
    },
    env: {
      PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true',
      PARSE_AGENT_ALLOW_RAW_CRUD: 'true',
      NODE_OPTIONS: `--import=${new URL('../../support/shifted-clock.mjs', import.meta.url).href}`,
      CLOCK_FILE: clock,
    },
  });
  context = await browser.newContext({ reducedMotion: 'reduce' });
  [page, other] = await Promise.all([context.newPage(), context.newPage()]);
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await service?.stop();
  await Promise.all([database?.stop(), redis?.stop(), ...waiting]);
});

/** What is for programs, in the text of the page. */
const RAW = `document.body.innerText.match(/__redacted|\\bundefined\\b|\\bNaN\\b|\\[object /g) ?? []`;

/** What axe finds wrong with the page. */
async function findViolations(page: Page): Promise<string[]> {
  if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(AXE);
  const { violations } = await page.evaluate<AxeResults>('axe.run({ resultTypes: ["violations"] })');
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

/** Judges what the page shows now, in both colour schemes and on a phone. */
async function judge(page: Page, state: string, isOutage = false): Promise<object[]> {
  const faults: object[] = [];
  for (const { colorScheme, width, inOutages } of LOOKS) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 844 });
    const wrong = inOutages || !isOutage ? await findViolations(page) : [];
    const pale = await page.evaluate<string[]>(PALE);
    const beyond = await page.evaluate<number>(BEYOND);
    const raw = await page.evaluate<string[]>(RAW);
    const name = `${state}-${colorScheme}-${width}`;
    if (wrong.length + pale.length + raw.length + beyond > 0) faults.push({ name, wrong, pale, raw, beyond });
    const pictures = process.env['SCREENSHOTS'];
    if (pictures)
      await page.screenshot({ path: `${pictures}/${name.replace(/[?=]/g, '-')}.png`, fullPage: true });
  }
  await page.setViewportSize({ width: 1280, height: 844 });
  return faults;
}

async function open(place: string, page: Page): Promise<void> {
  await page.goto(`${service.origin}/console#/${place}`);
  await page.locator('main h1').waitFor();
  await expect.poll(() => page.getByText('Loading…').count(), PATIENT).toBe(0);
}

/** Judges every place, on two pages beside each other. */
async function judgeAll(state: string, isOutage = false): Promise<object[]> {
  const faults: object[] = [];
  const places = [...PLACES];
  const walk = async (on: Page) => {
    for (let place = places.shift(); place !== undefined; place = places.shift()) {
      await open(place, on);
      faults.push(...(await judge(on, `${state}-${place}`, isOutage)));
    }
  };
  await Promise.all([walk(page), walk(other)]);
  return faults;
}

const write = (agent: keyof typeof AGENTS, tool: string, args: object) =>
  callTool(service, tool, { class_name: 'Post', ...args }, as(agent));

describe('every page of the console has no violation that axe finds, is in view and can be read', () => {
  it('before anybody has signed in', async () => {
    await page.goto(`${service.origin}/console`);
    await page.getByLabel('API key or access token').fill('wrong');
    expect(await judge(page, 'sign-in')).toEqual([]);
    // A page that axe cannot judge would pass.
    await page.evaluate('document.querySelector("main").append(document.createElement("button"))');
    expect(await findViolations(page)).toEqual(['button-name: <button></button>']);
    await page.evaluate('document.querySelector("main > button").remove()');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor();
    expect(await judge(page, 'sign-in-refused')).toEqual([]);
    await page.getByLabel('API key or access token').fill('key-of-operator');
    await page.keyboard.press('Enter');
    await page.getByRole('navigation').waitFor();
  });

  it('before anything has happened', { timeout: 180_000 }, async () => {
    expect(await judgeAll('empty')).toEqual([]);
  });

  it('with calls, refusals, waiting approvals and change sets', { timeout: 240_000 }, async () => {
    for (let at = 0; at < 3; at += 1) {
      await write('writer', 'query_class', { limit: 2 });
      await write('writer', 'query_class', { class_name: 'Contract' });
      await write('writer', 'update_object', { object_id: `p0${at}`, fields: { title: `New ${at}` } });
      await write(PROPOSER, 'update_object', { object_id: `p1${at}`, fields: { title: `Better ${at}` } });
    }
    await write(PROPOSER, 'delete_object', { object_id: 'p20' });
    const asked = { title: 'Better titles', reason: 'A customer asked' };
    waiting.push(callTool(service, 'submit_changes', asked, as(PROPOSER)));
    waiting.push(write('writer', 'delete_object', { object_id: 'p21' }));
    await open('approvals', page);
    await page.getByRole('heading', { name: 'Waiting (2)' }).waitFor(PATIENT);
    expect(await judgeAll('full')).toEqual([]);
    await open('live', page);
    await page.getByText('class · hidden_class').first().waitFor();
    const CUT = `[...document.querySelectorAll('.reason > span')]
      .filter((one) => one.textContent === 'class · hidden_class' && one.scrollWidth > one.clientWidth).length`;
    expect(await page.evaluate<number>(CUT)).toBe(0);
    await open('changes?state=waiting', page);
    await page.getByRole('link', { name: 'Better titles' }).click();
    await page.getByRole('button', { name: /^Approve/ }).waitFor();
    expect(await judge(page, 'a-change-set')).toEqual([]);
    await open('audit', page);
    await page.locator('.record button').first().click();
    expect(await judge(page, 'an-opened-record')).toEqual([]);
    await open('explain?agent=writer&tool=query_class', page);
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByRole('region', { name: 'Explanation' }).waitFor();
    expect(await judge(page, 'an-explanation')).toEqual([]);
    await page.getByRole('heading', { level: 1 }).focus();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    expect(await judge(page, 'the-keys')).toEqual([]);
    await page.keyboard.press('Escape');
  });

  it('while MongoDB does not answer, and none says that there is nothing', { timeout: 240_000 }, async () => {
    await database.stop();
    await open('health', page);
    await page
      .getByText(/^MongoDB does not answer since .*: calls that read/)
      .first()
      .waitFor(PATIENT);
    await page.getByText('What to do: ParleyDependencyDown in the runbook').waitFor(PATIENT);
    // What is cached is answered for half a minute.
    writeFileSync(clock, '0 60000');
    service.signal('SIGUSR2');
    const isSaid = async () => {
      await open('overview', page);
      await open('policy', page);
      return page.getByText('the database does not answer at the moment').count();
    };
    await expect.poll(isSaid, { timeout: 90_000, interval: 500 }).toBeGreaterThan(0);
    expect(await page.getByText('There is no class.').count()).toBe(0);
    await open('changes', page);
    await page.getByText('change sets cannot be reached at the moment').waitFor(PATIENT);
    expect(await page.getByText('No change set').count()).toBe(0);
    expect(await page.getByText('Parse error').count()).toBe(0);
    await open('explain', page);
    const form = page.getByRole('group', { name: 'Arguments' });
    await form.getByText('The database does not answer').waitFor(PATIENT);
    await open('approvals', page);
    await page.getByText('it cannot be read at the moment').first().waitFor(PATIENT);
    expect(await page.getByText('that you may not read').count()).toBe(0);
    expect(await judgeAll('without-mongodb', true)).toEqual([]);
  });

  it('while Redis does not answer either', { timeout: 240_000 }, async () => {
    await redis.stop();
    await page.getByText(/^\d more$/).click(PATIENT);
    await page.getByText('Redis does not answer').first().waitFor(PATIENT);
    expect(await judge(page, 'all-troubles', true)).toEqual([]);
    await open('approvals', page);
    await page.getByText('Shared state cannot be reached').first().waitFor(PATIENT);
    // Said once, and not again by each call that waits and by the decided ones.
    expect(await page.locator('.card').getByRole('alert').count()).toBe(0);
    // How many wait is not known now.
    await page.locator('.card').getByText('may have ended').first().waitFor();
    expect(await page.getByRole('navigation').getByText('waiting').count()).toBe(0);
    expect(await judgeAll('without-redis', true)).toEqual([]);
  });
});

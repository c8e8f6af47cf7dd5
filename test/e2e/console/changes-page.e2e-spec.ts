import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { openBrowser } from '../../support/browser.js';
import { type DatabaseView, viewDatabase } from '../../support/database-dump.js';
import { BEYOND } from '../../support/page-checks.js';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';

const free = { rateLimit: 1_000_000, permissions: 'admin', tenantId: 'acme' };
const HOSTILE = '<img src=x onerror="window.hit=1">';
const as = (agent: string) => ({ 'X-MCP-API-Key': `key-of-${agent}` });

let database: Database;
let view: DatabaseView;
let service: Service;
let browser: Browser;
let page: Page;

beforeAll(async () => {
  [database, browser] = await Promise.all([startDatabase(POSTS_SEED), openBrowser()]);
  view = viewDatabase(database.uri);
  service = await startService({
    config: {
      server: { stateKey: 'a key of thirty-two characters, or more' },
      agents: { helper: free, support: { ...free, writes: 'proposed' }, operator: free },
      auth: ['helper', 'support', 'operator'].map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
      policy: POSTS_POLICY,
      database: { uri: database.uri, name: 'parley' },
      approvals: { mode: 'desk', approvers: ['operator'] },
      console: { operators: ['operator'] },
      changes: { record: 'all' },
    },
    env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
  });
  page = await browser.newPage({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' });
  await page.goto(`${service.origin}/console#/changes`);
  await page.getByLabel('API key or access token').fill('key-of-operator');
  await page.keyboard.press('Enter');
  await page.getByRole('navigation').waitFor();
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await service?.stop();
  await view?.close();
  await database?.stop();
});

const posts = () => view.client.db('parley').collection<{ _id: string; title: string }>('Post');
const titleOf = async (id: string) => (await posts().findOne({ _id: id }))?.title;
const rename = (id: string, title: string, agent: string) =>
  callTool(service, 'update_object', { class_name: 'Post', object_id: id, fields: { title } }, as(agent));
/** The time as the fields of the page take it. */
const local = (moment: number) => {
  const zone = new Date(moment).getTimezoneOffset() * 60_000;
  return new Date(moment - zone).toISOString().slice(0, 19);
};

async function listSets(): Promise<{ readonly sets: readonly unknown[] }> {
  const answer = await fetch(`${service.origin}/console/api/changes`, { headers: as('operator') });
  const { change_sets: sets } = (await answer.json()) as { change_sets: { title?: string }[] };
  return { sets: sets.map(({ title }) => title) };
}

async function open(): Promise<void> {
  await page.goto(`${service.origin}/console#/overview`);
  await page.goto(`${service.origin}/console#/changes`);
  await page.getByRole('heading', { name: 'Changes', level: 1 }).waitFor();
}

describe('the page Changes', () => {
  it('shows a proposed set as one thing, and leads to its decision', async () => {
    await rename('p00', HOSTILE, 'support');
    await rename('p03', 'second', 'support');
    void callTool(
      service,
      'submit_changes',
      { title: 'Two new titles', reason: 'asked for by a customer' },
      as('support'),
    ).catch(() => undefined);
    await expect
      .poll(async () => {
        const { sets } = await listSets();
        return sets;
      })
      .toContain('Two new titles');
    await open();
    await page.getByRole('link', { name: 'Two new titles' }).click();
    const rows = page.getByRole('table', { name: 'Rows, in the order in which they change' });
    await rows.waitFor();
    expect(await rows.getByRole('row').count()).toBe(3);
    expect(await rows.textContent()).toContain(JSON.stringify(HOSTILE));
    expect(await page.evaluate('window.hit')).toBeUndefined();
    expect(await page.getByRole('main').getByRole('link', { name: 'approvals' }).getAttribute('href')).toBe(
      '#/approvals',
    );
    await page.getByRole('button', { name: 'Discard' }).click();
    await page.getByText('discarded').first().waitFor();
    expect(await titleOf('p03')).not.toBe('second');
  });

  it('takes back what an agent wrote within a time, after its conflicts were shown', async () => {
    const before = [await titleOf('p00'), await titleOf('p03')];
    const since = Date.now() - 1_000;
    await rename('p00', 'wrong one', 'helper');
    await rename('p03', 'wrong two', 'helper');
    await posts().updateOne({ _id: 'p03' }, { $set: { title: 'mended by hand' } });
    await open();
    await page.getByLabel('Agent').fill('helper');
    await page.getByLabel('Since').fill(local(since));
    await page.getByLabel('Until').fill(local(Date.now() + 2_000));
    await page.getByRole('button', { name: 'Show what would be taken back' }).click();
    await page.getByText('1 row cannot be taken back').waitFor();
    const takeBack = page.getByRole('button', { name: 'Take back' });
    expect(await takeBack.isDisabled()).toBe(true);
    await page.getByLabel('Leave them out').check();
    await takeBack.click();
    await page.getByText('The changes are taken back').first().waitFor({ state: 'attached' });
    expect([await titleOf('p00'), await titleOf('p03')]).toEqual([before[0], 'mended by hand']);
  });

  it.each([
    [1440, 'light'],
    [1280, 'dark'],
    [390, 'light'],
    [390, 'dark'],
  ] as const)('fits a screen of %i pixels, %s', async (width, colorScheme) => {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 800 });
    await open();
    await page.getByRole('table', { name: 'Change sets, the newest first' }).waitFor();
    expect(await page.evaluate(BEYOND)).toBe(0);
    await page.getByRole('table').getByRole('link').first().click();
    await page.getByRole('heading', { name: 'Change set', level: 1 }).waitFor();
    expect(await page.evaluate(BEYOND)).toBe(0);
  });
});

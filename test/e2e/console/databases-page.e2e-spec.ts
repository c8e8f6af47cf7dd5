import { MongoClient } from 'mongodb';
import type { Browser, Page } from 'playwright-core';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { openBrowser } from '../../support/browser.js';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';

const SOON = { timeout: 30_000 };
const free = { rateLimit: 1_000_000, permissions: 'admin', tenantId: 'acme' };
const as = (agent: string) => ({ 'X-MCP-API-Key': `key-of-${agent}` });

let crm: Database;
let archive: Database;
let service: Service;
let browser: Browser;
let page: Page;

const configuration = (archived = 'archive') => ({
  databases: {
    shop: { uri: 'embedded' },
    crm: { uri: crm.uriOf('crm'), storage: 'plain' },
    archive: { uri: archive.uriOf('old'), storage: 'plain', readOnly: true, required: false },
    app: { uri: crm.uri, storage: 'plain', name: 't_{tenant}' },
  },
  agents: { helper: free, operator: free },
  auth: ['helper', 'operator'].map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
  console: { operators: ['operator'] },
  policy: {
    classes: {
      Customer: { database: 'crm', collection: 'customers', masks: { email: 'mask' } },
      Bill: { database: archived, collection: 'bills', properties: { total: { type: 'Number' } } },
      Ticket: { database: 'app', collection: 'tickets' },
    },
  },
});

beforeAll(async () => {
  [crm, archive, browser] = await Promise.all([startDatabase({}), startDatabase({}), openBrowser()]);
  const client = new MongoClient(crm.uriOf('crm'));
  await client.db().collection('customers').insertOne({ name: 'Ada', email: 'ada@example.com' });
  await client.db('t_acme').collection('tickets').insertOne({ text: 'of acme' });
  await client.db().collection('bills').insertOne({ total: 1 });
  await client.close();
  const old = new MongoClient(archive.uriOf('old'));
  await old.db().collection('bills').insertOne({ total: 2 });
  await old.close();
  service = await startService({ config: configuration() });
  page = await browser.newPage({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' });
  await page.goto(`${service.origin}/console#/overview`);
  await page.getByLabel('API key or access token').fill('key-of-operator');
  await page.keyboard.press('Enter');
  await page.getByRole('navigation').waitFor();
}, 120_000);

async function open(place: string, heading: string): Promise<void> {
  await page.goto(`${service.origin}/console#/overview`);
  await page.goto(`${service.origin}/console#/${place}`);
  await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
}

describe('a console over several databases', () => {
  it.each([
    ['Customer', 'crm'],
    ['Bill', 'archive'],
    ['Ticket', 'app'],
  ])('says on the page Policy which database holds the class %s: %s', async (name, database) => {
    await open('policy', 'Policy');
    const rules = page.locator('.class').filter({ has: page.getByText(name, { exact: true }) });
    await rules.locator('summary').click();
    expect(await rules.locator('.facts').textContent()).toContain(`database${database}`);
  });

  it('shows what an agent sees of the classes of each', async () => {
    await open('policy', 'Policy');
    const matrix = page.getByRole('region', { name: 'Agents and classes' });
    await matrix.getByRole('link', { name: /^helper and Customer: limited/ }).waitFor();
    expect(await matrix.getByRole('link', { name: /^helper and Ticket: / }).count()).toBe(1);
  });

  it('finds the record of a call by its class, with its database', async () => {
    await callTool(service, 'count_objects', { class_name: 'Customer' }, as('helper'));
    await open('audit?class=Customer', 'Audit');
    await page
      .getByRole('button', { name: /count_objects/ })
      .or(page.getByText('count_objects'))
      .first()
      .click();
    await page.getByText('class_database').first().waitFor(SOON);
    expect(await page.getByRole('main').textContent()).toMatch(/class_database"?:? ?"?crm/);
  });

  it('says what changed where a class moved to another database', async () => {
    service.reconfigure(configuration('crm'));
    service.signal('SIGHUP');
    await vi.waitFor(() => expect(service.output().stderr).toContain('configuration version 2'), SOON);
    await open('policy', 'Policy');
    const changes = page.getByRole('table', { name: 'What changed between the versions' });
    await changes.waitFor(SOON);
    expect(await changes.textContent()).toMatch(/Billdatabase.*archivecrm/);
  });

  it('names each database on the page Health, and the one that is away', async () => {
    await archive.stop();
    await open('health', 'Health');
    const facts = page.locator('.panel', { has: page.getByRole('heading', { name: 'Dependencies' }) });
    await facts.getByText('down', { exact: true }).waitFor(SOON);
    const shown = await facts.textContent();
    for (const state of ['mongodbup', 'mongodb.crmup', 'mongodb.archivedown', 'mongodb.appup'])
      expect(shown).toContain(state);
  });
});

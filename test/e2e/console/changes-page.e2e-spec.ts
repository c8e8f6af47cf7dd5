import type { Browser, Locator, Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { openBrowser } from '../../support/browser.js';
import { type DatabaseView, viewDatabase } from '../../support/database-dump.js';
import { BEYOND, PALE, UNNAMED } from '../../support/page-checks.js';
import { readTo } from '../../support/read-to.js';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';

const free = { rateLimit: 1_000_000, tenantId: 'acme' };
const admin = { ...free, permissions: 'admin' };
const AGENTS = {
  helper: admin,
  support: { ...admin, writes: 'proposed' },
  operator: admin,
  // An operator that reads no likes, and no authors.
  reader: { ...free, permissions: 'readonly', classes: { only: ['Post'] } },
};
const HOSTILE = '<img src=x onerror="window.hit=1">';
const PATIENT = { timeout: 20_000 };
const as = (agent: keyof typeof AGENTS) => ({ 'X-MCP-API-Key': `key-of-${agent}` });
const { Post, ...others } = POSTS_POLICY.classes;
const masks = { likes: { readonly: 'mask', admin: 'none' } };

let database: Database;
let view: DatabaseView;
let service: Service;
let browser: Browser;
let page: Page;

/** A window of a signed-in operator, whose seconds can be let pass at once. */
async function signIn(agent: 'operator' | 'reader'): Promise<Page> {
  const opened = await browser.newPage({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' });
  await opened.clock.install();
  await opened.goto(`${service.origin}/console#/changes`);
  await opened.getByLabel('API key or access token').fill(`key-of-${agent}`);
  await opened.keyboard.press('Enter');
  await opened.getByRole('navigation').waitFor();
  return opened;
}

beforeAll(async () => {
  [database, browser] = await Promise.all([startDatabase(POSTS_SEED), openBrowser()]);
  view = viewDatabase(database.uri);
  service = await startService({
    config: {
      server: { stateKey: 'a key of thirty-two characters, or more' },
      agents: AGENTS,
      auth: Object.keys(AGENTS).map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
      policy: { ...POSTS_POLICY, classes: { ...others, Post: { ...Post, masks } } },
      database: { uri: database.uri, name: 'parley' },
      approvals: { mode: 'desk', approvers: ['operator', 'reader'] },
      console: { operators: ['operator', 'reader'] },
      changes: { record: 'all' },
    },
    env: {
      PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true',
      PARSE_AGENT_ALLOW_RAW_CRUD: 'true',
      PARSE_AGENT_ALLOW_SCHEMA_OPS: 'true',
    },
  });
  page = await signIn('operator');
}, 120_000);

const posts = () => view.client.db('parley').collection<{ _id: string; title: string }>('Post');
const titleOf = async (id: string) => (await posts().findOne({ _id: id }))?.title;
const write = (tool: string, args: object, agent: keyof typeof AGENTS) =>
  callTool(service, tool, { class_name: 'Post', ...args }, as(agent));
const rename = (id: string, title: string, agent: keyof typeof AGENTS) =>
  write('update_object', { object_id: id, fields: { title } }, agent);
/** The time as the fields of the page take it. */
const local = (moment: number) => {
  const zone = new Date(moment).getTimezoneOffset() * 60_000;
  return new Date(moment - zone).toISOString().slice(0, 19);
};

/** Submits what the agent proposed. @returns the id of the set, once it waits for a decision, and the answer to come */
async function submit(title: string) {
  const submitted = callTool(
    service,
    'submit_changes',
    { title, reason: 'asked for by a customer' },
    as('support'),
  );
  const find = async () => {
    const answer = await fetch(`${service.origin}/console/api/changes?state=submitted`, {
      headers: as('operator'),
    });
    const { change_sets: sets } = (await answer.json()) as {
      change_sets: { title?: string; change_set: string }[];
    };
    return sets.find((set) => set.title === title)?.change_set;
  };
  await expect.poll(find, PATIENT).toBeDefined();
  return { id: (await find()) ?? '', submitted };
}

async function open(filters = '', on = page): Promise<void> {
  await on.goto(`${service.origin}/console#/overview`);
  await on.goto(`${service.origin}/console#/changes${filters}`);
  await on.getByRole('heading', { name: /^Change/, level: 1 }).waitFor();
  await expect.poll(() => on.getByText('Loading…').count(), PATIENT).toBe(0);
}

const listed = () => page.getByRole('table', { name: 'Change sets, the newest first' });
const rowsOf = (name: string, on = page) =>
  on.getByRole('table', { name: `Rows of ${name}, before and after` });
const button = (name: RegExp, on = page) => on.getByRole('button', { name });
const isBefore = (one: Locator, other: Locator) =>
  Promise.all([one.boundingBox(), other.boundingBox()]).then(
    ([above, below]) => (above?.y ?? Infinity) + (above?.height ?? 0) <= (below?.y ?? 0),
  );

describe('a change set', () => {
  it('is decided as one thing, once the last of its rows was in view', async () => {
    for (let at = 10; at < 34; at += 1)
      await rename(`p${at}`, at === 10 ? HOSTILE : `Better ${at}`, 'support');
    await write('delete_object', { object_id: 'p40' }, 'support');
    await write('create_object', { class_name: 'Author', fields: { name: 'Cy' } }, 'support');
    const { submitted } = await submit('A better May');
    await open('?state=waiting');
    const row = listed().getByRole('row', { name: /A better May/ });
    expect(await row.textContent()).toContain('26 rows: 1 created, 24 changed, 1 deleted');
    await row.getByRole('link', { name: 'A better May' }).click();
    await rowsOf('Post').waitFor();
    // By class, before and after beside each other.
    await page.getByRole('heading', { name: 'Post 25 rows: 24 changed, 1 deleted' }).waitFor();
    await page.getByRole('heading', { name: 'Author 1 row created' }).waitFor();
    const changed = rowsOf('Post').getByRole('row', { name: /Better 11/ });
    expect(await changed.getByRole('cell').allTextContents()).toEqual(['title', 'Post 11', 'Better 11']);
    expect(await rowsOf('Post').textContent()).toContain(HOSTILE);
    expect(await page.evaluate('window.hit')).toBeUndefined();
    const approve = button(/^Approve/);
    await page.clock.runFor(3_000);
    expect(await approve.getAttribute('aria-disabled')).toBe('true');
    await readTo(approve);
    await approve.click();
    // What is deleted takes a second press.
    await page.getByText('This deletes 1 row.').waitFor();
    const all = button(/^Apply all of it, and delete 1 row/);
    await readTo(all);
    await all.click();
    await page.getByText('submit_changes was approved for support').first().waitFor();
    expect((await submitted).isError).toBe(false);
    expect([await titleOf('p33'), await titleOf('p40')]).toEqual(['Better 33', undefined]);
    // Without another request of the operator.
    await page.clock.runFor(2_000);
    await page.getByText('applied', { exact: true }).waitFor();
    expect(await button(/^Discard/).count()).toBe(0);
    // The record of each step leads to it.
    await page.goto(`${service.origin}/console#/audit?type=change_set`);
    await page.locator('.record button').first().click();
    await page.getByRole('link', { name: 'Its change set' }).click();
    await page.getByRole('heading', { name: 'Change set', level: 1 }).waitFor();
  });

  it('is denied in one word, on the page and in its state', async () => {
    await rename('p01', 'Not this', 'support');
    const { id, submitted } = await submit('Not this one');
    await open(`?set=${id}`);
    const deny = button(/^Deny/);
    await readTo(deny);
    await deny.click();
    await page.getByText('submit_changes was denied for support').first().waitFor();
    expect((await submitted).text).toContain('operation denied by approver');
    await open('?state=denied');
    await listed()
      .getByRole('row', { name: /Not this one/ })
      .getByText('denied', { exact: true })
      .waitFor();
    expect(await titleOf('p01')).toBe('Post 1');
  });

  it('marks what a mask, or a class, hides from who looks', async () => {
    await write('update_object', { object_id: 'p02', fields: { title: 'Seen', likes: 77 } }, 'support');
    await write(
      'update_object',
      { class_name: 'Author', object_id: 'a1', fields: { bio: 'Unseen' } },
      'support',
    );
    const { id, submitted } = await submit('Partly hidden');
    const other = await signIn('reader');
    await open(`?set=${id}`, other);
    const cells = rowsOf('Post', other)
      .getByRole('row', { name: /^likes/ })
      .getByRole('cell');
    expect(await cells.allTextContents()).toEqual(['likes', 'hidden', 'hidden']);
    await other.getByRole('heading', { name: 'Hidden from you 1 row changed' }).waitFor();
    expect(await other.getByRole('main').textContent()).not.toMatch(/Author|Unseen|77/);
    // A filter tells no class of a row that is hidden.
    await open('?class=Author', other);
    await other.getByText('No change set matches.').waitFor();
    await open('?class=Author');
    await listed()
      .getByRole('row', { name: /Partly hidden/ })
      .waitFor();
    await other.close();
    await open(`?set=${id}`);
    await button(/^Discard/).click();
    await page.getByText('discarded', { exact: true }).waitFor();
    expect((await submitted).text).toContain('the change set was discarded');
    expect(await titleOf('p02')).toBe('Post 2');
  });
});

describe('the list of change sets', () => {
  it('is narrowed by agent, class, state and time, in the address', async () => {
    await rename('p50', 'Direct', 'helper');
    await open();
    await page.getByText('of the tenant acme').waitFor();
    await page.getByLabel('Agent', { exact: true }).fill('helper');
    await page.keyboard.press('Tab');
    await page.getByLabel('State', { exact: true }).selectOption('applied');
    await page.getByLabel('Class').fill('Post');
    await page.keyboard.press('Tab');
    await expect.poll(() => new URL(page.url()).hash).toBe('#/changes?agent=helper&state=applied&class=Post');
    await expect
      .poll(
        async () => [...new Set(await listed().locator('td[data-label="Agent"]').allTextContents())],
        PATIENT,
      )
      .toEqual(['helper']);
    await page.getByLabel('From').fill(local(Date.now() + 3_600_000).slice(0, 16));
    await page.keyboard.press('Tab');
    await page.getByText('No change set matches.').waitFor();
    await page.getByRole('link', { name: 'Show all of them' }).click();
    await listed()
      .getByRole('row', { name: /support/ })
      .first()
      .waitFor();
  });
});

describe('taking back', () => {
  it('shows its conflicts first, and takes back what an agent wrote within a time', async () => {
    const since = Date.now() - 1_000;
    const before = await titleOf('p04');
    await rename('p04', 'wrong one', 'helper');
    await rename('p05', 'wrong two', 'helper');
    await posts().updateOne({ _id: 'p05' }, { $set: { title: 'mended by hand' } });
    await open();
    expect(await page.getByLabel('Agent that wrote').isVisible()).toBe(false);
    await open('?agent=helper');
    expect(await page.getByLabel('Agent that wrote').inputValue()).toBe('helper');
    await page.getByLabel('Since').fill(local(since));
    await page.getByRole('button', { name: 'Show what would be taken back' }).click();
    await page.getByText('1 row cannot be taken back').waitFor();
    const conflicts = page.getByRole('table', { name: 'Rows that cannot be taken back' });
    expect(await conflicts.getByRole('row').nth(1).textContent()).toContain(
      'somebody has changed this row since',
    );
    expect(await isBefore(conflicts, rowsOf('Post'))).toBe(true);
    await page.getByText(/^Taking back \d+ change sets?: \d rows? changed$/).waitFor();
    const takeBack = page.getByRole('button', { name: 'Take back' });
    expect(await takeBack.isDisabled()).toBe(true);
    await page.getByLabel('Leave them out').check();
    await takeBack.click();
    await page.getByText(/^The changes are taken back: \d rows? changed/).waitFor();
    expect([await titleOf('p04'), await titleOf('p05')]).toEqual([before, 'mended by hand']);
    await open('?state=undone');
    await listed().getByText('undone').first().waitFor();
  });
});

describe.each([
  [1440, 'light'],
  [1280, 'dark'],
  [390, 'light'],
  [390, 'dark'],
] as const)('on a screen of %i pixels, %s', (width, colorScheme) => {
  it('everything is named, in view and can be read', async () => {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 844 });
    const check = async (state: string) => {
      for (const wrong of [UNNAMED, PALE]) expect([state, await page.evaluate(wrong)]).toEqual([state, []]);
      expect([state, await page.evaluate<number>(BEYOND)]).toEqual([state, 0]);
      const folder = process.env['SCREENSHOTS'];
      const path = `${folder}/${state}-${colorScheme}-${width}.png`;
      if (folder) await page.screenshot({ path, fullPage: true });
    };
    await rename('p06', `For ${width} ${colorScheme}`, 'support');
    await write(
      'update_object',
      { object_id: 'p07', fields: { tags: ['a', 'b'], body: 'x '.repeat(300) } },
      'support',
    );
    const { id, submitted } = await submit(`Titles for ${width} ${colorScheme}`);
    await open();
    await listed().waitFor();
    await check('changes');
    await open(`?set=${id}`);
    await button(/^Approve/).waitFor();
    await check('changes-waiting');
    const deny = button(/^Deny/);
    await readTo(deny);
    await deny.click();
    await submitted;
    await page.getByText('was denied for support').first().waitFor();
    await check('changes-denied');
    await open('?agent=nobody');
    await page.getByText('No change set matches.').waitFor();
    await check('changes-none');
    await rename('p08', `Wrong ${width} ${colorScheme}`, 'helper');
    await posts().updateOne({ _id: 'p08' }, { $set: { title: 'by hand' } });
    await open('?agent=helper&state=applied');
    await listed().getByRole('link').first().click();
    await button(/^Show what would be taken back/).click();
    await page.getByText('1 row cannot be taken back').waitFor();
    await check('changes-conflict');
  }, 60_000);
});

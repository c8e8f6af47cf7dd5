import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openBrowser } from '../../support/browser.js';
import { type DatabaseView, viewDatabase } from '../../support/database-dump.js';
import { decideApproval } from '../../support/decide-approval.js';
import { BEYOND, FOCUSED, PALE, UNNAMED } from '../../support/page-checks.js';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';
import { readTo, ready } from '../../support/read-to.js';

const KEYS = {
  chief: 'key-of-chief-0000',
  deputy: 'key-of-deputy-0000',
  clerk: 'key-of-clerk-0000',
  writer: 'key-of-writer-0000',
};
type AgentName = keyof typeof KEYS;
const as = (agent: AgentName) => ({ 'X-MCP-API-Key': KEYS[agent] });
const PATIENT = { timeout: 15_000 };
const PHONE = { width: 390, height: 844 };
const LOW = { width: 1280, height: 420 };
/** Longer than a text of a preview is shown, and another one each time: what was refused is not asked for again. */
const long = () => `${(asked += 1)} ${'long '.repeat(200)}`;

let database: Database;
let view: DatabaseView;
let service: Service;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let complaints: string[];
let calls: ReturnType<typeof callTool>[];
let asked = 0;

beforeAll(async () => {
  const free = { rateLimit: 1_000_000, tenantId: 'acme' };
  database = await startDatabase(POSTS_SEED);
  view = viewDatabase(database.uri);
  [service, browser] = await Promise.all([
    startService({
      config: {
        agents: {
          chief: { ...free, permissions: 'admin' },
          deputy: { ...free, permissions: 'admin' },
          clerk: { ...free, classes: { only: ['Author'] } },
          writer: { ...free, permissions: 'admin' },
        },
        auth: Object.entries(KEYS).map(([agent, apiKey]) => ({ apiKey, agent, name: `key-named-${agent}` })),
        database: { uri: database.uri, name: 'parley' },
        policy: { ...POSTS_POLICY, unlistedClasses: 'allow', requireApprovalFor: ['write', 'admin'] },
        approvals: { mode: 'desk', approvers: ['chief', 'deputy', 'clerk'], expiry: 600 },
        console: { operators: ['chief', 'deputy', 'clerk'] },
      },
      env: {
        PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true',
        PARSE_AGENT_ALLOW_RAW_CRUD: 'true',
      },
    }),
    openBrowser(),
  ]);
}, 120_000);

const sessions = new Map<AgentName, Awaited<ReturnType<BrowserContext['cookies']>>>();
/** A window of a signed-in operator, at its approvals. */
async function open(agent: AgentName = 'chief', size = { width: 1280, height: 800 }): Promise<Page> {
  const own = agent === 'chief' ? context : await browser.newContext();
  const opened = await own.newPage();
  opened.on('pageerror', (error) => complaints.push(String(error)));
  await opened.setViewportSize(size);
  await opened.emulateMedia({ reducedMotion: 'reduce' });
  const cookies = sessions.get(agent);
  if (cookies) await own.addCookies(cookies);
  // Its seconds can be let pass at once.
  await opened.clock.install();
  await opened.goto(`${service.origin}/console#/approvals`);
  if (!cookies) {
    await opened.getByLabel('API key or access token').fill(KEYS[agent]);
    await opened.keyboard.press('Enter');
  }
  await opened.getByRole('heading', { name: 'Approvals', level: 1 }).waitFor();
  // The line above the page is as high as what it has to say.
  await opened.getByText(/^updated /).waitFor(PATIENT);
  sessions.set(agent, await own.cookies());
  return opened;
}

beforeEach(async () => {
  context = await browser.newContext();
  complaints = [];
  calls = [];
});
afterEach(async () => {
  const decide = (id: string) =>
    decideApproval(`${service.origin}/approvals/${id}`, as('chief'), { decision: 'deny' });
  await Promise.all((await waiting()).map(decide));
  await Promise.all(calls);
  await context.close();
  if (complaints.length > 0) throw new Error(`the page complains: ${complaints.join('; ')}`);
});

async function waiting(): Promise<string[]> {
  const answer = await fetch(`${service.origin}/approvals`, { headers: as('chief') });
  return ((await answer.json()) as { approvals: { id: string }[] }).approvals.map(({ id }) => id);
}

/** Makes calls that wait for an approval, one after another. */
async function ask(...writes: readonly (readonly [tool: string, args: object])[]): Promise<void> {
  for (const [tool, args] of writes) {
    const before = (await waiting()).length;
    calls.push(callTool(service, tool, args, as('writer')));
    await expect.poll(async () => (await waiting()).length, { ...PATIENT, interval: 10 }).toBe(before + 1);
  }
}
const update = (id: string, fields: object = { title: `Title ${(asked += 1)}` }) =>
  ['update_object', { class_name: 'Post', object_id: id, fields }] as const;
const remove = (id: string) => ['delete_object', { class_name: 'Post', object_id: id }] as const;
const fourWrites = () => ask(update('p01'), update('p02'), update('p03'), update('p04'));

const card = (on: Page, id: string) =>
  on.getByRole('listitem').filter({ has: on.getByText(id, { exact: true }) });
const button = (within: Locator, name: string) =>
  within.getByRole('button', { name: new RegExp(`^${name}`) });
const isInert = (one: Locator) => one.getAttribute('aria-disabled');
interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}
const boxOf = async (one: Locator) => (await one.boundingBox()) as Box;
const middleOf = ({ x, y, width, height }: Box) => [x + width / 2, y + height / 2] as const;
const tops = (on: Page) =>
  on.evaluate<number[]>(
    '[...document.querySelectorAll(".card")].map((one) => one.getBoundingClientRect().top)',
  );

describe('two presses at one place', () => {
  it.each([
    [150, { width: 1280, height: 800 }],
    [450, { width: 1280, height: 800 }],
    [150, PHONE],
    [450, PHONE],
    [150, LOW],
  ])('%d ms apart decide one of four writes that wait, in a window of %j', async (pause, size) => {
    await fourWrites();
    page = await open('chief', size);
    const approve = button(card(page, 'p01'), 'Approve');
    await readTo(approve);
    const places = await tops(page);
    const at = middleOf(await boxOf(approve));
    for (let press = 0; press < 3; press += 1) {
      await page.mouse.click(...at);
      await page.waitForTimeout(pause);
    }
    await card(page, 'p01').getByText('was approved').waitFor();
    expect((await waiting()).length).toBe(3);
    // The decided one stays where it is, and so do the others.
    expect(await tops(page)).toEqual(places);
    expect(await button(card(page, 'p01'), 'Approve').count()).toBe(0);
  });

  it.each(['Enter', ' '])('of the key "%s", and one that is held, decide one of four', async (key) => {
    await fourWrites();
    page = await open();
    const approve = button(card(page, 'p02'), 'Approve');
    await approve.focus();
    await ready(approve);
    await page.keyboard.press(key);
    await page.keyboard.press(key);
    await card(page, 'p02').getByText('was approved').waitFor();
    expect(await page.evaluate<string>(FOCUSED)).toContain('was approved');
    expect((await waiting()).length).toBe(3);
    const deny = button(card(page, 'p03'), 'Deny');
    await deny.focus();
    await ready(deny);
    for (let repeats = 0; repeats < 10; repeats += 1) await page.keyboard.down(key);
    await page.keyboard.up(key);
    await card(page, 'p03').getByText('was denied').waitFor();
    expect((await waiting()).length).toBe(2);
  });

  it('of which the first comes with a held key decide nothing', async () => {
    await fourWrites();
    page = await open();
    await page.getByRole('heading', { level: 1 }).focus();
    await page.keyboard.down('Enter');
    const approve = button(card(page, 'p01'), 'Approve');
    await approve.focus();
    await ready(approve);
    for (let repeats = 0; repeats < 5; repeats += 1) await page.keyboard.down('Enter');
    await page.keyboard.up('Enter');
    await page.getByText('As JSON').first().click();
    expect((await waiting()).length).toBe(4);
  });
});

describe('the buttons of a card', () => {
  it('are inert for a second after the card came into view, and after the list moved', async () => {
    await fourWrites();
    page = await open();
    const approve = button(card(page, 'p01'), 'Approve');
    await approve.waitFor();
    await page.clock.pauseAt(Date.now() + 60_000);
    await page.clock.runFor(1_500);
    expect(await isInert(approve)).toBe('false');
    // The list moves, and the layout alone knows it yet.
    await page.evaluate('document.querySelector(".cards").style.marginTop = "80px"');
    await page.mouse.click(...middleOf(await boxOf(approve)));
    await page.clock.runFor(900);
    expect(await isInert(approve)).toBe('true');
    await page.mouse.click(...middleOf(await boxOf(approve)));
    expect((await waiting()).length).toBe(4);
    await page.clock.runFor(300);
    expect(await isInert(approve)).toBe('false');
    await page.mouse.wheel(0, 40);
    await expect.poll(() => page.evaluate('scrollY')).toBe(40);
    await page.clock.runFor(100);
    expect(await isInert(approve)).toBe('true');
    expect(await page.evaluate<string[]>(PALE)).toEqual([]);
    await page.clock.runFor(1_100);
    expect(await isInert(approve)).toBe('false');
    // Whoever comes back to the window has to look first.
    await page.evaluate('window.dispatchEvent(new Event("focus"))');
    await page.mouse.click(...middleOf(await boxOf(approve)));
    expect((await waiting()).length).toBe(4);
  });

  it.each([
    ['a phone', PHONE],
    ['a low window', LOW],
  ])('cover nothing of what would change, on %s', async (_, size) => {
    await ask(update('p01', { title: long(), body: long() }), update('p02'));
    page = await open('chief', size);
    await button(card(page, 'p02'), 'Approve').waitFor();
    const covered = await page.evaluate<
      string[]
    >(`[...document.querySelectorAll('.card td')].filter((cell) => {
      cell.scrollIntoView({ block: 'end' });
      const { left, bottom, width } = cell.getBoundingClientRect();
      return !cell.contains(document.elementFromPoint(left + width / 2, Math.min(bottom, innerHeight) - 3));
    }).map((cell) => cell.textContent)`);
    expect(covered).toEqual([]);
    const clipped = await page.evaluate<
      string[]
    >(`[...document.querySelectorAll('.card .read, .card .read :not(thead, thead *, caption)')]
      .filter((one) => one.checkVisibility() && one.scrollHeight > one.clientHeight + 2)
      .filter((one) => getComputedStyle(one).overflowY !== 'visible').map((one) => one.className)`);
    expect(clipped).toEqual([]);
  });

  it('wait until a card that is taller than the window was scrolled through, and not only to its end', async () => {
    const fields = { title: long(), body: long(), tags: Array.from({ length: 12 }, long) };
    await ask(update('p01', fields));
    page = await open('chief', LOW);
    const approve = button(card(page, 'p01'), 'Approve');
    await approve.waitFor();
    await page.keyboard.press('End');
    await expect.poll(async () => (await boxOf(approve)).y, PATIENT).toBeLessThan(LOW.height);
    await page.clock.runFor(1_500);
    expect(await isInert(approve)).toBe('true');
    await page.getByText('Scroll through the whole change first').waitFor();
    await approve.focus();
    await page.keyboard.press('Enter');
    expect((await waiting()).length).toBe(1);
    await readTo(approve);
    await page.mouse.click(...middleOf(await boxOf(approve)));
    await card(page, 'p01').getByText('was approved').waitFor();
  });

  it.each([
    [1164, 727, 1.1, 'p26'],
    [853, 533, 1.5, 'p27'],
    [731, 460, 1.75, 'p28'],
    [390, 844, 3, 'p29'],
    [320, 256, 4, 'p30'],
  ])(
    'take a press once all was read, in a window of %d by %d pixels that is enlarged %d times',
    async (width, height, deviceScaleFactor, row) => {
      await ask(update('p01', { title: long() }), remove(row));
      page = await open();
      const device = await context.newCDPSession(page);
      await device.send('Emulation.setDeviceMetricsOverride', {
        width,
        height,
        deviceScaleFactor,
        mobile: false,
      });
      for (const [id, name] of [
        ['p01', 'Deny'],
        [row, 'Approve'],
      ] as const) {
        const one = button(card(page, id), name);
        await readTo(one);
        // At the very end of the window, and with a fraction of a pixel beyond it.
        for (const beyond of [-0.3, 0.3]) {
          const { y, height: high } = await boxOf(one);
          await page.evaluate(`scrollBy(0, ${y + high - height + beyond})`);
          await page.clock.runFor(200);
          await ready(one);
        }
        await one.click();
      }
      await card(page, 'p01').getByText('was denied').waitFor();
      const second = page.getByRole('button', { name: `Delete ${row} of Post` });
      await expect.poll(() => isInert(second), PATIENT).toBe('false');
    },
  );

  it('stay where they are while new cards come, which come last', async () => {
    await ask(update('p03'));
    page = await open();
    const approve = button(card(page, 'p03'), 'Approve');
    await ready(approve);
    const before = await boxOf(approve);
    await ask(update('p01'), update('p02'));
    await page.clock.runFor(10_000);
    await page.getByRole('heading', { name: 'Waiting (3)' }).waitFor(PATIENT);
    await button(card(page, 'p02'), 'Approve').waitFor();
    expect(await boxOf(approve)).toEqual(before);
    const ids = await page.locator('.card-head code').allTextContents();
    expect(ids).toEqual(['p03', 'p01', 'p02']);
  });
});

describe('a decided card', () => {
  it('leaves when the operator says so, or leaves', async () => {
    await fourWrites();
    page = await open();
    for (const id of ['p01', 'p02']) {
      const deny = button(card(page, id), 'Deny');
      await deny.scrollIntoViewIfNeeded();
      await ready(deny);
      await deny.click();
      await card(page, id).getByText('was denied').waitFor();
    }
    await page.getByRole('heading', { name: 'Waiting (2)' }).waitFor();
    expect(await page.locator('.card').count()).toBe(4);
    await page.getByRole('heading', { level: 1 }).focus();
    await page.keyboard.press('n');
    expect(await page.evaluate<string>('document.activeElement.querySelector("code").textContent')).toBe(
      'p03',
    );
    await page.getByRole('button', { name: 'Remove 2 decided' }).click();
    expect(await page.locator('.card-head code').allTextContents()).toEqual(['p03', 'p04']);
    const deny = button(card(page, 'p03'), 'Deny');
    await deny.scrollIntoViewIfNeeded();
    await ready(deny);
    await deny.click();
    await card(page, 'p03').getByText('was denied').waitFor();
    await page.getByRole('link', { name: 'Health' }).click();
    await page.getByRole('link', { name: /^Approvals/ }).click();
    await card(page, 'p04').waitFor();
    expect(await page.locator('.card').count()).toBe(1);
  });
});

describe('a second step', () => {
  const overlap = (a: Box, b: Box) =>
    a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

  it.each([
    ['a desktop', { width: 1280, height: 800 }, 'p15'],
    ['a phone', PHONE, 'p16'],
  ])(
    'is asked for before a row is deleted, names it, and is not under the pointer, on %s',
    async (_, size, row) => {
      await ask(remove(row), update('p06'));
      page = await open('chief', size);
      const approve = button(card(page, row), 'Approve');
      await readTo(approve);
      const [before, places] = [await boxOf(approve), await tops(page)];
      for (let press = 0; press < 3; press += 1) await page.mouse.click(...middleOf(before));
      const confirm = page.getByRole('button', { name: `Delete ${row} of Post` });
      await confirm.waitFor();
      await page.getByText(`This deletes the row ${row} of Post.`).waitFor();
      expect((await waiting()).length).toBe(2);
      expect(overlap(await boxOf(confirm), before)).toBe(false);
      expect(await tops(page)).toEqual(places);
      expect(await isInert(confirm)).toBe('true');
      await ready(confirm);
      await page.keyboard.press('Enter');
      await button(card(page, row), 'Back').click();
      await ready(button(card(page, row), 'Approve'));
      expect((await waiting()).length).toBe(2);
      await button(card(page, row), 'Approve').focus();
      for (let repeats = 0; repeats < 10; repeats += 1) await page.keyboard.down('Enter');
      await page.keyboard.up('Enter');
      await ready(confirm);
      expect(await page.evaluate<string>(FOCUSED)).toContain('This deletes');
      expect((await waiting()).length).toBe(2);
      await confirm.click();
      await card(page, row).getByText('was approved').waitFor();
      expect(await tops(page)).toEqual(places);
      await expect
        .poll(() => view.client.db('parley').collection<{ _id: string }>('Post').findOne({ _id: row }))
        .toBeNull();
    },
  );
});

describe('a decision', () => {
  it('is listed with who and why, and a case whose caller left says so', async () => {
    await ask(update('p10'));
    const page = await open();
    const first = card(page, 'p10');
    const deny = button(first, 'Deny');
    await deny.scrollIntoViewIfNeeded();
    await first.getByLabel('Reason').fill('not this week');
    await ready(deny);
    await deny.click();
    const history = page.getByRole('region', { name: 'Decided' });
    const row = history.getByRole('row', { name: /not this week/ });
    await row.getByText('denied', { exact: true }).waitFor(PATIENT);
    expect(await row.textContent()).toMatch(/update_object Post.*writer.*key-named-chief/);
    await history.getByLabel('Decided by').fill('key-named-chief');
    await page.keyboard.press('Enter');
    await expect.poll(() => new URL(page.url()).hash).toContain('approver=key-named-chief');
    await row.getByText('denied', { exact: true }).waitFor(PATIENT);
    await history.getByLabel('Decided by').fill('');
    await page.keyboard.press('Enter');
    await history.getByLabel('Outcome').selectOption('approve');
    await expect.poll(() => row.count()).toBe(0);
    await history.getByLabel('Outcome').selectOption('');

    const leaving = new AbortController();
    const call = { name: 'update_object', arguments: update('p11')[1] };
    const left = fetch(service.url, {
      method: 'POST',
      signal: leaving.signal,
      headers: {
        ...as('writer'),
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: call }),
    }).then(
      (answer) => answer.text().catch(() => 'left'),
      () => 'left',
    );
    await expect.poll(async () => (await waiting()).length, PATIENT).toBe(1);
    leaving.abort();
    expect(await left).toBe('left');
    await expect
      .poll(async () => {
        await page.clock.runFor(5_000);
        return card(page, 'p11').getByText('caller left').isVisible();
      }, PATIENT)
      .toBe(true);
    await history
      .getByRole('row', { name: /aborted/ })
      .getByText('caller left')
      .waitFor(PATIENT);
  });

  it('on what is no longer so is refused, shown again, and only then taken', async () => {
    await ask(update('p07'));
    page = await open();
    const approve = button(card(page, 'p07'), 'Approve');
    await ready(approve);
    const rows = view.client.db('parley').collection<{ _id: string }>('Post');
    await rows.updateOne({ _id: 'p07' }, { $set: { title: 'Meanwhile', _updated_at: new Date() } });
    await approve.click();
    await card(page, 'p07').getByText('has changed since it was shown').waitFor();
    expect((await waiting()).length).toBe(1);
    await button(card(page, 'p07'), 'Show it again').click();
    await card(page, 'p07').getByText('not as the caller found it').waitFor();
    await card(page, 'p07').getByRole('cell', { name: 'Meanwhile' }).waitFor();
    await ready(button(card(page, 'p07'), 'Deny'));
    await button(card(page, 'p07'), 'Deny').click();
    await card(page, 'p07').getByText('was denied').waitFor();
    expect((await calls[0])?.isError).toBe(true);
    expect(await rows.findOne({ _id: 'p07' })).toMatchObject({ title: 'Meanwhile' });
  });

  it('of one of two reviewers is final, and the card of the other one stays and says so', async () => {
    await ask(update('p08'), update('p09'));
    page = await open('chief');
    const other = await open('deputy');
    for (const id of ['p08', 'p09'])
      for (const on of [page, other]) await button(card(on, id), 'Approve').waitFor();
    for (const on of [page, other]) await ready(button(card(on, 'p08'), 'Approve'));
    const places = await tops(other);
    await button(card(page, 'p08'), 'Approve').click();
    await card(page, 'p08').getByText('was approved').waitFor();
    await button(card(other, 'p08'), 'Deny').click();
    await card(other, 'p08').getByText('this approval has been decided').waitFor();
    expect((await calls[0])?.isError).toBe(false);
    await ready(button(card(page, 'p09'), 'Deny'));
    await button(card(page, 'p09'), 'Deny').click();
    await other.clock.runFor(10_000);
    await card(other, 'p09').getByText('no longer waits').waitFor(PATIENT);
    expect(await button(card(other, 'p09'), 'Approve').count()).toBe(0);
    expect(await tops(other)).toEqual(places);
    await other.context().close();
  });

  it('that approves is not offered to whom the change cannot be shown', async () => {
    await ask(update('p10'));
    page = await open('clerk');
    const one = page.getByRole('listitem').filter({ hasText: 'update_object' });
    await ready(button(one, 'Approve'));
    await button(one, 'Approve').click();
    await one.getByText('The change is not shown').waitFor();
    await ready(button(one, 'Run update_object'));
    await button(one, 'Run update_object').click();
    await one.getByText('another approver has to approve it').waitFor();
    expect((await waiting()).length).toBe(1);
    await page.context().close();
  });
});

describe('the page of approvals', () => {
  it.each([
    ['light', { width: 1280, height: 800 }, 'p21'],
    ['dark', { width: 1280, height: 800 }, 'p22'],
    ['light', PHONE, 'p24'],
    ['dark', PHONE, 'p25'],
  ] as const)('names everything, shows all of it and can be read: %s, %j', async (colorScheme, size, row) => {
    await ask(update('p01'), update('p02', { body: long() }), remove(row), update('p04'));
    page = await open('chief', size);
    await page.emulateMedia({ colorScheme });
    const check = async (state: string) => {
      for (const wrong of [UNNAMED, PALE]) expect([state, await page.evaluate(wrong)]).toEqual([state, []]);
      expect([state, await page.evaluate<number>(BEYOND)]).toEqual([state, 0]);
      const folder = process.env['SCREENSHOTS'];
      if (folder) await page.screenshot({ path: `${folder}/${state}-${colorScheme}-${size.width}.png` });
    };
    const approve = button(card(page, 'p01'), 'Approve');
    await approve.waitFor();
    await check('inert');
    await readTo(approve);
    await check('ready');
    await approve.click();
    await card(page, 'p01').getByText('was approved').waitFor();
    await check('decided');
    const remover = button(card(page, row), 'Approve');
    await readTo(remover);
    await remover.click();
    await page.getByRole('button', { name: `Delete ${row} of Post` }).waitFor();
    await check('second');
    await ready(page.getByRole('button', { name: `Delete ${row} of Post` }));
    await check('second-ready');
  });
});

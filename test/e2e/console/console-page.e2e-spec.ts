import { readFile } from 'node:fs/promises';
import type { Browser, BrowserContext, Locator, Page, Route } from 'playwright-core';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openBrowser } from '../../support/browser.js';
import { decideApproval } from '../../support/decide-approval.js';
import { BEYOND, FOCUSED, PALE, UNNAMED } from '../../support/page-checks.js';
import { POSTS_SEED, POSTS_POLICY } from '../../fixtures/posts.fixture.js';
import { callTool, type Service, startService } from '../../support/service.js';

const KEYS = {
  chief: 'key-of-chief-0000',
  watcher: 'key-of-watcher-0000',
  writer: 'key-of-writer-0000',
  looping: 'key-of-looping-0000',
};
const as = (agent: keyof typeof KEYS) => ({ 'X-MCP-API-Key': KEYS[agent] });
/** What a stranger would write where it is shown. */
const HOSTILE = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>\u202egnp.x';
const SHOWN = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>\\u202egnp.x';
const TITLES =
  'Overview,Approvals,Changes,Live calls,Audit,Policy,Explain a call,Tasks and exports,Health'.split(',');
const PLACES = ['overview', 'approvals', 'changes', 'live', 'audit', 'policy', 'explain', 'work', 'health'];

let service: Service;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let complaints: string[];

beforeAll(async () => {
  const free = { rateLimit: 1_000_000 };
  [service, browser] = await Promise.all([
    startService({
      config: {
        agents: {
          chief: { ...free, permissions: 'admin', tenantId: 'acme' },
          // An operator that decides no approvals.
          watcher: { ...free, permissions: 'readonly', tenantId: 'acme' },
          writer: { ...free, permissions: 'write', tenantId: 'acme' },
          looping: { rateLimit: 2, permissions: 'readonly', tenantId: 'acme' },
        },
        auth: Object.entries(KEYS).map(([agent, apiKey]) => ({ apiKey, agent })),
        policy: { ...POSTS_POLICY, requireApprovalFor: ['write', 'admin'] },
        approvals: { mode: 'desk', approvers: ['chief'] },
        console: {
          operators: ['chief', 'watcher'],
          oidc: {
            issuer: 'http://127.0.0.1:9',
            clientId: 'console',
            redirectUri: 'https://parley.example/console/session/oidc/callback',
            operators: [{ claim: 'groups', equals: 'operators', agent: 'chief' }],
          },
        },
      },
      seed: POSTS_SEED,
      env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
    }),
    openBrowser(),
  ]);
}, 120_000);

beforeEach(async () => {
  context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' });
  page = await context.newPage();
  complaints = [];
  await page.addInitScript(
    'window.violations = []; addEventListener("securitypolicyviolation", (one) => violations.push(one.violatedDirective))',
  );
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('dialog', (dialog) => complaints.push(dialog.message()));
  // That nobody is signed in yet is asked, and answered with 401.
  page.on('console', (line) => {
    if (line.type() === 'error' && !line.text().includes('401')) complaints.push(line.text());
  });
});
afterEach(async () => {
  // Neither an error nor anything that the content-security policy had to stop.
  if ((await page.evaluate('window.hit')) !== undefined) complaints.push('a script of a stranger ran');
  complaints.push(...(await page.evaluate<string[]>('window.violations')));
  await context.close();
  if (complaints.length > 0) throw new Error(complaints.join('\n'));
});

const at = (place: string) => `${service.origin}/console#/${place}`;
const focused = () => page.evaluate<string>('document.activeElement.textContent.trim()');
const named = () => page.evaluate<string>(FOCUSED);

async function signIn(place: string, agent: keyof typeof KEYS = 'chief'): Promise<void> {
  await page.goto(at(place));
  await page.getByLabel('API key or access token').fill(KEYS[agent]);
  await page.keyboard.press('Enter');
  await page.getByRole('navigation').waitFor();
}

/** What is said above every page: the worst trouble, and the others once they are opened. */
async function findTrouble(name: RegExp): Promise<Locator> {
  const found = page.getByRole('region', { name: 'State of the service' }).getByRole('link', { name });
  const isShown = async () => {
    if (await found.isVisible()) return true;
    await page
      .getByText(/^\d+ more$/)
      .click({ timeout: 1_000 })
      .catch(() => undefined);
    return found.isVisible();
  };
  await expect.poll(isShown, { timeout: 20_000 }).toBe(true);
  return found;
}

/** Cookies of one session for each operator: one address may sign in 20 times a minute. */
const sessions = new Map<keyof typeof KEYS, Awaited<ReturnType<BrowserContext['cookies']>>>();

/** Opens a page of the console as a signed-in operator. */
async function open(place = 'live', agent: keyof typeof KEYS = 'chief'): Promise<void> {
  const cookies = sessions.get(agent);
  if (cookies === undefined) {
    await signIn(place, agent);
    sessions.set(agent, await context.cookies());
    return;
  }
  await context.addCookies(cookies);
  await page.goto(at(place));
  await page.getByRole('navigation').waitFor();
}

describe('signing in', () => {
  it('takes a credential once and leaves it nowhere', async () => {
    await page.goto(at('live'));
    await page.getByLabel('API key or access token').fill('wrong');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('This credential is not known.').waitFor();
    expect(await page.getByRole('navigation').count()).toBe(0);
    await page.getByLabel('API key or access token').fill(KEYS.chief);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Live calls', level: 1 }).waitFor();
    const kept = await page.evaluate<string[]>(
      '[location.href, document.cookie, JSON.stringify({ ...localStorage }), JSON.stringify({ ...sessionStorage }), ' +
        'document.documentElement.outerHTML]',
    );
    for (const text of kept) expect(text).not.toContain(KEYS.chief);
    expect(kept[1]).toBe('');
    const [cookie] = await context.cookies();
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/console' });
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByText('You are signed out.').waitFor();
    expect(await context.cookies()).toEqual([]);
  });

  it('is asked for again when the session is over', async () => {
    await signIn('audit');
    await context.clearCookies();
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await page.locator('.record').count()).toBe(0);
  });

  it('links to the sign-out of the issuer, also of one on this machine', async () => {
    await signIn('audit');
    const issuerSignOut = 'http://127.0.0.1:9/session/end?client_id=console';
    await page.route('**/console/session', async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { signed_in: false, issuer_sign_out: issuerSignOut } });
    });
    await page.getByRole('button', { name: 'Sign out' }).click();
    const link = page.getByRole('link', { name: 'Sign out at the issuer too' });
    await link.waitFor();
    expect(await link.getAttribute('href')).toBe(issuerSignOut);
  });

  it('offers the issuer, and says in words why its sign-in failed', async () => {
    await page.goto(at('audit'));
    await page.getByRole('link', { name: 'Sign in with 127.0.0.1:9' }).click();
    // The service has another address than the one that is registered at the issuer.
    await page.getByRole('alert').getByText('Open the console under the host name').waitFor();
    expect(new URL(page.url()).search).toBe('');
    // Where one wanted to go is not forgotten on the way.
    expect(new URL(page.url()).hash).toBe('#/audit');
    await page.goto(`${service.origin}/console?sign_in=<b>`);
    await page.getByRole('alert').getByText('The sign-in failed.').waitFor();
    expect(await page.locator('main b').count()).toBe(0);
    // No code is a name that every object has.
    for (const code of ['__proto__', 'constructor', 'toString']) {
      await page.goto(`${service.origin}/console?sign_in=${code}`);
      await page.getByRole('alert').getByText('The sign-in failed.', { exact: true }).waitFor();
    }
  });
});

describe('the pages of one browser', () => {
  it('show the operator who signed in last, and the sign-in once one of them signed out', async () => {
    await signIn('overview');
    const other = await context.newPage();
    await other.goto(at('approvals'));
    await other.getByText('Nothing waits for a decision').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await other.getByRole('heading', { name: 'Sign in' }).waitFor();
    await page.getByLabel('API key or access token').fill(KEYS.watcher);
    await page.keyboard.press('Enter');
    await other.getByText('An operator decides approvals only if').waitFor();
    expect(await other.locator('.who .name').textContent()).toContain('watcher');
  });

  it('ask once while the service does not answer, and again once it has', async () => {
    await page.clock.install();
    await open('live');
    const held: Route[] = [];
    await page.route(/\/api\/tasks\?/, (route) => void held.push(route));
    await page.goto(at('work'));
    await expect.poll(() => held.length).toBe(1);
    await page.clock.runFor(25_000);
    // Requests arrive in their order: whatever was sent before this one is among them.
    await page.evaluate('fetch("/console/session/methods").then(({ status }) => status)');
    expect(held).toHaveLength(1);
    await held[0]?.continue();
    await page.getByText('No task is kept.').waitFor();
    await page.clock.runFor(16_000);
    await expect.poll(() => held.length).toBe(2);
  });

  it('stay signed in when a renewal of the session fails for another reason than its end', async () => {
    await page.clock.install();
    await open('live');
    let refusals = 0;
    await page.route(/\/console\/session$/, (route) => {
      refusals += 1;
      return route.fulfill({ status: 503, json: { error: 'shared state cannot be reached at the moment' } });
    });
    await page.clock.runFor(5 * 60_000);
    await page.keyboard.press('Shift');
    await expect.poll(() => refusals).toBe(1);
    await page.getByRole('link', { name: 'Health' }).click();
    await page.getByText('All well').waitFor();
    complaints = complaints.filter((line) => !line.includes('503'));
  });
});

describe('what strangers wrote', () => {
  it('is text among the calls, in the audit and in an explanation', async () => {
    await open();
    await page.getByText('watching').waitFor();
    await callTool(service, HOSTILE, {}, as('writer'));
    const subject = page.locator('.record .subject', { hasText: '<img' }).first();
    expect(await subject.locator('b').textContent()).toBe(SHOWN);
    expect(await page.locator('.records img, .records script').count()).toBe(0);
    await page.goto(at('audit'));
    await page.locator('.record .subject', { hasText: '<img' }).first().waitFor();
    await page.goto(at('explain'));
    await page.getByLabel('Agent').selectOption('writer');
    await page.getByLabel('Tool').selectOption('query_class');
    await page
      .getByLabel('Arguments as JSON')
      .fill(JSON.stringify({ class_name: 'Post', where: { [HOSTILE]: HOSTILE } }));
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByRole('region', { name: 'Explanation' }).waitFor();
    expect(await page.locator('main img, main script').count()).toBe(0);
  });

  it('is text in what is approved, and a decision by keyboard counts', async () => {
    const fields = { title: HOSTILE, body: 'x'.repeat(60_000) };
    const updating = callTool(
      service,
      'update_object',
      { class_name: 'Post', object_id: 'p01', fields },
      as('writer'),
    );
    await open('approvals');
    // What it is about is seen without opening anything, and the buttons with it.
    const card = page.getByRole('listitem', { name: 'update_object on Post for writer' });
    const change = card.getByRole('table', { name: 'What update_object would change' });
    await change.getByRole('row', { name: /^title/ }).waitFor();
    expect(await change.textContent()).toContain('\\u202egnp.x');
    await expect.poll(() => page.title()).toMatch(/^\(1\) Approvals/);
    expect(await page.getByRole('navigation').getByText('1 waiting').count()).toBe(1);
    // An approver can read all that is known of it, to its end.
    await card.getByText('As JSON').click();
    const json = page.getByLabel('What update_object would do, as JSON');
    expect(JSON.parse((await json.textContent()) ?? '')).toHaveProperty('change');
    expect(await page.locator('main img, main script').count()).toBe(0);
    await page.getByRole('heading', { level: 1 }).focus();
    await page.keyboard.press('n');
    for (const wanted of ['As JSON', 'What update_object', 'Reason', 'Approve update_object']) {
      await page.keyboard.press('Tab');
      expect(await named()).toContain(wanted);
      // What is in view for a moment only does not count as read.
      await page.waitForTimeout(500);
    }
    await expect
      .poll(() => card.getByRole('button', { name: /^Approve/ }).getAttribute('aria-disabled'), {
        timeout: 15_000,
      })
      .toBe('false');
    await page.keyboard.press('Enter');
    await card.getByText('update_object was approved').waitFor();
    await page.getByRole('heading', { name: 'Waiting (0)' }).waitFor();
    expect(await focused()).toContain('update_object was approved');
    await expect.poll(() => page.title()).toMatch(/^Approvals/);
    expect((await updating).isError).toBe(false);
  });
});

describe('a desktop notification', () => {
  /** Keeps what the page shows on the desktop, which a test cannot see. */
  const KEPT = `window.shown = []; window.Notification = class extends Notification {
    constructor(title, options) { super(title, options); shown.push([title, options.body]); window.last = this; }
  }`;
  const PATIENT = { timeout: 15_000 };
  const shown = () => page.evaluate<string[][]>('window.shown');
  const update = (tool: string, title: string) =>
    callTool(service, tool, { class_name: 'Post', object_id: 'p03', fields: { title } }, as('writer'));
  const decide = (id: string) =>
    decideApproval(
      `${service.origin}/console/api/approvals/${id}`,
      { ...as('chief'), 'X-Parley-Console': '1' },
      { decision: 'deny' },
    );
  const waiting = async () => {
    const answer = await fetch(`${service.origin}/console/api/approvals`, { headers: as('chief') });
    return ((await answer.json()) as { approvals: { id: string }[] }).approvals.map(({ id }) => id);
  };
  const denyAll = async () => {
    await expect.poll(async () => (await waiting()).length, PATIENT).toBeGreaterThan(0);
    for (const id of await waiting()) await decide(id);
  };

  it('is shown for a call that waits, once somebody asked for it here, and names agent and tool alone', async () => {
    await context.grantPermissions(['notifications'], { origin: service.origin });
    await page.addInitScript(KEPT);
    await page.clock.install();
    await open('approvals');
    // The permission is there already, and nothing is shown before the button was pressed.
    await page.goto(at('live'));
    const first = update('update_object', HOSTILE);
    await expect.poll(waiting, PATIENT).toHaveLength(1);
    await page.clock.runFor(11_000);
    await page.getByRole('navigation').getByText('1 waiting').waitFor();
    expect(await shown()).toEqual([]);
    await denyAll();
    await first;
    await page.goto(at('approvals'));
    await page.getByRole('button', { name: 'Desktop notifications: off' }).click();
    const button = page.getByRole('button', { name: 'Desktop notifications: on' });
    expect(await button.getAttribute('aria-pressed')).toBe('true');
    await page.goto(at('live'));
    await page.reload();
    await page.getByRole('navigation').waitFor();
    await page.clock.runFor(11_000);
    // The same call again would have the same answer, without asking anybody.
    const second = update('update_object', `${HOSTILE} again`);
    await expect.poll(waiting, PATIENT).toHaveLength(1);
    await page.clock.runFor(11_000);
    await expect.poll(shown, PATIENT).toEqual([['Parley: An approval waits', 'update_object for writer']]);
    await page.clock.runFor(11_000);
    expect(await shown()).toHaveLength(1);
    await page.evaluate('window.last.dispatchEvent(new Event("click"))');
    await expect.poll(() => new URL(page.url()).hash).toBe('#/approvals');
    await denyAll();
    await second;
    // Another press turns it off, also for the next time the page is opened.
    await button.click();
    await page.reload();
    await page.getByRole('button', { name: 'Desktop notifications: off' }).waitFor();
    expect(await page.evaluate('Object.keys(localStorage).join()')).not.toContain('notifications');
  });

  it('is not asked for by the page itself, and a browser that refuses is said in words', async () => {
    await page.addInitScript(
      'window.asked = 0; Notification.requestPermission = () => { asked += 1; return Promise.resolve("denied"); }',
    );
    await open('approvals');
    const button = page.getByRole('button', { name: 'Desktop notifications: off' });
    await button.waitFor();
    expect(await page.evaluate('window.asked')).toBe(0);
    await button.click();
    await page.getByText('The browser blocks notifications of this page').waitFor();
    expect(await page.evaluate('window.asked')).toBe(1);
    expect(await button.getAttribute('aria-pressed')).toBe('false');
  });
});

describe('the state of the service', () => {
  it('is above every page, says how old it is, and that nothing is known once the service is silent', async () => {
    await page.clock.install();
    await open('audit');
    const strip = page.getByRole('region', { name: 'State of the service' });
    await strip.getByText('All well').waitFor();
    await page.clock.runFor(3_000);
    expect(await strip.textContent()).toContain('updated');
    await page.route(/\/api\/state$/, (route) => route.abort());
    await page.clock.runFor(20_000);
    await strip.getByText('The state cannot be read: the service does not answer').waitFor();
    await strip.getByText(/^updated \d+ s ago$/).waitFor();
    await page.getByRole('navigation').getByText('1 problem').waitFor();
    complaints = complaints.filter((line) => !line.includes('ERR_FAILED'));
  });

  it('names a configuration that was refused, and leads to why', async () => {
    await open('overview');
    await page.getByText('All well').waitFor();
    const state = { ...(await (await page.request.get(`${service.origin}/console/api/state`)).json()) } as {
      replicas: { policy: object }[];
    };
    const refused = { at: new Date().toISOString(), faults: [`agents: ${HOSTILE}`] };
    const replicas = state.replicas.map((one) => ({
      ...one,
      policy: { ...one.policy, last_refused: refused },
      dependencies: { mongodb: 'down' },
    }));
    await page.route(/\/api\/state$/, (route) => route.fulfill({ json: { ...state, replicas } }));
    await page.reload();
    await page.getByRole('link', { name: /^MongoDB does not answer/ }).waitFor();
    await (await findTrouble(/^A configuration was refused/)).click();
    await page.getByRole('heading', { name: 'Health', level: 1 }).waitFor();
    await page.getByText('the one before it is still served').waitFor();
    expect(await page.locator('main img, main script').count()).toBe(0);
  });
});

describe('the page', () => {
  it('explains as the deciding code answers', async () => {
    await open('explain');
    await page.getByLabel('Agent').selectOption('writer');
    await page.getByLabel('Tool').selectOption('query_class');
    await page.getByLabel('Arguments as JSON').fill('{"class_name":"Contract"}');
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByText('refused', { exact: true }).first().waitFor();
    await page.getByText("Class 'Contract' is not accessible to this agent").waitFor();
    await page.getByLabel('Arguments as JSON').fill('[]');
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByRole('alert').getByText('must be a JSON object').waitFor();
    expect(await page.getByRole('region', { name: 'Explanation' }).count()).toBe(0);
  });

  it('is filtered and held while one looks', async () => {
    await open();
    await page.getByText('watching').waitFor();
    await callTool(service, 'count_objects', { class_name: 'Contract' }, as('writer'));
    const subjects = page.locator('.record .subject b');
    await subjects.filter({ hasText: 'count_objects' }).waitFor();
    await page.keyboard.press('p');
    await callTool(service, 'list_tools', {}, as('writer'));
    await page.getByText('1 held back').waitFor();
    expect(await subjects.allTextContents()).not.toContain('list_tools');
    await page.getByRole('button', { name: 'Continue' }).click();
    await subjects.filter({ hasText: 'list_tools' }).waitFor();
    await page.getByLabel('Verdict').selectOption('refused');
    await expect.poll(() => subjects.allTextContents()).not.toContain('list_tools');
    expect(await subjects.allTextContents()).toContain('count_objects');
    await page.locator('.record', { hasText: 'count_objects' }).getByRole('button').click();
    await page.locator('.details-row dd', { hasText: 'hidden_class' }).waitFor();
  });

  it('begins with the latest calls, and a record opens in order, to be explained', async () => {
    await callTool(service, 'query_class', { class_name: 'Author' }, as('writer'));
    await open();
    const record = page.locator('.record', { hasText: 'query_class' }).first();
    await record.waitFor();
    await record.getByRole('button').click();
    const names = await page.locator('.details-row dt').allTextContents();
    expect(names.slice(0, 3)).toEqual(['at', 'type', 'tool']);
    await page.getByRole('link', { name: 'Explain this call' }).click();
    await page.getByRole('heading', { name: 'Explain a call', level: 1 }).waitFor();
    expect(new URL(page.url()).hash).toBe('#/explain?agent=writer&tool=query_class&class=Author');
  });

  it('shows on return what was recorded while another page was open, and no older call beyond a gap', async () => {
    await open();
    const tools = page.locator('.record .subject b');
    await callTool(service, 'get_schema', { class_name: 'Author' }, as('writer'));
    await tools.filter({ hasText: 'get_schema' }).first().waitFor();
    await page.goto(at('health'));
    await callTool(service, 'distinct', { class_name: 'Post', field: 'status' }, as('writer'));
    await page.goto(at('live'));
    await tools.filter({ hasText: 'distinct' }).first().waitFor();
    expect(await tools.first().textContent()).toBe('distinct');
    expect(await tools.filter({ hasText: 'get_schema' }).count()).toBeGreaterThan(0);
    await page.goto(at('health'));
    for (let call = 0; call < 60; call += 1)
      await callTool(service, 'count_objects', { class_name: 'Post' }, as('writer'));
    await page.goto(at('live'));
    await page.getByText('50 seen').waitFor();
    expect([...new Set(await tools.allTextContents())]).toEqual(['count_objects']);
  });

  it('sorts the records that are shown', async () => {
    for (const tool of ['count_objects', 'query_class'])
      await callTool(service, tool, { class_name: 'Post' }, as('writer'));
    await open('audit');
    const table = page.getByRole('table', { name: 'Records, newest first' });
    const header = table.getByRole('columnheader', { name: 'Took' });
    const times = async () =>
      (await table.locator('.record td[data-label="Took"]').allTextContents())
        .filter((text) => text.endsWith(' ms'))
        .map((text) => Number.parseFloat(text.replaceAll(',', '')));
    for (const order of ['ascending', 'descending']) {
      await header.getByRole('button').click();
      await expect.poll(() => header.getAttribute('aria-sort')).toBe(order);
      const shown = await times();
      expect(shown.length).toBeGreaterThan(1);
      expect(shown).toEqual(
        shown.toSorted((one, other) => (order === 'ascending' ? one - other : other - one)),
      );
    }
  });

  it('says that there is no such page, and leads to one that there is', async () => {
    await open('nowhere');
    await page.getByRole('heading', { name: 'Not found', level: 1 }).waitFor();
    await page.getByRole('link', { name: 'Go to the overview' }).click();
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    expect(new URL(page.url()).hash).toBe('#/overview');
  });

  it('is gone through by keyboard alone', async () => {
    await open();
    expect(await focused()).toBe('Live calls');
    await page.getByRole('link', { name: 'Skip to the content' }).focus();
    const order: string[] = [];
    for (let step = 0; step < 12; step++) {
      await page.keyboard.press('Tab');
      order.push(await named());
    }
    expect(order.join()).toBe(`${TITLES.join()},Colours: system. Change to light,Keys,Sign out`);
    await page.keyboard.press('Escape');
    await page.getByRole('heading', { level: 1 }).focus();
    await page.keyboard.press('5');
    await page.getByRole('heading', { name: 'Audit', level: 1 }).waitFor();
    expect(await page.getByRole('navigation').locator('[aria-current=page]').textContent()).toBe('Audit');
    await page.keyboard.press('/');
    await page.keyboard.type('5?');
    expect(await page.getByLabel('Agent').inputValue()).toBe('5?');
    await page.getByRole('heading', { level: 1 }).focus();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await page.getByLabel('Keys of one letter are on').uncheck();
    await page.keyboard.press('Escape');
    await page.keyboard.press('4');
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Audit');
  });

  it.each([
    ['light', 1280],
    ['dark', 1280],
    ['light', 390],
    ['dark', 320],
  ] as const)('names everything, shows all of it and can be read: %s, %d pixels', async (scheme, width) => {
    await page.emulateMedia({ colorScheme: scheme });
    await open('overview');
    await page.setViewportSize({ width, height: 720 });
    const ground = scheme === 'light' ? 'rgb(244, 246, 246)' : 'rgb(14, 20, 19)';
    expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe(ground);
    for (const place of PLACES) {
      await page.goto(at(place));
      await page.locator(`main.place-${place} h1`).waitFor();
      await expect.poll(() => page.getByText('Loading…').count(), { timeout: 15_000 }).toBe(0);
      expect([place, await page.getByRole('heading', { level: 1 }).count()]).toEqual([place, 1]);
      expect(await page.evaluate<string[]>(UNNAMED)).toEqual([]);
      expect([place, await page.evaluate<number>(BEYOND)]).toEqual([place, 0]);
      expect([place, await page.getByRole('alert').allTextContents()]).toEqual([place, []]);
      expect([place, await page.evaluate<string[]>(PALE)]).toEqual([place, []]);
    }
  });

  it('reaches every place from a menu where the screen is narrow', async () => {
    await open('overview');
    await page.setViewportSize({ width: 390, height: 800 });
    const menu = page.getByRole('button', { name: 'Menu' });
    for (const title of [...TITLES.slice(1), 'Overview']) {
      await menu.click();
      expect(await menu.getAttribute('aria-expanded')).toBe('true');
      await page.getByRole('navigation').getByRole('link', { name: title }).click();
      await page.getByRole('heading', { name: title, level: 1, exact: true }).waitFor();
      await expect.poll(() => menu.getAttribute('aria-expanded')).toBe('false');
    }
  });

  it('keeps its navigation where it is, whatever is shown', async () => {
    await open('overview');
    const boxes = () =>
      page.evaluate(
        'JSON.stringify([...document.querySelectorAll("nav a")].map((one) => one.getBoundingClientRect()))',
      );
    const first = await boxes();
    for (const place of PLACES) {
      await page.goto(at(place));
      await page.locator(`main.place-${place} h1`).waitFor();
      expect([place, await boxes()]).toEqual([place, first]);
    }
  });

  it('has the colours that somebody chose, also after it is opened again', async () => {
    await open('health');
    await page.getByRole('button', { name: 'Colours: system' }).click();
    await page.getByRole('button', { name: 'Colours: light' }).click();
    const ground = () => page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
    expect(await ground()).toBe('rgb(14, 20, 19)');
    await page.reload();
    await page.getByRole('button', { name: 'Colours: dark' }).waitFor();
    expect(await ground()).toBe('rgb(14, 20, 19)');
  });
});

describe('a search of the audit', () => {
  it('is in the address: a link opens it, the back button returns to the one before', async () => {
    await callTool(service, 'count_objects', { class_name: 'Contract' }, as('writer'));
    await callTool(service, 'query_class', { class_name: 'Post', limit: 1 }, as('writer'));
    await open('audit?agent=writer&class=Contract');
    const rows = page.locator('.record');
    const subjects = async () => [...new Set(await rows.locator('.subject b').allTextContents())].sort();
    await rows.first().waitFor();
    expect(await subjects()).not.toContain('update_object');
    expect(await rows.first().locator('.class-name').textContent()).toBe('Contract');
    expect(await page.getByLabel('Class').inputValue()).toBe('Contract');
    await page.getByLabel('Class').fill('Post');
    await page.getByLabel('Tool').fill('query_class');
    await page.keyboard.press('Enter');
    await expect.poll(subjects).toEqual(['query_class']);
    expect(new URL(page.url()).hash).toBe('#/audit?agent=writer&tool=query_class&class=Post');
    await page.goBack();
    await expect.poll(async () => (await subjects()).includes('count_objects')).toBe(true);
    expect(await page.getByLabel('Class').inputValue()).toBe('Contract');
    // A value of a record leads to the records with the same value.
    await rows.filter({ hasText: 'count_objects' }).first().getByRole('button').click();
    await page.getByRole('link', { name: 'Find records with this gate' }).click();
    await expect.poll(() => new URL(page.url()).hash).toBe('#/audit?gate=class');
  });

  it('begins a quarter of an hour ago by one press, keeps its filters, and suggests known names', async () => {
    await open('audit?agent=writer');
    await page.getByRole('button', { name: 'Last 15 minutes' }).click();
    await expect.poll(() => new URL(page.url()).hash).toMatch(/^#\/audit\?agent=writer&from=.*Z$/);
    // What is set is in view, and the other filters do not push the records away.
    await page.getByLabel('From').waitFor();
    expect(await page.getByLabel('Until').isVisible()).toBe(false);
    await expect
      .poll(() =>
        page
          .locator('#known-agent option')
          .evaluateAll((all) => all.map((one) => (one as unknown as { value: string }).value)),
      )
      .toEqual(['chief', 'looping', 'watcher', 'writer']);
  });

  it('is tried again by a button where too many searches run already', async () => {
    await callTool(service, 'count_objects', { class_name: 'Contract' }, as('writer'));
    const refusals = [{ error: 'too many searches run already' }];
    await page.route(/\/api\/audit\?/, async (route) => {
      const json = refusals.pop();
      return json ? route.fulfill({ status: 503, json }) : route.continue();
    });
    await open('audit?agent=writer');
    const said = page.getByRole('alert');
    expect(await said.textContent()).toContain('Too many searches run already: try again in a few seconds');
    await said.getByRole('button', { name: 'Try again' }).click();
    await page.locator('.record').first().waitFor();
    expect(await said.count()).toBe(0);
    complaints = complaints.filter((line) => !line.includes('503'));
  });

  it('says where it looked, and is downloaded as a table', async () => {
    await callTool(service, 'list_tools', {}, { 'X-MCP-API-Key': 'wrong' }).catch(() => undefined);
    await open('audit?type=authentication');
    await page.getByText('from the memory (forgotten at a restart) of this replica').waitFor();
    // A wrong key says from where it came, and why it was refused.
    const refused = page.locator('.record').first();
    expect(await refused.locator('.agent').textContent()).toContain('from 127.0.0.1');
    expect(await refused.locator('.reason').textContent()).toContain('no rule');
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download CSV' }).click(),
    ]);
    expect(download.suggestedFilename()).toMatch(/^parley-audit-.*\.csv$/);
  });
});

describe('the overview', () => {
  it('is shown to an operator that decides no approvals, without their number', async () => {
    await open('overview', 'watcher');
    await page.getByRole('link', { name: /^Tasks open/ }).waitFor();
    expect(await page.getByText('Approvals waiting').count()).toBe(0);
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Overview');
  });

  it('counts calls and refusals, and its charts can be read without seeing them', async () => {
    await callTool(service, 'query_class', { class_name: 'Post', limit: 2 }, as('writer'));
    await callTool(service, 'count_objects', { class_name: 'Contract' }, as('writer'));
    await open('overview');
    await page.getByRole('link', { name: /^Approvals waiting/ }).waitFor();
    const gates = page.getByRole('region', { name: 'Refused or failed by gate' });
    await gates.getByRole('link', { name: 'class', exact: true }).waitFor();
    await page
      .getByRole('region', { name: 'Refused or failed by agent' })
      .getByRole('link', { name: 'writer' })
      .waitFor();
    const calls = page.getByRole('figure', { name: 'Calls' });
    await calls.getByRole('img').focus();
    await page.keyboard.press('ArrowRight');
    await calls.getByRole('status').getByText('refused').waitFor();
    await page.keyboard.press('Escape');
    expect(await calls.getByRole('status').count()).toBe(0);
    await calls.getByText('Table').click();
    expect(await calls.getByRole('table').getByRole('row').count()).toBe(61);
    await page.getByRole('link', { name: 'Week' }).click();
    await expect.poll(() => new URL(page.url()).hash).toBe('#/overview?window=7d');
    await gates.getByRole('link', { name: 'class', exact: true }).click();
    await page.getByRole('heading', { name: 'Audit', level: 1 }).waitFor();
    expect(new URL(page.url()).hash).toMatch(/^#\/audit\?gate=class&from=.*Z&to=.*Z$/);
  });
});

describe('an agent that is refused over its limit', () => {
  it('is named above every page, with its own page; figures are red where the state is', async () => {
    for (let call = 0; call < 9; call += 1)
      await callTool(service, 'query_class', { class_name: 'Post' }, as('looping'));
    await open('overview');
    const state = (await (await page.request.get(`${service.origin}/console/api/state`)).json()) as {
      refusals: { all: object | null };
    };
    const strip = page.getByRole('region', { name: 'State of the service' });
    const said = /^Most of the calls of the agent looping/;
    await findTrouble(said);
    const isRed = (name: RegExp) => page.getByRole('link', { name }).locator('.tile-value.bad').count();
    await page.getByRole('link', { name: /^Refused or failed/ }).waitFor();
    expect(await isRed(/^Refused or failed/)).toBe(state.refusals.all ? 1 : 0);
    expect(await strip.getByText(/^Most of all calls/).count()).toBe(state.refusals.all ? 1 : 0);
    await page.goto(at('agent?name=looping'));
    await page.getByRole('link', { name: /^Refused/ }).waitFor();
    expect(await isRed(/^Refused/)).toBe(1);
    await open('overview');
    await (await findTrouble(said)).click();
    await page.getByRole('heading', { name: 'Agent looping', level: 1 }).waitFor();
    const refusals = page.getByRole('table', { name: 'Latest refusals of looping' });
    await refusals.getByText('rate_limit · rate_limited').first().waitFor();
  });
});

describe('the page of an agent', () => {
  it('says what it may use and has used, by which keys, and what it did, for the time that was chosen', async () => {
    await callTool(service, 'query_class', { class_name: 'Post' }, as('writer'));
    await callTool(service, 'query_class', { class_name: 'Contract' }, as('writer'));
    await open('overview?window=24h');
    const calls = page.getByRole('region', { name: 'Calls by agent' });
    await calls.getByRole('link', { name: /writer/ }).click();
    await page.getByRole('heading', { name: 'Agent writer' }).waitFor();
    expect(await page.getByRole('link', { name: 'Day' }).getAttribute('aria-current')).toBe('true');
    const limits = page.getByRole('table', { name: 'Limits by caller' });
    await limits.getByText(/^\d+ of 1,000,000 \(0 %\)$/).waitFor();
    await page.getByRole('table', { name: 'Keys' }).getByText('apiKey').waitFor();
    const latest = page.getByRole('table', { name: 'Latest calls of writer' });
    await latest.getByText('Post').first().waitFor();
    const refusals = page.getByRole('table', { name: 'Latest refusals of writer' });
    await refusals.getByText('Contract').first().waitFor();
    expect(await refusals.getByText('ok', { exact: true }).count()).toBe(0);
    const refused = page.getByRole('link', { name: /^Refused/ });
    const href = (await refused.getAttribute('href')) ?? '';
    expect(href).toMatch(/agent=writer&from=.*&to=.*&outcome=failure/);
    const changed = page.getByRole('link', { name: 'What it changed' });
    expect(await changed.getAttribute('href')).toMatch(/^#\/changes\?agent=writer&since=.*Z$/);
    await page.getByRole('link', { name: 'Hour' }).click();
    await page.getByRole('button', { name: 'Suspend writer' }).waitFor();
  });

  it('says that there is no such agent, and where there are some', async () => {
    await open('agent?name=nobody');
    await page.getByText('No agent of this name is configured.').waitFor();
    await page.goto(at('agent'));
    await page.getByRole('link', { name: 'Choose one in the policy' }).click();
    await page.getByRole('heading', { name: 'Policy', exact: true }).waitFor();
    expect(complaints.splice(0).every((line) => line.includes('404'))).toBe(true);
  });
});

describe('the policy', () => {
  it('shows what each agent sees, and calls no limited class open', async () => {
    await open('policy');
    const matrix = page.getByRole('region', { name: 'Agents and classes' });
    const cell = matrix.getByRole('link', { name: /^writer and Post: limited/ });
    await cell.waitFor();
    expect(await cell.getAttribute('aria-label')).toContain('tenant');
    await matrix.getByRole('link', { name: /^writer and Contract: no access/ }).waitFor();
    await cell.click();
    const details = page.getByRole('status', { name: 'writer and Post' });
    await details.getByText('orgId').first().waitFor();
    expect(new URL(page.url()).hash).toContain('agent=writer&class=Post');
    await page.getByText('has served one version').waitFor();
    await page.locator('.class', { hasText: 'Post' }).locator('summary').click();
    await page.locator('.class[open] .facts').getByText('orgId').waitFor();
  });

  it('suspends an agent for a reason and resumes it, and every page says so meanwhile', async () => {
    await open('policy');
    const agents = page.getByRole('table', { name: 'Agents', exact: true });
    const row = agents.getByRole('row', { name: /^writer/ });
    await row.getByRole('button', { name: 'Suspend writer' }).focus();
    await page.keyboard.press('Enter');
    await row.getByRole('button', { name: 'Suspend writer' }).click();
    await row.getByText('active', { exact: true }).waitFor();
    await row.getByRole('button', { name: 'Cancel' }).focus();
    await page.keyboard.press('Enter');
    // What is pressed is replaced each time, and the keyboard goes on where it was.
    await expect.poll(named).toBe('Suspend writer');
    await page.keyboard.press('Enter');
    await expect.poll(named).toBe('Reason, for the audit record');
    await page.keyboard.insertText(HOSTILE);
    await page.keyboard.press('Enter');
    await row.getByText('suspended', { exact: true }).waitFor();
    await expect.poll(named).toBe('Resume writer');
    await row.getByText(/ by chief/).waitFor();
    await row.getByText(SHOWN).waitFor();
    const refused = await callTool(service, 'query_class', { class_name: 'Post' }, as('writer'));
    expect(refused.rpcError?.message).toBe("agent 'writer' is suspended");
    await page.goto(at('health'));
    await page.getByRole('heading', { name: 'Suspended agents' }).waitFor();
    await page.goto(at('live'));
    await (await findTrouble(/The agent writer is suspended since/)).click();
    await row.getByRole('button', { name: 'Resume writer' }).click();
    await row.getByRole('button', { name: 'Resume writer' }).click();
    await row.getByText('active', { exact: true }).waitFor();
    expect(await callTool(service, 'query_class', { class_name: 'Post' }, as('writer'))).toMatchObject({
      isError: false,
    });
  });

  it('suspends no agent that its operator acts as', async () => {
    await open('policy');
    const row = page.getByRole('table', { name: 'Agents', exact: true }).getByRole('row', { name: /^chief/ });
    await row.getByRole('button', { name: 'Suspend chief' }).click();
    await row.getByLabel('Reason, for the audit record').fill('by mistake');
    await page.keyboard.press('Enter');
    await row.getByRole('alert').getByText('you act as this agent').waitFor();
    expect(await row.getByText('active', { exact: true }).count()).toBe(1);
    // The browser reports the answer.
    complaints.length = 0;
  });

  it('is tried before it is deployed, and says what would change, fail and be refused', async () => {
    await callTool(service, 'query_class', { class_name: 'Author' }, as('writer'));
    await open('policy');
    const [served] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download what is served' }).click(),
    ]);
    expect(served.suggestedFilename()).toMatch(/^parley-policy-\w+\.yaml$/);
    const text = await readFile(await served.path(), 'utf8');
    expect(text).toContain('Articles by our writers');
    const changed = page.getByLabel('Changed file (YAML)', { exact: true });
    await changed.fill(
      text.replace('Contract:\n      hidden: true', 'Contract: { hidden: true }\n    Gone: 3'),
    );
    await page.getByRole('button', { name: 'Try it' }).click();
    const result = page.getByRole('region', { name: 'Result of the trial' });
    await result.getByText(/^tried:\d+:\d+$/).waitFor();
    await changed.fill(text.replace('    Author:\n', '    Author:\n      hidden: true\n'));
    await page
      .getByLabel('Its tests (YAML, optional)', { exact: true })
      .fill(
        '- { agent: writer, tool: query_class, arguments: { class_name: Author }, expect: { allowed: true } }',
      );
    await page.getByRole('button', { name: 'Try it' }).click();
    await result.getByText('widens nothing').waitFor();
    await result.getByRole('row', { name: /writer.*query_class.*Author.*be refused/ }).waitFor();
    await result.getByText('0 held, 1 failed').waitFor();
  });
});

describe('the arguments of an explanation', () => {
  it('are a form from the schema and JSON, kept in step', async () => {
    await open('explain?agent=writer&tool=query_class');
    const json = page.getByLabel('Arguments as JSON');
    const read = async () => JSON.parse(await json.inputValue()) as unknown;
    await page.getByLabel('class_name').selectOption('Post');
    await page.getByText(/^Optional arguments/).click();
    await page.getByLabel('limit', { exact: true }).fill('3');
    await page.keyboard.press('Tab');
    await expect.poll(read).toEqual({ class_name: 'Post', limit: 3 });
    await json.fill('{"class_name":"Author","limit":7,"where":{"name":"Ann"}}');
    expect(await page.getByLabel('class_name').inputValue()).toBe('Author');
    expect(await page.getByLabel('limit', { exact: true }).inputValue()).toBe('7');
    await json.fill('{"class_name":');
    await page.getByText('The form continues').waitFor();
    await json.fill('{"class_name":"Post"}');
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByRole('region', { name: 'Explanation' }).getByText('allowed').waitFor();
  });
});

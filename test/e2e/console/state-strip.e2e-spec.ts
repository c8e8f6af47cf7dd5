import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { openBrowser } from '../../support/browser.js';
import { decideApproval } from '../../support/decide-approval.js';
import { callTool, type Service, startService } from '../../support/service.js';

const KEYS = { chief: 'key-of-chief-0000', writer: 'key-of-writer-0000' };
const as = (agent: keyof typeof KEYS) => ({ 'X-MCP-API-Key': KEYS[agent], 'X-Parley-Console': '1' });

let service: Service;
let page: Page;

beforeAll(async () => {
  const agent = { permissions: 'admin', tenantId: 'acme', rateLimit: 1_000_000 };
  const [started, browser] = await Promise.all([
    startService({
      config: {
        agents: { chief: agent, writer: agent },
        auth: Object.entries(KEYS).map(([name, apiKey]) => ({ apiKey, agent: name })),
        policy: { ...POSTS_POLICY, requireApprovalFor: ['admin'] },
        approvals: { mode: 'desk', approvers: ['chief'] },
        console: { operators: ['chief'] },
      },
      seed: POSTS_SEED,
      env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
    }),
    openBrowser(),
  ]);
  service = started;
  page = await browser.newPage({ reducedMotion: 'reduce' });
  await page.goto(`${service.origin}/console#/live`);
  await page.getByLabel('API key or access token').fill(KEYS.chief);
  await page.keyboard.press('Enter');
  await page.getByText('All well').waitFor();
}, 120_000);

const strip = () => page.getByRole('region', { name: 'State of the service' });

/** Lets the page read this state of every replica next. */
async function showState(members: object): Promise<void> {
  await page.unroute('**/console/api/state');
  await page.route('**/console/api/state', async (route) => {
    const response = await route.fetch();
    const { replicas, ...rest } = (await response.json()) as { replicas: object[] };
    await route.fulfill({
      response,
      json: { ...rest, replicas: replicas.map((one) => ({ ...one, ...members })) },
    });
  });
}

describe('the state of the service, above every page', () => {
  it.each([1440, 1280, 390])(
    'moves nothing below it when troubles come and go, %i pixels wide',
    async (width) => {
      await page.setViewportSize({ width, height: 844 });
      const place = async (said: RegExp) => {
        await strip().getByText(said).first().waitFor();
        return page.getByRole('heading', { level: 1 }).boundingBox();
      };
      const well = await place(/^All well/);
      const since = '2026-01-01T11:00:00.000Z';
      const suspended = ['a', 'b', 'c'].map((agent) => ({ agent, since, by: 'chief', reason: 'leaked' }));
      await showState({ suspended });
      expect(await place(/^The agent a is suspended/)).toEqual(well);
      await showState({ suspended, dependencies: { mongodb: 'down', redis: 'up' } });
      expect(await place(/^MongoDB does not answer/)).toEqual(well);
      expect(await strip().getByRole('link').count()).toBe(1);
      await strip().getByText('3 more').click();
      expect(await strip().getByRole('link').count()).toBe(4);
      // What it covers does not show through.
      const ground = (selector: string) =>
        page.evaluate<string>(`getComputedStyle(document.querySelector('${selector}')).backgroundColor`);
      expect(await ground('.strip ul')).toBe(await ground('.strip'));
      expect(await page.getByRole('heading', { level: 1 }).boundingBox()).toEqual(well);
      await showState({});
      expect(await place(/^All well/)).toEqual(well);
      // One line is not given the room of two.
      expect(await page.evaluate<number>('document.querySelector(".worst").offsetHeight')).toBeLessThan(30);
    },
  );

  it('calls it no trouble that a person denied every call', async () => {
    await page.unroute('**/console/api/state');
    const api = `${service.origin}/console/api/approvals`;
    for (let at = 0; at < 6; at += 1) {
      const asked = { class_name: 'Post', object_id: `p0${at}` };
      const called = callTool(service, 'delete_object', asked, as('writer'));
      const findFirst = async () => {
        const listed = await fetch(api, { headers: as('chief') });
        return ((await listed.json()) as { approvals: { id: string }[] }).approvals[0]?.id;
      };
      await expect.poll(findFirst).toBeDefined();
      await decideApproval(`${api}/${await findFirst()}`, as('chief'), { decision: 'deny', reason: 'no' });
      expect((await called).code).toBe('approval_denied');
    }
    const state = await (await fetch(`${service.origin}/console/api/state`, { headers: as('chief') })).json();
    expect(state).toMatchObject({ refusals: { all: null, agents: [] } });
    await page.goto(`${service.origin}/console#/overview?window=1h`);
    await page.getByRole('link', { name: /^Refused or failed 6/ }).waitFor();
    await strip().getByText('All well').waitFor();
  });
});

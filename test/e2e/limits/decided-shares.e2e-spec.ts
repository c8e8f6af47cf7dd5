import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type RedisServer, startRedis } from '#state/contracts';
import { POSTS_SEED, POSTS_POLICY } from '../../fixtures/posts.fixture.js';
import { decideApproval } from '../../support/decide-approval.js';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';

const AGENTS = ['greedy', 'modest', 'chief'] as const;
type AgentName = (typeof AGENTS)[number];
const as = (agent: AgentName) => ({ 'X-MCP-API-Key': `key-of-${agent}` });
/** Decided cases of a principal that are kept. */
const SHARE = 1_000;
const AT_ONCE = 40;

const config = (more: object) => ({
  server: { requestRateLimit: null },
  agents: Object.fromEntries(
    AGENTS.map((name) => [name, { rateLimit: 1_000_000, permissions: 'admin', tenantId: 'acme' }]),
  ),
  auth: AGENTS.map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
  policy: { ...POSTS_POLICY, requireApprovalFor: ['write', 'admin'] },
  approvals: { mode: 'desk', approvers: ['chief'], expiry: 600 },
  ...more,
});
const env = { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' };

let redis: RedisServer;
let database: Database;
beforeAll(async () => {
  [redis, database] = await Promise.all([startRedis(), startDatabase(POSTS_SEED)]);
}, 60_000);
afterAll(() => Promise.all([redis.stop(), database.stop()]));

const WHERE: [string, () => Promise<[Service, Service]>][] = [
  [
    'in memory',
    async () => {
      const service = await startService({ config: config({}), seed: POSTS_SEED, env });
      return [service, service];
    },
  ],
  [
    'over Redis',
    () => {
      const shared = config({
        database: { uri: database.uri, name: 'parley' },
        redis: { url: redis.url },
      });
      return Promise.all([startService({ config: shared, env }), startService({ config: shared, env })]);
    },
  ],
];

describe.each(WHERE)('decided approvals of one principal, %s', (_, open) => {
  let one: Service;
  let two: Service;
  beforeAll(async () => {
    [one, two] = await open();
  }, 60_000);
  afterAll(() => Promise.all([one.stop(), two.stop()]));

  const change = (agent: AgentName, title: string) =>
    callTool(one, 'update_object', { class_name: 'Post', object_id: 'p01', fields: { title } }, as(agent));
  const pending = async (): Promise<string[]> => {
    const response = await fetch(`${two.origin}/approvals`, { headers: as('chief') });
    const { approvals } = (await response.json()) as { approvals: { id: string }[] };
    return approvals.map(({ id }) => id);
  };
  const decide = async (id: string, decision: 'approve' | 'deny') => {
    const response = await decideApproval(`${two.origin}/approvals/${id}`, as('chief'), { decision });
    await response.text();
    return response.status;
  };
  const waiting = (count: number) =>
    vi.waitFor(
      async () => {
        const ids = await pending();
        expect(ids).toHaveLength(count);
        return ids;
      },
      { timeout: 30_000, interval: 20 },
    );
  /** Calls that a person denies. */
  const denied = async (agent: AgentName, titles: readonly string[]) => {
    const calls = titles.map((title) => change(agent, title));
    const ids = await waiting(titles.length);
    expect(new Set(await Promise.all(ids.map((id) => decide(id, 'deny'))))).toEqual(new Set([200]));
    for (const { code } of await Promise.all(calls)) expect(code).toBe('approval_denied');
  };

  it('push out its own oldest ones, and neither refuse nor forget anybody else’s', async () => {
    await denied('modest', ['of another one']);
    const titles = Array.from({ length: SHARE + AT_ONCE }, (__, at) => `flood ${at}`);
    for (let at = 0; at < titles.length; at += AT_ONCE)
      await denied('greedy', titles.slice(at, at + AT_ONCE));

    // What is still known is refused without another case.
    expect((await change('greedy', titles.at(-1) ?? '')).text).toContain('operation denied by approver');
    expect((await change('modest', 'of another one')).text).toContain('operation denied by approver');
    expect(await pending()).toEqual([]);

    // What was forgotten is asked again, and others are served.
    const again = change('greedy', titles[0] ?? '');
    await decide((await waiting(1))[0] ?? '', 'deny');
    await again;
    const served = change('modest', 'Approved');
    await decide((await waiting(1))[0] ?? '', 'approve');
    expect((await served).isError).toBe(false);
  }, 180_000);
});

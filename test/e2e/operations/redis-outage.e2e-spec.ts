import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisServer, startRedis } from '#state/contracts';
import { POSTS_SEED, POSTS_CONFIG } from '../../fixtures/posts.fixture.js';
import { askModern } from '../../support/modern-call.js';
import {
  callTool,
  type Database,
  rpc,
  type Service,
  startDatabase,
  startService,
} from '../../support/service.js';

const PATIENT = { timeout: 30_000, interval: 50 };

const BUDGET_WINDOW = 3600;
const CONFIG = {
  ...POSTS_CONFIG,
  agents: {
    ...POSTS_CONFIG.agents,
    limited: { tenantId: 'acme', rateLimit: 3, rateWindow: 3600 },
    frugal: { tenantId: 'acme', rateLimit: 1_000_000, budget: { rows: 10, window: BUDGET_WINDOW } },
    tenantOne: { tenantId: 'zeta', rateLimit: 1_000_000 },
    tenantTwo: { tenantId: 'zeta', rateLimit: 1_000_000 },
  },
  auth: ['analyst', 'limited', 'frugal', 'tenantOne', 'tenantTwo'].map((agent) => ({ apiKey: agent, agent })),
  policy: { ...POSTS_CONFIG.policy, tenantBudget: { calls: 25, window: BUDGET_WINDOW } },
  server: { sessions: 'strict' },
};

const as = (apiKey: string, session?: string) => ({
  'X-MCP-API-Key': apiKey,
  ...(session !== undefined && { 'Mcp-Session-Id': session }),
});

/** Two replicas on one database and one Redis, as behind a load balancer without stickiness. */
describe('two replicas that share one Redis', () => {
  let database: Database;
  let redis: RedisServer;
  let here: Service;
  let there: Service;

  beforeAll(async () => {
    [database, redis] = await Promise.all([startDatabase(POSTS_SEED), startRedis()]);
    const env = { MONGODB_URI: database.uri, REDIS_URL: redis.url };
    [here, there] = await Promise.all([
      startService({ config: CONFIG, env }),
      startService({ config: CONFIG, env }),
    ]);
  });
  afterAll(async () => {
    await Promise.all([here.stop(), there.stop()]);
    await Promise.all([database.stop(), redis.stop()]);
  });

  const open = async (service: Service, apiKey: string): Promise<string> => {
    const params = {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 't', version: '1' },
    };
    const { headers } = await rpc(service, 'initialize', params, as(apiKey));
    const id = headers.get('mcp-session-id');
    if (id === null) throw new Error('no session was opened');
    return id;
  };
  const list = (service: Service, apiKey: string, session: string) =>
    rpc(service, 'tools/list', {}, as(apiKey, session));
  const ready = async (service: Service) => {
    const answer = await fetch(`${service.origin}/ready`);
    return [answer.status, await answer.json()] as const;
  };
  const count = async (service: Service, apiKey: string) => {
    const session = await open(service, apiKey);
    return callTool(service, 'count_objects', { class_name: 'Post' }, as(apiKey, session));
  };
  const upAgain = async () => {
    for (const service of [here, there]) {
      await expect
        .poll(() => ready(service), PATIENT)
        .toEqual([200, { status: 'ready', dependencies: { mongodb: 'up', redis: 'up', queue: 'up' } }]);
    }
  };

  it('serve a session that the other one opened, and end it for each other', async () => {
    const session = await open(here, 'analyst');
    expect((await list(there, 'analyst', session)).status).toBe(200);
    const ended = await fetch(there.url, { method: 'DELETE', headers: as('analyst', session) });
    expect(ended.status).toBe(204);
    expect((await list(here, 'analyst', session)).status).toBe(404);
    expect((await list(there, 'analyst', session)).status).toBe(404);
  });

  it('let nobody use a session that another principal opened at the other one', async () => {
    const session = await open(here, 'analyst');
    expect((await list(there, 'frugal', session)).status).toBe(404);
    expect((await list(there, 'analyst', session)).status).toBe(200);
  });

  it('count the calls of a principal together, and each agent apart', async () => {
    const outcomes = [];
    for (const service of [here, there, here, there, here]) outcomes.push(await count(service, 'limited'));
    expect(outcomes.map(({ isError }) => isError)).toEqual([false, false, false, true, true]);
    expect(outcomes[4]).toMatchObject({
      code: 'rate_limited',
      text: expect.stringContaining('3 requests per 3600s') as string,
    });
    expect((await count(there, 'analyst')).isError).toBe(false);
  });

  it('charge the rows of a principal to one budget', async () => {
    const rows = async (service: Service) => {
      const session = await open(service, 'frugal');
      const args = { class_name: 'Post', limit: 6 };
      return callTool(service, 'query_class', args, as('frugal', session));
    };
    expect((await rows(here)).isError).toBe(false);
    expect((await rows(there)).isError).toBe(false);
    for (const service of [here, there]) {
      const refused = await rows(service);
      expect(refused).toMatchObject({ code: 'rate_limited', details: { kind: 'budget' } });
      expect(refused.text).toContain('10 rows per 3600s');
      expect(refused.wire).toContain('"parse.retry_after"');
    }
    expect((await count(here, 'analyst')).isError).toBe(false);
  });

  it('charge all agents of a tenant to one budget, and no other tenant', async () => {
    const sessions = await Promise.all([open(here, 'tenantOne'), open(here, 'tenantTwo')]);
    const call = (at: number) =>
      callTool(
        [here, there][at % 2] as Service,
        'count_objects',
        { class_name: 'Post' },
        as(at % 3 === 0 ? 'tenantOne' : 'tenantTwo', sessions[at % 3 === 0 ? 0 : 1]),
      );
    const outcomes = [];
    for (let at = 0; at < 27; at += 1) outcomes.push(await call(at));
    expect(outcomes.slice(0, 25).filter(({ isError }) => isError)).toEqual([]);
    for (const refused of outcomes.slice(25))
      expect(refused).toMatchObject({ code: 'rate_limited', details: { kind: 'budget' } });
    expect((await count(here, 'analyst')).isError).toBe(false);
  });

  it.each([
    ['is stopped', async () => redis.stop(), async () => redis.start()],
    ['hangs', async () => redis.pause(), async () => redis.resume()],
  ])('fail closed in clear words while Redis %s, and recover without a restart', async (_, goes, comes) => {
    await upAgain();
    const session = await open(here, 'analyst');
    await goes();
    for (const service of [here, there]) {
      await expect
        .poll(() => ready(service), PATIENT)
        .toEqual([
          503,
          { status: 'unavailable', dependencies: { mongodb: 'up', redis: 'down', queue: 'down' } },
        ]);
      expect((await fetch(`${service.origin}/health`)).status).toBe(200);

      const used = await list(service, 'analyst', session);
      expect([used.status, used.body.error?.code]).toEqual([503, -32000]);
      const opened = await rpc(service, 'initialize', { protocolVersion: '2025-06-18' }, as('analyst'));
      expect([opened.status, opened.body.error?.code]).toEqual([503, -32000]);
      // Of the stateless revision: no session stands between the caller and the limits.
      const modern = await callModern(service, 'analyst');
      expect(modern.text).toContain('Rate limit exceeded (');
      expect(modern.text).toContain('"parse.retry_after"');
      for (const answer of [used, opened]) {
        expect(answer.headers.get('retry-after')).toBe('5');
      }
      for (const { text } of [used, opened, modern]) expect(text).not.toMatch(/redis|ECONN|127\.0\.0\.1/i);
    }
    await comes();
    await upAgain();
    for (const service of [here, there]) expect((await count(service, 'analyst')).isError).toBe(false);
  });

  it('never wrote a Redis address, a session id or a key to the log', async () => {
    const session = await open(here, 'analyst');
    for (const service of [here, there]) {
      const { stderr } = service.output();
      expect(stderr).toContain('[Redis] commands: unavailable');
      expect(stderr).toContain('[Redis] commands: available again');
      expect(stderr).not.toContain(session);
      expect(stderr).not.toContain('redis://');
    }
  });

  /** `tools/call` as revision 2026-07-28 writes it. */
  const callModern = (service: Service, apiKey: string) =>
    askModern(
      service,
      'tools/call',
      { name: 'count_objects', arguments: { class_name: 'Post' } },
      { ...as(apiKey), Accept: 'application/json, text/event-stream' },
      {},
    );
});

import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisServer, startRedis } from '#state/contracts';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import {
  callTool,
  type Database,
  rpc,
  type Service,
  startDatabase,
  startService,
} from '../../support/service.js';

const VERSION = '2025-11-25';
/** Requests at once, a quarter of those that a minute permits. */
const REPETITIONS = 300;
const BYTES = 3_000_000;

let database: Database;
let redis: RedisServer;
let service: Service;
beforeAll(async () => {
  [database, redis] = await Promise.all([startDatabase(POSTS_SEED), startRedis()]);
  const names = ['greedy', 'neighbour'];
  service = await startService({
    config: {
      agents: Object.fromEntries(names.map((name) => [name, { tenantId: 'acme', rateLimit: 1_000_000 }])),
      auth: names.map((name) => ({ apiKey: name, agent: name })),
      policy: POSTS_POLICY,
      plugins: [fileURLToPath(new URL('../../fixtures/plugins/large.mjs', import.meta.url))],
    },
    env: { MONGODB_URI: database.uri, REDIS_URL: redis.url },
  });
});
afterAll(async () => {
  await service.stop();
  await Promise.all([database.stop(), redis.stop()]);
});

const as = (name: string) => ({ 'X-MCP-API-Key': name });

/** Repeats a request many times at once, and calls a tool as another principal until all are answered. */
async function besides(one: () => Promise<Response>): Promise<{ statuses: Set<number>; refusals: string[] }> {
  const statuses = new Set<number>();
  const flood = Promise.all(
    Array.from({ length: REPETITIONS }, async () => {
      const response = await one();
      statuses.add(response.status);
      await response.arrayBuffer().catch(() => undefined);
    }),
  );
  let isOver = false;
  void flood.finally(() => (isOver = true));
  const refusals: string[] = [];
  while (!isOver) {
    const { isError, text } = await callTool(
      service,
      'count_objects',
      { class_name: 'Post' },
      as('neighbour'),
    );
    if (isError) refusals.push(text);
  }
  await flood;
  return { statuses, refusals };
}

describe('a caller that has a stored answer of megabytes sent again and again', () => {
  it('by the last event of a stream keeps Redis from nobody else', async () => {
    const params = { protocolVersion: VERSION, capabilities: {}, clientInfo: { name: 't', version: '1' } };
    const { headers } = await rpc(service, 'initialize', params, as('greedy'));
    const own = {
      ...as('greedy'),
      'Mcp-Session-Id': String(headers.get('mcp-session-id')),
      'MCP-Protocol-Version': VERSION,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
    };
    const answer = await fetch(service.url, {
      method: 'POST',
      headers: own,
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'large_read' } }),
    });
    const [, first = ''] = /^id: (\S+)/m.exec(await answer.text()) ?? [];
    const resume = () => fetch(service.url, { headers: { ...own, 'Last-Event-ID': first } });
    expect((await (await resume()).text()).length).toBeGreaterThan(BYTES);
    const { statuses, refusals } = await besides(resume);
    expect(refusals).toEqual([]);
    // A fast machine reads them all before one has waited for too long.
    expect([...statuses].filter((status) => status !== 503)).toEqual([200]);
  });
});

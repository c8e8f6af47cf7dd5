import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisServer, startRedis } from '#state/contracts';
import { POSTS_SEED, POSTS_POLICY } from '../../fixtures/posts.fixture.js';
import { askModern } from '../../support/modern-call.js';
import { rpc, type Service, startDatabase, startService, type Database } from '../../support/service.js';

const ADA = { 'X-MCP-API-Key': 'key-of-ada' };
const EVE = { 'X-MCP-API-Key': 'key-of-eve' };
const config = {
  agents: {
    ada: { tenantId: 'acme', rateLimit: 1_000_000 },
    eve: { tenantId: 'acme', rateLimit: 1_000_000, classes: { except: ['Author'] } },
  },
  auth: ['ada', 'eve'].map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
  policy: POSTS_POLICY,
};

let redis: RedisServer;
let database: Database;
let replicas: [Service, Service];
beforeAll(async () => {
  [redis, database] = await Promise.all([startRedis(), startDatabase(POSTS_SEED)]);
  const start = () => startService({ config, env: { REDIS_URL: redis.url, MONGODB_URI: database.uri } });
  replicas = await Promise.all([start(), start()]);
});
afterAll(async () => {
  await Promise.all(replicas.map((service) => service.stop()));
  await Promise.all([database.stop(), redis.stop()]);
});

async function open(service: Service, headers: Record<string, string>): Promise<string> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } };
  return (await rpc(service, 'initialize', params, headers)).headers.get('mcp-session-id') ?? '';
}
const used = async (service: Service, session: string, headers: Record<string, string>) =>
  (await rpc(service, 'ping', {}, { ...headers, 'Mcp-Session-Id': session })).status;
const verb = async (service: Service, method: string, headers: Record<string, string>) => {
  const response = await fetch(service.url, { method, headers, redirect: 'manual' });
  await response.body?.cancel();
  return response.status;
};

describe('a session over two replicas', () => {
  it('is ended by its owner alone, and is then dead for everybody', async () => {
    const [one, two] = replicas;
    const session = await open(one, ADA);
    const named = { 'Mcp-Session-Id': session };
    const events = { ...named, Accept: 'text/event-stream' };
    expect(await verb(two, 'DELETE', named)).toBe(401);
    expect(await verb(two, 'DELETE', { ...named, ...EVE })).toBe(204);
    expect(await used(one, session, ADA)).toBe(200);
    expect(await verb(two, 'GET', { ...events, ...EVE })).toBe(403);
    expect(await verb(two, 'DELETE', { ...named, ...ADA })).toBe(204);
    expect(await used(one, session, ADA)).toBe(404);
    expect(await verb(one, 'GET', { ...events, ...ADA })).toBe(404);
    expect(await verb(two, 'GET', { ...events, ...EVE })).toBe(404);
  });

  it('is not ended, heard or cancelled with what somebody else guessed', async () => {
    const [one, two] = replicas;
    const session = await open(one, ADA);
    const headers = { ...EVE, 'Mcp-Session-Id': session };
    const cancelled = await rpc(two, 'notifications/cancelled', { requestId: 1 }, headers);
    expect(cancelled.status).toBe(202);
    const resumed = {
      ...headers,
      Accept: 'text/event-stream',
      'Last-Event-ID': '00000000-0000-4000-8000-000000000000.1-0',
    };
    expect(await verb(two, 'GET', resumed)).toBe(403);
    expect(await used(two, session, EVE)).toBe(200);
    expect(await used(two, session, ADA)).toBe(200);
  });
});

describe('verbs and hosts', () => {
  it('405 names every verb that is served', async () => {
    for (const method of ['PUT', 'PATCH', 'OPTIONS']) {
      const response = await fetch(replicas[0].url, { method });
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, POST, DELETE']);
    }
  });
});

describe('a resource that is withheld or that nobody has', () => {
  const ERAS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'];
  const asked = async (version: string, method: string, uri: string) => {
    if (version < '2026') {
      const headers = { ...EVE, 'MCP-Protocol-Version': version };
      return (await rpc(replicas[0], method, { uri }, headers)).body.error;
    }
    return (await askModern(replicas[0], method, { uri }, EVE, {})).body.error;
  };

  it.each(ERAS)('is read with one code in %s', async (version) => {
    const code = version < '2026' ? -32002 : -32602;
    for (const name of ['Author', 'Contract', 'Nobodys'])
      for (const kind of ['schema', 'count', 'samples']) {
        const uri = `parse://${name}/${kind}`;
        expect(await asked(version, 'resources/read', uri)).toEqual({
          code,
          message: 'Resource not found',
          data: { uri },
        });
      }
  });

  it('is subscribed to as it is read', async () => {
    const session = { 'Mcp-Session-Id': await open(replicas[0], EVE) };
    for (const name of ['Author', 'Contract', 'Nobodys']) {
      const uri = `parse://${name}/count`;
      const refused = async (method: string) =>
        (await rpc(replicas[0], method, { uri }, { ...EVE, ...session })).body.error;
      expect(await refused('resources/subscribe')).toEqual(await refused('resources/read'));
      expect((await refused('resources/subscribe'))?.code).toBe(-32002);
    }
  });
});

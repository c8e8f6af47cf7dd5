import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client as ClassicClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as ClassicTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { callTool, type Database, rpc, type Service, startDatabase, startService } from './service.js';

const SOON = { timeout: 30_000, interval: 25 };
const POSTS = 'parse://Post/count';
const LATER = '2099-01-01T00:00:00.000Z';

const SEED = {
  schemas: [
    {
      className: 'Post',
      fields: { title: { type: 'String' }, org: { type: 'String' }, n: { type: 'Number' } },
    },
    { className: 'Secret', fields: { clause: { type: 'String' } } },
  ],
  users: ['ada', 'bob'].map((name) => ({ objectId: name, username: name, password: `${name}-secret` })),
  sessions: ['ada', 'bob'].map((user) => ({ sessionToken: `r:${user}`, user, expiresAt: LATER })),
  objects: { Post: [{ objectId: 'first', title: 'first', org: 'acme' }] },
};

const WRITES = { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' };
const key = (name: string) => ({ 'X-MCP-API-Key': name });

const configOf = (database: Database) => ({
  database: { uri: database.uri, name: 'parley' },
  subscriptions: { debounce: 0.05 },
  agents: {
    writer: { permissions: 'admin', rateLimit: 1_000_000 },
    acme: { tenantId: 'acme', rateLimit: 1_000_000 },
    globex: { tenantId: 'globex', rateLimit: 1_000_000 },
    user: { identity: { session: 'caller' }, rateLimit: 1_000_000 },
  },
  auth: [
    { apiKey: 'writer', agent: 'writer' },
    { apiKey: 'acme', agent: 'acme' },
    { apiKey: 'globex', agent: 'globex' },
    { parseSession: true, agent: 'user' },
  ],
  policy: {
    classes: { Post: { tenantScope: { field: 'org', bypass: ['admin'] } }, Secret: { hidden: true } },
  },
});

let database: Database;
let service: Service;
beforeAll(async () => {
  database = await startDatabase(SEED);
  service = await startService({ config: configOf(database), env: WRITES });
});
afterAll(async () => {
  await service.stop();
  await database.stop();
});

const create = async (fields: object): Promise<string> => {
  const { data } = await callTool(service, 'create_object', { class_name: 'Post', fields }, key('writer'));
  return String((data['object'] as { objectId: string } | undefined)?.objectId);
};
const change = (objectId: string, fields: object) =>
  callTool(service, 'update_object', { class_name: 'Post', object_id: objectId, fields }, key('writer'));

/** The official client of the revisions with sessions, and the addresses it was told of. */
async function classic(headers: Record<string, string>): Promise<{ client: ClassicClient; told: string[] }> {
  const client = new ClassicClient({ name: 'scenario', version: '1.0.0' });
  const told: string[] = [];
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
    told.push(params.uri);
  });
  await client.connect(new ClassicTransport(new URL(service.url), { requestInit: { headers } }) as never);
  return { client, told };
}

/** Its listening stream opens by itself, at some time after it has connected. */
const settled = (told: string[], trigger: () => Promise<unknown>) =>
  vi.waitFor(
    async () => {
      await trigger();
      expect(told.length).toBeGreaterThan(0);
    },
    { timeout: 30_000, interval: 200 },
  );

describe('the official client v1', () => {
  it('is told that a resource changed, and reads the new value itself', async () => {
    const { client, told } = await classic(key('writer'));
    expect(client.getServerCapabilities()?.resources).toMatchObject({ subscribe: true });
    await client.subscribeResource({ uri: POSTS });
    await settled(told, () => create({ org: 'acme' }));
    expect(new Set(told)).toEqual(new Set([POSTS]));
    const read = await client.readResource({ uri: POSTS });
    expect(JSON.stringify(read)).toContain('count');
    await client.unsubscribeResource({ uri: POSTS });
    await client.close();
  });

  it('hears nothing of another tenant', async () => {
    const { client, told } = await classic(key('acme'));
    const witness = await classic(key('globex'));
    await client.subscribeResource({ uri: POSTS });
    await witness.client.subscribeResource({ uri: POSTS });
    await settled(told, () => create({ org: 'acme' }));
    await settled(witness.told, () => create({ org: 'globex' }));
    told.length = 0;
    for (let made = 1; made <= 5; made += 1) {
      const before = witness.told.length;
      await create({ org: 'globex' });
      await vi.waitFor(() => expect(witness.told.length).toBeGreaterThan(before), SOON);
    }
    expect(told).toEqual([]);
    await create({ org: 'acme' });
    await vi.waitFor(() => expect(told).toEqual([POSTS]), SOON);
    await client.close();
    await witness.client.close();
  });

  it('hears of a row when its rights make it visible, and not before', async () => {
    const { client, told } = await classic({ 'X-Parse-Session-Token': 'r:bob' });
    await expect(client.subscribeResource({ uri: POSTS })).rejects.toThrow('Invalid params');
    await client.close();
    expect(told).toEqual([]);
  });
});

import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client as ClassicClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as ClassicTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';

const SOON = { timeout: 30_000, interval: 25 };
const POSTS = ['parse://Post/count', 'parse://Post/samples'] as const;

const SEED = {
  schemas: [{ className: 'Post', fields: { title: { type: 'String' }, org: { type: 'String' } } }],
  objects: {
    Post: ['acme', 'globex'].map((org) => ({ objectId: `of${org}`, title: org, org })),
  },
};
const free = { rateLimit: 1_000_000 };
/** @param tenant of the agent called `acme` */
const configOf = (uri: string, tenant = 'acme') => ({
  database: { uri, name: 'parley' },
  subscriptions: { debounce: 0.05 },
  reload: { interval: 0.2 },
  agents: {
    writer: { ...free, permissions: 'admin' },
    acme: { ...free, tenantId: tenant },
    globex: { ...free, tenantId: 'globex' },
  },
  auth: ['writer', 'acme', 'globex'].map((agent) => ({ apiKey: agent, agent })),
  policy: {
    unlistedClasses: 'allow',
    classes: { Post: { tenantScope: { field: 'org', bypass: ['admin'] } } },
  },
});
const key = (name: string) => ({ 'X-MCP-API-Key': name });

let database: Database;
let service: Service;
beforeAll(async () => {
  database = await startDatabase(SEED);
  service = await startService({
    config: configOf(database.uri),
    env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
  });
});

const write = async (tool: string, args: object) => {
  const answer = await callTool(service, tool, { class_name: 'Post', ...args }, key('writer'));
  expect([answer.isError, answer.text.slice(0, 200)]).toEqual([false, expect.any(String)]);
  return String((answer.data['object'] as { objectId?: string } | undefined)?.objectId);
};

interface Listener {
  readonly received: string[];
  close(): Promise<void>;
}

async function classic(agent: string): Promise<Listener> {
  const client = new ClassicClient({ name: 'scenario', version: '1.0.0' });
  const received: string[] = [];
  client.setNotificationHandler(
    ResourceUpdatedNotificationSchema,
    ({ params }) => void received.push(params.uri),
  );
  const headers = key(agent);
  await client.connect(new ClassicTransport(new URL(service.url), { requestInit: { headers } }) as never);
  for (const uri of POSTS) await client.subscribeResource({ uri });
  return { received, close: () => client.close() };
}

async function modern(agent: string): Promise<Listener> {
  const client = new ModernClient({ name: 'scenario', version: '1.0.0' }, {
    versionNegotiation: { mode: { pin: '2026-07-28' } },
  } as never);
  const received: string[] = [];
  client.setNotificationHandler(
    'notifications/resources/updated',
    ({ params }) => void received.push(params.uri),
  );
  await client.connect(new ModernTransport(new URL(service.url), { requestInit: { headers: key(agent) } }));
  const listening = await client.listen({ resourceSubscriptions: [...POSTS] });
  return {
    received,
    close: async () => {
      await listening.close();
      await client.close();
    },
  };
}

/** Writes rows of a tenant until its own listener is notified; the listening stream may not be open before. */
async function heardBy(listener: Listener, org: string): Promise<void> {
  listener.received.splice(0);
  await vi.waitFor(
    async () => {
      await write('create_object', { fields: { title: 'x', org } });
      await new Promise((resolve) => setTimeout(resolve, 150));
      expect(new Set(listener.received)).toEqual(new Set(POSTS));
    },
    { timeout: 30_000, interval: 300 },
  );
  await new Promise((resolve) => setTimeout(resolve, 500));
  listener.received.splice(0);
}

describe.each([
  ['sessions', classic],
  ['2026-07-28', modern],
] as const)('two tenants that subscribe to the same addresses (%s)', (_, open) => {
  it('are each notified of their own rows, and of no other, whatever happens to them', async () => {
    const [acme, globex] = [await open('acme'), await open('globex')];
    await heardBy(acme, 'acme');
    await heardBy(globex, 'globex');
    acme.received.splice(0);

    const id = await write('create_object', { fields: { title: 'new', org: 'globex' } });
    await vi.waitFor(() => expect(new Set(globex.received)).toEqual(new Set(POSTS)), SOON);
    await write('update_object', { object_id: id, fields: { title: 'changed' } });
    await vi.waitFor(
      () => expect(globex.received.filter((uri) => uri === POSTS[1]).length).toBeGreaterThan(1),
      SOON,
    );
    expect(acme.received).toEqual([]);

    globex.received.splice(0);
    // It goes from one to the other: both are notified, once it is there.
    await write('update_object', { object_id: id, fields: { org: 'acme' } });
    await vi.waitFor(() => {
      expect(new Set(globex.received)).toEqual(new Set(POSTS));
      expect(new Set(acme.received)).toEqual(new Set(POSTS));
    }, SOON);
    await new Promise((resolve) => setTimeout(resolve, 500));
    globex.received.splice(0);
    acme.received.splice(0);

    await write('update_object', { object_id: id, fields: { title: 'again' } });
    await write('delete_object', { object_id: id });
    await vi.waitFor(() => expect(new Set(acme.received)).toEqual(new Set(POSTS)), SOON);
    expect(globex.received).toEqual([]);
    await acme.close();
    await globex.close();
  }, 90_000);
});

describe('a reload that gives an agent another tenant', () => {
  it('sends its subscriber nothing more of its former tenant', async () => {
    const subscriber = await classic('acme');
    await heardBy(subscriber, 'acme');
    service.reconfigure(configOf(database.uri, 'globex'));
    const rows = async () =>
      (await callTool(service, 'query_class', { class_name: 'Post', where: { org: 'globex' } }, key('acme')))
        .data['results'];
    await vi.waitFor(async () => expect((await rows()) as unknown[]).not.toHaveLength(0), SOON);
    // The stream was ended; its client comes back by itself, as what its key is now.
    await heardBy(subscriber, 'globex');
    const witness = await classic('writer');
    await heardBy(witness, 'acme');
    subscriber.received.splice(0);
    await write('create_object', { fields: { title: 'x', org: 'acme' } });
    await vi.waitFor(() => expect(witness.received.length).toBeGreaterThan(0), SOON);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(subscriber.received).toEqual([]);
    await subscriber.close();
    await witness.close();
  }, 120_000);
});

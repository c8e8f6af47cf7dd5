import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client as ClassicClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as ClassicTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { MongoClient, ObjectId } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  callTool,
  type Database,
  rpc,
  type Service,
  startDatabase,
  startService,
} from '../../support/service.js';

const SOON = { timeout: 30_000, interval: 25 };
const HIDDEN = 'HIDDEN-from-every-agent';
const COUNT = 'parse://Order/count';
const SAMPLES = 'parse://Order/samples';
const UNDECLARED = ['parse://secrets/count', 'parse://orders/samples', 'parse://Recent/samples'];
const UNKNOWN = 'Resource not found';
/** A view is a class, and the database reports no changes of it. */
const OF_A_VIEW = 'Changes of this class cannot be told to this agent';
const agent = (tenantId: string) => ({ tenantId, rateLimit: 1_000_000 });
const headers = (name: string) => ({ 'X-MCP-API-Key': name });

const classes = {
  Order: {
    collection: 'orders',
    properties: { number: { type: 'String' }, tenant: { type: 'String', field: 'tenant_id' } },
    fields: ['number', 'email'],
    masks: { email: 'mask' },
    tenantScope: { field: 'tenant' },
    filters: { status: { $ne: 'deleted' } },
  },
  Recent: { collection: 'recent', fields: ['number'] },
};

let database: Database;
let documents: MongoClient;
let service: Service;
beforeAll(async () => {
  database = await startDatabase({ schemas: [] });
  documents = new MongoClient(database.uriOf('shop'));
  await insert('acme');
  await documents.db().collection('secrets').insertOne({ text: HIDDEN });
  await documents.db().createCollection('recent', { viewOn: 'orders', pipeline: [] });
  service = await startService({
    config: {
      database: { uri: database.uriOf('shop'), storage: 'plain' },
      subscriptions: { debounce: 0.05 },
      agents: { acme: agent('acme'), globex: agent('globex') },
      auth: ['acme', 'globex'].map((name) => ({ apiKey: name, agent: name })),
      policy: { classes },
    },
  });
});
afterAll(async () => {
  await service.stop();
  await documents.close();
  await database.stop();
});

const orders = () => documents.db().collection('orders');
async function insert(tenant: string, more: object = {}): Promise<ObjectId> {
  const order = {
    number: 'A',
    tenant_id: tenant,
    status: 'open',
    email: `${HIDDEN}@example.com`,
    remark: HIDDEN,
  };
  return (await orders().insertOne({ ...order, createdAt: new Date(), updatedAt: new Date(), ...more }))
    .insertedId;
}

interface Listener {
  /** Whole notifications, as they came. */
  readonly received: { uri: string }[];
  readonly uris: () => string[];
  readonly close: () => Promise<void>;
}
const listener = (received: { uri: string }[], close: () => Promise<void>): Listener => ({
  received,
  uris: () => received.map(({ uri }) => uri),
  close,
});

async function classic(name: string): Promise<Listener> {
  const client = new ClassicClient({ name: 'scenario', version: '1.0.0' });
  const received: { uri: string }[] = [];
  client.setNotificationHandler(
    ResourceUpdatedNotificationSchema,
    ({ params }) => void received.push(params),
  );
  const transport = new ClassicTransport(new URL(service.url), { requestInit: { headers: headers(name) } });
  await client.connect(transport as never);
  for (const uri of [COUNT, SAMPLES]) await client.subscribeResource({ uri });
  for (const uri of UNDECLARED)
    await expect(client.subscribeResource({ uri })).rejects.toThrow(
      uri.includes('Recent') ? OF_A_VIEW : UNKNOWN,
    );
  return listener(received, () => client.close());
}

async function modern(name: string): Promise<Listener> {
  const client = new ModernClient({ name: 'scenario', version: '1.0.0' }, {
    versionNegotiation: { mode: { pin: '2026-07-28' } },
  } as never);
  const received: { uri: string }[] = [];
  client.setNotificationHandler(
    'notifications/resources/updated',
    ({ params }) => void received.push(params),
  );
  await client.connect(
    new ModernTransport(new URL(service.url), { requestInit: { headers: headers(name) } }),
  );
  const listening = await client.listen({ resourceSubscriptions: [COUNT, SAMPLES, ...UNDECLARED] });
  expect(listening.honoredFilter).toEqual({ resourceSubscriptions: [COUNT, SAMPLES] });
  return listener(received, async () => {
    await listening.close();
    await client.close();
  });
}

/** Writes until the listener is notified: its stream may not be open before. */
async function opened(one: Listener, tenant: string): Promise<void> {
  await vi.waitFor(
    async () => {
      await insert(tenant);
      await new Promise((resolve) => setTimeout(resolve, 150));
      expect(new Set(one.uris())).toEqual(new Set([COUNT, SAMPLES]));
    },
    { timeout: 30_000, interval: 300 },
  );
  await new Promise((resolve) => setTimeout(resolve, 500));
  one.received.splice(0);
}

describe.each([
  ['sessions', classic],
  ['2026-07-28', modern],
] as const)('subscribers of a plain class (%s)', (_, open) => {
  it('are notified of the rows of their tenant that the filter leaves, by the address alone', async () => {
    const [acme, globex] = [await open('acme'), await open('globex')];
    await opened(acme, 'acme');
    await opened(globex, 'globex');
    acme.received.splice(0);

    const id = await insert('globex');
    await vi.waitFor(() => expect(new Set(globex.uris())).toEqual(new Set([COUNT, SAMPLES])), SOON);
    globex.received.splice(0);
    await orders().updateOne({ _id: id }, { $set: { number: 'B', remark: `${HIDDEN}-2` } });
    await vi.waitFor(() => expect(globex.uris()).toContain(SAMPLES), SOON);
    await new Promise((resolve) => setTimeout(resolve, 300));
    const told = [...globex.received];
    await documents.db().collection('secrets').insertOne({ text: HIDDEN });
    await orders().deleteOne({ _id: id });
    await vi.waitFor(() => expect(globex.received.length).toBeGreaterThan(told.length), SOON);

    expect(acme.received).toEqual([]);
    for (const params of [...told, ...globex.received]) {
      expect(Object.keys(params).filter((key) => key !== '_meta')).toEqual(['uri']);
      expect(JSON.stringify(params)).not.toMatch(/HIDDEN|secrets|orders|remark|email|globex/);
    }
    await acme.close();
    await globex.close();
  }, 60_000);
});

describe('what a subscriber and a view of results read of a plain class', () => {
  it('has readable columns, masked ones masked, and nothing else', async () => {
    for (const uri of [COUNT, SAMPLES, 'parse://Order/schema']) {
      const { text, body } = await rpc(service, 'resources/read', { uri }, headers('acme'));
      expect([uri, body.error]).toEqual([uri, undefined]);
      expect([uri, /HIDDEN|tenant_id|remark|"_id\\"|orders/.exec(text)?.[0]]).toEqual([uri, undefined]);
    }
    for (const uri of ['parse://secrets/samples', 'parse://orders/samples'])
      expect((await rpc(service, 'resources/read', { uri }, headers('acme'))).body.error).toBeDefined();
    expect(
      (await rpc(service, 'resources/read', { uri: 'ui://parley/results' }, headers('acme'))).text,
    ).toContain('html');
    const { wire, data } = await callTool(service, 'query_class', { class_name: 'Order' }, headers('acme'));
    expect((data['results'] as object[])[0]).toHaveProperty('email');
    expect(wire).not.toMatch(/HIDDEN|tenant_id|remark|orders/);
  });
});

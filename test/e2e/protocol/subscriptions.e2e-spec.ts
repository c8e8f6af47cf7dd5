import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client as ClassicClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as ClassicTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type ParseServerProcess, startParseServer } from '../../support/parse-server-process.js';
import {
  callTool,
  type Database,
  rpc,
  type Service,
  startDatabase,
  startService,
} from '../../support/service.js';

const SOON = { timeout: 30_000, interval: 25 };
const POSTS = 'parse://Post/count';
const NOTES = 'parse://Note/samples';
const PROBES = 'parse://Probe/count';
const bob = { 'X-Parse-Session-Token': 'r:bob' };
const LATER = '2099-01-01T00:00:00.000Z';

const SEED = {
  schemas: [
    {
      className: 'Post',
      fields: { title: { type: 'String' }, org: { type: 'String' }, n: { type: 'Number' } },
    },
    { className: 'Probe', fields: { n: { type: 'Number' } } },
    { className: 'Note', fields: { text: { type: 'String' } } },
    { className: 'Secret', fields: { clause: { type: 'String' } } },
  ],
  users: ['ada', 'bob'].map((name) => ({ objectId: name, username: name, password: `${name}-secret` })),
  sessions: ['ada', 'bob'].map((user) => ({ sessionToken: `r:${user}`, user, expiresAt: LATER })),
  objects: { Post: [{ objectId: 'first', title: 'first', org: 'acme' }] },
};

const WRITES = { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' };
const key = (name: string) => ({ 'X-MCP-API-Key': name });

const configOf = (uri: string, parse: object = {}) => ({
  database: { uri, name: 'parley' },
  parse,
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
    unlistedClasses: 'allow',
    classes: { Post: { tenantScope: { field: 'org', bypass: ['admin'] } }, Secret: { hidden: true } },
  },
});

let database: Database;
let service: Service;
beforeAll(async () => {
  database = await startDatabase(SEED);
  service = await startService({ config: configOf(database.uri), env: WRITES });
});

const create = async (className: string, fields: object): Promise<string> => {
  const { data } = await callTool(service, 'create_object', { class_name: className, fields }, key('writer'));
  return String((data['object'] as { objectId: string } | undefined)?.objectId);
};
/** The notes as they are stored, for what no tool writes. */
const openNotes = () => {
  const mongo = new MongoClient(database.uri);
  return {
    notes: mongo.db('parley').collection<{ _id: string; [column: string]: unknown }>('Note'),
    close: () => mongo.close(),
  };
};

/**
 * The official client of the revisions with sessions, and the addresses of the notifications it received. Its listening stream opens by
 * itself, at some time after it has connected; it is returned once that carries updates.
 */
async function classic(
  headers: Record<string, string>,
  at = service,
): Promise<{ client: ClassicClient; received: string[] }> {
  const client = new ClassicClient({ name: 'scenario', version: '1.0.0' });
  const received: string[] = [];
  let open = false;
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
    if (params.uri === PROBES) open = true;
    else received.push(params.uri);
  });
  await client.connect(new ClassicTransport(new URL(at.url), { requestInit: { headers } }) as never);
  await client.subscribeResource({ uri: PROBES });
  await vi.waitFor(
    async () => {
      await create('Probe', { n: 1 });
      expect(open).toBe(true);
    },
    { timeout: 30_000, interval: 200 },
  );
  await client.unsubscribeResource({ uri: PROBES });
  return { client, received };
}

describe('the official client v1', () => {
  it('is notified that a resource changed, and reads the new value itself', async () => {
    const { client, received } = await classic(key('writer'));
    expect(client.getServerCapabilities()?.resources).toMatchObject({ subscribe: true });
    await client.subscribeResource({ uri: POSTS });
    await create('Post', { org: 'acme' });
    await vi.waitFor(() => expect(received).toEqual([POSTS]), SOON);
    const read = await client.readResource({ uri: POSTS });
    expect(JSON.stringify(read)).toContain('count');
    await client.unsubscribeResource({ uri: POSTS });
    await client.close();
  });

  it('hears nothing of another tenant', async () => {
    const { client, received } = await classic(key('acme'));
    const witness = await classic(key('globex'));
    await client.subscribeResource({ uri: POSTS });
    await witness.client.subscribeResource({ uri: POSTS });
    for (let made = 1; made <= 5; made += 1) {
      await create('Post', { org: 'globex' });
      await vi.waitFor(() => expect(witness.received).toHaveLength(made), SOON);
    }
    expect(received).toEqual([]);
    await create('Post', { org: 'acme' });
    await vi.waitFor(() => expect(received).toEqual([POSTS]), SOON);
    await client.close();
    await witness.client.close();
  });

  it('hears of a row from the moment its rights make it visible', async () => {
    const { client, received } = await classic(bob);
    const witness = await classic(key('writer'));
    await client.subscribeResource({ uri: NOTES });
    await witness.client.subscribeResource({ uri: NOTES });
    const { notes, close } = openNotes();
    await notes.insertOne({ _id: 'shared', _rperm: ['ada'], _wperm: [], _updated_at: new Date() });
    await vi.waitFor(() => expect(witness.received).toHaveLength(1), SOON);
    expect(received).toEqual([]);
    await notes.updateOne({ _id: 'shared' }, { $set: { _rperm: ['bob'], _updated_at: new Date() } });
    await close();
    await vi.waitFor(() => expect(received).toEqual([NOTES]), SOON);
    await client.close();
    await witness.client.close();
  });

  it.each([
    ['a hidden class', 'parse://Secret/count', 'Resource not found'],
    ['a schema', 'parse://Note/schema', 'not subscribable'],
    ['another address', 'file:///etc/passwd', 'Invalid resource URI'],
  ])('is refused %s', async (_, uri, message) => {
    const { client } = await classic(key('writer'));
    await expect(client.subscribeResource({ uri })).rejects.toThrow(message);
    await client.close();
  });

  it('is notified of ten thousand changes in few updates', async () => {
    const { client, received } = await classic(key('writer'));
    await client.subscribeResource({ uri: NOTES });
    const { notes, close } = openNotes();
    for (let batch = 0; batch < 10; batch += 1) {
      const at = new Date();
      await notes.insertMany(
        Array.from({ length: 1000 }, (_, index) => ({
          _id: `flood${batch}x${index}`,
          _created_at: at,
          _updated_at: at,
        })),
      );
    }
    await close();
    await vi.waitFor(async () => {
      const { data } = await callTool(service, 'count_objects', { class_name: 'Note' }, key('writer'));
      expect(data['count']).toBeGreaterThanOrEqual(10_000);
      expect(received.length).toBeGreaterThan(0);
    }, SOON);
    expect(received.length).toBeLessThan(1000);
    await client.close();
  });
});

describe('a request without the power', () => {
  it('to subscribe is refused: no session, or somebody else\u2019s', async () => {
    const opened = await rpc(service, 'initialize', { protocolVersion: '2025-06-18' }, key('writer'));
    const session = opened.headers.get('mcp-session-id') ?? '';
    for (const headers of [key('writer'), { ...key('acme'), 'Mcp-Session-Id': session }]) {
      const { body } = await rpc(service, 'resources/subscribe', { uri: NOTES }, headers);
      expect(body.error).toMatchObject({ code: -32602 });
    }
    const own = { ...key('writer'), 'Mcp-Session-Id': session };
    expect((await rpc(service, 'resources/subscribe', { uri: NOTES }, own)).body['result']).toEqual({});
    expect((await rpc(service, 'resources/unsubscribe', { uri: 'nonsense' }, own)).body['result']).toEqual(
      {},
    );
  });
});

describe('the official client v2, in the stateless era', () => {
  it('listens to what it may, and is notified of that', async () => {
    const client = new ModernClient({ name: 'scenario', version: '1.0.0' }, {
      versionNegotiation: { mode: { pin: '2026-07-28' } },
    } as never);
    const received: string[] = [];
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => {
      received.push(params.uri);
    });
    await client.connect(
      new ModernTransport(new URL(service.url), { requestInit: { headers: key('acme') } }),
    );
    const listening = await client.listen({
      resourceSubscriptions: [POSTS, 'parse://Secret/count'],
      toolsListChanged: true,
      resourcesListChanged: true,
    });
    expect(listening.honoredFilter).toEqual({ resourceSubscriptions: [POSTS], toolsListChanged: true });
    await create('Post', { org: 'acme' });
    await vi.waitFor(() => expect(received).toEqual([POSTS]), SOON);
    await listening.close();
    await client.close();
  });
});

describe('over LiveQuery of a real Parse Server', () => {
  let parse: ParseServerProcess;
  let live: Service;
  const start = (port = 0) => {
    const uri = new URL(database.uri);
    uri.pathname = '/parley';
    return startParseServer(uri.toString(), {
      port,
      liveQueryClasses: ['Note', 'Post', 'Probe'],
      liveQueryKeyPairs: { masterKey: 'oracle-master', restAPIKey: 'oracle-rest' },
    });
  };
  beforeAll(async () => {
    parse = await start();
    live = await startService({
      config: configOf(database.uri, {
        liveQueryUrl: parse.liveQueryUrl,
        appId: parse.appId,
        masterKey: parse.masterKey,
        restApiKey: parse.restAPIKey,
      }),
      env: WRITES,
    });
  });
  afterAll(async () => {
    await live.stop();
    await parse.close();
  });

  const write = (method: string, path: string, body: object) =>
    parse.call(method, path, { body, master: true });

  /** Connected and listening: Parse Server reports what is written through it. */
  async function listening(headers: Record<string, string>, uri: string) {
    const client = new ClassicClient({ name: 'scenario', version: '1.0.0' });
    const received: string[] = [];
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
      received.push(params.uri);
    });
    await client.connect(new ClassicTransport(new URL(live.url), { requestInit: { headers } }) as never);
    await client.subscribeResource({ uri: PROBES });
    await vi.waitFor(
      async () => {
        await write('POST', '/classes/Probe', {});
        expect(received).toContain(PROBES);
      },
      { timeout: 30_000, interval: 200 },
    );
    await client.unsubscribeResource({ uri: PROBES });
    await client.subscribeResource({ uri });
    return { client, heard: () => received.filter((one) => one === uri) };
  }

  it('notifies a user of the rows that user may read, and of no other', async () => {
    const user = await listening(bob, NOTES);
    const witness = await listening(key('writer'), NOTES);
    const { body } = await write('POST', '/classes/Note', { text: 'x', ACL: { ada: { read: true } } });
    await vi.waitFor(() => expect(witness.heard()).toHaveLength(1), SOON);
    expect(user.heard()).toEqual([]);
    await write('PUT', `/classes/Note/${String(body['objectId'])}`, { ACL: { bob: { read: true } } });
    await vi.waitFor(() => expect(user.heard()).toHaveLength(1), SOON);
    await write('PUT', `/classes/Note/${String(body['objectId'])}`, { ACL: { ada: { read: true } } });
    await vi.waitFor(() => expect(user.heard()).toHaveLength(2), SOON);
    await user.client.close();
    await witness.client.close();
  });

  it('sends a tenant nothing of another one', async () => {
    const acme = await listening(key('acme'), POSTS);
    const globex = await listening(key('globex'), POSTS);
    await write('POST', '/classes/Post', { org: 'globex' });
    await vi.waitFor(() => expect(globex.heard()).toHaveLength(1), SOON);
    expect(acme.heard()).toEqual([]);
    await write('POST', '/classes/Post', { org: 'acme' });
    await vi.waitFor(() => expect(acme.heard()).toHaveLength(1), SOON);
    await acme.client.close();
    await globex.client.close();
  });

  it('comes back by itself when the server was killed, says that something may have been missed, and goes on', async () => {
    const user = await listening(bob, NOTES);
    const port = Number(new URL(parse.url).port);
    await parse.close();
    parse = await start(port);
    await vi.waitFor(() => expect(user.heard()).toHaveLength(1), { timeout: 150_000, interval: 100 });
    await write('POST', '/classes/Note', { text: 'after' });
    await vi.waitFor(() => expect(user.heard()).toHaveLength(2), SOON);
    expect(live.output().stderr).toContain('[LiveQuery]');
    expect(live.output().stderr).not.toContain(parse.masterKey);
    await user.client.close();
  }, 200_000);
});

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { type FaultyProxy, type ProxyFault, startFaultyProxy } from '../../support/faulty-proxy.js';
import { ParseUnderTest } from '../../support/parse-under-test.js';
import { callTool, type Service, startService, type ToolAnswer, WRITES_OPEN } from '../../support/service.js';

const SOON = { timeout: 30_000, interval: 50 };
const PROBES = 'parse://Probe/count';
const NOTES = 'parse://Note/count';
const KEY = { 'X-MCP-API-Key': 'key-operator' };
const SESSION = { 'X-MCP-API-Key': 'key-session', 'X-Parse-Session-Token': 'r:session-of-ada' };

const SEED = {
  schemas: [
    { className: 'Note', fields: { title: { type: 'String' }, n: { type: 'Number' } } },
    { className: 'Probe', fields: { n: { type: 'Number' } } },
  ],
  users: [{ objectId: 'ada', username: 'ada' }],
  sessions: [{ sessionToken: 'r:session-of-ada', user: 'ada', expiresAt: '2099-01-01T00:00:00.000Z' }],
  objects: { Note: [{ objectId: 'first', title: 'first', n: 1 }] },
};

let parse: ParseUnderTest;
let proxy: FaultyProxy;
let service: Service;
beforeAll(async () => {
  parse = await ParseUnderTest.start({
    liveQueryClasses: ['Note', 'Probe'],
    liveQueryKeyPairs: { masterKey: 'oracle-master', restAPIKey: 'oracle-rest' },
  });
  await parse.fill(SEED);
  proxy = await startFaultyProxy(Number(new URL(parse.server.url).port));
  const writer = { permissions: 'admin', rateLimit: 1_000_000 };
  service = await startService({
    config: {
      database: { uri: parse.databaseUri, name: parse.databaseName },
      parse: {
        ...parse.config,
        serverUrl: `http://127.0.0.1:${proxy.port}/parse`,
        liveQueryUrl: `ws://127.0.0.1:${proxy.port}`,
      },
      subscriptions: { debounce: 0.05 },
      agents: { operator: writer, session: { ...writer, identity: { session: 'caller' } } },
      auth: ['operator', 'session'].map((agent) => ({ apiKey: `key-${agent}`, agent })),
      policy: { unlistedClasses: 'allow', classes: { Note: {}, Probe: {} } },
    },
    env: WRITES_OPEN,
  });
}, 180_000);
afterAll(async () => {
  await service?.stop();
  await proxy?.close();
  await parse?.stop();
});
afterEach(() => proxy.heal());

const call = (tool: string, args: object, headers: Record<string, string> = KEY): Promise<ToolAnswer> =>
  callTool(service, tool, { class_name: 'Note', ...args }, headers);

/** What of the server's side, of our program or of the request no caller reads. */
function expectNothingInternal(answer: ToolAnswer): void {
  for (const text of [
    String(proxy.port),
    'oracle',
    '127.0.0.1',
    'fetch',
    'undici',
    'ECONN',
    'objectId',
    '<html',
  ])
    expect(answer.text).not.toContain(text);
  expect(answer.text).not.toMatch(/\bat .*:\d+:\d+|TypeError|RangeError|SyntaxError/);
}

const html = '<html><body><h1>502 Bad Gateway</h1><hr>nginx 10.0.0.7 oracle-master</body></html>';
const page = (status: number): ProxyFault => ({
  kind: 'answer',
  status,
  body: html,
  headers: { 'content-type': 'text/html' },
});
const answer = (status: number, body: unknown): ProxyFault => ({
  kind: 'answer',
  status,
  body: typeof body === 'string' ? body : JSON.stringify(body),
});
const nested = (levels: number) =>
  `{"results":[{"objectId":"a","n":${'['.repeat(levels)}${']'.repeat(levels)}}]}`;

const UNAVAILABLE = /^Parse error: Parse Server does not answer$/;
const FAILED = /^Parse error: Parse Server could not complete the operation$/;

describe('a read while Parse Server fails', { timeout: 60_000 }, () => {
  it.each<[string, ProxyFault, string, RegExp]>([
    ['closes the connection', { kind: 'before' }, 'parse_error', UNAVAILABLE],
    ['closes it in the middle of its answer', { kind: 'half' }, 'parse_error', UNAVAILABLE],
    ['answers with an error of its own', answer(500, { code: 1, error: 'oracle' }), 'parse_error', FAILED],
    [
      'answers that its database is gone',
      answer(500, { code: 100, error: 'oracle' }),
      'parse_error',
      UNAVAILABLE,
    ],
    ['answers 500 without a body', answer(500, ''), 'parse_error', UNAVAILABLE],
    ['stands behind a gateway that cannot reach it', page(502), 'parse_error', UNAVAILABLE],
    ['stands behind a gateway that gave up', page(504), 'parse_error', UNAVAILABLE],
    ['answers with a page', page(200), 'parse_error', FAILED],
    ['answers nothing', answer(200, ''), 'parse_error', FAILED],
    ['answers half of an answer', answer(200, '{"results":[{"objectId":"a"'), 'parse_error', FAILED],
    ['answers a list', answer(200, []), 'parse_error', FAILED],
    ['answers with success and an error', answer(200, { code: 119, error: 'oracle' }), 'parse_error', FAILED],
    ['answers without results', answer(200, {}), 'parse_error', FAILED],
    ['answers with results that are no list', answer(200, { results: { a: 1 } }), 'parse_error', FAILED],
    ['answers with results that are no rows', answer(200, { results: [1, null] }), 'parse_error', FAILED],
    ['answers with a row without an id', answer(200, { results: [{ title: 'x' }] }), 'parse_error', FAILED],
    ['answers with values nested without end', answer(200, nested(200_000)), 'parse_error', FAILED],
    [
      'answers with far too much',
      answer(200, `{"results":[${'0,'.repeat(700_000)}0]}`),
      'invalid_query',
      /./,
    ],
    [
      'sends the caller elsewhere',
      { kind: 'answer', status: 302, body: '', headers: { location: 'http://169.254.169.254/' } },
      'parse_error',
      FAILED,
    ],
    ['does not know the application', answer(403, { error: 'unauthorized' }), 'parse_error', FAILED],
  ])(
    'that %s is refused with a reason, shows nothing internal, and works once it is well',
    async (_, fault, code, text) => {
      for (const headers of [KEY, SESSION]) {
        proxy.fail(fault, /\/classes\/Note/);
        const began = performance.now();
        const got = await call('query_class', { limit: 5 }, headers);
        expect(got).toMatchObject({ isError: true, code });
        expect(got.text).toMatch(text);
        expect(performance.now() - began).toBeLessThan(10_000);
        expect(proxy.struck.length).toBeGreaterThan(0);
        expectNothingInternal(got);
        await proxy.heal();
        expect(await call('query_class', { limit: 5 }, headers)).toMatchObject({ isError: false });
      }
    },
  );

  it('that hangs ends with the deadline of the tool', async () => {
    proxy.fail({ kind: 'hang' }, /\/classes\/Note/);
    const began = performance.now();
    const got = await call('get_object', { object_id: 'first' });
    expect(got).toMatchObject({ isError: true, code: 'timeout' });
    expect(performance.now() - began).toBeLessThan(12_000);
    expectNothingInternal(got);
    await proxy.heal();
    expect(await call('get_object', { object_id: 'first' })).toMatchObject({ isError: false });
  });

  it('that is down is refused, also for a session whose user it knows, and works once it is back', async () => {
    await proxy.down();
    for (const headers of [KEY, SESSION]) {
      const got = await call('query_class', { limit: 5 }, headers);
      expect(got).toMatchObject({ isError: true, code: 'parse_error' });
      expect(got.text).toMatch(UNAVAILABLE);
      expectNothingInternal(got);
    }
    await proxy.heal();
    for (const headers of [KEY, SESSION])
      expect(await call('query_class', { limit: 5 }, headers)).toMatchObject({ isError: false });
  });
});

describe('a write while Parse Server fails', { timeout: 60_000 }, () => {
  const rows = (where: object) => parse.database.collection('Note').find(where).toArray();
  let sequence = 0;
  const made = async () => {
    const title = `title-${(sequence += 1)}`;
    const { data } = await call('create_object', { fields: { title, n: 1 } });
    return { title, object_id: String(data['object_id']) };
  };
  /** Each write, how it reaches the server, and how often it was done to a row with `n` 1. */
  const WRITES = {
    create_object: {
      sent: /^POST \/parse\/classes\/Note/,
      done: async (title: string) => (await rows({ title })).length - 1,
    },
    update_object: {
      sent: /^PUT \/parse\/classes\/Note/,
      done: async (title: string) => (((await rows({ title }))[0]?.['n'] as number) - 1) / 10,
    },
    delete_object: {
      sent: /^DELETE \/parse\/classes\/Note/,
      done: async (title: string) => 1 - (await rows({ title })).length,
    },
  } as const;
  const argsOf = {
    create_object: ({ title }: { title: string }) => ({ fields: { title, n: 7 } }),
    update_object: ({ object_id }: { object_id: string }) => ({
      object_id,
      fields: { n: { __op: 'Increment', amount: 10 } },
    }),
    delete_object: ({ object_id }: { object_id: string }) => ({ object_id }),
  };
  const tools = Object.keys(WRITES) as (keyof typeof WRITES)[];

  it.each<[string, ProxyFault, boolean]>([
    ['whose answer is lost', { kind: 'after' }, true],
    ['whose answer is cut', { kind: 'half' }, true],
    ['that is answered with a page', { kind: 'instead', body: html }, true],
    [
      'that is answered with success and an error',
      { kind: 'instead', body: '{"code":119,"error":"oracle"}' },
      true,
    ],
    ['that is answered with something else', { kind: 'instead', body: '{"results":[]}' }, true],
    ['that a gateway answers', page(502), false],
    ['that fails inside the server', answer(500, { code: 1, error: 'oracle' }), false],
    ['whose connection is closed', { kind: 'before' }, false],
  ])('%s is said to be unknown, and is sent once', async (_, fault, isDone) => {
    for (const headers of [KEY, SESSION])
      for (const tool of tools) {
        const row = await made();
        proxy.fail(fault, WRITES[tool].sent);
        const got = await call(tool, argsOf[tool](row), headers);
        expect(got).toMatchObject({ isError: true, code: 'parse_error', details: { outcome: 'unknown' } });
        expect(got.text).toMatch(/not known: read the object before you try again/);
        expectNothingInternal(got);
        expect(proxy.struck).toHaveLength(1);
        await proxy.heal();
        await expect.poll(() => WRITES[tool].done(row.title), SOON).toBe(isDone ? 1 : 0);
      }
  });

  it.each<[string, ProxyFault]>([
    ['is refused before it is looked at', answer(403, { error: 'unauthorized' })],
    ['is refused by a rule', answer(403, { code: 119, error: 'oracle' })],
    [
      'is sent elsewhere',
      { kind: 'answer', status: 307, body: '', headers: { location: 'http://169.254.169.254/' } },
    ],
  ])('that %s is a refusal that leaves no doubt', async (_, fault) => {
    for (const tool of tools) {
      const row = await made();
      proxy.fail(fault, WRITES[tool].sent);
      const got = await call(tool, argsOf[tool](row));
      expect(got.isError).toBe(true);
      expect(got.details?.['outcome']).toBeUndefined();
      expectNothingInternal(got);
      expect(proxy.struck).toHaveLength(1);
      await proxy.heal();
      expect(await WRITES[tool].done(row.title)).toBe(0);
    }
  });

  it('that never reaches it leaves no doubt either, and works once it is back', async () => {
    const row = await made();
    await proxy.down();
    for (const tool of tools) {
      const got = await call(tool, argsOf[tool](row));
      expect(got).toMatchObject({ isError: true, code: 'parse_error' });
      expect(got.details?.['outcome']).toBeUndefined();
    }
    await proxy.heal();
    expect(await call('update_object', argsOf.update_object(row))).toMatchObject({ isError: false });
    expect(await WRITES.update_object.done(row.title)).toBe(1);
  });
});

describe('a subscription over LiveQuery', { timeout: 120_000 }, () => {
  const write = (path: string, body: object = {}) =>
    parse.server.call('POST', `/classes/${path}`, { body, master: true });

  async function listening() {
    const client = new Client({ name: 'scenario', version: '1.0.0' });
    const received: string[] = [];
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
      received.push(params.uri);
    });
    await client.connect(
      new StreamableHTTPClientTransport(new URL(service.url), { requestInit: { headers: SESSION } }) as never,
    );
    await client.subscribeResource({ uri: PROBES });
    await vi.waitFor(async () => {
      await write('Probe');
      expect(received).toContain(PROBES);
    }, SOON);
    await client.unsubscribeResource({ uri: PROBES });
    await client.subscribeResource({ uri: NOTES });
    return { client, notified: () => received.filter((uri) => uri === NOTES).length };
  }
  const quiet = () => new Promise((resolve) => setTimeout(resolve, 700));

  it('whose socket is cut under change reports each change once, and the gap once', async () => {
    const { client, notified } = await listening();
    await write('Note', { title: 'before' });
    await vi.waitFor(() => expect(notified()).toBe(1), SOON);
    for (let turn = 0; turn < 2; turn += 1) {
      const before = notified();
      proxy.cutSockets();
      await write('Note', { title: 'nobody listens' });
      await write('Note', { title: 'nobody listens' });
      await vi.waitFor(() => expect(notified()).toBe(before + 1), SOON);
      await quiet();
      expect(notified()).toBe(before + 1);
      await write('Note', { title: 'after' });
      await vi.waitFor(() => expect(notified()).toBe(before + 2), SOON);
      await quiet();
      expect(notified()).toBe(before + 2);
    }
    await client.close();
  });

  it('goes on when the server comes back after a while', async () => {
    const { client, notified } = await listening();
    await proxy.down();
    await write('Note', { title: 'nobody listens' });
    await quiet();
    expect(notified()).toBe(0);
    await proxy.heal();
    await vi.waitFor(() => expect(notified()).toBe(1), SOON);
    await write('Note', { title: 'after' });
    await vi.waitFor(() => expect(notified()).toBe(2), SOON);
    await quiet();
    expect(notified()).toBe(2);
    await client.close();
  });
});

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  CLEAR,
  CUSTOMERS,
  type CustomersAgent,
  customersConfig,
  SALARIES,
} from '../../fixtures/masked-customers.fixture.js';
import {
  callTool,
  type Database,
  rpc,
  type Service,
  startDatabase,
  startService,
} from '../../support/service.js';

const about = { class_name: 'Customer' };
const SAMPLES = 'parse://Customer/samples';
const COLUMNS = ['objectId', 'email', 'salary', 'card', 'address', 'scan', 'manager'];
const key = (name: CustomersAgent) => ({ 'X-MCP-API-Key': `key-${name}` });

let database: Database;
let service: Service;
let mongo: MongoClient;
beforeAll(async () => {
  database = await startDatabase(CUSTOMERS);
  mongo = new MongoClient(database.uri);
  service = await startService({
    config: {
      ...customersConfig('http://127.0.0.1:9/v1'),
      database: { uri: database.uri, name: 'parley' },
      subscriptions: { debounce: 0.05 },
    },
    env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
  });
});
afterAll(async () => {
  await service?.stop();
  await mongo?.close();
  await database?.stop();
});

type Row = Record<string, unknown>;

/** Nothing that only exists in clear may stand in what agents below admin get. */
const expectMasked = (text: string) =>
  expect([CLEAR, ...SALARIES.map(String)].filter((trace) => text.includes(trace))).toEqual([]);

async function order(name: CustomersAgent, args: object) {
  const answer = await callTool(
    service,
    'export_data',
    { ...about, delivery: 'resource', ...args },
    key(name),
  );
  const { path, uri } = answer.data as { path?: string; uri?: string };
  return { ...answer, path: String(path), uri: String(uri) };
}
const download = async (path: string, name: CustomersAgent) =>
  (await fetch(service.origin + path, { headers: key(name) })).text();

describe('an export that is fetched later', () => {
  it('holds the masked forms of an answer, in every format, downloaded and read as a resource', async () => {
    const { data } = await callTool(service, 'query_class', { ...about, order: 'objectId' }, key('reader'));
    const [first] = data['results'] as Row[];
    for (const format of ['csv', 'ndjson', 'markdown']) {
      const { path, uri } = await order('reader', { format, columns: COLUMNS });
      const read = await rpc(service, 'resources/read', { uri }, key('reader'));
      for (const text of [await download(path, 'reader'), read.text]) {
        expectMasked(text);
        expect(text).toContain(String(first?.['email']));
        expect(text).toContain('***0001');
      }
    }
  });

  it.each(['reader', 'admin', 'ada'] as const)(
    'without columns has in a table for %s every column that its rows have, also one with a part that is withheld',
    async (name) => {
      const [rows, table] = await Promise.all(
        ['ndjson', 'csv'].map(async (format) => download((await order(name, { format })).path, name)),
      );
      const named = (rows ?? '')
        .split('\n')
        .flatMap((line) => (line === '' ? [] : Object.keys(JSON.parse(line))));
      const [head = ''] = (table ?? '').split('\r\n');
      expect(head.split(',').toSorted()).toEqual([...new Set(named)].toSorted());
      expect(named).toContain('profile');
      for (const text of [rows, table]) expect(text).not.toContain(`${CLEAR}-pin`);
    },
  );

  it('is refused where an answer would be: by a filter on a masked field, and by keys that name a denied one', async () => {
    for (const args of [
      { where: { email: 'x' } },
      { where: { $nor: [{ ssn: 'x' }] } },
      { keys: ['token'] },
    ]) {
      const { isError, code } = await order('reader', args);
      expect([args, isError, code]).toEqual([args, true, 'access_denied']);
    }
  });

  it('has an empty column for a dropped field as for one that never was, and none for a denied one', async () => {
    const headed = async (name: string) => {
      const { path } = await order('reader', { columns: ['name', name] });
      return (await download(path, 'reader')).replaceAll(name, '<name>');
    };
    expect(await headed('ssn')).toBe(await headed('xyz'));
    const denied = await order('reader', { columns: ['name', 'token'] });
    expect([denied.isError, denied.code]).toEqual([true, 'access_denied']);
  });

  it('holds nothing of a column that permissions withhold as well, in no form', async () => {
    const { path } = await order('ada', { format: 'ndjson', columns: COLUMNS });
    const [row = '{}'] = (await download(path, 'ada')).split('\n');
    expect(JSON.parse(row)).toMatchObject({ salary: '***', scan: null });
    const { path: whole } = await order('ada', { format: 'ndjson' });
    expect(await download(whole, 'ada')).not.toContain('scan');
  });
});

describe('a subscription', () => {
  it('reports that a row changed and no more, whatever column it was; reading then is masked', async () => {
    const client = new Client({ name: 'scenario', version: '1.0.0' });
    const received: string[] = [];
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
      received.push(JSON.stringify(params));
    });
    const requestInit = { headers: key('reader') };
    await client.connect(new StreamableHTTPClientTransport(new URL(service.url), { requestInit }) as never);
    await client.subscribeResource({ uri: SAMPLES });
    const customers = mongo.db('parley').collection<{ _id: string; email: string }>('Customer');
    let written = 0;
    await vi.waitFor(
      async () => {
        written += 1;
        await customers.updateOne(
          { _id: 'c1' },
          { $set: { email: `${CLEAR}-new-${written}`, _updated_at: new Date() } },
        );
        expect(received.length).toBeGreaterThan(0);
      },
      { timeout: 30_000, interval: 200 },
    );
    for (const one of received) expect(JSON.parse(one)).toEqual({ uri: SAMPLES });
    expectMasked(JSON.stringify(await client.readResource({ uri: SAMPLES })));
    await client.close();
  });
});

describe('a write to a class with masks', () => {
  const failing = (mode: string) =>
    mongo.db('admin').command({
      configureFailPoint: 'failCommand',
      mode,
      data: { failCommands: ['listIndexes'], errorCode: 13 },
    });
  const update = (class_name: string, object_id: string, fields: object) =>
    callTool(service, 'update_object', { class_name, object_id, fields }, key('writer'));

  it('is refused while the database does not list which indexes are unique, and no other write is', async () => {
    await failing('alwaysOn');
    const refused = await update('Customer', 'c2', { city: 'Chur' });
    expect([refused.isError, refused.code]).toEqual([true, 'parse_error']);
    expect((await update('Order', 'o1', { title: 'other' })).isError).toBe(false);
    await failing('off');
    const answer = await update('Customer', 'c2', { city: 'Chur' });
    expect(answer.data['object']).toMatchObject({ city: 'Chur', salary: '***' });
  });
});

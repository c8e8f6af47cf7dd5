import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Decimal128, Long, MongoClient, ObjectId } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  callTool,
  type Database,
  GATES_OPEN,
  rpc,
  type Service,
  startDatabase,
  startService,
} from '../../support/service.js';

const HIDDEN = 'HIDDEN-from-every-agent';
const TENANT = new ObjectId();
const OTHER_TENANT = new ObjectId();
const ADA = new ObjectId();
const BOB = new ObjectId();
const DIGITS = '12345678901234567890.10';
const free = { rateLimit: 1_000_000, permissions: 'admin' };

const ORDER = {
  collection: 'orders',
  id: 'objectId',
  timestamps: { createdAt: 'created', updatedAt: 'modified' },
  description: 'What somebody bought',
  properties: {
    number: { type: 'String' },
    status: { type: 'String', enum: { open: null, paid: null } },
    customer: { type: 'Pointer', targetClass: 'Customer', field: 'customer_id' },
    total: { type: 'Number' },
    lines: { type: 'Array', of: { sku: 'String', qty: 'Number' } },
    meta: { type: 'Object', of: { channel: 'String', stock: { type: 'Object', of: { place: 'String' } } } },
    tenant: { type: 'String', field: 'tenant_id' },
  },
  fields: ['number', 'status', 'customer', 'total', 'lines', 'meta', 'visits', 'tenant'],
  tenantScope: { field: 'tenant' },
  filters: { status: { $ne: 'deleted' } },
};
const CLASSES = {
  Order: ORDER,
  Customer: {
    collection: 'customers',
    description: 'Who buys',
    properties: { name: { type: 'String' }, email: { type: 'String' }, secret: { type: 'String' } },
    fields: ['name', 'email'],
  },
  Own: { collection: 'orders', fields: ['number'], filters: { owner_id: { $agent: 'user' } } },
};

const order = (number: string, more: object = {}) => ({
  _id: new ObjectId(),
  number,
  status: 'open',
  customer_id: ADA,
  total: Decimal128.fromString('10.50'),
  lines: [{ sku: 'a', qty: 1 }],
  meta: { channel: 'web', stock: { place: 'north' } },
  visits: Long.fromString('9007199254740993'),
  tenant_id: TENANT,
  owner_id: 'ada',
  created: new Date('2025-01-02T03:04:05.000Z'),
  modified: new Date('2025-01-02T03:04:05.000Z'),
  ...more,
});
const ROWS = [
  order('A-1', { total: Decimal128.fromString(DIGITS) }),
  order('A-2', {
    customer_id: BOB,
    lines: [
      { sku: 'a', qty: 1 },
      { sku: 'shop', qty: 1 },
    ],
    meta: { channel: 'shop', stock: { place: 'south' } },
  }),
  order('A-3', { status: 'paid' }),
  order('A-4', { status: 'deleted', number: HIDDEN }),
  order('B-1', { tenant_id: OTHER_TENANT, number: HIDDEN }),
];

const configOf = (uri: string, classes: object) => ({
  database: { uri, storage: 'plain' },
  reload: { interval: 0.2 },
  agents: { shop: { ...free, tenantId: TENANT.toHexString() }, none: free },
  auth: ['shop', 'none'].map((agent) => ({ apiKey: agent, agent })),
  policy: { requireApprovalFor: ['write'], classes },
});

let database: Database;
let address: string;
let documents: MongoClient;
let service: Service;
let client: Client;
beforeAll(async () => {
  database = await startDatabase({ schemas: [] });
  documents = new MongoClient(database.uriOf('shop'));
  const db = documents.db('shop');
  await db.collection('orders').insertMany(ROWS);
  await db.collection('customers').insertMany([
    { _id: ADA, name: 'Ada', email: 'ada@example.com', secret: HIDDEN },
    { _id: BOB, name: 'Bob', email: 'bob@example.com', secret: HIDDEN },
  ]);
  await db.collection('secrets').insertMany([{ text: HIDDEN, order: 'A-1' }]);
  address = database.uriOf('shop');
  service = await startService({
    config: configOf(address, CLASSES),
    env: GATES_OPEN,
  });
  client = new Client({ name: 'scenario', version: '1' }, { capabilities: { elicitation: { form: {} } } });
  client.setRequestHandler(
    'elicitation/create',
    () => ({ action: 'accept', content: { approve: true } }) as never,
  );
  const headers = { 'X-MCP-API-Key': 'shop' };
  await client.connect(new StreamableHTTPClientTransport(new URL(service.url), { requestInit: { headers } }));
});
afterAll(async () => {
  await client.close();
  await service.stop();
  await documents.close();
  await database.stop();
});

interface Answered {
  readonly isError: boolean;
  readonly text: string;
  readonly data: Record<string, unknown>;
}

/** By the official client. */
async function ask(name: string, args: Record<string, unknown>): Promise<Answered> {
  const result = (await client.callTool({ name, arguments: args })) as {
    isError?: boolean;
    content: { text?: string }[];
    structuredContent?: Record<string, unknown>;
  };
  const text = result.content.map((part) => part.text ?? '').join('\n');
  expect(text).not.toContain(HIDDEN);
  return { isError: result.isError ?? false, text, data: result.structuredContent ?? {} };
}

async function read(name: string, args: Record<string, unknown>): Promise<Record<string, unknown>> {
  const { isError, text, data } = await ask(name, args);
  expect([isError, text.slice(0, 300)]).toEqual([false, expect.any(String)]);
  return data;
}

/** A refusal of a tool, or for an attack one of the protocol; nothing hidden is in either. */
async function isRefused(tool: string, args: object): Promise<boolean> {
  const { isError, rpcError, wire } = await callTool(service, tool, args, { 'X-MCP-API-Key': 'shop' });
  expect(wire).not.toContain(HIDDEN);
  return isError || rpcError !== undefined;
}

const rowsOf = (data: Record<string, unknown>) => data['results'] as Record<string, unknown>[];
const numbers = async (where: object, more: object = {}) =>
  rowsOf(
    await read('query_class', { class_name: 'Order', where, order: 'number', keys: ['number'], ...more }),
  ).map(({ number }) => number);

describe('a plain collection over HTTP', () => {
  it('is read like any class: ids, time stamps, exact numbers, references, and nothing else', async () => {
    const [first] = rowsOf(await read('query_class', { class_name: 'Order', order: 'number', limit: 1 }));
    expect(first).toMatchObject({
      objectId: ROWS[0]?._id.toHexString(),
      number: 'A-1',
      total: DIGITS,
      visits: '9007199254740993',
      createdAt: '2025-01-02T03:04:05.000Z',
      tenant: TENANT.toHexString(),
      meta: { channel: 'web', stock: { place: 'north' } },
    });
    for (const stored of ['_id', 'customer_id', 'owner_id', 'created', 'tenant_id', 'ACL'])
      expect(first).not.toHaveProperty(stored);
  });

  it('shows the rows of the tenant that the filter of the class leaves, and no other', async () => {
    expect(await numbers({})).toEqual(['A-1', 'A-2', 'A-3']);
    expect(await read('count_objects', { class_name: 'Order' })).toMatchObject({ count: 3 });
    const foreign = await ask('get_object', { class_name: 'Order', object_id: ROWS[4]?._id.toHexString() });
    expect(foreign).toMatchObject({ isError: true });
    const without = await callTool(
      service,
      'query_class',
      { class_name: 'Order' },
      { 'X-MCP-API-Key': 'none' },
    );
    expect(without).toMatchObject({ code: 'access_denied', details: { kind: 'tenant_scope' } });
  });

  it('compares exact numbers, paths into documents, and references by their id', async () => {
    expect(await numbers({ total: DIGITS })).toEqual(['A-1']);
    expect(await numbers({ 'meta.stock.place': 'south' })).toEqual(['A-2']);
    expect(await numbers({ 'lines.sku': 'a', status: 'paid' })).toEqual(['A-3']);
    expect(await numbers({ customer: BOB.toHexString() })).toEqual(['A-2']);
    expect(
      await numbers({ createdAt: { $gt: '2025-01-01' } }, { order: '-meta.stock.place,number' }),
    ).toEqual(['A-2', 'A-1', 'A-3']);
  });

  it('compares with the values in each element of a list of another query', async () => {
    const skus = { query: { className: 'Order', where: {} }, key: 'lines.sku' };
    expect(await numbers({ 'meta.channel': { $select: skus } })).toEqual(['A-2']);
    expect(await numbers({ 'meta.channel': { $dontSelect: skus } })).toEqual(['A-1', 'A-3']);
  });

  it('joins by reference: includes, subqueries, $lookup', async () => {
    const [first] = rowsOf(
      await read('query_class', { class_name: 'Order', where: { number: 'A-2' }, include: ['customer'] }),
    );
    expect(first?.['customer']).toMatchObject({ name: 'Bob' });
    expect(first?.['customer']).not.toHaveProperty('secret');
    const ofAda = { $inQuery: { className: 'Customer', where: { name: 'Ada' } } };
    expect(await numbers({ customer: ofAda })).toEqual(['A-1', 'A-3']);
    const joined = await read('aggregate', {
      class_name: 'Order',
      pipeline: [
        { $match: { number: 'A-1' } },
        { $lookup: { from: 'Customer', localField: 'customer', foreignField: 'objectId', as: 'buyer' } },
        { $unwind: '$buyer' },
        { $project: { who: '$buyer.name', hidden: '$buyer.email' } },
      ],
    });
    expect(JSON.stringify(joined)).toContain('Ada');
  });

  it('groups by paths', async () => {
    const grouped = await read('group_by', { class_name: 'Order', field: 'meta.channel', sort: 'key_asc' });
    expect(grouped['groups']).toEqual([
      { key: 'shop', value: 1 },
      { key: 'web', value: 2 },
    ]);
    expect(
      await read('distinct', { class_name: 'Order', field: 'meta.stock.place', sort: 'asc' }),
    ).toMatchObject({
      values: ['north', 'south'],
    });
    const byCustomer = await read('group_by', { class_name: 'Order', field: 'customer', sort: 'value_desc' });
    expect(byCustomer).toMatchObject({
      pointer_class: 'Customer',
      groups: [
        { key: ADA.toHexString(), value: 2 },
        { key: BOB.toHexString(), value: 1 },
      ],
    });
  });

  it('is exported with the same rows and columns', async () => {
    const { text } = await ask('export_data', { class_name: 'Order', format: 'csv' });
    expect(text).toContain('A-1');
    expect(text).toContain(DIGITS);
    expect(text).not.toMatch(/owner_id|customer_id|B-1/);
  });

  it('is described with what is declared, and what is only inferred', async () => {
    const described = await read('get_schema', { class_name: 'Order' });
    const fields = described['fields'] as Record<string, unknown>[];
    expect(fields.find(({ name }) => name === 'objectId')).toMatchObject({ type: 'string' });
    expect(fields.find(({ name }) => name === 'visits')).toMatchObject({ type: 'number', inferred: true });
    expect(fields.find(({ name }) => name === 'customer')).toMatchObject({ target_class: 'Customer' });
    expect(fields.find(({ name }) => name === 'lines')).toMatchObject({
      members: { sku: 'string', qty: 'number' },
    });
    expect(JSON.stringify(described)).not.toMatch(/owner_id|customer_id|tenant_id|secret|orders/);
  });

  it('is written with approval: declared columns of their types, in the forms of its program', async () => {
    const created = await read('create_object', {
      class_name: 'Order',
      fields: {
        number: 'A-9',
        status: 'open',
        total: '99999999999999999999.99',
        customer: { __type: 'Pointer', className: 'Customer', objectId: BOB.toHexString() },
        lines: [{ sku: 'x', qty: 2 }],
        meta: { channel: 'web', stock: { place: 'east' } },
      },
    });
    const id = String((created['object'] as Record<string, unknown>)['objectId']);
    const orders = documents.db('shop').collection('orders');
    const stored = await orders.findOne({ _id: new ObjectId(id) });
    expect(stored).toMatchObject({
      number: 'A-9',
      customer_id: BOB,
      tenant_id: TENANT,
      lines: [{ sku: 'x', qty: 2 }],
    });
    expect(String(stored?.['total'])).toBe('99999999999999999999.99');
    expect(stored?.['created']).toBeInstanceOf(Date);
    await read('update_object', { class_name: 'Order', object_id: id, fields: { status: 'paid' } });
    expect(await orders.findOne({ _id: new ObjectId(id) })).toMatchObject({ status: 'paid', number: 'A-9' });
    await read('delete_object', { class_name: 'Order', object_id: id });
    expect(await orders.findOne({ _id: new ObjectId(id) })).toBeNull();
  });

  it.each<[string, object, RegExp]>([
    ['an undeclared column', { owner_id: 'eve' }, /owner_id/],
    ['a column that is only inferred', { visits: 1 }, /sample/],
    ['the id', { _id: 'x' }, /leave it out/],
    ['a time stamp', { createdAt: '2025-01-01' }, /leave it out/],
    ['another tenant', { tenant: OTHER_TENANT.toHexString() }, /Tenant scope conflict/],
    ['another type', { status: 7 }, /status takes a String/],
    ['an undeclared member', { lines: [{ sku: 'a', price: 1 }] }, /lines\.price/],
  ])('is not written with %s', async (_, fields, message) => {
    const before = await documents.db('shop').collection('orders').find().toArray();
    const id = ROWS[0]?._id.toHexString();
    const { isError, text } = await ask('update_object', { class_name: 'Order', object_id: id, fields });
    expect([isError, text]).toEqual([true, expect.stringMatching(message)]);
    expect(await documents.db('shop').collection('orders').find().toArray()).toEqual(before);
  });

  it('is not written with an operator, which is a malformed request', async () => {
    const fields = { meta: { $where: '1' } };
    const args = { class_name: 'Order', object_id: ROWS[0]?._id.toHexString(), fields };
    expect(await isRefused('update_object', args)).toBe(true);
  });

  it('refuses callers without the value that its filter compares with', async () => {
    const { code, details, text } = await callTool(
      service,
      'query_class',
      { class_name: 'Own' },
      { 'X-MCP-API-Key': 'shop' },
    );
    expect([code, details?.['kind']]).toEqual(['access_denied', 'agent_value']);
    expect(text).not.toMatch(/owner_id|orders/);
  });
});

const tools: readonly (readonly [string, Record<string, unknown>])[] = [
  ['query_class', {}],
  ['count_objects', {}],
  ['get_object', { object_id: 'x' }],
  ['get_objects', { ids: ['x'] }],
  ['get_sample_objects', {}],
  ['get_schema', {}],
  ['distinct', { field: 'text' }],
  ['group_by', { field: 'text' }],
  ['group_by_date', { field: 'createdAt', interval: 'day' }],
  ['aggregate', { pipeline: [{ $limit: 1 }] }],
  ['explain_query', {}],
  ['export_data', { format: 'csv' }],
  ['atlas_text_search', { query: 'x' }],
  ['create_object', { fields: { text: 'x' } }],
  ['update_object', { object_id: 'x', fields: { text: 'x' } }],
  ['delete_object', { object_id: 'x' }],
  ['delete_class', {}],
];

const joins = (name: string): readonly object[] => [
  { $lookup: { from: name, localField: 'number', foreignField: 'order', as: 'found' } },
  { $lookup: { from: name, pipeline: [], as: 'found' } },
  { $lookup: { from: { db: 'shop', coll: name }, pipeline: [], as: 'found' } },
  { $unionWith: name },
  { $unionWith: { coll: name, pipeline: [] } },
  { $unionWith: { db: 'shop', coll: name } },
  {
    $graphLookup: {
      from: name,
      startWith: '$number',
      connectFromField: 'order',
      connectToField: 'order',
      as: 'found',
    },
  },
  { $facet: { all: [{ $lookup: { from: name, pipeline: [], as: 'found' } }] } },
  { $out: name },
  { $merge: { into: name } },
];

const questions = (name: string): readonly object[] => [
  { number: { $inQuery: { className: name, where: {} } } },
  { number: { $select: { query: { className: name, where: {} }, key: 'order' } } },
  { $relatedTo: { object: { __type: 'Pointer', className: name, objectId: 'x' }, key: 'order' } },
  { customer: { __type: 'Pointer', className: name, objectId: 'x' } },
];

describe('a collection that nobody declared', () => {
  const headers = { 'X-MCP-API-Key': 'shop' };
  /** The answer to a name, with the name taken out. */
  const answerOf = async (name: string, tool: string, args: object) => {
    const { wire, isError } = await callTool(service, tool, args, headers);
    expect(wire).not.toContain(HIDDEN);
    return [isError, wire.replaceAll(name, 'NAME').replace(/"id":"[^"]*"/, '')];
  };
  const names = ['secrets', 'Secrets', 'system.namespaces', 'shop.secrets', 'orders', 'customers'];

  it.each(tools)('is for %s what a collection that is not there is', async (tool, args) => {
    const missing = await answerOf('nowhere', tool, { class_name: 'nowhere', ...args });
    for (const name of ['secrets', 'Secrets'])
      expect(await answerOf(name, tool, { class_name: name, ...args })).toEqual(missing);
    for (const name of names) expect(await isRefused(tool, { class_name: name, ...args })).toBe(true);
  });

  it('is joined by no stage, under no name', async () => {
    for (const name of names)
      for (const stage of joins(name))
        expect([stage, await isRefused('aggregate', { class_name: 'Order', pipeline: [stage] })]).toEqual([
          stage,
          true,
        ]);
  });

  it('is named by no condition', async () => {
    for (const name of names)
      for (const where of questions(name))
        expect([where, await isRefused('query_class', { class_name: 'Order', where })]).toEqual([
          where,
          true,
        ]);
  });

  it('is in no listing, completion or resource', async () => {
    const all = [
      await rpc(service, 'tools/call', { name: 'get_all_schemas', arguments: {} }, headers),
      await rpc(service, 'resources/list', {}, headers),
      await rpc(
        service,
        'completion/complete',
        {
          ref: { type: 'ref/resource', uri: 'parse://{className}/schema' },
          argument: { name: 'className', value: '' },
        },
        headers,
      ),
      await rpc(service, 'resources/read', { uri: 'parse://secrets/samples' }, headers),
      await rpc(service, 'resources/read', { uri: 'parse://secrets/schema' }, headers),
    ];
    expect(all[0]?.text).toContain('Customer');
    for (const { text } of all.slice(0, 3)) expect(text).not.toMatch(/secrets|orders|customers/i);
    for (const { text } of all.slice(3)) expect(text).toMatch(/error/);
    for (const { text } of all) expect(text).not.toContain(HIDDEN);
  });

  it('is not suggested for a name that is near', async () => {
    const { text } = await callTool(service, 'get_schema', { class_name: 'Secret' }, headers);
    expect(text).not.toMatch(/secrets/);
    const near = await callTool(service, 'get_schema', { class_name: 'Custmer' }, headers);
    expect(near.text).toContain('Customer');
  });

  it('is not made, and no other either', async () => {
    const { isError } = await callTool(service, 'create_class', { class_name: 'Made' }, headers);
    expect(isError).toBe(true);
    const collections = await documents.db('shop').listCollections({}, { nameOnly: true }).toArray();
    expect(collections.map(({ name }) => name).sort()).toEqual(['customers', 'orders', 'secrets']);
  });
});

describe('columns that nobody may read, and their stored names', () => {
  const whole = { $map: { input: { $objectToArray: '$$ROOT' }, in: '$$this.v' } };

  it.each<[string, string, object[]]>([
    ['whole rows', 'Customer', [{ $project: { x: whole } }]],
    ['whole rows as keys', 'Order', [{ $project: { x: { $objectToArray: '$$ROOT' } } }]],
    ['rows in a group', 'Customer', [{ $group: { _id: null, x: { $push: '$$ROOT' } } }]],
    ['rows as a field of others', 'Customer', [{ $replaceRoot: { newRoot: { x: '$$ROOT' } } }]],
    ['merged rows', 'Customer', [{ $project: { x: { $mergeObjects: ['$$ROOT', {}] } } }]],
    ['facets', 'Customer', [{ $facet: { x: [{ $match: {} }] } }]],
    ['joined rows', 'Order', [{ $lookup: { from: 'Customer', pipeline: [], as: 'x' } }]],
    ['united rows', 'Order', [{ $unionWith: 'Customer' }]],
    [
      'a search along references',
      'Order',
      [
        {
          $graphLookup: {
            from: 'Customer',
            startWith: '$customer',
            connectFromField: 'objectId',
            connectToField: 'objectId',
            as: 'x',
          },
        },
      ],
    ],
  ])('are not in %s', async (_, className, pipeline) => {
    const { wire } = await callTool(
      service,
      'aggregate',
      { class_name: className, pipeline },
      { 'X-MCP-API-Key': 'shop' },
    );
    expect(wire).not.toContain(HIDDEN);
    expect(wire).not.toMatch(/customer_id|owner_id|tenant_id|"secret|"created"|"modified"/);
  });

  it.each<[string, string, Record<string, unknown>]>([
    ['a condition', 'query_class', { where: { secret: 'guess' } }],
    ['a pattern', 'query_class', { where: { secret: { $regex: '^H' } } }],
    ['presence', 'query_class', { where: { secret: { $exists: true } } }],
    ['an order', 'query_class', { order: 'secret' }],
    ['a path', 'query_class', { where: { 'secret.a': 1 } }],
    ['a group', 'group_by', { field: 'secret' }],
    ['a path as a group', 'group_by', { field: 'secret.a' }],
    ['values', 'distinct', { field: 'secret' }],
    ['an expression', 'aggregate', { pipeline: [{ $match: { $expr: { $eq: ['$secret', 'guess'] } } }] }],
    ['a computed field', 'aggregate', { pipeline: [{ $project: { x: '$secret' } }] }],
    ['its name as text', 'aggregate', { pipeline: [{ $project: { x: { $getField: 'secret' } } }] }],
    [
      'a join',
      'aggregate',
      {
        pipeline: [{ $lookup: { from: 'Customer', localField: 'name', foreignField: 'secret', as: 'x' } }],
      },
    ],
    ['code', 'aggregate', { pipeline: [{ $match: { $where: 'this.secret' } }] }],
    ['an export', 'export_data', { where: { secret: { $ne: null } } }],
  ])('are reached by no %s', async (_, tool, args) => {
    const { text } = await callTool(
      service,
      tool,
      { class_name: 'Customer', ...args },
      { 'X-MCP-API-Key': 'shop' },
    );
    expect(text).not.toContain(HIDDEN);
    expect(await isRefused(tool, { class_name: 'Customer', ...args })).toBe(true);
  });
});

describe('a reload of the configuration', () => {
  const soon = { timeout: 30_000, interval: 100 };
  const asked = () => isRefused('query_class', { class_name: 'Note' });

  it('makes a collection a class by listing it, and none by leaving it out', async () => {
    expect(await asked()).toBe(true);
    const Note = { collection: 'secrets', fields: ['order'] };
    service.reconfigure(configOf(address, { ...CLASSES, Note }));
    await expect.poll(asked, soon).toBe(false);
    service.reconfigure(configOf(address, CLASSES));
    await expect.poll(asked, soon).toBe(true);
    expect(await numbers({})).toEqual(['A-1', 'A-2', 'A-3']);
  });
});

describe('a seed file with collections alone', () => {
  it('is served by the embedded database as plain classes, dates and decimals included', async () => {
    const seeded = await startService({
      seed: {
        collections: {
          orders: [{ _id: 'A-1', total: { $numberDecimal: '1.10' }, at: { $date: '2026-01-02T03:04:05Z' } }],
        },
      },
      config: {
        database: { uri: 'embedded', seed: './seed.json', storage: 'plain' },
        agents: { clerk: {} },
        auth: [{ apiKey: 'shop', agent: 'clerk' }],
        policy: { classes: { Order: { collection: 'orders' } } },
      },
    });
    try {
      const { data } = await callTool(
        seeded,
        'query_class',
        { class_name: 'Order' },
        { 'X-MCP-API-Key': 'shop' },
      );
      expect(data).toMatchObject({
        results: [{ objectId: 'A-1', total: '1.10', at: '2026-01-02T03:04:05.000Z' }],
      });
    } finally {
      await seeded.stop();
    }
  });
});

import { MongoClient, ObjectId } from 'mongodb';
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

const HIDDEN = 'HIDDEN-from-users-of-Parse';
const LATER = '2099-01-01T00:00:00.000Z';
const ORDER = new ObjectId('64b5f0a1c2d3e4f5a6b7c8d9');
const OTHER_ORDER = new ObjectId();
const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });

const SEED = {
  schemas: [
    { className: 'Author', fields: { name: { type: 'String' }, secret: { type: 'String' } } },
    {
      className: 'Review',
      fields: {
        title: { type: 'String' },
        author: { type: 'Pointer', targetClass: 'Author' },
        order: { type: 'Pointer', targetClass: 'Order' },
        item: { type: 'Pointer', targetClass: 'Item' },
        orderId: { type: 'String' },
        any: { type: 'Object' },
      },
    },
  ],
  users: [{ objectId: 'ada', username: 'ada', password: 'ada-secret' }],
  roles: [{ objectId: 'staff', name: 'staff' }],
  sessions: [{ sessionToken: 'r:ada', user: 'ada', expiresAt: LATER }],
  objects: {
    Author: [{ objectId: 'a1', name: 'Ann', secret: HIDDEN, ACL: { '*': { read: true } } }],
    Review: [
      { objectId: 'r1', title: 'good', author: pointer('Author', 'a1'), orderId: ORDER.toHexString() },
      { objectId: 'r2', title: 'none', orderId: 'x' },
    ].map((row) => ({ ...row, ACL: { '*': { read: true } } })),
  },
};

const classes = {
  Author: { fields: ['name'] },
  Order: {
    storage: 'plain',
    collection: 'orders',
    properties: {
      number: { type: 'String' },
      author: { type: 'Pointer', targetClass: 'Author', field: 'author_id' },
    },
    fields: ['number', 'author'],
  },
  Item: {
    storage: 'plain',
    collection: 'items',
    id: 'string',
    properties: { name: { type: 'String' } },
    fields: ['name'],
  },
};
const ITEM = 'SKU-1/ä $b$';
const agent = (identity?: object) => ({
  permissions: 'admin',
  rateLimit: 1_000_000,
  ...(identity && { identity }),
});

let database: Database;
let documents: MongoClient;
let service: Service;
beforeAll(async () => {
  database = await startDatabase(SEED);
  documents = new MongoClient(database.uriOf('parley'));
  await documents
    .db()
    .collection('orders')
    .insertMany([
      { _id: ORDER, number: `A-${HIDDEN}`, author_id: 'a1', createdAt: new Date(), updatedAt: new Date() },
      { _id: OTHER_ORDER, number: `B-${HIDDEN}`, author_id: 'gone' },
    ]);
  await documents
    .db()
    .collection<{ _id: string }>('items')
    .insertMany([ITEM, 'SKU-1/ä ', 'b'].map((id) => ({ _id: id, name: `named ${id}` })));
  await documents
    .db()
    .collection<{ _id: string }>('Review')
    .updateOne(
      { _id: 'r1' },
      { $set: { _p_order: `Order$${ORDER.toHexString()}`, _p_item: `Item$${ITEM}` } },
    );
  service = await startService({
    config: {
      database: { uri: database.uriOf('parley') },
      agents: {
        all: agent(),
        user: agent({ user: 'ada' }),
        role: agent({ role: 'staff' }),
        caller: agent({ session: 'caller' }),
      },
      auth: [
        { parseSession: true, agent: 'caller' },
        ...['all', 'user', 'role'].map((name) => ({ apiKey: name, agent: name })),
      ],
      policy: { unlistedClasses: 'allow', classes },
    },
    env: GATES_OPEN,
  });
});
afterAll(async () => {
  await service.stop();
  await documents.close();
  await database.stop();
});

const ALL = { 'X-MCP-API-Key': 'all' };
const USERS: [string, Record<string, string>][] = [
  ['an assumed user', { 'X-MCP-API-Key': 'user' }],
  ['an assumed role', { 'X-MCP-API-Key': 'role' }],
  ['a session', { 'X-Parse-Session-Token': 'r:ada' }],
];
async function read(tool: string, args: object): Promise<Record<string, unknown>> {
  const { isError, rpcError, text, data } = await callTool(service, tool, args, ALL);
  expect([isError, rpcError, text.slice(0, 400)]).toEqual([false, undefined, expect.any(String)]);
  return data;
}
const rowsOf = (data: Record<string, unknown>) => data['results'] as Record<string, unknown>[];
const joined = async (class_name: string, pipeline: object[]) =>
  rowsOf(await read('aggregate', { class_name, pipeline }));

describe('a database of Parse classes and plain ones', () => {
  it('joins a plain class to one of Parse by its reference, under the rules of the target', async () => {
    const [row] = rowsOf(
      await read('query_class', { class_name: 'Order', include: ['author'], order: 'number' }),
    );
    expect(row?.['author']).toMatchObject({ objectId: 'a1', name: 'Ann' });
    expect(row?.['author']).not.toHaveProperty('secret');
    const inQuery = { author: { $inQuery: { className: 'Author', where: { name: 'Ann' } } } };
    expect(await read('count_objects', { class_name: 'Order', where: inQuery })).toMatchObject({ count: 1 });
    const rows = await joined('Order', [
      { $match: { author: 'a1' } },
      { $lookup: { from: 'Author', localField: 'author', foreignField: 'objectId', as: 'who' } },
      { $unwind: '$who' },
      { $project: { who: '$who.name' } },
    ]);
    expect(rows).toEqual([expect.objectContaining({ who: 'Ann' })]);
  });

  it('joins a class of Parse to a plain one, by pointers', async () => {
    const found = [expect.objectContaining({ number: `A-${HIDDEN}` })];
    const stages = [{ $unwind: '$order' }, { $project: { number: '$order.number' } }];
    const join = (localField: string, foreignField: string) => ({
      $lookup: { from: 'Order', localField, foreignField, as: 'order' },
    });
    expect(await joined('Review', [join('order', 'objectId'), ...stages])).toEqual(found);
    expect(await joined('Author', [join('objectId', 'author'), ...stages])).toEqual(found);
    const back = { from: 'Review', localField: 'objectId', foreignField: 'order', as: 'review' };
    expect(
      await joined('Order', [
        { $lookup: back },
        { $unwind: '$review' },
        { $project: { title: '$review.title' } },
      ]),
    ).toEqual([expect.objectContaining({ title: 'good' })]);
    const [row] = rowsOf(
      await read('query_class', { class_name: 'Review', where: { order: id }, include: ['order'] }),
    );
    expect(row?.['order']).toMatchObject({ objectId: id, number: `A-${HIDDEN}` });
    const ofOrder = { order: { $inQuery: { className: 'Order', where: { author: 'a1' } } } };
    expect(await read('count_objects', { class_name: 'Review', where: ofOrder })).toMatchObject({ count: 1 });
  });

  it('follows pointers of Parse to ids of any text', async () => {
    const where = { item: pointer('Item', ITEM) };
    const [row] = rowsOf(await read('query_class', { class_name: 'Review', where, include: ['item'] }));
    expect(row?.['item']).toMatchObject({ objectId: ITEM, name: `named ${ITEM}` });
    const lookup = { from: 'Item', localField: 'item', foreignField: 'objectId', as: 'found' };
    const stages = [{ $lookup: lookup }, { $unwind: '$found' }, { $project: { name: '$found.name' } }];
    expect(await joined('Review', stages)).toEqual([expect.objectContaining({ name: `named ${ITEM}` })]);
    await read('update_object', {
      class_name: 'Review',
      object_id: 'r2',
      fields: { item: pointer('Item', ITEM) },
    });
    expect(await read('count_objects', { class_name: 'Review', where })).toMatchObject({ count: 2 });
    const unset = { item: { __op: 'Delete' } };
    await read('update_object', { class_name: 'Review', object_id: 'r2', fields: unset });
    for (const [className, fields] of [
      ['Review', { author: pointer('Author', ITEM) }],
      ['Order', { author: pointer('Author', ITEM) }],
      ['Review', { item: pointer('Item', 'a\0b') }],
    ] as const) {
      const args = { class_name: className, object_id: className === 'Order' ? id : 'r1', fields };
      expect([fields, (await callTool(service, 'update_object', args, ALL)).isError]).toEqual([fields, true]);
    }
  });
});

const id = ORDER.toHexString();
const TOOLS: [string, object][] = [
  ['query_class', {}],
  ['count_objects', {}],
  ['get_object', { object_id: id }],
  ['get_objects', { ids: [id] }],
  ['get_sample_objects', {}],
  ['distinct', { field: 'number' }],
  ['group_by', { field: 'number' }],
  ['group_by_date', { field: 'createdAt', interval: 'day' }],
  ['aggregate', { pipeline: [{ $limit: 1 }] }],
  ['explain_query', {}],
  ['export_data', { format: 'csv' }],
  ['export_data', { delivery: 'resource' }],
  ['create_object', { fields: { number: 'x' } }],
  ['update_object', { object_id: id, fields: { number: 'x' } }],
  ['delete_object', { object_id: id }],
];
const lookup = { from: 'Order', localField: 'orderId', foreignField: 'objectId', as: 'found' };
const JOINS: object[] = [
  { $lookup: lookup },
  { $lookup: { from: 'Order', pipeline: [], as: 'found' } },
  { $lookup: { from: 'orders', pipeline: [], as: 'found' } },
  { $unionWith: 'Order' },
  { $unionWith: { coll: 'Order', pipeline: [] } },
  {
    $graphLookup: {
      from: 'Order',
      startWith: '$orderId',
      connectFromField: 'author',
      connectToField: 'objectId',
      as: 'found',
    },
  },
  { $facet: { all: [{ $lookup: lookup }] } },
  {
    $lookup: {
      from: 'Author',
      pipeline: [{ $lookup: { from: 'Order', pipeline: [], as: 'deep' } }],
      as: 'found',
    },
  },
];
const CONDITIONS: object[] = [
  { orderId: { $inQuery: { className: 'Order', where: {} } } },
  { orderId: { $notInQuery: { className: 'Order', where: {} } } },
  { orderId: { $select: { query: { className: 'Order', where: {} }, key: 'objectId' } } },
  { orderId: { $dontSelect: { query: { className: 'Order', where: {} }, key: 'number' } } },
];

describe.each(USERS)('%s of Parse, which rows of a plain class do not name,', (_, headers) => {
  const asked = async (tool: string, args: object) => {
    const answer = await callTool(service, tool, args, headers);
    expect(answer.wire).not.toContain(HIDDEN);
    return answer;
  };

  it('reads classes of Parse', async () => {
    expect(await asked('count_objects', { class_name: 'Review' })).toMatchObject({ data: { count: 2 } });
  });

  it.each(TOOLS)('is refused the class by %s %j', async (tool, args) => {
    const before = await documents.db().collection('orders').find().toArray();
    const { isError, code, details, text } = await asked(tool, { class_name: 'Order', ...args });
    expect([isError, code, details?.['kind']]).toEqual([true, 'access_denied', 'clp_denied']);
    expect(text).not.toMatch(/orders|author_id/);
    expect(await documents.db().collection('orders').find().toArray()).toEqual(before);
  });

  it('joins it with no stage and names it in no condition', async () => {
    for (const stage of JOINS) {
      const { isError, rpcError } = await asked('aggregate', { class_name: 'Review', pipeline: [stage] });
      expect([stage, isError || rpcError !== undefined]).toEqual([stage, true]);
    }
    for (const where of CONDITIONS) {
      const { isError, rpcError } = await asked('query_class', { class_name: 'Review', where });
      expect([where, isError || rpcError !== undefined]).toEqual([where, true]);
    }
    for (const uri of ['parse://Order/samples', 'parse://Order/count']) {
      const { body, text } = await rpc(service, 'resources/read', { uri }, headers);
      expect([uri, body.error !== undefined || text.includes('"isError":true')]).toEqual([uri, true]);
      expect(text).not.toContain(HIDDEN);
    }
  });
});

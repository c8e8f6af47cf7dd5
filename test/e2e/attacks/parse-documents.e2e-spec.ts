import {
  Binary,
  BSONRegExp,
  Code,
  DBRef,
  Decimal128,
  Long,
  MinKey,
  MongoClient,
  ObjectId,
  Timestamp,
} from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';

const SECRET = 'hash-of-a-password';

/** Documents that no Parse Server writes, and a program beside it may have written. */
const HOSTILE: readonly Record<string, unknown>[] = [
  ...[1e20, -1e300, Number.NaN, Infinity, Long.MAX_VALUE, 'x', { a: 1 }].map((_created_at) => ({
    _created_at,
  })),
  ...[1e20, [1]].map((_updated_at) => ({ _updated_at })),
  ...[1e20, 'x', { __type: 'Date', iso: 1 }].map((when) => ({ when })),
  { inside: { __type: 'Date', iso: new Date(0) } },
  { inside: { __type: 'Pointer' }, list: [{ __type: 'GeoPoint' }] },
  { inside: JSON.parse('{"__proto__":{"x":1},"toJSON":1,"then":1}') },
  { inside: { toJSON: new Code('x') } },
  ...[[1e308, 'x'], { type: 'Point', coordinates: [null, 'x'] }, 'x'].map((place) => ({ place })),
  ...['x', 7].map((target) => ({ target })),
  ...['noDollar', 'Thing$', '$x', 7, { a: 1 }, [1]].map((_p_target) => ({ _p_target })),
  ...[7, [7], { a: 1 }, 'x'].map((targets) => ({ targets })),
  { _acl: 7, _rperm: ['*'] },
  { number: Decimal128.fromString('NaN'), name: new MinKey() },
  { number: 'x', name: new BSONRegExp('(?i)a(', 'x') },
  { name: new Timestamp({ t: 1, i: 1 }), list: new DBRef('a', new ObjectId()) },
  { name: new Binary(Buffer.alloc(0), 4) },
  { 'a.b': 1, '': 1, $x: 1, _hashed_password: SECRET, _session_token: SECRET },
];
const IDS: readonly unknown[] = [
  7,
  true,
  new Date(0),
  { a: 1 },
  null,
  Long.MAX_VALUE,
  '',
  'a$b',
  new ObjectId(),
];

let database: Database;
let documents: MongoClient;
let service: Service;
beforeAll(async () => {
  database = await startDatabase({ schemas: [] });
  documents = new MongoClient(database.uriOf('strange'));
  const db = documents.db();
  const rows = db.collection<{ _id: unknown }>('Thing');
  const fine = { _created_at: new Date(0), _updated_at: new Date(0), name: 'n', _p_target: 'Thing$good' };
  await db.collection('_SCHEMA').insertOne({
    _id: 'Thing',
    objectId: 'string',
    createdAt: 'date',
    updatedAt: 'date',
    name: 'string',
    when: 'date',
    number: 'number',
    place: 'geopoint',
    inside: 'object',
    list: 'array',
    target: '*Thing',
    targets: 'array',
  } as never);
  await rows.insertMany([
    { _id: 'good', ...fine },
    ...HOSTILE.map((one, index) => ({ _id: `h${index}`, ...fine, ...one })),
    ...IDS.map((_id) => ({ ...fine, _id })),
  ]);
  service = await startService({
    config: {
      database: { uri: database.uriOf('strange'), fastReads: true },
      agents: { all: { rateLimit: 1_000_000 } },
      auth: [{ apiKey: 'key-of-everybody', agent: 'all' }],
      policy: { unlistedClasses: 'allow', classes: { Thing: {} } },
    },
  });
});
afterAll(async () => {
  await service.stop();
  await documents.close();
  await database.stop();
});

const ask = (tool: string, args: object) =>
  callTool(service, tool, { class_name: 'Thing', ...args }, { 'X-MCP-API-Key': 'key-of-everybody' });

describe('documents that no Parse Server wrote', () => {
  it.each<[string, object]>([
    ['query_class', { limit: 200 }],
    ['query_class', { limit: 200, order: '-createdAt' }],
    ['query_class', { limit: 200, include: ['target'] }],
    ['query_class', { limit: 200, include: ['target.target', 'targets'] }],
    ['export_data', { format: 'csv' }],
    ['export_data', { format: 'markdown', include: ['target'] }],
    ['aggregate', { pipeline: [{ $project: { all: '$$ROOT' } }] }],
    [
      'aggregate',
      { pipeline: [{ $lookup: { from: 'Thing', localField: 'target', foreignField: 'objectId', as: 'j' } }] },
    ],
    [
      'aggregate',
      { pipeline: [{ $lookup: { from: 'Thing', localField: 'objectId', foreignField: 'target', as: 'j' } }] },
    ],
    ['group_by', { field: 'when' }],
    ['group_by', { field: 'target' }],
    ['group_by_date', { field: 'createdAt', interval: 'day' }],
    ['distinct', { field: 'place' }],
  ])('fail no %s %o', async (tool, args) => {
    const { isError, text, wire } = await ask(tool, args);
    expect([isError, isError && text]).toEqual([false, false]);
    expect(wire).not.toContain(SECRET);
  });

  it('are each read by id, alone', async () => {
    for (const index of HOSTILE.keys())
      expect((await ask('get_object', { object_id: `h${index}`, include: ['target'] })).isError).toBe(false);
  });
});

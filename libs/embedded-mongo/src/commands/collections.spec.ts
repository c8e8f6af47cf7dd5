import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { Decimal128, MongoClient, Timestamp, type Db, type Document } from 'mongodb';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { EmbeddedMongo } from '../embedded-mongo.js';

// The machine may be busy: a slow rule is not a broken one.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

type Row = Document & { _id?: number | string };

let server: EmbeddedMongo;
let client: MongoClient;
let db: Db;
let made = 0;

beforeAll(async () => {
  server = await EmbeddedMongo.start();
  client = await MongoClient.connect(server.uri);
});
afterAll(async () => {
  await client.close();
  await server.close();
});
beforeEach(() => void (db = client.db(`kinds-${(made += 1)}`)));

const code = (number: number): unknown => expect.objectContaining({ code: number });
const listNamed = (name: string) => db.listCollections({ name }).toArray();

describe('a view', () => {
  const orders = [
    { _id: 1, customer: 'a', total: 10, status: 'open' },
    { _id: 2, customer: 'b', total: 20, status: 'paid' },
    { _id: 3, customer: 'a', total: 30, status: 'paid' },
    { _id: 4, customer: 'c', total: 40, status: 'paid' },
  ];
  const paid = [{ $match: { status: 'paid' } }, { $project: { status: 0 } }];

  beforeEach(async () => {
    await db.collection<Row>('orders').insertMany(orders.map((order) => ({ ...order })));
    await db.createCollection('paid', { viewOn: 'orders', pipeline: paid });
  });

  it('is read with find, findOne, count, distinct and aggregate like a collection', async () => {
    const view = db.collection<Row>('paid');
    expect(await view.find({ total: { $gt: 20 } }, { sort: { total: -1 }, limit: 1 }).toArray()).toEqual([
      { _id: 4, customer: 'c', total: 40 },
    ]);
    expect(await view.find({}, { skip: 1, projection: { total: 1, _id: 0 } }).toArray()).toEqual([
      { total: 30 },
      { total: 40 },
    ]);
    expect(await view.findOne({ customer: 'a' })).toEqual({ _id: 3, customer: 'a', total: 30 });
    expect(await view.countDocuments({ total: { $lt: 40 } })).toBe(2);
    expect(await view.estimatedDocumentCount()).toBe(3);
    expect(await db.command({ count: 'paid', query: { total: 5 } })).toMatchObject({ n: 0 });
    expect(await view.distinct('customer', { total: { $gt: 20 } })).toEqual(['a', 'c']);
    const grouped = [{ $group: { _id: null, sum: { $sum: '$total' } } }];
    expect(await view.aggregate(grouped).toArray()).toEqual([{ _id: null, sum: 90 }]);
  });

  it('is read in batches, and shows what its collection holds now', async () => {
    const view = db.collection<Row>('paid');
    expect(await view.find({}, { batchSize: 1 }).toArray()).toHaveLength(3);
    await db.collection<Row>('orders').insertOne({ _id: 5, status: 'paid', total: 1 });
    expect(await view.countDocuments()).toBe(4);
  });

  it('shows the same as its pipeline over the collection', async () => {
    const base = db.collection<Row>('wide');
    await base.insertMany(Array.from({ length: 40 }, (_, n) => ({ _id: n, a: n % 5, b: [n, n % 3] })));
    const stage = fc.oneof(
      fc.integer({ min: 0, max: 5 }).map((a) => ({ $match: { a: { $ne: a } } })),
      fc.integer({ min: 0, max: 5 }).map((b) => ({ $match: { b } })),
      fc.integer({ min: 1, max: 30 }).map((n) => ({ $limit: n })),
      fc.constantFrom({ $set: { c: { $add: ['$a', 1] } } }, { $unwind: '$b' }, { $sort: { a: -1, _id: 1 } }),
    );
    let at = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(stage, { maxLength: 3 }),
        fc.array(stage, { maxLength: 2 }),
        async (own, more) => {
          const name = `view-${(at += 1)}`;
          await db.createCollection(name, { viewOn: 'wide', pipeline: own });
          expect(await db.collection(name).aggregate(more).toArray()).toEqual(
            await base.aggregate([...own, ...more]).toArray(),
          );
        },
      ),
      { numRuns: 30 },
    );
  });

  it('may be built on another view, and be joined by $lookup, $graphLookup and $unionWith', async () => {
    await db.createCollection('large', { viewOn: 'paid', pipeline: [{ $match: { total: { $gt: 25 } } }] });
    expect(await db.collection('large').find().toArray()).toEqual([
      { _id: 3, customer: 'a', total: 30 },
      { _id: 4, customer: 'c', total: 40 },
    ]);
    const customers = db.collection<Row>('customers');
    await customers.insertMany([{ _id: 'a' }, { _id: 'b' }]);
    const joined = await customers
      .aggregate([
        { $lookup: { from: 'large', localField: '_id', foreignField: 'customer', as: 'orders' } },
        { $project: { orders: '$orders._id' } },
      ])
      .toArray();
    expect(joined).toEqual([
      { _id: 'a', orders: [3] },
      { _id: 'b', orders: [] },
    ]);
    expect(await customers.aggregate([{ $unionWith: 'large' }, { $count: 'n' }]).toArray()).toEqual([
      { n: 4 },
    ]);
    const graph = {
      from: 'large',
      startWith: '$_id',
      connectFromField: 'none',
      connectToField: 'customer',
      as: 'found',
    };
    const [first] = await customers.aggregate([{ $graphLookup: graph }]).toArray();
    expect((first as Document)['found']).toEqual([{ _id: 3, customer: 'a', total: 30 }]);
  });

  it('may join in its own pipeline, other views too', async () => {
    const lookup = { from: 'paid', localField: 'customer', foreignField: 'customer', as: 'all' };
    await db.createCollection('with-paid', { viewOn: 'orders', pipeline: [{ $lookup: lookup }] });
    const [first] = await db.collection('with-paid').find({ status: 'open' }).toArray();
    expect((first as Document)['all']).toEqual([{ _id: 3, customer: 'a', total: 30 }]);
  });

  it('compares by its own collation, and refuses another', async () => {
    const collation = { locale: 'en', strength: 2 };
    await db.createCollection('named', { viewOn: 'orders', pipeline: [], collation });
    expect(await db.collection('named').countDocuments({ customer: 'A' })).toBe(2);
    expect(await db.collection('named').find({ customer: 'A' }, { collation }).toArray()).toHaveLength(2);
    await expect(
      db
        .collection('named')
        .find({}, { collation: { locale: 'en', strength: 1 } })
        .toArray(),
    ).rejects.toThrow(code(167));
    expect(await db.collection('paid').countDocuments({ customer: 'A' })).toBe(0);
  });

  it('is joined in its own collation alone', async () => {
    const collation = { locale: 'en', strength: 2 };
    await db.createCollection('folded', { viewOn: 'orders', pipeline: [], collation });
    const equal = { from: 'folded', localField: 'customer', foreignField: 'customer', as: 'all' };
    const graph = { startWith: '$a', connectFromField: 'a', connectToField: 'b', as: 'all' };
    for (const stage of [
      { $lookup: equal },
      { $lookup: { from: 'folded', pipeline: [], as: 'all' } },
      { $graphLookup: { ...graph, from: 'folded' } },
      { $unionWith: 'folded' },
    ]) {
      const read = (options: Document) => db.collection('orders').aggregate([stage], options).toArray();
      await expect(read({})).rejects.toThrow(code(167));
      expect(await read({ collation })).not.toEqual([]);
      await expect(db.collection('paid').aggregate([stage]).toArray()).rejects.toThrow(code(167));
    }
  });

  it('are listed by filters that know no time of the set', async () => {
    const filter = { $expr: { $gt: ['$$CLUSTER_TIME', '$name'] } };
    await expect(db.command({ listCollections: 1, filter })).rejects.toThrow(code(51144));
    await expect(db.admin().command({ listDatabases: 1, filter })).rejects.toThrow(code(51144));
  });

  it('is listed as a view with its definition, and in system.views', async () => {
    expect(await listNamed('paid')).toEqual([
      { name: 'paid', type: 'view', options: { viewOn: 'orders', pipeline: paid }, info: { readOnly: true } },
    ]);
    const all = await db.listCollections({}, { nameOnly: true }).toArray();
    expect(all.map(({ name, type }) => [name, type])).toEqual([
      ['orders', 'collection'],
      ['paid', 'view'],
      ['system.views', 'collection'],
    ]);
    expect(await db.collection('system.views').find().toArray()).toEqual([
      { _id: `${db.databaseName}.paid`, viewOn: 'orders', pipeline: paid },
    ]);
    expect(await db.stats()).toMatchObject({ views: 1, collections: 1 });
  });

  it('is changed by collMod and dropped like a collection', async () => {
    await db.command({ collMod: 'paid', viewOn: 'orders', pipeline: [{ $match: { status: 'open' } }] });
    expect(await db.collection('paid').countDocuments()).toBe(1);
    await expect(db.command({ collMod: 'paid', pipeline: [] })).rejects.toThrow(code(72));
    await expect(db.command({ collMod: 'orders', viewOn: 'c', pipeline: [] })).rejects.toThrow(code(72));
    expect(await db.collection('paid').drop()).toBe(true);
    expect(await listNamed('paid')).toEqual([]);
    expect(await listNamed('system.views')).toEqual([]);
    expect(await db.collection('orders').countDocuments()).toBe(4);
  });

  it('is read in a transaction', async () => {
    await client.withSession((session) =>
      session.withTransaction(async () => {
        await db.collection<Row>('orders').insertOne({ _id: 9, status: 'paid' }, { session });
        expect(await db.collection('paid').find({}, { session }).toArray()).toHaveLength(4);
      }),
    );
  });

  it('explains the query over its collection', async () => {
    const plan = await db.collection('paid').find({ total: 30 }).explain('executionStats');
    expect(JSON.stringify(plan)).toContain(`${db.databaseName}.orders`);
    expect(JSON.stringify(plan)).toContain('paid');
    expect(
      (plan as { executionStats?: unknown }).executionStats ?? (plan as Document)['stages'],
    ).toBeDefined();
  });

  it.each([
    ['an insert', () => db.collection('paid').insertOne({})],
    ['many inserts', () => db.collection('paid').insertMany([{}, {}])],
    ['an update', () => db.collection('paid').updateOne({}, { $set: { a: 1 } })],
    ['an upsert', () => db.collection('paid').updateOne({ x: 1 }, { $set: { a: 1 } }, { upsert: true })],
    ['a delete', () => db.collection('paid').deleteMany({})],
    ['findAndModify', () => db.collection('paid').findOneAndUpdate({}, { $set: { a: 1 } })],
    ['findAndRemove', () => db.collection('paid').findOneAndDelete({})],
    ['an index', () => db.collection('paid').createIndex({ total: 1 })],
    ['a list of its indexes', () => db.collection('paid').indexes()],
    ['a new name', () => db.renameCollection('paid', 'other')],
    [
      '$out',
      () =>
        db
          .collection('orders')
          .aggregate([{ $out: 'paid' }])
          .toArray(),
    ],
    [
      '$merge',
      () =>
        db
          .collection('orders')
          .aggregate([{ $merge: 'paid' }])
          .toArray(),
    ],
    ['a change stream', () => db.collection('paid').watch().next()],
    ['its statistics', () => db.command({ collStats: 'paid' })],
  ])('refuses %s with 166', async (_title, act) => {
    await expect(act()).rejects.toThrow(code(166));
    expect(await db.collection('orders').find().toArray()).toEqual(orders);
  });

  it.each([
    ['a pipeline without viewOn', { create: 'v', pipeline: [] }, 72],
    ['a pipeline that writes', { create: 'v', viewOn: 'orders', pipeline: [{ $out: 'x' }] }, 167],
    ['an unknown stage', { create: 'v', viewOn: 'orders', pipeline: [{ $fancy: 1 }] }, 40324],
    ['a validator', { create: 'v', viewOn: 'orders', validator: {} }, 72],
    ['a size', { create: 'v', viewOn: 'orders', capped: true, size: 5000 }, 72],
    ['itself', { create: 'v', viewOn: 'v' }, 5],
    ['itself through a join', { create: 'v', viewOn: 'orders', pipeline: [{ $unionWith: 'v' }] }, 5],
    ['a name in use', { create: 'paid', viewOn: 'orders' }, 48],
  ])('cannot have %s', async (_title, command, number) => {
    await expect(db.command(command)).rejects.toThrow(code(number));
  });

  it('cannot become a view of itself by a change of another', async () => {
    await db.createCollection('outer', { viewOn: 'paid', pipeline: [] });
    await expect(db.command({ collMod: 'paid', viewOn: 'outer', pipeline: [] })).rejects.toThrow(code(5));
  });

  it('cannot be written through system.views', async () => {
    await expect(db.collection('system.views').insertOne({})).rejects.toThrow(code(73));
    await expect(db.collection('system.views').deleteMany({})).rejects.toThrow(code(73));
  });
});

describe('the time of the set', () => {
  const stamp = [{ $set: { at: '$$CLUSTER_TIME' } }];

  it('is one for a command, and later for the next one', async () => {
    const stamps = db.collection<Row>('stamps');
    await stamps.insertMany([{ _id: 1 }, { _id: 2 }, { _id: 3 }]);
    const update = (_id: number) => ({ updateOne: { filter: { _id }, update: stamp } });
    await stamps.bulkWrite([update(1), update(2)]);
    await stamps.updateOne({ _id: 3 }, stamp);
    const rows = await stamps.find().sort({ _id: 1 }).toArray();
    const [a, b, c] = rows.map(({ at }) => at as Timestamp) as [Timestamp, Timestamp, Timestamp];
    expect([a.equals(b), c.greaterThan(b)]).toEqual([true, true]);
  });

  it('is that of each operation of a client bulk write', async () => {
    await db.collection<Row>('stamps').insertMany([{ _id: 1 }, { _id: 2 }]);
    const namespace = `${db.databaseName}.stamps`;
    await client.bulkWrite(
      [1, 2].map((_id) => ({ namespace, name: 'updateOne', filter: { _id } as Document, update: stamp })),
    );
    const rows = await db.collection<Row>('stamps').find().sort({ _id: 1 }).toArray();
    const [a, b] = rows.map(({ at }) => at as Timestamp) as [Timestamp, Timestamp];
    expect(b.greaterThan(a)).toBe(true);
  });

  it('is known to a validator', async () => {
    const validator = { $expr: { $lt: ['$at', '$$CLUSTER_TIME'] } };
    const past = await db.createCollection<Row>('past', { validator });
    await past.insertOne({ at: new Timestamp({ t: 1, i: 1 }) });
    await expect(past.insertOne({ at: new Timestamp({ t: 4e9, i: 1 }) })).rejects.toThrow(code(121));
  });
});

describe('the collation of a collection', () => {
  it('counts in its validator', async () => {
    const collation = { locale: 'en', strength: 2 };
    const tasks = await db.createCollection('tasks', { collation, validator: { status: { $in: ['open'] } } });
    await tasks.insertOne({ status: 'OPEN' });
    await expect(tasks.insertOne({ status: 'closed' })).rejects.toThrow(code(121));
  });

  it('does not count in a change stream, which has its own', async () => {
    const collation = { locale: 'en', strength: 2 };
    const tasks = await db.createCollection('tasks', { collation });
    const wanted = [{ $match: { 'fullDocument.status': 'open' } }];
    const [plain, alike] = [tasks.watch(wanted), tasks.watch(wanted, { collation })];
    expect([await plain.tryNext(), await alike.tryNext()]).toEqual([null, null]);
    await tasks.insertMany([{ status: 'OPEN' }, { status: 'open' }]);
    expect(await plain.next()).toMatchObject({ fullDocument: { status: 'open' } });
    expect(await alike.next()).toMatchObject({ fullDocument: { status: 'OPEN' } });
    await Promise.all([plain.close(), alike.close()]);
  });
});

describe('a validator', () => {
  const schema = {
    bsonType: 'object',
    title: 'A book',
    required: ['title', 'year'],
    properties: {
      title: { bsonType: 'string', minLength: 1 },
      year: { bsonType: 'int', minimum: 1400, description: 'a year of print' },
    },
  };
  const strict = (options: Document = {}) =>
    db.createCollection<Row>('books', { validator: { $jsonSchema: schema }, ...options });

  it('refuses documents that its $jsonSchema does not allow, and says why', async () => {
    const books = await strict();
    await books.insertOne({ title: 'x', year: 2000 });
    const failure = await books.insertOne({ _id: 7, year: 3 }).catch((error: unknown) => error);
    expect(failure).toMatchObject({
      code: 121,
      errInfo: {
        failingDocumentId: 7,
        details: {
          operatorName: '$jsonSchema',
          title: 'A book',
          schemaRulesNotSatisfied: [
            {
              operatorName: 'required',
              specifiedAs: { required: ['title', 'year'] },
              missingProperties: ['title'],
            },
            {
              operatorName: 'properties',
              propertiesNotSatisfied: [
                {
                  propertyName: 'year',
                  description: 'a year of print',
                  details: [
                    {
                      operatorName: 'minimum',
                      specifiedAs: { minimum: 1400 },
                      reason: 'comparison failed',
                      consideredValue: 3,
                    },
                  ],
                },
              ],
            },
          ],
        },
      },
    });
    await expect(books.updateOne({}, { $set: { title: '' } })).rejects.toThrow(code(121));
    await expect(books.replaceOne({}, { title: 'y' })).rejects.toThrow(code(121));
    await expect(books.findOneAndUpdate({}, { $unset: { year: 1 } })).rejects.toThrow(code(121));
    await expect(books.updateOne({ q: 1 }, { $set: { q: 2 } }, { upsert: true })).rejects.toThrow(code(121));
    expect(await books.find({}, { projection: { _id: 0 } }).toArray()).toEqual([{ title: 'x', year: 2000 }]);
  });

  it('is bypassed only where the client says so', async () => {
    const books = await strict();
    await books.insertOne({ n: 1 }, { bypassDocumentValidation: true });
    await books.updateOne({ n: 1 }, { $set: { n: 2 } }, { bypassDocumentValidation: true });
    await expect(books.updateOne({ n: 2 }, { $set: { n: 3 } })).rejects.toThrow(code(121));
  });

  it('leaves invalid documents alone that were there before, where its level is moderate', async () => {
    const books = db.collection<Row>('books');
    await books.insertMany([{ n: 1 }, { title: 'x', year: 2000, n: 2 }]);
    await db.command({ collMod: 'books', validator: { $jsonSchema: schema }, validationLevel: 'moderate' });
    await books.updateOne({ n: 1 }, { $set: { m: 1 } });
    await expect(books.updateOne({ n: 2 }, { $set: { title: 5 } })).rejects.toThrow(code(121));
    await expect(books.insertOne({ n: 3 })).rejects.toThrow(code(121));
  });

  it.each([{ validationLevel: 'off' }, { validationAction: 'warn' }])(
    'stops nothing with %j',
    async (options) => {
      const books = await strict(options);
      await books.insertOne({});
      expect(await books.countDocuments()).toBe(1);
    },
  );

  it('is set, listed, replaced and taken away by collMod', async () => {
    const books = await db.createCollection<Row>('books');
    await db.command({ collMod: 'books', validator: { $jsonSchema: schema }, validationAction: 'error' });
    await expect(books.insertOne({})).rejects.toThrow(code(121));
    expect(await listNamed('books')).toMatchObject([
      { type: 'collection', options: { validator: { $jsonSchema: schema }, validationAction: 'error' } },
    ]);
    await db.command({ collMod: 'books', validator: {} });
    await books.insertOne({});
  });

  it('checks what $merge and $out write', async () => {
    await strict();
    const other = db.collection<Row>('other');
    await other.insertOne({ n: 1 });
    await expect(other.aggregate([{ $merge: 'books' }]).toArray()).rejects.toThrow(code(121));
    await expect(other.aggregate([{ $out: 'books' }]).toArray()).rejects.toThrow(code(121));
    await other.aggregate([{ $merge: 'books' }], { bypassDocumentValidation: true }).toArray();
    expect(await db.collection('books').countDocuments()).toBe(1);
  });

  it.each([
    ['an unknown keyword', { validator: { $jsonSchema: { propertys: {} } } }, 9],
    ['an unknown level', { validator: {}, validationLevel: 'lax' }, 2],
    ['an unknown action', { validator: {}, validationAction: 'log' }, 2],
  ])('is refused with %s', async (_title, options, number) => {
    await expect(db.command({ create: 'books', ...options })).rejects.toThrow(code(number));
  });
});

describe('a capped collection', () => {
  it('holds the last documents in the order in which they came', async () => {
    let at = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 8 }),
        fc.array(fc.nat(), { maxLength: 20 }),
        async (max, values) => {
          const name = `log-${(at += 1)}`;
          const log = await db.createCollection(name, { capped: true, size: 100_000, max });
          for (const n of values) await log.insertOne({ n });
          const held = (await log.find().toArray()).map(({ n }) => n as number);
          expect(held).toEqual(values.slice(-max));
        },
      ),
      { numRuns: 15 },
    );
  });

  it('removes the oldest documents when its bytes are used up', async () => {
    const log = await db.createCollection<Row>('log', { capped: true, size: 10 });
    for (let n = 0; n < 10; n += 1) await log.insertOne({ _id: n, text: 'x'.repeat(1000) });
    expect(await log.distinct('_id')).toEqual([7, 8, 9].slice(-(await log.countDocuments())));
    expect(await log.countDocuments()).toBe(3);
    await log.createIndex({ text: 1 });
    expect(await db.command({ validate: 'log' })).toMatchObject({ valid: true, nrecords: 3 });
    await expect(log.insertOne({ text: 'x'.repeat(5000) })).rejects.toThrow(code(2));
  });

  it('is listed with its limits, which collMod changes', async () => {
    const log = await db.createCollection<Row>('log', { capped: true, size: 5000, max: 10 });
    expect(await listNamed('log')).toMatchObject([
      { type: 'collection', options: { capped: true, size: 5120, max: 10 } },
    ]);
    expect(await db.command({ collStats: 'log' })).toMatchObject({ capped: true, max: 10 });
    await log.insertMany([{ _id: 1 }, { _id: 2 }, { _id: 3 }] as Row[]);
    await db.command({ collMod: 'log', cappedMax: 2 });
    // Only the next document leaves no room for the oldest ones.
    expect(await log.distinct('_id')).toEqual([1, 2, 3]);
    await log.insertOne({ _id: 4 } as Row);
    expect(await log.distinct('_id')).toEqual([3, 4]);
    await expect(db.command({ collMod: 'other-log', cappedMax: 2 })).rejects.toThrow(code(26));
  });

  it('may be changed and emptied, but not in a transaction', async () => {
    const log = await db.createCollection<Row>('log', { capped: true, size: 5000 });
    await log.insertOne({ n: 1 });
    await log.updateOne({ n: 1 }, { $set: { n: 2 } });
    const writing = client.withSession((session) =>
      session.withTransaction(() => log.insertOne({ n: 3 }, { session })),
    );
    await expect(writing).rejects.toThrow(code(263));
    await log.deleteMany({});
    expect(await log.countDocuments()).toBe(0);
  });

  it.each([
    ['without a size', { create: 'log', capped: true }],
    ['with a size only', { create: 'log', size: 100 }],
    ['with a number only', { create: 'log', max: 100 }],
  ])('is refused %s', async (_title, command) => {
    await expect(db.command(command)).rejects.toThrow(code(72));
  });
});

describe('the statistics of a collection', () => {
  it('divide what counts bytes by a scale, and no other number', async () => {
    const log = await db.createCollection('log', { capped: true, size: 5120, max: 9 });
    await log.insertMany(Array.from({ length: 3 }, () => ({ text: 'x'.repeat(100) })));
    const read = async (scale?: unknown): Promise<Document> => {
      const [stats] = await log.aggregate([{ $collStats: { storageStats: { scale } } }]).toArray();
      return stats?.['storageStats'];
    };
    const { size, avgObjSize } = await read();
    for (const [scale, scaleFactor] of [
      [10, 10],
      [10.9, 10],
      [Decimal128.fromString('9.5'), 10],
      [Infinity, 2 ** 31 - 1],
    ] as [unknown, number][])
      expect(await read(scale)).toMatchObject({
        scaleFactor,
        size: Math.floor(size / scaleFactor),
        maxSize: Math.floor(5120 / scaleFactor),
        max: 9,
        count: 3,
        avgObjSize,
      });
    expect(await db.command({ collStats: 'log', scale: 10 })).toMatchObject({ scaleFactor: 10 });
    for (const scale of [0, -1, 0.5, NaN, Decimal128.fromString('0.5')])
      await expect(read(scale)).rejects.toThrow(code(2));
    await expect(read('1')).rejects.toThrow(code(14));
  });

  it('are refused for measurements, which have no buckets here', async () => {
    const weather = await db.createCollection('weather', { timeseries: { timeField: 'at' } });
    for (const part of ['storageStats', 'count'])
      await expect(weather.aggregate([{ $collStats: { [part]: {} } }]).toArray()).rejects.toThrow(code(238));
    await expect(db.command({ collStats: 'weather' })).rejects.toThrow(code(238));
  });
});

describe('a time-series collection', () => {
  it('has an index that expires its data, or is over all fields, by its metadata only', async () => {
    await db.createCollection('weather', { timeseries: { timeField: 'at', metaField: 'place' } });
    const build = (key: Document, more: Document = {}): Promise<Document> =>
      db.command({ createIndexes: 'weather', indexes: [{ key, name: 'x', ...more }] });
    await expect(build({ '$**': 1 })).rejects.toThrow(code(67));
    const partial = (path: string) => ({
      expireAfterSeconds: 1,
      partialFilterExpression: { [path]: { $gt: 1 } },
    });
    await expect(build({ at: 1 }, partial('degrees'))).rejects.toThrow(code(72));
    expect(await build({ at: 1 }, partial('place.x'))).toMatchObject({ ok: 1 });
  });

  it('takes measurements with a time, and is listed as what it is', async () => {
    const weather = await db.createCollection('weather', {
      timeseries: { timeField: 'at', metaField: 'place' },
    });
    await weather.insertOne({ at: new Date(0), place: 'x', degrees: 5 });
    await expect(weather.insertOne({ at: 'noon' })).rejects.toThrow(code(2));
    expect(await weather.find({}, { projection: { _id: 0 } }).toArray()).toEqual([
      { at: new Date(0), place: 'x', degrees: 5 },
    ]);
    expect(await listNamed('weather')).toMatchObject([
      {
        type: 'timeseries',
        options: {
          timeseries: {
            timeField: 'at',
            metaField: 'place',
            granularity: 'seconds',
            bucketMaxSpanSeconds: 3600,
          },
        },
      },
    ]);
  });

  it('takes one _id several times, and finds all that have it', async () => {
    const twice = await db.createCollection('twice', { timeseries: { timeField: 'at' } });
    await twice.insertMany([2, 1, 2].map((n) => ({ _id: 7 as never, at: new Date(n), n })));
    expect(await twice.find({ _id: 7 as never }, { sort: { at: 1 } }).toArray()).toMatchObject([
      { n: 1 },
      { n: 2 },
      { n: 2 },
    ]);
    expect(await twice.distinct('n', { _id: 7 as never })).toEqual([1, 2]);
    await twice
      .aggregate([{ $out: { db: db.databaseName, coll: 'again', timeseries: { timeField: 'at' } } as never }])
      .toArray();
    expect(await db.collection('again').countDocuments()).toBe(3);
  });

  it('is created and filled again by $out', async () => {
    await db.collection('raw').insertMany([{ at: new Date(0), n: 1 }, { n: 2 }]);
    const write = (timeseries: Document | undefined, n: number): Promise<Document[]> =>
      db
        .collection('raw')
        .aggregate([{ $match: { n } }, { $out: { db: db.databaseName, coll: 'kept', timeseries } as never }])
        .toArray();
    await expect(write({ timeField: 'at', granularity: 'days' }, 1)).rejects.toThrow(code(2));
    await expect(write({ timeField: 'at', bucketMaxSpanSeconds: 60 }, 1)).rejects.toThrow(code(72));
    await expect(write({ timeField: 'at' }, 2)).rejects.toThrow(code(2));
    await write({ timeField: 'at', granularity: 'hours' }, 1);
    expect(await listNamed('kept')).toMatchObject([
      { type: 'timeseries', options: { timeseries: { bucketMaxSpanSeconds: 2_592_000 } } },
    ]);
    await write(undefined, 1);
    expect(await db.collection('kept').countDocuments()).toBe(1);
    await expect(write({ timeField: 'at' }, 1)).rejects.toThrow(code(7406103));
    await db.collection('kept').drop();
    await db.createCollection('kept');
    await expect(write({ timeField: 'at' }, 1)).rejects.toThrow(code(7268700));
  });

  it('refuses changes and change streams, and lets its documents expire', async () => {
    const weather = await db.createCollection('weather', { timeseries: { timeField: 'at' } });
    await expect(weather.updateMany({}, { $set: { a: 1 } })).rejects.toThrow(code(238));
    await expect(weather.deleteMany({})).rejects.toThrow(code(238));
    await expect(weather.watch().next()).rejects.toThrow(code(166));
    const expiring = { create: 'w', timeseries: { timeField: 'at' }, expireAfterSeconds: 1 };
    await db.command(expiring);
    expect(await listNamed('w')).toMatchObject([{ options: { expireAfterSeconds: 1 } }]);
    await expect(db.command({ create: 'plain', expireAfterSeconds: 1 })).rejects.toThrow(code(72));
    const hours = { timeField: 'at', granularity: 'hours' };
    await db.command({ create: 'h', timeseries: { ...hours, bucketMaxSpanSeconds: 2_592_000 } });
    await expect(
      db.command({ create: 'i', timeseries: { ...hours, bucketMaxSpanSeconds: 60 } }),
    ).rejects.toThrow(code(72));
    await expect(db.command({ create: 'w', timeseries: {} })).rejects.toThrow(code(40414));
  });
});

describe('a data file', () => {
  it('keeps views, validators and limits over a restart', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embedded-kinds-'));
    const dataFile = join(folder, 'data');
    const runDuring = async (act: (one: Db) => Promise<void>): Promise<void> => {
      const own = await EmbeddedMongo.start({ dataFile });
      const ownClient = await MongoClient.connect(own.uri);
      try {
        await act(ownClient.db('d'));
      } finally {
        await ownClient.close();
        await own.close();
      }
    };
    try {
      await runDuring(async (one) => {
        const log = await one.createCollection<Row>('log', { capped: true, size: 5000, max: 2 });
        await log.insertMany([{ _id: 1 }, { _id: 2 }, { _id: 3 }] as Row[]);
        await one.createCollection('last', { viewOn: 'log', pipeline: [{ $match: { _id: 3 } }] });
        await one.createCollection('gone', { viewOn: 'log', pipeline: [] });
        await one.collection('gone').drop();
        await one.createCollection('books', { validator: { $jsonSchema: { required: ['title'] } } });
      });
      await runDuring(async (one) => {
        expect(await one.collection('last').find().toArray()).toEqual([{ _id: 3 }]);
        expect(await one.collection('log').countDocuments()).toBe(2);
        await expect(one.collection('books').insertOne({})).rejects.toThrow(code(121));
        expect((await one.listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name)).toEqual(
          ['log', 'last', 'books', 'system.views'],
        );
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it.each([
    [false, ['insert']],
    [true, ['create', 'drop', 'insert']],
  ])(
    'reports a view to a change stream that shows expanded events: %s',
    async (showExpandedEvents, kinds) => {
      await db.createCollection('c').catch(() => undefined);
      const events = db.watch([], { showExpandedEvents });
      const first = events.next();
      await new Promise((resolve) => setTimeout(resolve, 50));
      await db.createCollection('v', { viewOn: 'c', pipeline: [] });
      await db.collection('v').drop();
      await db.collection('c').insertOne({});
      const seen = [await first];
      while (seen.length < kinds.length) seen.push(await events.next());
      expect(seen.map(({ operationType }) => operationType)).toEqual(kinds);
      await events.close();
    },
  );
});

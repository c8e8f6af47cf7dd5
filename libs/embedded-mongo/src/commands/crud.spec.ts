import {
  Double,
  Long,
  MongoClient,
  ObjectId,
  Timestamp,
  type Collection,
  type Db,
  type Document,
  Decimal128,
  UUID,
} from 'mongodb';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { EmbeddedMongo } from '../embedded-mongo.js';

// The machine may be busy: a slow rule is not a broken one.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let server: EmbeddedMongo;
let client: MongoClient;
let db: Db;
let books: Collection<Document & { _id?: number }>;
let made = 0;

beforeAll(async () => {
  server = await EmbeddedMongo.start();
  client = await MongoClient.connect(server.uri);
  db = client.db('crud');
});
afterAll(async () => {
  await client.close();
  await server.close();
});
beforeEach(async () => {
  books = db.collection(`books-${(made += 1)}`);
  await books.insertMany([
    { _id: 1, title: 'a', pages: 10, tags: ['x'] },
    { _id: 2, title: 'b', pages: 20, tags: ['x', 'y'] },
    { _id: 3, title: 'c', pages: 30, tags: [] },
  ]);
});

const ids = async (filter: object, options = {}) =>
  (await books.find(filter, { projection: { _id: 1 }, ...options }).toArray()).map(({ _id }) => _id);
const code = (number: number): unknown => expect.objectContaining({ code: number });

describe('reading', () => {
  it('sorts, skips, limits and projects', async () => {
    const found = await books
      .find({}, { sort: { pages: -1 }, skip: 1, limit: 1, projection: { title: 1, _id: 0 } })
      .toArray();
    expect(found).toEqual([{ title: 'b' }]);
  });

  it('gives every document once over many batches, whatever the sizes', async () => {
    const many = db.collection(`many-${made}`);
    await many.insertMany(Array.from({ length: 1_000 }, (_, n) => ({ n })));
    for (const batchSize of [60, 333, 1_000, 5_000]) {
      const seen = (await many.find({}, { batchSize }).toArray()).map(({ n }) => n);
      expect(seen).toEqual(Array.from({ length: 1_000 }, (_, n) => n));
    }
  });

  it('counts and lists distinct values, inside arrays too', async () => {
    expect(await books.countDocuments({ pages: { $gt: 10 } })).toBe(2);
    expect(await books.estimatedDocumentCount()).toBe(3);
    expect(await books.distinct('tags')).toEqual(['x', 'y']);
  });

  it('compares as the collation of the query says', async () => {
    expect(await ids({ title: 'A' })).toEqual([]);
    expect(await ids({ title: 'A' }, { collation: { locale: 'en', strength: 2 } })).toEqual([1]);
  });

  it('uses variables of let', async () => {
    expect(await ids({ $expr: { $gt: ['$pages', '$$least'] } }, { let: { least: 15 } })).toEqual([2, 3]);
  });

  it('knows the time in a find, and not in a count, in distinct values or in lists', async () => {
    const before = { $expr: { $lt: [new Date(0), '$$NOW'] } };
    const timed = { $expr: { $lt: [0, '$$CLUSTER_TIME'] } };
    const name = books.collectionName;
    for (const filter of [before, timed]) {
      expect(await ids(filter)).toEqual([1, 2, 3]);
      await expect(db.command({ count: name, query: filter })).rejects.toThrow(code(51144));
      await expect(books.distinct('tags', filter)).rejects.toThrow(code(51144));
      await expect(db.admin().command({ listDatabases: 1, filter })).rejects.toThrow(code(51144));
    }
    await expect(ids({}, { let: { ROOT: 1 } })).rejects.toThrow(code(9));
  });

  it('aggregates over several collections', async () => {
    const authors = db.collection(`authors-${made}`);
    await authors.insertOne({ name: 'ann', wrote: [1, 3] });
    const rows = await authors
      .aggregate([
        { $lookup: { from: books.collectionName, localField: 'wrote', foreignField: '_id', as: 'books' } },
        { $unwind: '$books' },
        { $group: { _id: '$name', pages: { $sum: '$books.pages' } } },
      ])
      .toArray();
    expect(rows).toEqual([{ _id: 'ann', pages: 40 }]);
  });

  it('answers an aggregate without its cursor option 9, as MongoDB does', async () => {
    await expect(db.command({ aggregate: 'x', pipeline: [] })).rejects.toThrow(code(9));
  });
});

describe('writing', () => {
  it('keeps number types apart, also when another field changes', async () => {
    const numbers = db.collection(`numbers-${made}`, { promoteValues: false });
    await numbers.insertOne({ long: Long.fromNumber(5), double: new Double(3), int: 3 });
    await numbers.updateOne({}, { $set: { other: 1 }, $inc: { int: 1 } });
    const stored = await numbers.findOne({});
    expect(stored?.['long']).toBeInstanceOf(Long);
    expect(stored?.['double']).toBeInstanceOf(Double);
    expect(stored?.['int']).toMatchObject({ _bsontype: 'Int32', value: 4 });
  });

  it('says what matched and what changed', async () => {
    expect(await books.updateMany({}, { $min: { pages: 15 } })).toMatchObject({
      matchedCount: 3,
      modifiedCount: 2,
    });
    expect(await books.replaceOne({ _id: 1 }, { title: 'new' })).toMatchObject({ modifiedCount: 1 });
    expect(await books.findOne({ _id: 1 })).toEqual({ _id: 1, title: 'new' });
    expect(await books.deleteMany({ pages: { $exists: true } })).toMatchObject({ deletedCount: 2 });
  });

  it('inserts on upsert what the filter and the update say', async () => {
    const result = await books.updateOne(
      { title: 'z' },
      { $set: { pages: 1 }, $setOnInsert: { fresh: true } },
      { upsert: true },
    );
    expect(result).toMatchObject({ upsertedCount: 1, matchedCount: 0 });
    expect(await books.findOne({ title: 'z' })).toEqual({
      _id: result.upsertedId,
      title: 'z',
      pages: 1,
      fresh: true,
    });
    expect(result.upsertedId).toBeInstanceOf(ObjectId);
  });

  it('stops an ordered batch at its first error and finishes an unordered one', async () => {
    const documents = [{ _id: 4 }, { _id: 1 }, { _id: 5 }];
    await expect(books.insertMany(documents)).rejects.toThrow(code(11000));
    expect(await ids({})).toEqual([1, 2, 3, 4]);
    await expect(books.insertMany([{ _id: 1 }, { _id: 6 }], { ordered: false })).rejects.toThrow(code(11000));
    expect(await ids({})).toEqual([1, 2, 3, 4, 6]);
  });

  it('updates the right array elements', async () => {
    await books.updateOne({ tags: 'y' }, { $set: { 'tags.$': 'z' } });
    await books.updateMany({}, { $set: { 'tags.$[e]': 'X' } }, { arrayFilters: [{ e: 'x' }] });
    expect(await books.distinct('tags')).toEqual(['X', 'z']);
  });

  it('finds and changes one document in one step', async () => {
    const options = {
      sort: { pages: -1 as const },
      returnDocument: 'after' as const,
      projection: { pages: 1 },
    };
    expect(await books.findOneAndUpdate({}, { $inc: { pages: 1 } }, options)).toEqual({ _id: 3, pages: 31 });
    expect(await books.findOneAndUpdate({ title: 'q' }, { $set: { n: 1 } })).toBeNull();
    expect(await books.findOneAndDelete({ title: 'a' })).toMatchObject({ _id: 1, pages: 10 });
    expect(
      await books.findOneAndReplace(
        { title: 'w' },
        { title: 'w' },
        { upsert: true, returnDocument: 'after' },
      ),
    ).toMatchObject({ title: 'w' });
  });

  it('never hands the same document to two takers', async () => {
    const queue = db.collection(`queue-${made}`);
    await queue.insertMany(Array.from({ length: 60 }, (_, n) => ({ n, taken: false })));
    const takers = Array.from({ length: 60 }, () =>
      queue.findOneAndUpdate({ taken: false }, { $set: { taken: true } }, { sort: { n: 1 } }),
    );
    const taken = (await Promise.all(takers)).map((one) => one?.['n'] as number);
    expect(taken.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, n) => n));
  });

  it('inserts one document when many upsert the same one', async () => {
    const counters = db.collection(`counters-${made}`);
    await Promise.all(
      Array.from({ length: 40 }, () =>
        counters.updateOne({ name: 'c' }, { $inc: { n: 1 } }, { upsert: true }),
      ),
    );
    expect(await counters.find({}, { projection: { _id: 0 } }).toArray()).toEqual([{ name: 'c', n: 40 }]);
  });

  it('rounds the size of a further batch as that of the first', async () => {
    const { cursor } = await db.command({ find: books.collectionName, batchSize: 0 });
    const collection = books.collectionName;
    const batchSize = Decimal128.fromString('1.5');
    const more = await db.command({ getMore: Long.fromBigInt(BigInt(cursor.id)), collection, batchSize });
    expect(more['cursor'].nextBatch).toHaveLength(2);
  });

  it('does a bulk of a collection and one over several', async () => {
    const done = await books.bulkWrite([
      { insertOne: { document: { _id: 9 } } },
      { updateOne: { filter: { _id: 9 }, update: { $set: { n: 1 } } } },
      { deleteOne: { filter: { _id: 1 } } },
    ]);
    expect(done).toMatchObject({ insertedCount: 1, modifiedCount: 1, deletedCount: 1 });
    const other = `${db.databaseName}.other-${made}`;
    const result = await client.bulkWrite(
      [
        { name: 'insertOne', namespace: other, document: { long: Long.fromNumber(7) } as Document },
        { name: 'updateOne', namespace: books.namespace, filter: { title: 'b' }, update: { $set: { n: 2 } } },
        { name: 'deleteMany', namespace: books.namespace, filter: { n: 1 } },
      ],
      { verboseResults: true },
    );
    expect(result).toMatchObject({ insertedCount: 1, modifiedCount: 1, deletedCount: 1 });
    expect(result.updateResults?.get(1)).toMatchObject({ matchedCount: 1 });
  });

  it('writes the result of a pipeline with $out and $merge', async () => {
    const target = db.collection<Document & { _id?: number }>(`target-${made}`);
    await books.aggregate([{ $project: { pages: 1 } }, { $out: target.collectionName }]).toArray();
    expect(await target.countDocuments()).toBe(3);
    await books
      .aggregate([{ $match: { _id: 1 } }, { $set: { pages: 99 } }, { $merge: target.collectionName }])
      .toArray();
    expect(await target.findOne({ _id: 1 })).toMatchObject({ pages: 99 });
    await expect(
      books.aggregate([{ $project: { _id: '$tags' } }, { $out: target.collectionName }]).toArray(),
    ).rejects.toThrow(code(2));
    expect(await target.countDocuments()).toBe(3);
  });

  it('merges every document, whichever fails first', async () => {
    const target = db.collection<Document>(`target-${made}`);
    await target.createIndex({ key: 1 }, { unique: true });
    await target.insertOne({ _id: 10 as never, key: 'b' });
    const merge = { into: target.collectionName, on: 'key', whenMatched: 'fail' };
    const pipeline = [{ $set: { key: { $ifNull: ['$none', '$title'] } } }, { $merge: merge }];
    await expect(books.aggregate(pipeline).toArray()).rejects.toThrow(code(11000));
    expect((await target.find().sort({ key: 1 }).toArray()).map(({ key }) => key)).toEqual(['a', 'b', 'c']);
  });

  it.each(['merge', 'keepExisting', 'replace'] as const)(
    'inserts fields as %s has them',
    async (whenMatched) => {
      const target = db.collection<Document>(`target-${made}`);
      const merge = { into: target.collectionName, whenMatched };
      await books.aggregate([{ $limit: 1 }, { $project: { z: '1', b: '2' } }, { $merge: merge }]).toArray();
      const order = whenMatched === 'replace' ? ['_id', 'z', 'b'] : ['_id', 'b', 'z'];
      expect(Object.keys((await target.findOne()) ?? {})).toEqual(order);
    },
  );

  it('merges by what is missing, and under the variables of the command', async () => {
    const target = db.collection<Document>(`target-${made}`);
    await target.createIndex({ key: 1 }, { unique: true });
    await target.insertOne({ _id: 10 as never, key: null });
    const whenMatched = [{ $set: { from: '$$new.title', by: '$$who', own: '$$mine' } }];
    const merge = { into: target.collectionName, on: 'key', let: { mine: '$pages' }, whenMatched };
    await books.aggregate([{ $match: { _id: 1 } }, { $merge: merge }], { let: { who: 'me' } }).toArray();
    expect(await target.findOne()).toEqual({ _id: 10, key: null, from: 'a', by: 'me', own: 10 });
  });

  it.each([
    [{ whenMatched: 'replace' }, 66],
    [{ whenMatched: 'merge' }, 66],
    [{ whenMatched: [{ $set: { _id: 11 } }] }, 66],
    [{ whenMatched: [{ $match: { key: 'a' } }] }, 72],
    [{ whenMatched: [1] }, 14],
    [{ whenMatched: 'merge', let: { mine: 1 } }, 51199],
    [{ whenMatched: 'keepExisting', whenNotMatched: 'discard' }, 51181],
    [{ whenMatched: null }, 51191],
    [{ whenMatched: [], let: { A: 1 } }, 9],
    [{ whenMatched: [{ $set: { a: '$$gone' } }], let: { gone: '$none' } }, 17276],
  ])('refuses to merge with %j', async (options, expected) => {
    const target = db.collection<Document>(`target-${made}`);
    await target.createIndex({ key: 1 }, { unique: true });
    await target.insertOne({ _id: 10 as never, key: 'a' });
    const merge = { into: target.collectionName, on: 'key', ...options };
    const pipeline = [{ $match: { _id: 1 } }, { $set: { key: '$title' } }, { $merge: merge }];
    await expect(books.aggregate(pipeline).toArray()).rejects.toThrow(code(expected));
    expect(await target.find().toArray()).toEqual([{ _id: 10, key: 'a' }]);
  });

  it.each([
    [{ $merge: 'system.own' }, 31319],
    [{ $out: 'system.own' }, 17385],
    [{ $merge: { into: { db: 'admin', coll: 'c' } } }, 31320],
    [{ $merge: { into: { db: 'local', coll: 'c' } } }, 31320],
    [{ $out: { db: 'config', coll: 'c' } }, 31321],
    [{ $out: { db: '', coll: 'c' } }, 73],
    [{ $out: { coll: 'c' } }, 40414],
  ])('writes with %j nowhere', async (stage: Document, expected) => {
    await expect(books.aggregate([stage]).toArray()).rejects.toThrow(code(expected));
  });

  it('merges nothing into a collection that it would not make', async () => {
    const name = `target-${made}`;
    await books.aggregate([{ $match: { _id: 0 } }, { $merge: name }]).toArray();
    await books.aggregate([{ $merge: { into: name, whenNotMatched: 'discard' } }]).toArray();
    expect(await db.listCollections({ name }).toArray()).toEqual([]);
  });

  it('checks documents against the validator of their collection', async () => {
    const strict = await db.createCollection(`strict-${made}`, { validator: { n: { $gt: 0 } } });
    await expect(strict.insertOne({ n: 0 })).rejects.toThrow(code(121));
    await strict.insertOne({ n: 1 });
    await expect(strict.updateOne({}, { $set: { n: -1 } })).rejects.toThrow(code(121));
    await strict.insertOne({ n: 0 }, { bypassDocumentValidation: true });
  });

  it('says when a write concern cannot be had', async () => {
    await expect(books.insertOne({}, { writeConcern: { w: 3 } })).rejects.toThrow(code(100));
  });
});

describe('refusing', () => {
  it('leaves an empty timestamp to the server, in fields of what is inserted and of what replaces it', async () => {
    const times = db.collection('times');
    const empty = new Timestamp({ t: 0, i: 0 });
    await times.insertOne({ _id: 1 as never, at: empty, in: { at: empty }, list: [empty] });
    await times.insertOne({ _id: empty as never, at: empty });
    const [one, other] = await times.find().sort({ at: 1 }).toArray();
    expect(one?.['at'].t).toBeGreaterThan(1_700_000_000);
    expect(one).toMatchObject({ in: { at: empty }, list: [empty] });
    expect(other).toMatchObject({ _id: empty });
    expect(other?.['at'].greaterThan(one?.['at'])).toBe(true);
    await times.updateOne({ _id: 1 as never }, { $set: { at: empty } });
    expect(await times.findOne({ _id: 1 as never })).toMatchObject({ at: empty });
    await times.replaceOne({ _id: 1 as never }, { at: empty });
    expect((await times.findOne({ _id: 1 as never }))?.['at'].t).toBeGreaterThan(1_700_000_000);
  });

  it('finds the unknown operator of a write also where there is nothing to write', async () => {
    const none = db.collection('none');
    const filter = { a: { $near2: 1 } };
    await expect(none.updateOne(filter, { $set: { a: 1 } })).rejects.toThrow(code(2));
    await expect(none.updateOne(filter, { $set: { a: 1 } }, { upsert: true })).rejects.toThrow(code(2));
    await expect(none.deleteMany(filter)).rejects.toThrow(code(2));
    await expect(none.findOneAndDelete(filter)).rejects.toThrow(code(2));
    expect(await db.listCollections({ name: 'none' }).toArray()).toEqual([]);
  });

  const bulk = { bulkWrite: 1, nsInfo: [{ ns: 'crud.c' }], $db: 'admin' };
  const past = new Timestamp({ t: 1, i: 1 });
  it.each([
    ['an unknown command', { nonsense: 1 }, 59],
    [
      'a bulk that names a collection by its identity',
      { ...bulk, nsInfo: [{ ns: 'crud.c', collectionUUID: new UUID() }], ops: [] },
      238,
    ],
    ['an unknown field', { find: 'c', fiter: {} }, 40415],
    ['a filter that is no object', { find: 'c', filter: 'x' }, 14],
    ['an unknown operator', { find: 'c', filter: { a: { $near2: 1 } } }, 2],
    ['an unknown operator of a count', { count: 'none', query: { a: { $near2: 1 } } }, 2],
    ['an unknown operator of a distinct', { distinct: 'none', key: 'a', query: { a: { $near2: 1 } } }, 2],
    ['a negative skip', { find: 'c', skip: -1 }, 51024],
    ['server-side script', { find: 'c', filter: { $where: 'true' } }, 31264],
    ['a tailable cursor', { find: 'c', tailable: true }, 238],
    ['an unknown read concern', { find: 'c', readConcern: { level: 'recent' } }, 2],
    ['a read concern that is no text', { find: 'c', readConcern: { level: 1 } }, 14],
    ['an unknown part of a read concern', { find: 'c', readConcern: { levels: 'local' } }, 40415],
    ['a snapshot of a command that reads none', { count: 'c', readConcern: { level: 'snapshot' } }, 72],
    [
      'a time that no snapshot has',
      { find: 'c', readConcern: { level: 'snapshot', atClusterTime: past } },
      246,
    ],
    ['a write concern that is none', { insert: 'c', documents: [{}], writeConcern: 'majority' }, 14],
    ['too many nodes', { insert: 'c', documents: [{}], writeConcern: { w: 51 } }, 9],
    [
      'an unknown part of a write concern',
      { insert: 'c', documents: [{}], writeConcern: { nodes: 1 } },
      40415,
    ],
    ['a write concern of a read', { find: 'c', writeConcern: { w: 1 } }, 72],
    ['a read concern of a write', { insert: 'c', documents: [{}], readConcern: { level: 'majority' } }, 72],
    ['a part of a millisecond', { ping: 1, maxTimeMS: 1.5 }, 9],
    ['another version of the API', { ping: 1, apiVersion: '2' }, 322],
    ['a command outside of the API', { distinct: 'c', key: 'a', apiVersion: '1', apiStrict: true }, 323],
    ['a promise without a version', { ping: 1, apiStrict: true }, 4886600],
    ['a bulk write of wrong types', { ...bulk, ops: [{ delete: 0, filter: {}, multi: 1 }] }, 14],
    ['a bulk write without its filter', { ...bulk, ops: [{ update: 0, updateMods: {} }] }, 40414],
    ['an update without its filter', { update: 'c', updates: [{ u: {} }] }, 40414],
    [
      'an order of many',
      { update: 'c', updates: [{ q: {}, u: { $set: { a: 1 } }, multi: true, sort: { a: 1 } }] },
      9,
    ],
    [
      'constants beside modifiers',
      { update: 'c', updates: [{ q: {}, u: { $set: { a: 1 } }, c: {} }] },
      51198,
    ],
    ['a removal that inserts', { findAndModify: 'c', remove: true, upsert: true }, 9],
    ['the name of a cursor', { killCursors: 'c', cursors: [5] }, 14],
    ['a search without an operator', { aggregate: 'c', pipeline: [{ $search: {} }], cursor: {} }, 8],
    ['an unknown stage', { aggregate: 'c', pipeline: [{ $fancy: {} }], cursor: {} }, 40324],
    [
      'a clustered collection',
      { create: 'clustered', clusteredIndex: { key: { _id: 1 }, unique: true } },
      238,
    ],
    ['an impossible name', { create: 'a$b' }, 73],
    ['an empty batch', { insert: 'c', documents: [] }, 16],
    ['a batch without end', { insert: 'c', documents: Array.from({ length: 100_001 }, () => ({})) }, 16],
    ['a login', { saslStart: 1, mechanism: 'PLAIN', payload: '' }, 18],
    ['a negative time limit', { ping: 1, maxTimeMS: -1 }, 2],
    ['a cursor that is not there', { getMore: Long.fromNumber(12345), collection: 'c' }, 43],
    ['the indexes of no collection', { listIndexes: 'missing' }, 26],
    ['a multi update by replacement', { update: 'c', updates: [{ q: {}, u: { a: 1 }, multi: true }] }, 9],
  ])('refuses %s with the code of MongoDB', async (_title, command, number) => {
    const reply = db.command(command);
    const failure = await reply.then(
      (answer) => (answer['writeErrors'] as { code: number }[] | undefined)?.[0],
      (error: unknown) => error,
    );
    expect(failure).toMatchObject({ code: number });
  });
});

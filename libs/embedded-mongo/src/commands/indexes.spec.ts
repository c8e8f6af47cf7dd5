import { Decimal128, Double, MongoClient, type Collection, type Db, type Document } from 'mongodb';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { EmbeddedMongo } from '../embedded-mongo.js';

// The machine may be busy: a slow rule is not a broken one.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let server: EmbeddedMongo;
let client: MongoClient;
let db: Db;
let items: Collection;
let made = 0;

beforeAll(async () => {
  server = await EmbeddedMongo.start();
  client = await MongoClient.connect(server.uri);
  db = client.db('indexes');
});
afterAll(async () => {
  await client.close();
  await server.close();
});
beforeEach(async () => {
  items = db.collection(`items-${(made += 1)}`);
  await items.insertMany(
    Array.from({ length: 100 }, (_, n) => ({
      n,
      kind: n % 5,
      name: `Item ${n}`,
      at: [n, n],
      text: n === 7 ? 'Running foxes' : 'dog',
    })),
  );
});

const code = (number: number): unknown => expect.objectContaining({ code: number });

const find = (projection: Document, filter: Document = { n: 3 }): Document => ({
  find: 'c',
  filter,
  projection,
});

describe('indexes', () => {
  it('are listed with their options and can be dropped', async () => {
    expect(
      await items.createIndexes([
        { key: { n: 1 }, unique: true },
        { key: { kind: 1, n: -1 }, sparse: true },
      ]),
    ).toEqual(['n_1', 'kind_1_n_-1']);
    expect(await items.indexes()).toMatchObject([
      { name: '_id_', key: { _id: 1 } },
      { name: 'n_1', unique: true },
      { name: 'kind_1_n_-1', sparse: true },
    ]);
    await items.dropIndex('n_1');
    expect((await items.indexes()).map(({ name }) => name)).toEqual(['_id_', 'kind_1_n_-1']);
    await expect(items.dropIndex('n_1')).rejects.toThrow(code(27));
    await expect(items.dropIndex('_id_')).rejects.toThrow(code(72));
  });

  it('are dropped by a key that names one of them, and by a list of names', async () => {
    await items.createIndexes([
      { key: { n: 1 }, name: 'plain' },
      { key: { n: 1 }, name: 'sparse', sparse: true },
    ]);
    const dropIndexes = items.collectionName;
    const drop = (index: unknown) => db.command({ dropIndexes, index });
    await expect(drop({ n: 1 })).rejects.toThrow(code(181));
    await expect(drop(['plain', 'plain'])).rejects.toThrow(code(27));
    await expect(drop(['plain', 1])).rejects.toThrow(code(14));
    await drop(['plain', 'sparse']);
    expect(await items.indexes()).toHaveLength(1);
  });

  it('with a wildcard are kept, change no result and may be a hint', async () => {
    const things = db.collection('anything');
    await things.insertMany([{ a: 1, b: { c: 2 } }, { a: 2 }, { b: [1, { c: 2 }] }]);
    await things.createIndexes([
      { key: { '$**': 1 }, name: 'all' },
      { key: { 'b.$**': -1 }, name: 'below' },
      { key: { '$**': 1 }, name: 'some', wildcardProjection: { a: 1 } },
    ]);
    expect(await things.countDocuments({ 'b.c': 2 })).toBe(2);
    expect(await things.countDocuments({ 'b.c': 2 }, { hint: 'below' })).toBe(2);
    expect((await things.indexes()).map(({ name }) => name)).toEqual(['_id_', 'all', 'below', 'some']);
    await things.dropIndex('all');
    expect(await things.countDocuments({ a: 1 }, { hint: 'some' })).toBe(1);
  });

  it('with a field beside their wildcard take no array for it', async () => {
    const things = db.collection('beside');
    await things.createIndex({ a: 1, '$**': 1 }, { wildcardProjection: { a: 0 } });
    await things.insertOne({ a: 1, b: [1, 2] });
    await expect(things.insertOne({ a: [1, 2] })).rejects.toThrow(code(7246301));
    await expect(things.updateOne({ a: 1 }, { $set: { a: [1] } })).rejects.toThrow(code(7246301));
  });

  it('leave out what they do not hold when a query has them as its hint', async () => {
    await items.createIndexes([
      { key: { place: '2dsphere' }, name: 'places' },
      { key: { place: 1 }, name: 'hidden', hidden: true },
    ]);
    await items.insertOne({ place: [1, 1] });
    expect(await items.countDocuments({}, { hint: 'places' })).toBe(1);
    await expect(items.findOne({}, { hint: 'hidden' })).rejects.toThrow(code(2));
    await expect(items.insertOne({ place: [{ type: 'Point', coordinates: [1, 1] }] })).rejects.toThrow(
      code(16755),
    );
  });

  it('tell by collMod what they were and what they are', async () => {
    await items.createIndex({ n: 1 }, { name: 'n', expireAfterSeconds: 100 });
    const change = (index: Document) =>
      db.command({ collMod: items.collectionName, index: { name: 'n', ...index } });
    expect(await change({ hidden: 1 })).toMatchObject({ hidden_old: false, hidden_new: true });
    const expiry = { expireAfterSeconds_old: 100, expireAfterSeconds_new: 50 };
    expect(await change({ expireAfterSeconds: 50 })).toMatchObject(expiry);
    expect((await items.indexes()).at(-1)).toMatchObject({ hidden: true, expireAfterSeconds: 50 });
    const rounded = await change({ expireAfterSeconds: Decimal128.fromString('51.5') });
    expect(rounded).toMatchObject({ expireAfterSeconds_new: 52 });
  });

  it('that are to become unique let no new duplicate in', async () => {
    await items.createIndex({ kind: 1 }, { name: 'kinds' });
    await db.command({ collMod: items.collectionName, index: { name: 'kinds', prepareUnique: true } });
    await expect(items.insertOne({ kind: 1 })).rejects.toThrow(code(11000));
  });

  it.each([
    [{ v: 'text' }, {}, 72],
    [{ v: 1 }, { unique: true }, 72],
    [{ v: 1 }, { sparse: true }, 72],
    [{ v: 'hashed' }, {}, 67],
    [{ at: 1 }, { expireAfterSeconds: 5 }, 72],
  ])('of %j with %j are none of measurements', async (key, options, number) => {
    await db
      .createCollection('measured', { timeseries: { timeField: 'at', metaField: 'meta' } })
      .catch(() => undefined);
    const index = { key, name: 'x', ...options };
    await expect(db.command({ createIndexes: 'measured', indexes: [index] })).rejects.toThrow(code(number));
  });

  it('of measurements are one of their kind and time, and none of _id', async () => {
    await db.createCollection('sensed', { timeseries: { timeField: 'at', metaField: 'place' } });
    await db.createCollection('timed', { timeseries: { timeField: 'at' } });
    expect(await db.collection('sensed').indexes()).toEqual([
      { v: 2, key: { place: 1, at: 1 }, name: 'place_1_at_1' },
    ]);
    expect(await db.collection('timed').indexes()).toEqual([]);
    const counted = db.collection('sensed').aggregate([{ $indexStats: {} }, { $project: { name: 1 } }]);
    expect(await counted.toArray()).toEqual([{ name: 'place_1_at_1' }]);
  });

  it('of places and of all fields are explained as what MongoDB looks into, unless they are hidden', async () => {
    const places = db.collection('places');
    await places.insertMany([{ at: [1, 1], any: { deep: 3 } }, { at: [50, 50] }, { any: { deep: 4 } }]);
    await places.createIndex({ at: '2dsphere' }, { name: 'at' });
    await places.createIndex({ 'any.$**': 1 }, { name: 'any' });
    const within = { at: { $geoWithin: { $centerSphere: [[0, 0], 0.1] } } };
    const names = async (filter: Document): Promise<unknown> => {
      const { winningPlan } = (await places.find(filter).explain('queryPlanner'))['queryPlanner'];
      return winningPlan.inputStage?.indexName ?? winningPlan.stage;
    };
    expect(await names(within)).toBe('at');
    expect(await names({ 'any.deep': { $gt: 3 } })).toBe('any');
    expect(await names({ 'any.deep': null })).toBe('COLLSCAN');
    expect(await places.countDocuments(within)).toBe(1);
    expect(await places.countDocuments({ 'any.deep': { $gte: 3 } })).toBe(2);
    for (const name of ['at', 'any']) await db.command({ collMod: 'places', index: { name, hidden: true } });
    expect(await names(within)).toBe('COLLSCAN');
    expect(await names({ 'any.deep': { $gt: 3 } })).toBe('COLLSCAN');
    await expect(places.aggregate([{ $indexStats: { all: true } }]).toArray()).rejects.toThrow(code(28803));
  });

  it('are explained as the scan they give', async () => {
    await items.createIndex({ kind: 1, n: -1 });
    const { queryPlanner, executionStats } = await items
      .find({ kind: 2 })
      .sort({ n: 1 })
      .explain('executionStats');
    expect(queryPlanner.winningPlan).toMatchObject({
      stage: 'FETCH',
      inputStage: {
        stage: 'IXSCAN',
        indexName: 'kind_1_n_-1',
        direction: 'backward',
        isMultiKey: false,
        indexBounds: { kind: ['[2, 2]'], n: ['[MinKey, MaxKey]'] },
      },
    });
    expect(executionStats).toMatchObject({ nReturned: 20, totalKeysExamined: 20, totalDocsExamined: 20 });
    const scan = await items.find({ name: 'Item 3' }).sort({ n: 1 }).explain('executionStats');
    expect(scan.queryPlanner.winningPlan).toMatchObject({ stage: 'SORT', inputStage: { stage: 'COLLSCAN' } });
    expect(scan.executionStats).toMatchObject({ nReturned: 1, totalKeysExamined: 0, totalDocsExamined: 100 });
  });

  it('explain every command that searches, without writing anything', async () => {
    await items.createIndex({ n: 1 });
    const explained = [
      { find: items.collectionName, filter: { n: 3 } },
      { count: items.collectionName, query: { n: 3 } },
      { distinct: items.collectionName, key: 'kind', query: { n: 3 } },
      { aggregate: items.collectionName, pipeline: [{ $match: { n: 3 } }], cursor: {} },
      { update: items.collectionName, updates: [{ q: { n: 3 }, u: { $set: { n: -1 } } }] },
      { delete: items.collectionName, deletes: [{ q: { n: 3 }, limit: 0 }] },
      { findAndModify: items.collectionName, query: { n: 3 }, remove: true },
    ];
    for (const explain of explained) {
      const { executionStats } = await db.command({ explain, verbosity: 'executionStats' });
      const totalDocsExamined = 'count' in explain ? 0 : 1;
      expect(executionStats).toMatchObject({ totalKeysExamined: 1, totalDocsExamined, nReturned: 1 });
    }
    expect(await items.countDocuments({ n: 3 })).toBe(1);
    const stages = await items.aggregate([{ $match: { n: 3 } }, { $group: { _id: '$kind' } }]).explain();
    expect(stages['stages']).toMatchObject([{ $cursor: { queryPlanner: {} } }, { $group: {} }]);
  });

  it.each<[string, Document, string[]]>([
    ['a number', { count: 'c', query: { n: { $gt: 3, $lte: 5 } } }, ['COUNT', 'COUNT_SCAN']],
    ['a number of several stretches', { count: 'c', query: { n: { $in: [3, 5] } } }, ['COUNT', 'IXSCAN']],
    ['the number of all', { count: 'c' }, ['RECORD_STORE_FAST_COUNT']],
    ['values', { distinct: 'c', key: 'n', query: { n: 3 } }, ['PROJECTION_COVERED', 'DISTINCT_SCAN']],
    ['values of another field', { distinct: 'c', key: 'kind', query: { n: 3 } }, ['FETCH', 'IXSCAN']],
    ['indexed fields', find({ _id: 0, n: 1 }), ['PROJECTION_COVERED', 'IXSCAN']],
    ['indexed fields and _id', find({ n: 1 }), ['PROJECTION_SIMPLE', 'FETCH', 'IXSCAN']],
    ['all but a field', find({ _id: 0, kind: 0 }), ['PROJECTION_SIMPLE', 'FETCH', 'IXSCAN']],
    [
      'what may be an array',
      find({ _id: 0, tags: 1 }, { tags: 1 }),
      ['PROJECTION_SIMPLE', 'FETCH', 'IXSCAN'],
    ],
    ['what may be missing', find({ _id: 0, n: 1 }, { n: null }), ['PROJECTION_SIMPLE', 'FETCH', 'IXSCAN']],
  ])('answer %s without the documents where they hold all of it', async (_title, asked, expected) => {
    await items.createIndexes([{ key: { n: 1 } }, { key: { tags: 1 } }]);
    await items.insertOne({ tags: [1, 2] });
    const [name = ''] = Object.keys(asked);
    const explain = { ...asked, [name]: items.collectionName };
    const { queryPlanner, executionStats } = await db.command({ explain, verbosity: 'executionStats' });
    const stages: unknown[] = [];
    for (let at = queryPlanner.winningPlan; at; at = at.inputStage) stages.push(at.stage);
    expect(stages).toEqual(expected);
    expect(executionStats.totalDocsExamined > 0).toBe(expected.includes('FETCH'));
  });

  it('count how often they were used', async () => {
    await items.createIndex({ n: 1 });
    await items.findOne({ n: 3 });
    await items.updateOne({ n: 4 }, { $set: { m: 1 } });
    await items.findOne({ kind: 3 });
    const used = items.aggregate([{ $indexStats: {} }, { $project: { _id: 0, name: 1, 'accesses.ops': 1 } }]);
    expect(await used.toArray()).toContainEqual({ name: 'n_1', accesses: { ops: 2 } });
  });

  it('compare strings as their collation says, and only for queries of the same collation', async () => {
    const collation = { locale: 'en', strength: 2 };
    await items.createIndex({ name: 1 }, { collation });
    const stage = async (options: object) =>
      (await items.find({ name: 'ITEM 5' }, options).explain('executionStats'))['executionStats'];
    expect(await stage({ collation })).toMatchObject({ nReturned: 1, totalKeysExamined: 1 });
    expect(await stage({})).toMatchObject({ nReturned: 0, totalKeysExamined: 0, totalDocsExamined: 100 });
  });

  it('serve text search, which is refused without them', async () => {
    const search = { $text: { $search: 'fox run' } };
    await expect(items.findOne(search)).rejects.toThrow(code(27));
    await items.createIndex({ text: 'text' });
    expect((await items.find(search).toArray()).map(({ n }) => n)).toEqual([7]);
    const scored = await items.findOne(search, { projection: { score: { $meta: 'textScore' } } });
    expect(scored?.['score']).toBeGreaterThan(0);
  });

  it('serve $near by distance, which is refused without them in the words Parse Server waits for', async () => {
    const near = { at: { $nearSphere: [10, 10] } };
    await expect(items.findOne(near)).rejects.toThrow(/field=at .*unable to find index for \$geoNear query/);
    await items.createIndex({ at: '2d' });
    const nearest = await items.find(near).limit(3).toArray();
    expect(nearest.map(({ n }) => n)).toEqual([10, expect.any(Number), expect.any(Number)]);
    expect(nearest.map(({ n }) => n).toSorted((a, b) => a - b)).toEqual([9, 10, 11]);
  });

  it('serve $near by the nearest of several places below an array', async () => {
    const places = items.db.collection('places');
    await places.insertMany([
      { n: 1, spots: [{ at: [40, 40] }, { at: [1, 1] }] },
      { n: 2, spots: [{ at: [3, 3] }] },
      { n: 3, spots: [{ at: [0, 0] }, { at: [50, 50] }] },
    ]);
    await places.createIndex({ 'spots.at': '2d' });
    const found = await places.find({ 'spots.at': { $near: [0, 0] } }).toArray();
    expect(found.map(({ n }) => n)).toEqual([3, 1, 2]);
  });

  it.each(['text', '2d'] as const)(
    'of the kind %s have no collation, nor that of a collection',
    async (kind) => {
      const collation = { locale: 'en', strength: 2 };
      await expect(items.createIndex({ name: kind }, { collation })).rejects.toThrow(code(67));
      const folded = await items.db.createCollection('folded', { collation });
      await expect(folded.createIndex({ name: kind })).rejects.toThrow(code(67));
      await folded.createIndex({ name: kind }, { collation: { locale: 'simple' } });
    },
  );

  it('tell the distance that $near found', async () => {
    await items.createIndex({ at: '2d' });
    const projection = { _id: 0, n: 1, far: { $meta: 'geoNearDistance' } };
    expect(await items.find({ at: { $near: [10, 12] } }, { projection }).toArray()).toContainEqual({
      n: 10,
      far: 2,
    });
    await expect(items.findOne({}, { projection })).rejects.toThrow(code(40218));
  });

  it('order by the score of a text search where the sort says so', async () => {
    const texts = items.db.collection('texts');
    await texts.insertMany([
      { n: 1, g: 2, text: 'fox fox fox' },
      { n: 2, g: 1, text: 'fox and much more' },
      { n: 3, g: 1, text: 'fox' },
    ]);
    await texts.createIndex({ text: 'text' });
    const search = texts.find({ $text: { $search: 'fox' } });
    const found = await search.sort({ g: 1, score: { $meta: 'textScore' } }).toArray();
    expect(found.map(({ n }) => n)).toEqual([3, 2, 1]);
  });

  it('are listed with what builds them, when asked', async () => {
    const command = { listIndexes: items.collectionName, includeIndexBuildInfo: true };
    const { cursor } = await items.db.command(command);
    expect(cursor.firstBatch[0]).toEqual({ spec: { v: 2, key: { _id: 1 }, name: '_id_' } });
    const unknown = { ...command, cursor: { size: 1 } };
    await expect(items.db.command(unknown)).rejects.toMatchObject({ code: 40415 });
  });

  it('are listed with the limits of a plane as doubles, and counted with them as they came', async () => {
    await items.createIndex({ at: '2d' }, { min: -500, max: 500 });
    const types = { $project: { _id: 0, min: { $type: '$spec.min' } } };
    const last = { $match: { name: 'at_2d' } };
    expect(await items.aggregate([{ $indexStats: {} }, last, types]).toArray()).toEqual([{ min: 'int' }]);
    const command = { listIndexes: items.collectionName };
    const { cursor } = await items.db.command(command, { promoteValues: false });
    expect(cursor.firstBatch.at(-1)).toMatchObject({ min: new Double(-500), max: new Double(500) });
  });

  it('are found by $geoNear itself, in the pipeline and in that of a join', async () => {
    const near = { near: [10, 10], distanceField: 'd', maxDistance: 1.5 };
    const pipeline = [{ $geoNear: near }, { $project: { _id: 0, n: 1 } }];
    await expect(items.aggregate(pipeline).toArray()).rejects.toThrow(code(27));
    await items.createIndex({ at: '2d' });
    const found = await items.aggregate(pipeline).toArray();
    expect(found[0]).toEqual({ n: 10 });
    expect(new Set(found.map(({ n }) => n))).toEqual(new Set([9, 10, 11]));
    const distance = { $meta: 'geoNearDistance' };
    const measured = [
      { $geoNear: near },
      { $project: { d: 1 } },
      { $project: { same: { $eq: ['$d', distance] } } },
    ];
    expect(await items.aggregate([...measured, { $match: { same: false } }]).toArray()).toEqual([]);
    expect(await items.aggregate([{ $match: {} }, ...pipeline]).toArray()).toEqual(found);
    for (const [option, expected] of [
      [{ near: { type: 'Point', coordinates: [10, 10] } }, 291],
      [{ near: [200, 10], spherical: true }, 2],
      [{ maxDistance: '$n' }, 7555702],
      [{ minDistance: '$n' }, 7555701],
      [{ distanceMultiplier: { $add: [1, 1] } }, 2],
    ] as const)
      await expect(items.aggregate([{ $geoNear: { ...near, ...option } }]).toArray()).rejects.toThrow(
        code(expected),
      );
    const joined = { $lookup: { from: items.collectionName, pipeline, as: 'near' } };
    const [first] = await items.aggregate([{ $limit: 1 }, joined]).toArray();
    expect(first?.['near']).toEqual(found);
    await expect(items.aggregate([{ $match: { at: { $near: [1, 1] } } }]).toArray()).rejects.toThrow(
      code(5626500),
    );
  });

  it('give the score of a text search to every stage that keeps the documents', async () => {
    await items.createIndex({ text: 'text' });
    const score = { $meta: 'textScore' };
    const search = { $match: { $text: { $search: 'fox' } } };
    const rows = await items
      .aggregate([search, { $sort: { score } }, { $project: { n: 1, score } }])
      .toArray();
    expect(rows).toEqual([{ _id: expect.anything(), n: 7, score: expect.any(Number) }]);
    const added = await items.aggregate([search, { $match: { n: 7 } }, { $addFields: { score } }]).toArray();
    expect(added[0]?.['score']).toBe(rows[0]?.['score']);
    await expect(items.aggregate([{ $match: { n: 7 } }, search]).toArray()).rejects.toThrow(code(17313));
    const none = items.aggregate([{ $match: { n: 7 } }, { $addFields: { score } }]).toArray();
    await expect(none).rejects.toThrow(code(40218));
  });

  it.each([
    ['2dsphere', { type: 'Point', coordinates: [200, 0] }, 16755],
    [
      '2dsphere',
      {
        type: 'Polygon',
        coordinates: [
          [
            [0, 0],
            [1, 1],
            [1, 0],
          ],
        ],
      },
      16755,
    ],
    ['2dsphere', 'here', 16755],
    ['2d', [0, 200], 13027],
    ['2d', 'here', 13026],
  ] as const)('of the kind %s refuse what is no place', async (kind, at, number) => {
    await items.createIndex({ place: kind });
    await expect(items.insertOne({ place: at })).rejects.toThrow(code(number));
    await items.insertOne({ place: null });
    await items.dropIndex(`place_${kind}`);
    await items.insertOne({ place: at });
    await expect(items.createIndex({ place: kind })).rejects.toThrow(code(number));
  });

  it('of a plane have the limits of their definition', async () => {
    await items.createIndex({ place: '2d' }, { min: -500, max: 500 });
    await items.insertOne({ place: [400, 500] });
    await expect(items.insertOne({ place: [501, 0] })).rejects.toThrow(code(13027));
  });

  it('stay as they are in a trial of collMod', async () => {
    const trial = { collMod: items.collectionName, index: { name: 'n_1', unique: true }, dryRun: true };
    await items.createIndex({ n: 1 });
    await db.command(trial);
    await items.insertOne({ n: 5 });
    await expect(db.command(trial)).rejects.toThrow(code(359));
  });

  it('compare by bytes where they say so, in a collection that compares otherwise', async () => {
    const name = `folded-${made}`;
    const folded = await db.createCollection(name, { collation: { locale: 'en', strength: 2 } });
    await folded.createIndex({ a: 1 }, { unique: true, collation: { locale: 'simple' } });
    await folded.insertMany([
      { a: 'X', b: 1 },
      { a: 'x', b: 2 },
    ]);
    await folded.createIndex({ b: 1 }, { unique: true });
    await folded.insertOne({ a: 'y', b: 'X' });
    await expect(folded.insertOne({ a: 'z', b: 'x' })).rejects.toThrow(code(11000));
  });

  it('change their options by collMod, and become unique only without duplicates', async () => {
    await items.createIndex({ kind: 1 });
    const modify = (index: object) => db.command({ collMod: items.collectionName, index });
    await expect(modify({ name: 'kind_1', unique: true })).rejects.toThrow(code(359));
    await items.createIndex({ n: 1 });
    await modify({ keyPattern: { n: 1 }, unique: true });
    await expect(items.insertOne({ n: 5 })).rejects.toThrow(code(11000));
    await modify({ name: 'n_1', hidden: true });
    expect((await items.find({ n: 5 }).explain())['queryPlanner'].winningPlan.stage).toBe('COLLSCAN');
  });

  it('give the documents of a hint, also where another index would be better', async () => {
    await items.createIndexes([{ key: { n: 1 } }, { key: { kind: 1 } }]);
    const { executionStats } = await items
      .find({ n: 3, kind: 3 }, { hint: 'kind_1' })
      .explain('executionStats');
    expect(executionStats).toMatchObject({ totalKeysExamined: 20, nReturned: 1 });
    await expect(items.find({}, { hint: 'nope' }).toArray()).rejects.toThrow(code(2));
  });
});

describe('the catalog', () => {
  it('lists, renames and drops collections and databases', async () => {
    const scratch = client.db(`catalog-${made}`);
    await scratch.createCollection('a');
    await scratch.collection('b').insertOne({});
    await scratch.createCollection('a');
    const other = scratch.createCollection('a', { capped: true, size: 4096 });
    await expect(other).rejects.toThrow(code(48));
    await scratch.renameCollection('a', 'c');
    await expect(scratch.renameCollection('b', 'c')).rejects.toThrow(code(48));
    await scratch.renameCollection('b', 'c', { dropTarget: true });
    expect(await scratch.listCollections().toArray()).toMatchObject([
      { name: 'c', type: 'collection', idIndex: { name: '_id_' } },
    ]);
    expect(await scratch.collection('c').countDocuments()).toBe(1);
    const { databases } = await client.db().admin().listDatabases();
    expect(databases.map(({ name }) => name)).toContain(`catalog-${made}`);
    expect(await scratch.dropCollection('missing')).toBe(true);
    await scratch.dropDatabase();
    expect(await scratch.listCollections().toArray()).toEqual([]);
  });

  it('finds its indexes in order by its own check', async () => {
    await items.createIndexes([{ key: { at: 1 } }, { key: { n: 1 }, sparse: true }]);
    await items.updateMany({ kind: 1 }, { $set: { at: [1, 2, 3] }, $unset: { n: 1 } });
    await items.deleteMany({ kind: 2 });
    expect(await db.command({ validate: items.collectionName })).toMatchObject({
      valid: true,
      errors: [],
      nrecords: 80,
    });
  });
});

import { randomUUID } from 'node:crypto';
import { BSON, type Document, MongoClient } from 'mongodb';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PATIENT } from '#data/contracts';
import { TestDatabase } from '../test-database.contract.js';
import { changeDocument, setsColumns } from './change-document.js';

const names = fc.constantFrom(
  'a',
  'b',
  'B',
  'é',
  '\u{1F600}',
  'ﬀ',
  'a b',
  '__proto__',
  'constructor',
  '10',
  '9',
  'x1',
  '_p_x',
);
const values = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.string({ unit: 'grapheme' }),
  fc.boolean(),
  fc.constant(null),
  fc.date({ noInvalidDate: true }),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => BSON.Long.fromBigInt(value)),
  fc.uint8Array({ maxLength: 5 }).map((bytes) => new BSON.Binary(bytes)),
  fc.constantFrom(
    new BSON.ObjectId('65f0c0ffee65f0c0ffee0001'),
    BSON.Decimal128.fromString('1.50'),
    new BSON.MinKey(),
    new BSON.MaxKey(),
    new BSON.Timestamp({ t: 1, i: 2 }),
    new BSON.BSONRegExp('a', 'i'),
    new BSON.Code('f'),
    new BSON.Code('f', { x: 1 }),
  ),
  fc.array(fc.integer(), { maxLength: 3 }),
  fc.dictionary(fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1 }), fc.integer(), { maxKeys: 3 }),
);
/** What other programs have stored, too. */
const stored = fc.oneof(values, fc.constant(new BSON.BSONSymbol('s')));
const columns = fc.uniqueArray(fc.tuple(names, stored), { maxLength: 6, selector: ([name]) => name });
const changes = fc
  .uniqueArray(fc.tuple(names, fc.option(values, { nil: undefined })), {
    minLength: 1,
    maxLength: 5,
    selector: ([name]) => name,
  })
  .map((members) => ({
    $set: Object.fromEntries(members.filter(([, value]) => value !== undefined)),
    $unset: Object.fromEntries(
      members.filter(([, value]) => value === undefined).map(([name]) => [name, '']),
    ),
  }));

describe('The document that an update leaves', PATIENT, () => {
  let database: TestDatabase;
  let client: MongoClient;
  beforeAll(async () => {
    database = await TestDatabase.start();
    client = new MongoClient(database.uri);
  });
  afterAll(async () => {
    await client.close();
    await database.stop();
  });

  it('is known without asking the database where columns are set and removed', async () => {
    const collection = client.db(`test_${randomUUID()}`).collection<{ _id: number }>('rows');
    let known = 0;
    await fc.assert(
      fc.asyncProperty(columns, changes, async (row, change) => {
        await collection.deleteMany({});
        await collection.insertOne({ _id: 1, ...Object.fromEntries(row) });
        const update: Document = Object.fromEntries(
          Object.entries(change).filter(([, members]) => Object.keys(members).length > 0),
        );
        const before = await collection.findOneAndUpdate({ _id: 1 }, update, {
          raw: true,
          returnDocument: 'before',
        });
        const after = await collection.findOne({ _id: 1 }, { raw: true });
        if (!setsColumns(update)) return;
        const told = changeDocument(before as unknown as Uint8Array, update);
        known += 1;
        expect(Buffer.from(told).toString('hex')).toBe(
          Buffer.from(after as unknown as Uint8Array).toString('hex'),
        );
      }),
      { numRuns: 300 },
    );
    expect(known).toBeGreaterThan(100);
    await client.db(collection.dbName).dropDatabase();
  });

  it.each([
    ['an operator that depends on the value before', { $set: { a: 1 }, $inc: { b: 1 } }],
    ['a part of a column', { $set: { 'a.b': 1 } }],
    ['a column whose name is a number', { $set: { 10: 1 } }],
  ])('is not known of %s', (_case, update) => {
    expect(setsColumns(update)).toBe(false);
  });

  it('has the first of two members of one name changed', () => {
    const one = BSON.serialize({ a: 1 }).subarray(4, -1);
    const other = BSON.serialize({ a: 2 }).subarray(4, -1);
    const document = (...members: Uint8Array[]) =>
      Buffer.concat([Buffer.from([5 + members.length * one.length, 0, 0, 0]), ...members, Buffer.from([0])]);
    expect(changeDocument(document(one, one), { $set: { a: 2 } })).toEqual(document(other, one));
    expect(changeDocument(document(one, one), { $unset: { a: '' } })).toEqual(document(one));
  });

  it('tells names apart that begin with a mark of their byte order', () => {
    const { a, ...others } = BSON.deserialize(
      changeDocument(BSON.serialize({ '\ufeffa': 1 }), { $set: { a: 2 } }),
    );
    expect([a, others]).toEqual([2, { '\ufeffa': 1 }]);
  });
});

import { Decimal128, type Document, Double, ObjectId } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PATIENT, unhurried } from '#data/contracts';
import type { PlainColumn } from '#policy';
import { TestDatabase } from '../test-database.contract.js';

const HEX = '65a000000000000000000001';
const HEX2 = '65a000000000000000000002';
const id = (hex: string) => ObjectId.createFromHexString(hex);
const day = (iso: string) => ({ __type: 'Date', iso });
const text: PlainColumn = { type: 'String' };

/** More rows than a sample has, which are newer than those before them. */
const newer = (count: number, fields: Document = {}) =>
  Array.from({ length: count }, (_, at) => ({ _id: `n${String(at).padStart(3, '0')}`, ...fields }));

describe('conditions on columns of which a sample does not know every type', PATIENT, () => {
  let database: TestDatabase;
  let store: ReturnType<TestDatabase['openDeclared']>;
  const declared = (className: string, properties: Readonly<Record<string, PlainColumn>>) => ({
    className,
    collection: className.toLowerCase(),
    id: 'string' as const,
    timestamps: null,
    properties: new Map(Object.entries(properties)),
  });
  const insert = (collection: string, documents: readonly Document[]) =>
    store.connection.db.collection(collection).insertMany(documents as Document[]);

  beforeAll(async () => {
    database = await TestDatabase.start();
    store = database.openDeclared({
      parse: new Set(),
      plain: [
        declared('Sparse', { team: text }),
        declared('Late', { team: text }),
        declared('Mixed', { team: text, price: { type: 'Number' } }),
        declared('Day', {}),
        declared('Bill', { owner: { type: 'Pointer', targetClass: 'Owner' } }),
        declared('Checked', { team: text }),
        { ...declared('Owner', {}), id: 'objectId' },
      ],
    });
    const { db } = store.connection;
    for (const name of ['late', 'owner']) await db.createCollection(name);
    await db.createCollection('checked', {
      validator: { $jsonSchema: { properties: { team: { bsonType: 'objectId' } } } },
    });
    await insert('sparse', [{ _id: 'a', team: id(HEX) }, { _id: 'b', team: id(HEX2) }, ...newer(120)]);
    await insert('mixed', [
      { _id: 'a', team: HEX, price: new Double(99.95) },
      { _id: 'b', team: id(HEX), price: Decimal128.fromString('99.95') },
      { _id: 'c', team: id(HEX2), price: new Double(1) },
      { _id: 'd', team: 'x', price: '99.95' },
    ]);
    await insert('day', [
      { _id: 'a', day: '2024-01-01' },
      { _id: 'b', day: '2024-01-01T00:00:00Z' },
      { _id: 'c', day: '2024-01-02' },
      ...newer(105, { day: new Date('2024-01-03') }),
    ]);
    await insert('bill', [{ _id: 'a', owner: HEX }, ...newer(105, { owner: id(HEX2) })]);
    await insert('checked', [
      { _id: 'a', team: id(HEX) },
      { _id: 'b', team: id(HEX2) },
    ]);
    await store.catalogue.snapshot();
    await insert('late', [
      { _id: 'a', team: id(HEX) },
      { _id: 'b', team: id(HEX2) },
    ]);
  });
  afterAll(async () => {
    await store.close();
    await database.stop();
  });

  /** The older rows among those that are found. */
  const find = async (className: string, where: Record<string, unknown>): Promise<string[]> => {
    const order = [{ field: 'objectId', descending: false }];
    const rows = await store.reader.find({ className, where, limit: 500, order }, unhurried());
    return rows.map(({ objectId }) => String(objectId)).filter((one) => !one.startsWith('n'));
  };

  it.each<[string, string, Record<string, unknown>, readonly string[]]>([
    ['that no document of the sample has', 'Sparse', { team: { $ne: HEX } }, ['b']],
    ['that no document of the sample has', 'Sparse', { $nor: [{ team: HEX }, { team: HEX2 }] }, []],
    ['of a collection that was empty', 'Late', { team: { $ne: HEX } }, ['b']],
    ['of a collection that was empty', 'Late', { team: { $nin: [HEX, HEX2] } }, []],
    ['of a collection that was empty', 'Late', { team: HEX2 }, ['b']],
    ['of ids and texts', 'Mixed', { team: { $ne: HEX } }, ['c', 'd']],
    ['of ids and texts', 'Mixed', { team: { $in: [HEX2, 'x'] } }, ['c', 'd']],
    ['of ids and texts', 'Mixed', { team: { $eq: HEX, $nin: [HEX2] } }, ['a', 'b']],
    ['of doubles and decimals', 'Mixed', { price: '99.95' }, ['a', 'b', 'd']],
    ['of doubles and decimals', 'Mixed', { price: 99.95 }, ['a', 'b']],
    ['of doubles and decimals', 'Mixed', { price: { $ne: 99.95 } }, ['c']],
    ['of doubles and decimals', 'Mixed', { price: { $gte: 99.95 } }, ['a', 'b']],
    ['of doubles and decimals', 'Mixed', { price: { $gt: 99.95 } }, []],
    ['of doubles and decimals', 'Mixed', { price: { $lte: 99.95, $gt: 2 } }, ['a', 'b']],
    ['of doubles and decimals', 'Mixed', { price: { $lt: 99.95 } }, ['c']],
    ['of dates, and of older texts', 'Day', { day: { $ne: day('2024-01-01T00:00:00.000Z') } }, ['c']],
    ['of dates, and of older texts', 'Day', { day: day('2024-01-01T00:00:00.000Z') }, ['a', 'b']],
    [
      'of dates, and of older texts',
      'Day',
      { day: { $gte: day('2024-01-01T00:00:00.000Z') } },
      ['a', 'b', 'c'],
    ],
    ['of dates, and of older texts', 'Day', { day: { $lt: day('2024-01-01T00:00:00.000Z') } }, []],
    ['of dates, and of older texts', 'Day', { day: { $lte: '2024-01-01' } }, ['a', 'b']],
    [
      'of ids, and of older texts',
      'Bill',
      { owner: { $ne: { __type: 'Pointer', className: 'Owner', objectId: HEX } } },
      [],
    ],
    ['that the validator knows', 'Checked', { team: { $ne: HEX } }, ['b']],
  ])('match every form of a value %s: %s %j', async (_, className, where, found) => {
    expect(await find(className, where)).toEqual(found);
  });
});

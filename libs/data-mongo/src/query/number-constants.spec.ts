import { Decimal128, type Document, Double, Long } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PATIENT, unhurried } from '#data/contracts';
import type { PlainColumn } from '#policy';
import { TestDatabase } from '../test-database.contract.js';

const number: PlainColumn = { type: 'Number' };
const FORMS: Readonly<Record<string, (digits: string) => unknown>> = {
  Doubles: (digits) => new Double(Number(digits)),
  Decimals: (digits) => Decimal128.fromString(digits),
};

/** The orders of one class, in one type of numbers: `a` of 99.95, `b` of 50.00 and 49.95, `c` of 0.30. */
const ORDERS = [
  ['a', '99.95'],
  ['b', '50.00'],
  ['b', '49.95'],
  ['c', '0.30'],
] as const;

describe('numbers that a pipeline compares with', PATIENT, () => {
  let database: TestDatabase;
  let store: ReturnType<TestDatabase['openDeclared']>;
  beforeAll(async () => {
    database = await TestDatabase.start();
    store = database.openDeclared({
      parse: new Set(),
      plain: [...Object.keys(FORMS), 'Longs'].map((className) => ({
        className,
        collection: className,
        id: 'number' as const,
        timestamps: null,
        properties: new Map([['total', number]]),
      })),
    });
    const insert = (name: string, documents: readonly Document[]) =>
      store.connection.db.collection(name).insertMany(documents as Document[]);
    for (const [name, toForm] of Object.entries(FORMS))
      await insert(
        name,
        ORDERS.map(([customer, digits], at) => ({
          _id: at,
          customer,
          total: toForm(digits),
          lines: [{ price: toForm(digits) }, { price: toForm('1') }],
        })),
      );
    await insert('Longs', [
      { _id: 1, v: Long.fromString('9007199254740993') },
      { _id: 2, v: Long.fromNumber(18) },
    ]);
  });
  afterAll(async () => {
    await store.close();
    await database.stop();
  });

  const aggregate = async (className: string, ...pipeline: Record<string, unknown>[]) =>
    (await store.reader.aggregate({ className, pipeline }, unhurried())).rows;
  const where = ($expr: unknown) => [
    { $match: { $expr } },
    { $sort: { _id: 1 } },
    { $project: { customer: 1 } },
  ];
  const customers = (rows: readonly Record<string, unknown>[]) =>
    rows.map((row) => row['customer'] ?? row['_id']);
  const sums = { $group: { _id: '$customer', t: { $sum: '$total' } } };

  it.each<[string, readonly Record<string, unknown>[], readonly string[]]>([
    ['$gte', where({ $gte: ['$total', 99.95] }), ['a']],
    ['$lte from the left', where({ $lte: [99.95, '$total'] }), ['a']],
    ['$gt', where({ $gt: ['$total', 99.95] }), []],
    ['$lt', where({ $lt: ['$total', 0.3] }), []],
    ['$lte', where({ $lte: ['$total', 0.3] }), ['c']],
    ['$eq', where({ $eq: ['$total', 99.95] }), ['a']],
    ['$eq from the left', where({ $eq: [99.95, '$total'] }), ['a']],
    ['$ne', where({ $ne: ['$total', 99.95] }), ['b', 'b', 'c']],
    ['$in', where({ $in: ['$total', [0.3, 99.95]] }), ['a', 'c']],
    ['what is computed', where({ $gte: [{ $multiply: ['$total', 1] }, 99.95] }), ['a']],
    [
      'the entries of a list',
      where({
        $gt: [{ $size: { $filter: { input: '$lines', cond: { $gte: ['$$this.price', 99.95] } } } }, 0],
      }),
      ['a'],
    ],
    ['a choice', where({ $cond: [{ $eq: ['$total', 0.3] }, true, false] }), ['c']],
    ['a sum', [sums, { $match: { t: { $gte: 99.95 } } }, { $sort: { _id: 1 } }], ['a', 'b']],
    ['a sum, exactly', [sums, { $match: { t: 99.95 } }, { $sort: { _id: 1 } }], ['a', 'b']],
    ['a sum, as text', [sums, { $match: { t: '99.95' } }, { $sort: { _id: 1 } }], ['a', 'b']],
    ['another sum', [sums, { $match: { t: { $ne: 99.95 } } }], ['c']],
  ])('find doubles and decimals of the same digits: %s', async (_, pipeline, expected) => {
    for (const className of Object.keys(FORMS))
      expect([className, customers(await aggregate(className, ...pipeline))]).toEqual([className, expected]);
  });

  it('are where groups of doubles and decimals begin', async () => {
    const bucket = { $bucket: { groupBy: '$total', boundaries: [0.3, 49.95, 99.95, 100] } };
    for (const className of Object.keys(FORMS)) {
      const counts = (await aggregate(className, bucket)).map((row) => row['count']);
      expect([className, counts]).toEqual([className, [1, 2, 1]]);
    }
  });

  it('find a sum of whole numbers that JSON does not have', async () => {
    const sum = { $group: { _id: null, v: { $sum: '$v' } } };
    const [row] = await aggregate('Longs', sum, { $match: { v: '9007199254741011' } });
    expect(row).toEqual({ _id: null, v: '9007199254741011' });
  });
});

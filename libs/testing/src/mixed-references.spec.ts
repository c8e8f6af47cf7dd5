import { DBRef, ObjectId } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestingApplication } from './create-testing-application.js';
import type { TestingApplication } from './testing-application.js';

const ANN = new ObjectId('aaaaaaaaaaaaaaaaaaaaaaaa');
const ann = ANN.toHexString();
const reference = { type: 'Pointer', targetClass: 'Customer' } as const;

/** Orders of one customer, whose reference some programs stored as an ObjectId and some as text. */
const order = (n: number, customer: unknown) => ({
  _id: new ObjectId(),
  n,
  customer,
  whole: ANN,
  buyers: [customer],
  lines: [{ buyer: customer }],
  at: { buyer: customer },
  old: new DBRef('customers', ANN),
});

let app: TestingApplication;
beforeAll(async () => {
  app = await createTestingApplication({
    database: { storage: 'plain' },
    seed: {
      collections: {
        customers: [{ _id: ANN, name: 'Ann' }],
        orders: [order(1, ANN), order(2, ann)],
      },
    },
    policy: {
      classes: {
        Customer: { collection: 'customers', fields: ['name'] },
        Order: {
          collection: 'orders',
          fields: ['n', 'customer', 'whole', 'buyers', 'lines', 'at', 'old'],
          properties: {
            customer: reference,
            whole: reference,
            buyers: { type: 'Array', targetClass: 'Customer' },
            lines: { type: 'Array', of: { buyer: reference } },
            at: { type: 'Object', of: { buyer: reference } },
          },
        },
      },
    },
    agents: { clerk: {} },
  });
});
afterAll(() => app.close());

const ask = async (tool: string, args: object) => {
  const { data } = await app.as('clerk').call(tool, { class_name: 'Order', ...args });
  return data as { note?: string };
};
const same = (column: string): [string, object][] => [
  ['query_class', { where: { [column]: ann } }],
  ['query_class', { where: { $or: [{ [column]: { $ne: ann } }, { n: 7 }] } }],
  ['query_class', { where: { [column]: { $inQuery: { className: 'Customer', where: { name: 'Ann' } } } } }],
  ['count_objects', { where: { [column]: { $in: [ann] } } }],
  ['aggregate', { pipeline: [{ $group: { _id: `$${column}`, n: { $sum: 1 } } }] }],
  ['aggregate', { pipeline: [{ $match: { [column]: ann } }] }],
  ['aggregate', { pipeline: [{ $match: { n: 1 } }, { $match: { $expr: { $eq: [`$${column}`, ann] } } }] }],
  ['export_data', { where: { [column]: ann }, columns: ['n'] }],
];
const ofColumns: [string, object][] = [
  ['query_class', { include: ['customer'] }],
  ['group_by', { field: 'customer' }],
  ['distinct', { field: 'customer' }],
  ['group_by', { field: 'buyers', flatten_arrays: true }],
  [
    'aggregate',
    {
      pipeline: [
        { $lookup: { from: 'Customer', localField: 'customer', foreignField: 'objectId', as: 'c' } },
      ],
    },
  ],
];

describe('A reference that some documents hold in another form than its target has', () => {
  it.each([...['customer', 'buyers', 'lines.buyer', 'at.buyer'].flatMap(same), ...ofColumns])(
    'is noted in every answer that depends on it: %s %j',
    async (tool, args) => {
      expect(await ask(tool, args)).toMatchObject({ note: expect.stringContaining('in another form') });
    },
  );

  it.each([...same('whole'), ['query_class', { where: { n: 1 } }] as [string, object]])(
    'is not noted where all hold it in one form: %s %j',
    async (tool, args) => {
      expect(JSON.stringify(await ask(tool, args))).not.toContain('in another form');
    },
  );

  it.each<[string, object]>([
    ['query_class', { where: { old: ann } }],
    ['query_class', { where: { 'old.id': ann } }],
    ['count_objects', { where: { $or: [{ old: { $ne: ann } }] } }],
    ['aggregate', { pipeline: [{ $match: { n: 1 } }, { $match: { old: ann } }] }],
    ['export_data', { where: { old: ann }, columns: ['n'] }],
  ])('is noted of a DBRef, which no condition matches: %s %j', async (tool, args) => {
    expect(await ask(tool, args)).toMatchObject({ note: expect.stringContaining('conditions do not match') });
  });

  it('is shown by get_schema', async () => {
    const { fields } = (await ask('get_schema', {})) as { fields?: { name: string; mixed_ids?: string }[] };
    expect(fields?.filter(({ mixed_ids }) => mixed_ids).map(({ name }) => name)).toEqual([
      'customer',
      'buyers',
    ]);
  });
});

import { DBRef, ObjectId } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestingApplication } from './create-testing-application.js';
import type { TestingApplication } from './testing-application.js';

const ANN = new ObjectId('aaaaaaaaaaaaaaaaaaaaaaaa');
const ann = ANN.toHexString();
const BEN = new ObjectId('bbbbbbbbbbbbbbbbbbbbbbbb');
const ben = BEN.toHexString();
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
        customers: [
          { _id: ANN, name: 'Ann' },
          { _id: BEN, name: 'Ben' },
        ],
        orders: [order(1, ANN), order(2, ann), order(3, ben)],
        lists: [
          { _id: new ObjectId(), n: 9, buyers: [ANN, ann] },
          { _id: new ObjectId(), n: 8, buyers: [ANN] },
        ],
      },
    },
    policy: {
      classes: {
        Customer: { collection: 'customers', fields: ['name'] },
        List: {
          collection: 'lists',
          fields: ['n', 'buyers'],
          properties: { buyers: { type: 'Array', targetClass: 'Customer' } },
        },
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
    gates: 'open',
    agents: {
      clerk: {},
      writer: { permissions: 'write' },
      bens: { filters: { Order: { customer: { $ne: ann } } } },
    },
  });
});
afterAll(() => app.close());

const ask = async (tool: string, args: object) => {
  const { data } = await app.as('clerk').call(tool, { class_name: 'Order', ...args });
  return data as { note?: string };
};
type Rows = { rows?: object[]; count?: number; results?: object[] };
const found = async (tool: string, args: object): Promise<number> => {
  const { rows, results, count } = (await ask(tool, args)) as Rows;
  return count ?? (rows ?? results ?? []).length;
};
const same = (column: string): [string, object, number][] => [
  ['query_class', { where: { [column]: ann } }, 2],
  ['query_class', { where: { [column]: ben } }, 1],
  ['query_class', { where: { [column]: { $eq: ann } } }, 2],
  ['query_class', { where: { [column]: { $ne: ann } } }, 1],
  ['query_class', { where: { $nor: [{ [column]: ann }] } }, 1],
  ['query_class', { where: { [column]: { $in: [ann, ben] } } }, 3],
  ['query_class', { where: { [column]: { $nin: [ann, ben] } } }, 0],
  ['query_class', { where: { $or: [{ [column]: { $ne: ann } }, { n: 7 }] } }, 1],
  [
    'query_class',
    { where: { [column]: { $inQuery: { className: 'Customer', where: { name: 'Ann' } } } } },
    2,
  ],
  [
    'query_class',
    { where: { [column]: { $notInQuery: { className: 'Customer', where: { name: 'Ann' } } } } },
    1,
  ],
  ['count_objects', { where: { [column]: { $in: [ann] } } }, 2],
  ['aggregate', { pipeline: [{ $group: { _id: `$${column}`, n: { $sum: 1 } } }] }, 2],
  ['aggregate', { pipeline: [{ $match: { [column]: ann } }] }, 2],
  [
    'aggregate',
    {
      pipeline: [
        { $match: { n: { $gt: 0 } } },
        { $group: { _id: '$n', c: { $first: `$${column}` } } },
        { $group: { _id: '$c' } },
      ],
    },
    2,
  ],
];

describe('A reference that some documents hold in another form than its target has', () => {
  it.each(['customer', 'buyers', 'lines.buyer', 'at.buyer'].flatMap(same))(
    'is one id to every condition and group: %s %j finds %d',
    async (tool, args, expected) => {
      expect(await found(tool, args)).toBe(expected);
    },
  );

  it('is one key of every group, and of an export', async () => {
    expect(await ask('group_by', { field: 'customer' })).toMatchObject({
      groups: [{ value: 2 }, { value: 1 }],
    });
    expect(await ask('group_by', { field: 'buyers', flatten_arrays: true })).toMatchObject({
      groups: [{ value: 2 }, { value: 1 }],
    });
    const { values } = (await ask('distinct', { field: 'customer' })) as { values?: unknown[] };
    expect(values).toHaveLength(2);
    expect(await ask('export_data', { where: { customer: ann }, columns: ['n'] })).toMatchObject({
      row_count: 2,
    });
  });

  it('is followed by include, whatever its form', async () => {
    for (const column of ['customer', 'buyers']) {
      const answer = await ask('query_class', { include: [column], order: 'n' });
      const named = JSON.stringify(answer).match(/"name":"(?:Ann|Ben)"/g);
      expect(named).toEqual(['"name":"Ann"', '"name":"Ann"', '"name":"Ben"']);
    }
  });

  it('names no field that include left out where it left out none', async () => {
    const answer = await ask('query_class', { keys: ['n', 'customer'], include: ['customer'] });
    expect(answer).not.toHaveProperty('truncated_include_fields');
  });

  it.each(['customer', 'buyers'])('joins from and to %s', async (column) => {
    const forward = { from: 'Customer', localField: column, foreignField: 'objectId', as: 'c' };
    const names = await ask('aggregate', { pipeline: [{ $sort: { n: 1 } }, { $lookup: forward }] });
    expect(JSON.stringify(names).match(/"name":"(?:Ann|Ben)"/g)).toHaveLength(3);
    const reverse = { from: 'Order', localField: 'objectId', foreignField: column, as: 'orders' };
    const pipeline = [
      { $sort: { name: 1 } },
      { $lookup: reverse },
      { $project: { name: 1, n: { $size: '$orders' } } },
    ];
    expect(await ask('aggregate', { class_name: 'Customer', pipeline })).toMatchObject({
      results: [
        { name: 'Ann', n: 2 },
        { name: 'Ben', n: 1 },
      ],
    });
  });

  it('is compared as one id in expressions, also in the first stage', async () => {
    const isAnn = { $match: { $expr: { $eq: ['$customer', ann] } } };
    expect(await found('aggregate', { pipeline: [isAnn] })).toBe(2);
    expect(await found('aggregate', { pipeline: [{ $match: { n: 1 } }, isAnn] })).toBe(1);
  });

  it.each<[object, number]>([
    [{ buyers: { $all: [ann] } }, 2],
    [{ buyers: { $all: [ann, ben] } }, 0],
    [{ buyers: { $containedIn: [ann] } }, 2],
    [{ 'lines.buyer': { $all: [ann] } }, 2],
    [{ buyers: { $all: [] } }, 0],
    [{ customer: { $eq: ann, $in: [ann, ben] } }, 2],
    [{ customer: { $ne: ann, $nin: [ben] } }, 0],
    [{ customer: { $in: [ben], $exists: true } }, 1],
  ])('is found in lists: %j finds %d', async (where, expected) => {
    expect(await found('query_class', { where })).toBe(expected);
  });

  it('is refused by $graphLookup, which says what to use', async () => {
    const graph = {
      from: 'Order',
      startWith: '$customer',
      connectFromField: 'customer',
      connectToField: 'customer',
      as: 'g',
    };
    await expect(ask('aggregate', { pipeline: [{ $graphLookup: graph }] })).rejects.toThrow('use $lookup');
  });

  it('is hidden by a row filter that excludes it, whatever its form', async () => {
    const { data } = await app.as('bens').call('query_class', { class_name: 'Order' });
    expect((data as Rows).rows ?? (data as Rows).results).toHaveLength(1);
  });
});

it('An id leaves a list in every form of it', async () => {
  const writer = app.as('writer');
  const { data } = await writer.call('query_class', { class_name: 'List', where: { n: 9 } });
  const [row] = (data as { results?: { objectId: string }[] }).results ?? [];
  const buyers = { __op: 'Remove', objects: [{ __type: 'Pointer', className: 'Customer', objectId: ann }] };
  await writer.call('update_object', { class_name: 'List', object_id: row?.objectId, data: { buyers } });
  const { data: after } = await writer.call('query_class', { class_name: 'List', where: { n: 9 } });
  expect(after).toMatchObject({ results: [{ buyers: [] }] });
});

describe('A DBRef', () => {
  it('is found as it is shown, whole', async () => {
    const shown = { collection: 'customers', id: ann };
    const other = { collection: 'customers', id: ben };
    expect(await ask('query_class', {})).toMatchObject({
      results: [{ old: shown }, { old: shown }, { old: shown }],
    });
    expect(await found('query_class', { where: { old: shown } })).toBe(3);
    expect(await found('count_objects', { where: { old: { $in: [other, shown] } } })).toBe(3);
    expect(await found('count_objects', { where: { old: { $ne: shown } } })).toBe(0);
    expect(await found('count_objects', { where: { old: other } })).toBe(0);
    expect(await found('aggregate', { pipeline: [{ $match: { old: shown } }] })).toBe(3);
    expect(await ask('group_by', { field: 'old' })).toMatchObject({ groups: [{ key: shown, value: 3 }] });
  });

  it.each<[string, object]>([
    ['query_class', { where: { old: ann } }],
    ['query_class', { where: { 'old.id': ann } }],
    ['count_objects', { where: { $or: [{ old: { $ne: ann } }] } }],
    ['aggregate', { pipeline: [{ $match: { n: 1 } }, { $match: { old: ann } }] }],
    ['export_data', { where: { old: ann }, columns: ['n'] }],
  ])('is noted where a condition cannot match it: %s %j', async (tool, args) => {
    expect(await ask(tool, args)).toMatchObject({ note: expect.stringContaining('conditions do not match') });
  });
});

import { describe, expect, it } from 'vitest';
import type { ClassSchema } from '#policy';
import { isInclusion } from './class-storage.js';
import { PlainStorage } from './plain-storage.js';

const schema: ClassSchema = {
  className: 'Order',
  fields: new Map([
    ['note', { type: 'String' }],
    ['total', { type: 'Number' }],
  ]),
  indexes: [],
  classLevelPermissions: null,
  storage: 'plain',
};
const orders = new PlainStorage(schema, {
  collection: 'orders',
  id: 'objectId',
  columns: new Map([['note', 'internal_note']]),
  timestamps: null,
  hidden: ['secret'],
  changes: new Set(),
  watchable: true,
});
/** What a governed pipeline over a class without a list of fields begins with. */
const REMOVED = { $unset: ['_rperm', '_wperm'] };

/** Whether every column of every document is looked at. */
const looksAtAll = (...pipeline: readonly Record<string, unknown>[]) =>
  orders.source([REMOVED, ...pipeline]).stages.some((stage) => '$replaceWith' in stage);

describe('the source of a pipeline over a plain class', () => {
  it.each<Record<string, unknown>>([
    { $project: { note: 1, total: 1 } },
    { $project: { _id: 0, 'lines.sku': 1 } },
    { $group: { _id: '$note', sum: { $sum: '$total' }, n: { $sum: 1 } } },
    { $group: { _id: { note: '$note', sku: '$lines.sku' }, all: { $push: { total: '$total' } } } },
    { $group: { _id: null, n: { $count: {} } } },
    { $count: 'n' },
  ])('needs no look at every column where %j names what it reads', (stage) => {
    expect(looksAtAll(stage)).toBe(false);
    // Columns that the configuration hides or renames are removed all the same.
    expect(orders.source([REMOVED, stage]).stages).toContainEqual({ $unset: ['internal_note', 'secret'] });
  });

  it.each<Record<string, unknown>>([
    { $project: { note: 1, _id: '$$ROOT' } },
    { $project: { note: 1, objectId: '$$ROOT' } },
    { $project: { note: 1, all: '$$ROOT' } },
    { $project: { note: 0 } },
    { $project: { note: 1, ACL: 1 } },
    { $project: { _later: 1 } },
    { $group: { _id: '$$ROOT' } },
    { $group: { _id: '$$CURRENT.note' } },
    { $group: { _id: '$_later' } },
    { $group: { _id: '$ACL' } },
    { $group: { _id: '$ACL.x' } },
    { $group: { _id: '$objectId' } },
    { $group: { _id: null, x: { $push: ['$note'] } } },
    { $group: { _id: null, x: { $first: { $getField: 'ACL' } } } },
    { $group: { _id: null, x: { $top: { sortBy: { note: 1 }, output: '$note' } } } },
    { $match: {} },
    { $addFields: { x: '$note' } },
    { $facet: { x: [{ $count: 'n' }] } },
  ])('looks at every column for %j', (stage) => {
    expect(looksAtAll(stage)).toBe(true);
    expect(looksAtAll(stage, { $count: 'n' })).toBe(true);
  });

  it('takes no projection for an inclusion whose id is computed', () => {
    const projected = (id: unknown) => isInclusion({ $project: { note: 1, _id: id } });
    expect([1, 0, '$$ROOT', { x: '$$ROOT' }, '$secret'].map(projected)).toEqual([
      true,
      true,
      false,
      false,
      false,
    ]);
  });
});

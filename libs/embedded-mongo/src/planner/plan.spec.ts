import { BSONRegExp, Long } from 'bson';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { compileCollation } from '../bson/collation.js';
import type { Document } from '../bson/document.js';
import { compileFilter } from '../query/filter.js';
import { PAUSE } from '../server/drain.js';
import { Collection } from '../storage/collection.js';
import { normaliseIndex } from '../storage/index-spec.js';
import { createDraft } from '../storage/stored-document.js';
import { plan, type PlanRequest } from './plan.js';

// The machine may be busy: a slow rule is not a broken one.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

function createCollection(documents: readonly Document[], indexes: readonly object[]): Collection {
  const collection = new Collection({ db: 'd', coll: 'c' });
  for (const index of indexes) collection.addIndex(normaliseIndex({ name: JSON.stringify(index), ...index }));
  documents.forEach((document, i) => collection.insert(createDraft({ _id: i, ...document })));
  return collection;
}

/** The ids of the matching documents in the order of the plan, and the plan. */
function run(collection: Collection, request: PlanRequest) {
  const { winner } = plan(collection, request);
  const { collation } = request;
  const filter = compileFilter(request.filter, {
    tick: () => {},
    now: new Date(),
    ...(collation ? { collation } : {}),
  });
  const counts = { keys: 0, documents: 0 };
  const ids: unknown[] = [];
  for (const step of winner.run(counts)) {
    if (step !== PAUSE && filter.matches(step.document)) ids.push(step.document['_id']);
  }
  return { ids, winner, counts };
}

const scalar = fc.oneof(
  fc.integer({ min: 0, max: 4 }),
  fc.constantFrom<unknown>(
    null,
    'a',
    'ab',
    'b',
    'A',
    '',
    1.5,
    Long.fromNumber(2),
    NaN,
    true,
    new Date(5),
    [],
    {},
    [[1]],
  ),
);
const value = fc.oneof(
  scalar,
  fc.array(scalar, { maxLength: 3 }),
  fc.record({ x: scalar }, { requiredKeys: [] }),
);
const single = scalar.filter((one) => !Array.isArray(one));
// Two arrays side by side cannot be indexed together, so only one field holds arrays.
const stored = fc.record(
  {
    a: value,
    b: single,
    s: fc.array(fc.record({ x: scalar, y: single }, { requiredKeys: [] }), { maxLength: 2 }),
  },
  { requiredKeys: [] },
);
const condition = fc.oneof(
  scalar.filter((one) => one === null || typeof one !== 'object' || one instanceof Long),
  fc.record({ $gt: scalar }),
  fc.record({ $gte: scalar, $lt: scalar }),
  fc.record({ $lte: scalar }),
  fc.record({ $in: fc.array(scalar, { maxLength: 4 }) }),
  fc.record({ $ne: scalar }),
  fc.record({ $exists: fc.boolean() }),
  fc.constantFrom(
    new BSONRegExp('^a'),
    new BSONRegExp('^ab?'),
    new BSONRegExp('b|^a'),
    new BSONRegExp('^\\Qab\\E'),
  ),
  fc.record({
    $elemMatch: fc.record({ $gt: fc.integer({ min: 0, max: 4 }), $lt: fc.integer({ min: 0, max: 4 }) }),
  }),
);
const flat = fc.record(
  {
    _id: fc.oneof(fc.nat(30), fc.record({ $gt: fc.nat(30) })),
    a: condition,
    b: condition,
    'a.x': condition,
    's.x': condition,
    's.y': condition,
    'a.0': condition,
  },
  { requiredKeys: [] },
);
const filters = fc.oneof(
  { weight: 4, arbitrary: flat },
  fc.tuple(flat, flat).map((parts): Document => ({ $and: parts })),
  fc.tuple(flat, flat).map((parts): Document => ({ $or: parts })),
);
const indexSets = [
  [{ key: { a: 1 } }, { key: { b: -1 } }],
  [{ key: { b: 1, a: 1 } }, { key: { 's.x': 1, 's.y': 1 } }],
  [{ key: { a: -1, b: 1 } }, { key: { 'a.x': 1 } }, { key: { 's.y': -1 } }],
  [
    { key: { a: 1 }, sparse: true },
    { key: { b: 1 }, partialFilterExpression: { b: { $gt: 1 } } },
  ],
  [{ key: { 'a.0': 1 } }, { key: { b: 1 }, partialFilterExpression: { a: { $exists: true } } }],
];
const insensitive = { locale: 'en', strength: 2 };
const collations = fc.constantFrom(undefined, insensitive, { locale: 'en', strength: 1 });
/** Any index: kinds of keys, sparse, partial and collated in all combinations that are allowed. */
const anyIndex = fc
  .record({
    key: fc.constantFrom<Document>(
      { a: 1 },
      { b: -1 },
      { a: 1, b: 1 },
      { b: 1, 's.x': -1 },
      { 's.y': 1, b: 1 },
    ),
    kind: fc.constantFrom('plain', 'sparse', 'partial'),
    partial: fc.record(
      {
        a: fc.oneof(single, fc.record({ $gte: single }), fc.constant({ $exists: true })),
        b: fc.oneof(
          single,
          fc.record({ $gt: single }),
          fc.record({ $in: fc.array(single, { minLength: 1 }) }),
        ),
      },
      { requiredKeys: [] },
    ),
    collation: collations,
  })
  .map(({ key, kind, partial, collation }) => ({
    key,
    ...(kind === 'sparse' ? { sparse: true } : {}),
    ...(kind === 'partial' ? { partialFilterExpression: partial } : {}),
    ...(collation ? { collation } : {}),
  }));

describe('plan', () => {
  it('never changes the result, whatever indexes there are', () => {
    fc.assert(
      fc.property(
        fc.array(stored, { maxLength: 25 }),
        filters,
        fc.constantFrom(...indexSets),
        (documents, filter, indexes) => {
          const collection = createCollection(documents, indexes);
          const planned = run(collection, { filter });
          const scanned = run(collection, { filter, useIndexes: false });
          expect(planned.ids.toSorted((x, y) => Number(x) - Number(y))).toEqual(scanned.ids);
        },
      ),
      { numRuns: 400 },
    );
  });

  it('never changes the result under any index, partial, sparse or collated, whatever collation is asked for', () => {
    fc.assert(
      fc.property(
        fc.array(stored, { maxLength: 20 }),
        filters,
        fc.uniqueArray(anyIndex, { maxLength: 3, selector: (index) => JSON.stringify(index.key) }),
        collations,
        (documents, filter, indexes, spec) => {
          const collection = createCollection(documents, indexes);
          const collation = spec && compileCollation(spec);
          const planned = run(collection, { filter, collation });
          const scanned = run(collection, { filter, collation, useIndexes: false });
          expect(planned.ids.toSorted((x, y) => Number(x) - Number(y))).toEqual(scanned.ids);
        },
      ),
      { numRuns: 600 },
    );
  });

  it('gives candidates in sort order whenever it says so', () => {
    const sorts = fc.constantFrom<Document>(
      { b: 1 },
      { b: -1 },
      { b: 1, n: 1 },
      { b: 1, n: -1 },
      { n: 1 },
      { b: -1, n: -1 },
    );
    const rows = fc.array(fc.record({ b: fc.nat(3), n: fc.nat(3) }), { maxLength: 25 });
    const where = fc.constantFrom<Document>(
      {},
      { b: 1 },
      { b: { $gt: 0 } },
      { b: { $in: [2, 0] } },
      { n: 2 },
    );
    fc.assert(
      fc.property(rows, where, sorts, (documents, filter, sort) => {
        const collection = createCollection(documents, [{ key: { b: 1, n: 1 } }, { key: { b: 1, n: -1 } }]);
        const { ids, winner } = run(collection, { filter, sort });
        const keys = ids.map((id) =>
          Object.keys(sort).map((field) => Number(collection.byId(id)?.document[field])),
        );
        const ordered = keys.toSorted((x, y) => {
          for (const [i, direction] of Object.values(sort).entries()) {
            const order = ((x[i] ?? 0) - (y[i] ?? 0)) * Number(direction);
            if (order !== 0) return order;
          }
          return 0;
        });
        expect(winner.sorted ? keys : ordered).toEqual(ordered);
      }),
      { numRuns: 300 },
    );
  });

  const rows = Array.from({ length: 200 }, (_, n) => ({
    n,
    group: n % 10,
    name: `name-${n}`,
    tags: [n, n + 1],
  }));
  const books = createCollection(rows, [
    { key: { n: 1 } },
    { key: { group: 1, n: -1 } },
    { key: { name: 1 } },
    { key: { tags: 1 } },
    { key: { low: 1 }, collation: { locale: 'en', strength: 2 } },
  ]);

  it.each([
    ['a single _id by IDHACK', { filter: { _id: 5 } }, 'IDHACK', 1],
    ['a range by the keys inside it', { filter: { n: { $gte: 10, $lt: 15 } } }, 'IXSCAN', 5],
    ['an equality and a range by one compound index', { filter: { group: 3, n: { $gt: 150 } } }, 'IXSCAN', 5],
    ['a list of values by their keys', { filter: { n: { $in: [1, 5, 900] } } }, 'IXSCAN', 2],
    [
      'a literal prefix by the strings that begin with it',
      { filter: { name: new BSONRegExp('^name-19') } },
      'IXSCAN',
      11,
    ],
    ['a $or by an index for each branch', { filter: { $or: [{ n: 1 }, { name: 'name-2' }] } }, 'OR', 2],
    ['a value inside an array by its key', { filter: { tags: 7 } }, 'IXSCAN', 2],
    ['what no index knows by a scan', { filter: { other: 1 } }, 'COLLSCAN', 0],
    ['a string by no index of another collation', { filter: { low: 'x' } }, 'COLLSCAN', 0],
  ])('finds %s', (_title, request, kind, keys) => {
    const { winner, counts } = run(books, request);
    expect(winner.kind).toBe(kind);
    expect(counts.keys === 0 ? 0 : counts.keys).toBe(kind === 'IDHACK' ? 1 : keys);
  });

  it('narrows an array by one condition only: another element may meet the other', () => {
    const { ids } = run(books, { filter: { tags: { $gt: 198, $lt: 200 } } });
    expect(ids).toEqual([198, 199]);
  });

  it('reads an index backwards for the opposite order', () => {
    const { ids, winner } = run(books, { filter: { group: 4 }, sort: { n: 1 } });
    expect(winner).toMatchObject({ sorted: true, direction: -1 });
    expect(ids.slice(0, 3)).toEqual([4, 14, 24]);
  });

  it('follows a hint and refuses one that names no index', () => {
    expect(run(books, { filter: { n: 3 }, hint: { name: 1 } }).winner.index?.spec.key).toEqual({ name: 1 });
    expect(run(books, { filter: { n: 3 }, hint: { $natural: -1 } }).winner.kind).toBe('COLLSCAN');
    expect(() => plan(books, { filter: {}, hint: 'nope' })).toThrow(expect.objectContaining({ code: 2 }));
  });
});

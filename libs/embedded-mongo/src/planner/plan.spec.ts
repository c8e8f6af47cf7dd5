import { BSONRegExp, Long } from 'bson';
import { describe, expect, it, vi } from 'vitest';
import { compileCollation } from '../bson/collation.js';
import type { Document } from '../bson/document.js';
import { compileSort } from '../bson/keys.js';
import { MongoError } from '../errors.js';
import { compileFilter } from '../query/filter.js';
import { PAUSE } from '../server/steps.js';
import { Collection } from '../storage/catalog.js';
import { createDraft } from '../storage/change.js';
import { normaliseIndex } from '../storage/index-spec.js';
import { plan, type PlanRequest } from './plan.js';

import fc from 'fast-check';

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
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 3 }) },
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
/** One or two conditions: more of them hardly any document meets. */
const flat = fc
  .uniqueArray(
    fc.oneof(
      { weight: 9, arbitrary: fc.tuple(fc.constantFrom('a', 'b', 'a.x', 's.x', 's.y', 'a.0'), condition) },
      fc.tuple(fc.constant('_id'), fc.oneof(fc.nat(20), fc.record({ $gt: fc.nat(10) }))),
    ),
    { minLength: 1, maxLength: 2, selector: ([field]) => field },
  )
  .map((pairs): Document => Object.fromEntries(pairs));
const filters = fc.oneof(
  { weight: 4, arbitrary: flat },
  fc.tuple(flat, flat).map((parts): Document => ({ $and: parts })),
  fc.tuple(flat, flat).map((parts): Document => ({ $or: parts })),
);
const collations = fc.constantFrom(undefined, { locale: 'en', strength: 2 }, { locale: 'en', strength: 1 });
const place = fc
  .tuple(fc.constantFrom(-1, 0, 1), fc.constantFrom(0, 10))
  .map((coordinates) => ({ type: 'Point', coordinates }));
/** Words and places beside the rest, for the indexes that only they have. */
const placed = fc
  .tuple(stored, fc.record({ p: place, t: fc.constantFrom('red', 'RED', 'blue') }, { requiredKeys: [] }))
  .map((parts): Document => Object.assign({}, ...parts));
const aroundZero = {
  $geometry: {
    type: 'Polygon',
    coordinates: [
      [
        [-0.5, -5],
        [2, -5],
        [2, 5],
        [-0.5, 5],
        [-0.5, -5],
      ],
    ],
  },
};
const placedFilters = fc.oneof(
  { weight: 3, arbitrary: filters },
  fc
    .tuple(
      flat,
      fc.constantFrom<Document>({ p: { $geoWithin: aroundZero } }, { t: 'red' }, { t: { $gte: 'c' } }),
    )
    .map((parts): Document => Object.assign({}, ...parts)),
);

/** Any index: kinds of keys, with every option, in all combinations that are allowed. */
const anyIndex = fc
  .record({
    key: fc.constantFrom<Document>(
      { a: 1 },
      { b: -1 },
      { a: 1, b: 1 },
      { b: 1, 's.x': -1 },
      { 's.x': 1, 's.y': 1 },
      { 's.y': 1, b: 1 },
      { 'a.x': 1 },
      { 'a.0': 1 },
      { t: -1 },
      { b: 'hashed' },
      { b: 1, s: 'hashed' },
      { p: '2dsphere' },
      { b: 1, p: '2dsphere' },
      { t: 'text' },
      { b: 1, t: 'text' },
    ),
    kind: fc.constantFrom('plain', 'sparse', 'partial', 'unique', 'hidden'),
    partial: fc.oneof(
      fc.constantFrom<Document>(
        { a: { $exists: true } },
        { b: { $gte: 1 } },
        { b: { $in: [1, 2, 'a'] } },
        { a: { $lte: 'b' }, b: { $exists: true } },
      ),
      fc.record({ b: single }),
      fc.record({ a: fc.record({ $gte: single }) }),
    ),
    collation: collations,
  })
  .map(({ key, kind, partial, collation }) => ({
    key,
    ...(kind === 'partial' ? { partialFilterExpression: partial } : {}),
    ...(['sparse', 'unique', 'hidden'].includes(kind) ? { [kind]: true } : {}),
    ...(collation ? { collation } : {}),
  }))
  .filter(isAllowed);

function isAllowed(index: Document): boolean {
  try {
    return normaliseIndex({ name: 'n', ...index }).name === 'n';
  } catch {
    return false;
  }
}

/** A collection with indexes, and one that holds the documents they let in without any. */
function createPair(documents: readonly Document[], indexes: readonly Document[]): [Collection, Collection] {
  const indexed = createCollection([], indexes);
  const bare = createCollection([], []);
  documents.forEach((document, _id) => {
    const draft = createDraft({ _id, ...document });
    try {
      indexed.insert(draft);
    } catch (error) {
      // A value that stands already in a unique index, or an array in a hashed one.
      if (error instanceof MongoError && [11000, 16766].includes(error.code)) return;
      throw error;
    }
    bare.insert(draft);
  });
  return [indexed, bare];
}

describe('plan', () => {
  it('never changes the result under any index, whatever its kind, its options and the collation asked for', () => {
    const met = {
      used: 0,
      sorted: 0,
      unique: 0,
      partial: 0,
      sparse: 0,
      collated: 0,
      multikey: 0,
      refused: 0,
      empty: 0,
    };
    const sorts = fc.constantFrom<Document>({ b: 1 }, { t: -1 }, { a: 1, b: 1 });
    fc.assert(
      fc.property(
        fc.array(placed, { minLength: 4, maxLength: 20, size: 'max' }),
        placedFilters,
        fc.uniqueArray(anyIndex, {
          minLength: 1,
          maxLength: 4,
          selector: ({ key }) =>
            Object.values(key as Document).includes('text') ? 'text' : JSON.stringify(key),
        }),
        collations,
        fc.option(sorts, { nil: undefined }),
        fc.boolean(),
        fc.boolean(),
        (documents, asked, indexes, spec, other, along, narrow) => {
          const key = indexes.find(({ key }) => Object.values(key as Document).every(Number.isInteger))?.key;
          const sort = along && key ? (key as Document) : other;
          // Of a partial index only a query that asks for its documents can be of use.
          const partial = indexes.find((index) => index['partialFilterExpression'])?.[
            'partialFilterExpression'
          ];
          const filter = narrow && partial ? { $and: [partial, asked] } : asked;
          const [indexed, bare] = createPair(documents, indexes);
          const collation = spec && compileCollation(spec);
          const planned = run(indexed, { filter, collation, sort });
          const scanned = run(bare, { filter, collation });
          expect(planned.ids.map(Number).toSorted((x, y) => x - y)).toEqual(
            scanned.ids.map(Number).toSorted((x, y) => x - y),
          );
          const { index, sorted } = planned.winner;
          if (sort && sorted) {
            const order = compileSort(sort, collation);
            const keys = planned.ids.map((id) => order.listKeys(bare.byId(id)?.document ?? {}));
            keys
              .slice(1)
              .forEach((key, i) => expect(order.compareKeys(keys[i] ?? [], key)).toBeLessThanOrEqual(0));
          }
          met.refused += bare.count < documents.length ? 1 : 0;
          met.empty += scanned.ids.length === 0 ? 1 : 0;
          if (!index || planned.winner.kind === 'IDHACK') return;
          met.used += 1;
          met.sorted += sort && sorted ? 1 : 0;
          met.multikey += index.multikey ? 1 : 0;
          met.unique += index.spec['unique'] ? 1 : 0;
          met.partial += index.spec['partialFilterExpression'] ? 1 : 0;
          met.sparse += index.spec['sparse'] ? 1 : 0;
          met.collated += index.definition.collation ? 1 : 0;
        },
      ),
      { numRuns: 1_000 },
    );
    // Else the rule would hold for want of cases.
    expect(Object.entries(met).filter(([, times]) => times <= 10)).toEqual([]);
    expect(met.empty).toBeLessThan(800);
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

import { describe, expect, it } from 'vitest';
import type { Document } from '../../bson/document.js';
import { EvaluationOrder } from '../../query/evaluation-order.js';
import type { QueryContext } from '../../query/context.js';
import { runPipeline } from '../../testing/run-pipeline.js';
import { reorderPipeline } from './reorder-pipeline.js';

import fc from 'fast-check';

const NOW = new Date('2025-01-01T00:00:00.000Z');
type Rows = Readonly<Record<string, readonly Document[]>>;

const createContext = (rows: Rows, order?: EvaluationOrder): QueryContext => ({
  tick: () => {},
  now: NOW,
  variables: {},
  collection: (name) => rows[name] ?? [],
  ...(order && { order }),
});

const asWritten = (pipeline: Document[], rows: Rows) => [
  ...runPipeline(pipeline, rows['own'] ?? [], createContext(rows)),
];

function reorderStages(pipeline: Document[], rows: Rows, seed: number): Document[] {
  const order = new EvaluationOrder(seed);
  return [...runPipeline(reorderPipeline(pipeline, order), rows['own'] ?? [], createContext(rows, order))];
}

const NAMES = ['a', 'b', 'c', 'own.a', 'own.b', 'a.x'];
const scalar = fc.constantFrom<unknown>(1, 2, 3, 'one', true, null);
const value = fc.oneof(
  { weight: 4, arbitrary: scalar },
  { weight: 1, arbitrary: fc.array(scalar, { maxLength: 3 }) },
  { weight: 1, arbitrary: fc.array(fc.record({ x: scalar }), { maxLength: 2 }) },
  { weight: 1, arbitrary: fc.record({ x: scalar }) },
);
const doc = fc.record({ a: value, b: value, c: value }, { requiredKeys: [] });
const rowsOf = fc.array(doc, { maxLength: 6 }).map((docs) => docs.map((one, _id) => ({ _id, ...one })));
const rows = fc.record({ own: rowsOf, other: rowsOf });
const name = fc.constantFrom('_id', ...NAMES);
const reference = fc.constantFrom(...NAMES.map((one) => `$${one}`), '$$ROOT.a', '$_id');

/** None of these can fail. */
const expression: fc.Arbitrary<unknown> = fc.letrec<{ any: unknown }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 3 },
    { weight: 3, arbitrary: reference },
    { weight: 1, arbitrary: fc.constantFrom<unknown>(1, 'one', null, '$$ROOT') },
    fc
      .tuple(fc.constantFrom('$eq', '$gt', '$lte', '$cmp', '$and', '$or', '$ifNull'), tie('any'), tie('any'))
      .map(([operator, one, two]) => ({ [operator]: [one, two] })),
    tie('any').map((one) => ({ $not: [one] })),
    tie('any').map((one) => ({ $type: one })),
    fc.tuple(tie('any'), tie('any'), tie('any')).map((parts) => ({ $cond: parts })),
  ),
})).any;

const condition = fc.oneof(
  scalar,
  fc
    .tuple(fc.constantFrom('$gt', '$lte', '$ne', '$eq'), scalar)
    .map(([operator, it]) => ({ [operator]: it })),
  fc.array(scalar, { maxLength: 2 }).map((it) => ({ $in: it })),
  fc.boolean().map((it) => ({ $exists: it })),
  fc.constantFrom({ $size: 1 }, { $type: 'string' }, { $regex: '^o' }, { $gt: 0, $lt: 3 }),
  scalar.map((x) => ({ $elemMatch: { x } })),
);

const filter: fc.Arbitrary<Document> = fc.letrec<{ any: Document }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 2 },
    { weight: 4, arbitrary: fc.tuple(name, condition).map(([key, it]) => ({ [key]: it })) },
    { weight: 2, arbitrary: fc.tuple(condition, condition).map(([a, b]) => ({ a, b })) },
    { weight: 2, arbitrary: expression.map((it) => ({ $expr: it })) },
    {
      weight: 2,
      arbitrary: fc
        .tuple(fc.constantFrom('$and', '$or', '$nor'), fc.array(tie('any'), { minLength: 1, maxLength: 3 }))
        .map(([operator, all]) => ({ [operator]: all })),
    },
  ),
})).any;

const match = filter.map((it): Document => ({ $match: it }));
const stage: fc.Arbitrary<Document> = fc.letrec<{ any: Document }>((tie) => {
  const inner = fc.array(fc.oneof({ maxDepth: 1 }, match, tie('any')), { maxLength: 3 });
  return {
    any: fc.oneof(
      { maxDepth: 2 },
      { weight: 6, arbitrary: match },
      name.map((key) => ({ $sort: { [key]: 1 } })),
      fc
        .tuple(fc.constantFrom('a', 'd', 'a.x'), expression)
        .map(([key, it]) => ({ $addFields: { [key]: it } })),
      fc.constantFrom<Document>(
        { $unset: 'a' },
        { $unset: ['b', 'a.x'] },
        { $project: { a: 1, b: 1 } },
        { $project: { a: 1, _id: 0 } },
        { $project: { a: 0 } },
        { $project: { a: 1, b: '$c' } },
        { $project: { d: [] } },
        { $unwind: '$a' },
        { $unwind: { path: '$b', includeArrayIndex: 'c', preserveNullAndEmptyArrays: true } },
        { $group: { _id: '$a', c: { $sum: 1 } } },
        { $group: { _id: '$a.x', c: { $push: '$b' } } },
        { $sortByCount: '$b' },
        { $limit: 3 },
        { $skip: 1 },
        { $redact: { $cond: [{ $eq: ['$a', 1] }, '$$PRUNE', '$$DESCEND'] } },
        { $lookup: { from: 'other', localField: 'a', foreignField: 'b', as: 'own' } },
        { $unwind: '$own' },
        {
          $graphLookup: {
            from: 'other',
            startWith: '$a',
            connectFromField: 'a',
            connectToField: 'b',
            as: 'own',
            maxDepth: 2,
          },
        },
      ),
      fc.tuple(inner, expression).map(([pipeline, v]) => ({
        $lookup: { from: 'other', let: { v }, pipeline, as: 'own' },
      })),
      inner.map((pipeline) => ({ $unionWith: { coll: 'other', pipeline } })),
      fc
        .array(match, { minLength: 1, maxLength: 3 })
        .map((pipeline) => ({ $facet: { a: [{ $sort: { a: 1 } }, ...pipeline], b: [{ $count: 'x' }] } })),
    ),
  };
}).any;

const joinThenMatch = fc.tuple(filter, match).map(([inside, behind]): Document[] => [
  {
    $lookup: {
      from: 'other',
      localField: 'a',
      foreignField: 'b',
      pipeline: [{ $match: inside }],
      as: 'own',
    },
  },
  { $unwind: '$own' },
  behind,
]);
const pipeline = fc.oneof(
  { weight: 4, arbitrary: fc.array(stage, { maxLength: 6 }) },
  {
    weight: 1,
    arbitrary: fc.tuple(joinThenMatch, fc.array(stage, { maxLength: 2 })).map((all) => all.flat()),
  },
);

describe('a pipeline whose filters cannot fail', () => {
  it('answers the same in whatever order its filters are evaluated', () => {
    let moved = 0;
    fc.assert(
      fc.property(pipeline, rows, fc.nat(), (stages, docs, seed) => {
        const changed = JSON.stringify(reorderPipeline(stages, new EvaluationOrder(seed)));
        if (changed !== JSON.stringify(stages)) moved += 1;
        expect(reorderStages(stages, docs, seed)).toEqual(asWritten(stages, docs));
      }),
      { numRuns: 3000 },
    );
    expect(moved).toBeGreaterThan(500);
  });
});

describe('a filter that can fail', () => {
  const own: Document[] = [
    { _id: 1, tenant: 'own', n: 1 },
    { _id: 2, tenant: 'other', n: 0 },
  ];
  const governed = { $match: { tenant: 'own' } };
  const failing = { $match: { $expr: { $gt: [{ $divide: [1, '$n'] }, 0] } } };
  const failures = (stages: Document[], docs: Rows = { own }) =>
    Array.from({ length: 40 }, (_, seed) => {
      try {
        reorderStages(stages, docs, seed);
        return false;
      } catch {
        return true;
      }
    }).filter(Boolean).length;

  it.each<[string, Document[]]>([
    ['in one filter', [{ $match: { tenant: 'own', ...failing.$match } }]],
    ['in $and', [{ $match: { $and: [governed.$match, failing.$match] } }]],
    ['in $or', [{ $match: { $or: [{ tenant: 'other' }, failing.$match] } }]],
    ['in $nor', [{ $match: { $nor: [{ tenant: 'other' }, failing.$match] } }]],
    [
      'in $and of $expr',
      [{ $match: { $expr: { $and: [{ $eq: ['$tenant', 'own'] }, failing.$match.$expr] } } }],
    ],
    ['in two filters', [governed, failing]],
    ['behind $sort', [governed, { $sort: { n: 1 } }, failing]],
    ['behind $unset', [governed, { $unset: 'secret' }, failing]],
    ['behind $addFields', [governed, { $addFields: { d: 1 } }, failing]],
    ['behind $project', [governed, { $project: { n: 1 } }, failing]],
    ['behind $unwind', [governed, { $unwind: '$tenant' }, failing]],
    ['behind $lookup', [governed, { $lookup: { from: 'own', pipeline: [], as: 'j' } }, failing]],
    ['behind $unionWith', [governed, { $unionWith: { coll: 'none' } }, failing]],
    ['in a join', [{ $lookup: { from: 'own', pipeline: [governed, failing], as: 'j' } }]],
    [
      'in a join by columns',
      [
        { $lookup: { from: 'own', localField: '_id', foreignField: '_id', pipeline: [failing], as: 'j' } },
        { $limit: 1 },
      ],
    ],
  ])('%s meets rows that the written order would keep from it', (_, stages) => {
    const written = JSON.stringify(stages).includes('foreignField')
      ? { own: [own[0] as Document, { ...own[1], _id: 3 }] }
      : { own };
    expect(failures(stages, written)).toBeGreaterThan(0);
  });

  it.each<[string, Document[]]>([
    [
      'of what a stage computes',
      [governed, { $addFields: { q: { $divide: [1, '$n'] } } }, { $match: { q: { $gt: 0 } } }],
    ],
    ['behind $limit', [governed, { $limit: 5 }, failing]],
    ['behind $group', [governed, { $group: { _id: '$tenant', n: { $max: '$n' } } }, failing]],
  ])('%s stays where it is', (_, stages) => {
    expect(failures(stages)).toBe(0);
  });
});

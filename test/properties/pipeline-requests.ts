import fc from 'fast-check';
import { anyColumn, anyName, columnsOf, type Json, operand, where } from './constraint-requests.js';
import { GUESSES, isHolding } from './held-objects.js';
import { madeOnce } from './made-once.js';
import { filterExpression } from './filter-expressions.js';
import { searchStages } from './search-requests.js';
import { type ClassName, CLASS_NAMES, columnNames } from './vocabulary.js';

/** Names that stages of ours give to what they compute. */
const MADE = ['x', 'y', 'joined', 'all', '_id', 'v', 'k'];

const reference = madeOnce((name: ClassName): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 14, arbitrary: anyName(name).map((field) => `$${field}`) },
    { weight: 1, arbitrary: fc.constantFrom(...MADE).map((field) => `$${field}`) },
    { weight: 1, arbitrary: fc.constantFrom('$$ROOT', '$$CURRENT') },
    { weight: 1, arbitrary: anyName(name).map((field) => `$$ROOT.${field}`) },
    { weight: 1, arbitrary: anyName(name).map((field) => `$$CURRENT.${field}`) },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.constantFrom('joined', 'all', 'x'), anyNameAnywhere)
        .map(([a, b]) => `$${a}.${b}`),
    },
  ),
);

/** Of whatever class: rows of another one may stand here. */
const anyNameAnywhere: fc.Arbitrary<string> = fc.constantFrom(
  ...CLASS_NAMES.flatMap((name) => columnNames(name)),
);

/** As many guesses as somebody likes, in no column at all. */
const guessed: fc.Arbitrary<unknown> = fc.constantFrom<unknown>(
  { $literal: GUESSES },
  ...GUESSES.map(($literal) => ({ $literal })),
);

/** An expression over rows of a class, with every way to bring a value under another name. */
const expression = madeOnce((name: ClassName, depth: number): fc.Arbitrary<unknown> => {
  const leaf = fc.oneof(
    { weight: 6, arbitrary: reference(name) },
    { weight: 1, arbitrary: fc.constantFrom<unknown>(1, 2, 'plain 1', null, true) },
    {
      weight: 1,
      arbitrary: anyColumn(name)
        .chain(operand)
        .map((value) => ({ $literal: value })),
    },
    { weight: 1, arbitrary: guessed },
  );
  if (depth === 0) return leaf;
  const inner = expression(name, depth - 1);
  const two = fc.tuple(inner, inner);
  const named = fc.tuple(anyName(name), inner);
  const unary = fc.constantFrom(
    '$objectToArray',
    '$type',
    '$size',
    '$toString',
    '$first',
    '$last',
    '$isArray',
    '$year',
    '$toLong',
    '$not',
    '$bsonSize',
    '$strLenCP',
    '$abs',
  );
  const binary = fc.constantFrom(
    '$eq',
    '$gt',
    '$lt',
    '$cmp',
    '$ifNull',
    '$concat',
    '$add',
    '$divide',
    '$in',
    '$arrayElemAt',
    '$setUnion',
    '$and',
    '$or',
    '$concatArrays',
  );
  return fc.oneof(
    { weight: 6, arbitrary: leaf },
    { weight: 4, arbitrary: fc.tuple(unary, inner).map(([operator, it]) => ({ [operator]: it })) },
    { weight: 4, arbitrary: fc.tuple(binary, two).map(([operator, it]) => ({ [operator]: it })) },
    { weight: 2, arbitrary: two.map((it) => ({ $mergeObjects: it })) },
    { weight: 2, arbitrary: anyName(name).map((field) => ({ $getField: field })) },
    { weight: 2, arbitrary: named.map(([field, input]) => ({ $getField: { field, input } })) },
    {
      weight: 1,
      arbitrary: fc
        .tuple(anyName(name), inner, inner)
        .map(([field, input, value]) => ({ $setField: { field, input, value } })),
    },
    {
      weight: 1,
      arbitrary: named.map(([field, input]) => ({ $unsetField: { field, input } })),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(inner, anyName(name), inner).map(([value, field, body]) => ({
        $let: { vars: { v: value, w: body }, in: { a: `$$v.${field}`, b: '$$w' } },
      })),
    },
    {
      weight: 2,
      arbitrary: fc
        .tuple(inner, anyName(name))
        .map(([input, field]) => ({ $map: { input, as: 'm', in: { a: `$$m.${field}`, b: '$$m' } } })),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(inner, anyName(name)).map(([input, field]) => ({
        $filter: { input: [input], as: 'm', cond: { $gt: [`$$m.${field}`, 2] } },
      })),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(inner, inner, anyName(name)).map(([input, initialValue, field]) => ({
        $reduce: { input: [input], initialValue, in: { $concatArrays: [[`$$value.${field}`], ['$$this']] } },
      })),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(inner, inner, inner).map((parts) => ({ $cond: parts })),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(inner, anyName(name)).map(([input, field]) => ({
        $sortArray: { input, sortBy: { [field]: 1 } },
      })),
    },
    { weight: 1, arbitrary: fc.tuple(inner, inner).map(([a, b]) => ({ a, b: [b] })) },
  );
});

/** Fails on rows where a column holds a mark, and on no other. */
const failingOnMarks = madeOnce((name: ClassName): fc.Arbitrary<unknown> => {
  const columns = columnsOf(name).filter(({ kind }) => kind === 'text' || kind === 'number');
  return fc.constantFrom(...columns).map(({ name: column, kind }) => {
    const [least, beyond] = kind === 'text' ? ['ZEKRET', 'ZEKREU'] : [770_000_000, 780_000_000];
    const isMarked = { $and: [{ $gte: [`$${column}`, least] }, { $lt: [`$${column}`, beyond] }] };
    return { $gt: [{ $divide: [1, { $cond: [isMarked, 0, 1] }] }, 5] };
  });
});

const accumulator = madeOnce((name: ClassName): fc.Arbitrary<Json> =>
  fc.oneof(
    fc
      .tuple(
        fc.constantFrom(
          '$sum',
          '$push',
          '$addToSet',
          '$max',
          '$min',
          '$first',
          '$last',
          '$avg',
          '$mergeObjects',
        ),
        expression(name, 1),
      )
      .map(([operator, value]) => ({ [operator]: value })),
    fc.tuple(anyName(name), expression(name, 1)).map(([field, output]) => ({
      $top: { sortBy: { [field]: 1 }, output },
    })),
    fc.constant({ $sum: 1 }),
  ),
);

const join = madeOnce((name: ClassName, depth: number): fc.Arbitrary<Json> =>
  fc.constantFrom(...CLASS_NAMES, '_Session', '_Role').chain((from) => {
    const target: ClassName = (CLASS_NAMES as readonly string[]).includes(from)
      ? (from as ClassName)
      : '_User';
    const own = fc.oneof(anyName(name), fc.constantFrom('objectId', '_id', 'x', ...pointerNames(name)));
    const foreign = fc.oneof(anyName(target), fc.constantFrom('objectId', '_id', ...pointerNames(target)));
    const inner = fc.array(stage(target, depth - 1), { minLength: 0, maxLength: 2 });
    const bound = fc.tuple(expression(name, 1), anyName(target), inner).map(([value, field, stages]) => ({
      $lookup: {
        from,
        let: { v: value },
        pipeline: [{ $match: { $expr: { $eq: [`$${field}`, '$$v'] } } }, ...stages],
        as: 'joined',
      },
    }));
    return fc.oneof(
      {
        weight: 4,
        arbitrary: fc.tuple(own, foreign).map(([localField, foreignField]) => ({
          $lookup: { from, localField, foreignField, as: 'joined' },
        })),
      },
      {
        weight: 2,
        arbitrary: fc.tuple(own, foreign, inner).map(([localField, foreignField, pipeline]) => ({
          $lookup: { from, localField, foreignField, pipeline, as: 'joined' },
        })),
      },
      { weight: 2, arbitrary: bound },
      { weight: 2, arbitrary: inner.map((pipeline) => ({ $unionWith: { coll: from, pipeline } })) },
      {
        weight: 2,
        arbitrary: fc
          .tuple(fc.oneof(expression(name, 0), guessed), foreign, foreign, where(target, 0))
          .map(([startWith, connectFromField, connectToField, restrict]) => ({
            $graphLookup: {
              from,
              startWith,
              connectFromField,
              connectToField,
              as: 'all',
              // Also the name of a column, which the depth must not lead to.
              depthField:
                connectFromField === connectToField ? 'x' : String(connectFromField).split('.', 1)[0],
              restrictSearchWithMatch: restrict,
            },
          })),
      },
    );
  }),
);

const pointerNames = (name: ClassName): readonly string[] =>
  columnsOf(name)
    .filter((column) => column.kind === 'pointer' || isHolding(column))
    .map((column) => column.name);

/** Any stage, also those that no caller may use. */
const stage = madeOnce((name: ClassName, depth: number): fc.Arbitrary<Json> => {
  const value = fc.oneof(
    { weight: 4, arbitrary: expression(name, 1) },
    { weight: 1, arbitrary: expression(name, 2) },
  );
  const made = fc.constantFrom('x', 'y', 'joined');
  const reliable = filterExpression(reference(name));
  const simple = fc.oneof(
    { weight: 4, arbitrary: where(name, 1).map((it) => ({ $match: it })) },
    { weight: 3, arbitrary: value.map((it) => ({ $match: { $expr: it } })) },
    { weight: 3, arbitrary: reliable.map((it) => ({ $match: { $expr: it } })) },
    {
      weight: 2,
      arbitrary: fc
        .tuple(fc.constantFrom('$or', '$and', '$nor'), where(name, 0), reliable)
        .map(([operator, asked, it]) => ({ $match: { [operator]: [asked, { $expr: it }] } })),
    },
    { weight: 2, arbitrary: failingOnMarks(name).map((x) => ({ $addFields: { x } })) },
    { weight: 1, arbitrary: fc.boolean().map((x) => ({ $match: { x } })) },
    {
      weight: 3,
      arbitrary: fc
        .tuple(fc.constantFrom('$or', '$and'), where(name, 0), failingOnMarks(name))
        .map(([operator, asked, it]) => ({ $match: { [operator]: [asked, { $expr: it }] } })),
    },
    {
      weight: 3,
      arbitrary: fc.tuple(made, value, anyName(name)).map(([key, it, kept]) => ({
        $project: { [key]: it, [kept]: 1 },
      })),
    },
    { weight: 1, arbitrary: anyName(name).map((it) => ({ $project: { [it]: 0 } })) },
    { weight: 4, arbitrary: fc.tuple(made, value).map(([key, it]) => ({ $addFields: { [key]: it } })) },
    { weight: 1, arbitrary: fc.tuple(anyName(name), value).map(([key, it]) => ({ $set: { [key]: it } })) },
    { weight: 1, arbitrary: anyName(name).map((it) => ({ $unset: it })) },
    {
      weight: 4,
      arbitrary: fc
        .tuple(value, accumulator(name), accumulator(name))
        .map(([_id, x, all]) => ({ $group: { _id, x, all } })),
    },
    {
      weight: 2,
      arbitrary: fc
        .tuple(anyName(name), fc.constantFrom(1, -1))
        .map(([key, how]) => ({ $sort: { [key]: how } })),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(made, fc.constantFrom(1, -1)).map(([key, how]) => ({ $sort: { [key]: how } })),
    },
    { weight: 2, arbitrary: reference(name).map((it) => ({ $unwind: it })) },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom('$joined', '$all')
        .map((path) => ({ $unwind: { path, preserveNullAndEmptyArrays: true } })),
    },
    { weight: 2, arbitrary: value.map((newRoot) => ({ $replaceRoot: { newRoot } })) },
    { weight: 2, arbitrary: value.map((it) => ({ $replaceWith: { $mergeObjects: [{ a: 1 }, it] } })) },
    { weight: 1, arbitrary: value.map((it) => ({ $sortByCount: it })) },
    {
      weight: 1,
      arbitrary: fc.tuple(value, accumulator(name)).map(([groupBy, all]) => ({
        $bucket: { groupBy, boundaries: [0, 2, 4, 900_000_000], default: 'rest', output: { all } },
      })),
    },
    { weight: 2, arbitrary: value.map((groupBy) => ({ $bucketAuto: { groupBy, buckets: 2 } })) },
    {
      weight: 1,
      arbitrary: value.map((it) => ({ $redact: { $cond: [it, '$$KEEP', '$$PRUNE'] } })),
    },
    { weight: 1, arbitrary: fc.nat(3).map((it) => ({ $limit: it + 1 })) },
    { weight: 1, arbitrary: fc.nat(2).map((it) => ({ $skip: it })) },
    { weight: 1, arbitrary: fc.constant({ $count: 'x' }) },
    {
      weight: 1,
      arbitrary: fc
        .tuple(anyName(name), value)
        .map(([key, it]) => ({ $setWindowFields: { sortBy: { [key]: 1 }, output: { x: { $sum: it } } } })),
    },
    {
      weight: 1,
      arbitrary: anyName(name).map((it) => ({ $densify: { field: it, range: { step: 1, bounds: 'full' } } })),
    },
    {
      weight: 1,
      arbitrary: anyName(name).map((it) => ({ $fill: { output: { [it]: { method: 'locf' } } } })),
    },
    { weight: 1, arbitrary: searchStages },
    { weight: 1, arbitrary: fc.constantFrom<Json>({ $collStats: {} }, { $indexStats: {} }, { $out: 'x' }) },
  );
  if (depth <= 0) return simple;
  const branch = fc.array(stage(name, depth - 1), { minLength: 1, maxLength: 2 });
  return fc.oneof(
    { weight: 10, arbitrary: simple },
    { weight: 4, arbitrary: join(name, depth) },
    { weight: 2, arbitrary: fc.tuple(branch, branch).map(([x, all]) => ({ $facet: { x, all } })) },
  );
});

export const pipeline = (name: ClassName): fc.Arbitrary<Json[]> =>
  fc.array(stage(name, 2), { minLength: 1, maxLength: 3 });

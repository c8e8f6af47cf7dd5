import { Code, Decimal128, Double, EJSON, Long, MaxKey, MinKey } from 'bson';
import { describe, expect, it } from 'vitest';
import { compileCollation } from '../bson/collation.js';
import type { Document } from '../bson/document.js';
import { MongoError } from '../errors.js';
import { compileFilter } from '../query/filter.js';
import { compileText } from '../query/text.js';
import { PAUSE, type Step } from '../server/steps.js';
import type { QueryContext } from '../query/context.js';
import { runPipeline } from '../testing/run-pipeline.js';
import { compilePipeline, splitWriteStage } from './pipeline.js';

import fc from 'fast-check';

const collections: Record<string, Document[]> = {
  other: [{ _id: 10, f: 'a' }, { _id: 11, f: 'b' }, { _id: 12, f: ['a', 'c'] }, { _id: 13 }],
  staff: [
    { _id: 1, name: 'A' },
    { _id: 2, name: 'B', boss: 'A' },
    { _id: 3, name: 'C', boss: 'B' },
    { _id: 4, name: 'D', boss: 'D' },
  ],
};
const ctx: QueryContext = {
  tick: () => undefined,
  now: new Date(0),
  collection: (name) => collections[name] ?? [],
  variables: {},
};
const exact = (value: unknown): string => EJSON.stringify(value, { relaxed: false });
/** A source that lets others in before every document. */
function* pauseBetween(docs: readonly Document[]): Iterable<Step<Document>> {
  for (const doc of docs) {
    yield PAUSE;
    yield doc;
  }
}
/** Runs a pipeline, and once more with a pause wherever one is possible: it has to answer the same. */
function run(pipeline: Document[], docs: Document[], context = ctx): Document[] {
  const answer = [...runPipeline(pipeline, docs, context)];
  if (pipeline.some((stage) => Object.hasOwn(stage, '$sample'))) return answer;
  const steps = [...compilePipeline(pipeline, { ...context, turnIsOver: () => true })(pauseBetween(docs))];
  if (docs.length > 0 && !Object.hasOwn(pipeline[0] ?? {}, '$documents')) expect(steps).toContain(PAUSE);
  expect(exact(steps.filter((step) => step !== PAUSE))).toBe(exact(answer));
  return answer;
}
const orders = [
  { _id: 1, k: 'a', n: 1 },
  { _id: 2, k: 'b', n: 2 },
  { _id: 3, k: 'a', n: 3 },
];

/** Title, pipeline, MongoDB's answer, and the documents it runs over (the orders, unless given). */
type Row = [title: string, pipeline: Document[], answer: Document[], docs?: Document[]];

const shaping: Row[] = [
  [
    '$project keeps document order, computed fields last',
    [{ $project: { n: 1, b: '$k', a: { $add: ['$n', 1] } } }, { $limit: 1 }],
    [{ _id: 1, n: 1, b: 'a', a: 2 }],
  ],
  ['$project leaves a missing field out', [{ $project: { y: '$x' } }], [{ _id: 1 }], [{ _id: 1 }]],
  [
    '$addFields merges into documents',
    [{ $addFields: { 'a.c': 2 } }],
    [{ _id: 1, a: { b: 1, c: 2 } }],
    [{ _id: 1, a: { b: 1 } }],
  ],
  [
    '$addFields reaches into array elements',
    [{ $addFields: { 'a.c': 2 } }],
    [{ a: [{ b: 1, c: 2 }, { c: 2 }] }],
    [{ a: [{ b: 1 }, 5] }],
  ],
  ['$set with $$REMOVE removes', [{ $set: { n: '$$REMOVE' } }, { $limit: 1 }], [{ _id: 1, k: 'a' }]],
  ['$unset below documents', [{ $unset: 'a.b' }], [{ _id: 1, a: { c: 2 } }], [{ _id: 1, a: { b: 1, c: 2 } }]],
  ['$replaceRoot', [{ $replaceRoot: { newRoot: '$a' } }], [{ b: 1 }], [{ a: { b: 1 } }]],
  ['$replaceWith', [{ $replaceWith: { x: '$a' } }], [{ x: 1 }], [{ a: 1 }]],
  [
    '$redact keeps and prunes whole documents',
    [{ $redact: { $cond: [{ $eq: ['$k', 'a'] }, '$$KEEP', '$$PRUNE'] } }, { $project: { _id: 1 } }],
    [{ _id: 1 }, { _id: 3 }],
  ],
  [
    '$redact descends',
    [{ $redact: { $cond: ['$hidden', '$$PRUNE', '$$DESCEND'] } }],
    [{ a: [{ b: 1 }], c: 1 }],
    [{ a: [{ b: 1 }, { hidden: true }], c: 1, d: { hidden: true } }],
  ],
  [
    '$unwind with an index, keeping what has no array',
    [{ $unwind: { path: '$a', includeArrayIndex: 'i', preserveNullAndEmptyArrays: true } }],
    [
      { _id: 1, a: 5, i: Long.ZERO },
      { _id: 1, a: 6, i: Long.ONE },
      { _id: 2, i: null },
      { _id: 3, i: null },
    ],
    [{ _id: 1, a: [5, 6] }, { _id: 2 }, { _id: 3, a: [] }],
  ],
  ['$unwind drops what has no array', [{ $unwind: '$a' }], [], [{ _id: 2 }, { _id: 3, a: [] }, { a: null }]],
  ['$unwind of a scalar', [{ $unwind: '$a' }], [{ _id: 1, a: 5 }], [{ _id: 1, a: 5 }]],
  [
    '$facet runs each branch over all documents',
    [{ $facet: { a: [{ $count: 'n' }], b: [{ $limit: 1 }, { $project: { _id: 1 } }] } }],
    [{ a: [{ n: 3 }], b: [{ _id: 1 }] }],
  ],
  ['$documents begins a pipeline', [{ $documents: [{ a: 1 }] }], [{ a: 1 }], []],
];

const grouping: Row[] = [
  [
    '$group puts missing and null together',
    [{ $group: { _id: '$a', n: { $sum: 1 } } }],
    [{ _id: null, n: 2 }],
    [{ x: 1 }, { a: null }],
  ],
  [
    '$group takes 1, 1.0 and a long 1 for one',
    [{ $group: { _id: '$a', n: { $count: {} } } }],
    [{ _id: 1, n: 3 }],
    [{ a: 1 }, { a: new Double(1) }, { a: Long.ONE }],
  ],
  [
    '$push and $addToSet skip the missing',
    [{ $group: { _id: null, p: { $push: '$x' }, s: { $addToSet: '$x' } } }],
    [{ _id: null, p: [1], s: [1] }],
    [{ x: 1 }, {}],
  ],
  [
    '$max and $min ignore null',
    [{ $group: { _id: null, x: { $max: '$a' }, n: { $min: '$a' } } }],
    [{ _id: null, x: 10, n: 3 }],
    [{ a: 3 }, { a: null }, { a: 10 }],
  ],
  [
    '$sum of decimals is exact',
    [{ $group: { _id: null, s: { $sum: '$a' } } }],
    [{ _id: null, s: Decimal128.fromString('3.3') }],
    [{ a: Decimal128.fromString('1.1') }, { a: Decimal128.fromString('2.2') }],
  ],
  [
    '$sum past 32 bits is a long',
    [{ $group: { _id: null, s: { $sum: '$a' } } }],
    [{ _id: null, s: Long.fromNumber(4294967294) }],
    [{ a: 2147483647 }, { a: 2147483647 }],
  ],
  ['$avg is a double', [{ $group: { _id: null, a: { $avg: '$n' } } }], [{ _id: null, a: new Double(2) }]],
  ['$avg of nothing is null', [{ $group: { _id: null, a: { $avg: '$zz' } } }], [{ _id: null, a: null }]],
  [
    '$first and $last',
    [{ $group: { _id: null, f: { $first: '$k' }, l: { $last: '$n' } } }],
    [{ _id: null, f: 'a', l: 3 }],
  ],
  [
    '$top',
    [{ $group: { _id: null, t: { $top: { sortBy: { n: -1 }, output: '$n' } } } }],
    [{ _id: null, t: 3 }],
  ],
  [
    '$bottomN',
    [{ $group: { _id: null, t: { $bottomN: { sortBy: { n: 1 }, output: '$n', n: 2 } } } }],
    [{ _id: null, t: [2, 3] }],
  ],
  [
    '$mergeObjects',
    [{ $group: { _id: null, m: { $mergeObjects: { x: '$n' } } } }],
    [{ _id: null, m: { x: 3 } }],
  ],
  [
    '$group gives MinKey and code as they are at the end',
    [{ $group: { _id: null, low: { $min: '$a' }, all: { $push: '$c' } } }],
    [{ _id: null, low: new MinKey(), all: [new Code('f')] }],
    [{ _id: 1, a: new MinKey(), c: new Code('f') }],
  ],
  [
    '$group hands MinKey and code to another stage in other forms',
    [{ $group: { _id: null, low: { $min: '$a' }, all: { $push: '$c' } } }, { $skip: 0 }],
    [{ _id: null, low: { '': new MinKey() }, all: ['f'] }],
    [{ _id: 1, a: new MinKey(), c: new Code('f') }],
  ],
  [
    '$group behind an $unwind hands over what it made',
    [{ $unwind: '$a' }, { $group: { _id: null, low: { $min: '$a' } } }, { $skip: 0 }],
    [{ _id: null, low: new MinKey() }],
    [{ _id: 1, a: [new MinKey()] }],
  ],
  [
    '$bucket names its default in the form of a group that goes on',
    [{ $bucket: { groupBy: '$n', boundaries: [0, 1], default: new MaxKey() } }],
    [{ _id: { '': new MaxKey() }, count: 3 }],
  ],
  [
    '$match sees what $group made',
    [{ $group: { _id: '$k', n: { $sum: '$n' } } }, { $match: { n: { $gt: 2 } } }],
    [{ _id: 'a', n: 4 }],
  ],
  [
    '$sortByCount',
    [{ $sortByCount: '$k' }],
    [
      { _id: 'a', count: 2 },
      { _id: 'b', count: 1 },
    ],
  ],
  ['$count', [{ $count: 'c' }], [{ c: 3 }]],
  ['$count of nothing gives no document', [{ $match: { _id: 99 } }, { $count: 'c' }], []],
  [
    '$bucket includes its lower bound',
    [{ $bucket: { groupBy: '$n', boundaries: [0, 2, 5], output: { c: { $sum: 1 } } } }],
    [
      { _id: 0, c: 1 },
      { _id: 2, c: 2 },
    ],
  ],
  [
    '$bucket puts the rest under its default',
    [{ $bucket: { groupBy: '$n', boundaries: [0, 2], default: 'more' } }],
    [
      { _id: 0, count: 1 },
      { _id: 'more', count: 2 },
    ],
  ],
  [
    '$bucketAuto',
    [{ $bucketAuto: { groupBy: '$n', buckets: 2 } }],
    [
      { _id: { min: 1, max: 3 }, count: 2 },
      { _id: { min: 3, max: 3 }, count: 1 },
    ],
  ],
  [
    '$sort by several keys is stable',
    [{ $sort: { k: 1, n: -1 } }, { $project: { _id: 1 } }],
    [{ _id: 3 }, { _id: 1 }, { _id: 2 }],
  ],
  ['$skip and $limit', [{ $skip: 1 }, { $limit: 1 }, { $project: { _id: 1 } }], [{ _id: 2 }]],
];

const first = { $match: { _id: 1 } };
const joined = { $project: { _id: 0, o: '$o._id' } };
const joining: Row[] = [
  [
    '$lookup by equality finds array elements too',
    [first, { $lookup: { from: 'other', localField: 'k', foreignField: 'f', as: 'o' } }, joined],
    [{ o: [10, 12] }],
  ],
  [
    '$lookup joins a missing field with missing ones',
    [{ $lookup: { from: 'other', localField: 'zz', foreignField: 'f', as: 'o' } }, joined],
    [{ o: [13] }],
    [{}],
  ],
  [
    '$lookup joins every element of an array, in foreign order',
    [{ $lookup: { from: 'other', localField: 'k', foreignField: 'f', as: 'o' } }, joined],
    [{ o: [10, 11, 12] }],
    [{ k: ['b', 'a'] }],
  ],
  [
    '$lookup joins an empty array with missing ones',
    [{ $lookup: { from: 'other', localField: 'k', foreignField: 'f', as: 'o' } }, joined],
    [{ o: [13] }],
    [{ k: [] }],
  ],
  [
    '$lookup joins an array in an array with that array alone',
    [{ $lookup: { from: 'other', localField: 'k', foreignField: 'f', as: 'o' } }, joined],
    [{ o: [12] }],
    [{ k: [['a', 'c']] }],
  ],
  [
    '$lookup joins the documents of its own pipeline',
    [
      {
        $lookup: {
          localField: 'k',
          foreignField: 'f',
          pipeline: [
            {
              $documents: [
                { _id: 1, f: 'a' },
                { _id: 2, f: 'b' },
              ],
            },
          ],
          as: 'o',
        },
      },
      joined,
    ],
    [{ o: [2] }],
    [{ k: 'b' }],
  ],
  [
    '$lookup with variables',
    [
      first,
      {
        $lookup: {
          from: 'other',
          let: { kk: '$k' },
          pipeline: [{ $match: { $expr: { $eq: ['$f', '$$kk'] } } }],
          as: 'o',
        },
      },
      joined,
    ],
    [{ o: [10] }],
  ],
  [
    '$lookup with variables beyond equality',
    [
      first,
      {
        $lookup: {
          from: 'other',
          let: { kk: '$k' },
          pipeline: [{ $match: { $expr: { $gt: ['$f', '$$kk'] } } }],
          as: 'o',
        },
      },
      joined,
    ],
    [{ o: [11, 12] }],
  ],
  [
    '$lookup with fields and a pipeline',
    [
      first,
      {
        $lookup: {
          from: 'other',
          localField: 'k',
          foreignField: 'f',
          pipeline: [{ $match: { _id: { $lt: 12 } } }, { $project: { _id: 1 } }],
          as: 'o',
        },
      },
      { $project: { _id: 0, o: 1 } },
    ],
    [{ o: [{ _id: 10 }] }],
  ],
  [
    '$lookup without correlation',
    [first, { $lookup: { from: 'other', pipeline: [{ $limit: 1 }], as: 'o' } }, joined],
    [{ o: [10] }],
  ],
  [
    '$lookup on a collection that is not there',
    [first, { $lookup: { from: 'none', localField: 'k', foreignField: 'f', as: 'o' } }, joined],
    [{ o: [] }],
  ],
  [
    '$lookup under a dotted name',
    [
      first,
      {
        $lookup: { from: 'other', localField: 'k', foreignField: 'f', pipeline: [{ $limit: 1 }], as: 'x.o' },
      },
      { $project: { _id: 0, x: 1 } },
    ],
    [{ x: { o: [{ _id: 10, f: 'a' }] } }],
  ],
  [
    '$lookup within $lookup sees outer variables',
    [
      first,
      {
        $lookup: {
          from: 'staff',
          let: { k: '$k' },
          pipeline: [
            { $limit: 1 },
            {
              $lookup: { from: 'other', pipeline: [{ $match: { $expr: { $eq: ['$f', '$$k'] } } }], as: 'o' },
            },
          ],
          as: 's',
        },
      },
      { $project: { _id: 0, s: '$s.o._id' } },
    ],
    [{ s: [[10]] }],
  ],
  [
    '$graphLookup follows links and counts depth',
    [
      {
        $graphLookup: {
          from: 'staff',
          startWith: '$boss',
          connectFromField: 'boss',
          connectToField: 'name',
          as: 'r',
          depthField: 'd',
        },
      },
      { $project: { 'r.name': 1, 'r.d': 1 } },
    ],
    [
      {
        r: [
          { name: 'B', d: Long.ZERO },
          { name: 'A', d: Long.ONE },
        ],
      },
    ],
    [{ boss: 'B' }],
  ],
  [
    '$graphLookup ends in a circle',
    [
      {
        $graphLookup: {
          from: 'staff',
          startWith: 'D',
          connectFromField: 'boss',
          connectToField: 'name',
          as: 'r',
        },
      },
      { $project: { 'r._id': 1 } },
    ],
    [{ r: [{ _id: 4 }] }],
    [{}],
  ],
  [
    '$graphLookup heeds its depth',
    [
      {
        $graphLookup: {
          from: 'staff',
          startWith: 'C',
          connectFromField: 'boss',
          connectToField: 'name',
          maxDepth: 1,
          as: 'r',
        },
      },
      { $project: { 'r._id': 1 } },
    ],
    [{ r: [{ _id: 3 }, { _id: 2 }] }],
    [{}],
  ],
  [
    '$unionWith',
    [
      first,
      { $project: { _id: 1 } },
      { $unionWith: { coll: 'other', pipeline: [{ $match: { f: 'b' } }, { $project: { _id: 1 } }] } },
    ],
    [{ _id: 1 }, { _id: 11 }],
  ],
];

const day = 86_400_000;
const dated = [
  { d: new Date(0), n: 1 },
  { d: new Date(day), n: 2 },
  { d: new Date(5 * day), n: 4 },
];
const windows: Row[] = [
  [
    '$covarianceSamp of decimals divides by a double, which decides the places',
    [
      { $setWindowFields: { output: { c: { $covarianceSamp: ['$x', '$y'] } } } },
      { $project: { c: 1 } },
      { $limit: 1 },
    ],
    [{ c: Decimal128.fromString('2') }],
    [1, 2, 3].map((n) => ({ x: Decimal128.fromString(`${n}`), y: Decimal128.fromString(`${2 * n}`) })),
  ],
  [
    '$covarianceSamp follows a window that slides',
    [
      {
        $setWindowFields: {
          sortBy: { _id: 1 },
          output: { c: { $covarianceSamp: ['$x', '$_id'], window: { documents: [-1, 0] } } },
        },
      },
      { $project: { c: 1 } },
    ],
    [
      { _id: 1, c: null },
      { _id: 2, c: new Double(1) },
      { _id: 3, c: new Double(-2) },
    ],
    [
      { _id: 1, x: 1 },
      { _id: 2, x: 3 },
      { _id: 3, x: -1 },
    ],
  ],
  [
    '$covariancePop keeps decimals, and passes over what is no pair of numbers',
    [
      { $setWindowFields: { output: { c: { $covariancePop: ['$x', '$y'] } } } },
      { $project: { c: 1 } },
      { $limit: 1 },
    ],
    [{ c: Decimal128.fromString('1.333333333333333333333333333333333') }],
    [
      { x: Decimal128.fromString('1'), y: 2 },
      { x: 2, y: Decimal128.fromString('4') },
      { x: 3, y: 6 },
      { x: 'a', y: 1 },
    ],
  ],
  [
    '$stdDevPop has no value while an infinite one is in its window',
    [
      {
        $setWindowFields: {
          sortBy: { _id: 1 },
          output: { s: { $stdDevPop: '$x', window: { documents: [-1, 0] } } },
        },
      },
      { $project: { s: 1 } },
    ],
    [
      { _id: 1, s: null },
      { _id: 2, s: null },
      { _id: 3, s: new Double(5) },
    ],
    [
      { _id: 1, x: Infinity },
      { _id: 2, x: 10 },
      { _id: 3, x: 20 },
    ],
  ],
  [
    'a running sum per partition',
    [
      {
        $setWindowFields: {
          partitionBy: '$k',
          sortBy: { n: 1 },
          output: { s: { $sum: '$n', window: { documents: ['unbounded', 'current'] } } },
        },
      },
      { $sort: { _id: 1 } },
      { $project: { s: 1 } },
    ],
    [
      { _id: 1, s: 1 },
      { _id: 2, s: 2 },
      { _id: 3, s: 4 },
    ],
  ],
  [
    'a window of neighbours',
    [
      {
        $setWindowFields: {
          sortBy: { n: 1 },
          output: { a: { $push: '$n', window: { documents: [-1, 1] } } },
        },
      },
      { $project: { a: 1 } },
    ],
    [
      { _id: 1, a: [1, 2] },
      { _id: 2, a: [1, 2, 3] },
      { _id: 3, a: [2, 3] },
    ],
  ],
  [
    'a growing list is not shared between documents',
    [
      {
        $setWindowFields: {
          sortBy: { n: 1 },
          output: { a: { $push: '$n', window: { documents: ['unbounded', 'current'] } } },
        },
      },
      { $project: { a: 1 } },
    ],
    [
      { _id: 1, a: [1] },
      { _id: 2, a: [1, 2] },
      { _id: 3, a: [1, 2, 3] },
    ],
  ],
  [
    'a range of days',
    [
      {
        $setWindowFields: {
          sortBy: { d: 1 },
          output: { s: { $sum: '$n', window: { range: [-1, 'current'], unit: 'day' } } },
        },
      },
      { $project: { s: 1 } },
    ],
    [{ s: 1 }, { s: 3 }, { s: 4 }],
    dated,
  ],
  [
    'a range of numbers',
    [
      { $setWindowFields: { sortBy: { n: 1 }, output: { c: { $count: {}, window: { range: [-1, 1] } } } } },
      { $project: { _id: 0, c: 1 } },
    ],
    [{ c: 2 }, { c: 3 }, { c: 2 }],
  ],
  [
    '$rank leaves gaps after ties, $denseRank none',
    [
      {
        $setWindowFields: {
          sortBy: { k: 1 },
          output: { r: { $rank: {} }, d: { $denseRank: {} }, p: { $documentNumber: {} } },
        },
      },
      { $project: { r: 1, d: 1, p: 1 } },
    ],
    [
      { _id: 1, r: 1, d: 1, p: 1 },
      { _id: 3, r: 1, d: 1, p: 2 },
      { _id: 2, r: 3, d: 2, p: 3 },
    ],
  ],
  [
    '$shift',
    [
      {
        $setWindowFields: {
          sortBy: { n: 1 },
          output: { p: { $shift: { output: '$n', by: -1, default: 0 } } },
        },
      },
      { $project: { p: 1 } },
    ],
    [
      { _id: 1, p: 0 },
      { _id: 2, p: 1 },
      { _id: 3, p: 2 },
    ],
  ],
  [
    '$derivative',
    [
      {
        $setWindowFields: {
          sortBy: { d: 1 },
          output: { v: { $derivative: { input: '$n', unit: 'day' }, window: { documents: [-1, 0] } } },
        },
      },
      { $project: { v: 1 } },
    ],
    [{ v: null }, { v: new Double(1) }, { v: 0.5 }],
    dated,
  ],
  [
    '$fill carries forward',
    [{ $fill: { sortBy: { _id: 1 }, output: { n: { method: 'locf' } } } }],
    [
      { _id: 1, n: 1 },
      { _id: 2, n: 1 },
    ],
    [{ _id: 1, n: 1 }, { _id: 2 }],
  ],
  [
    '$fill by a line',
    [{ $fill: { sortBy: { _id: 1 }, output: { n: { method: 'linear' } } } }],
    [
      { _id: 1, n: 1 },
      { _id: 2, n: new Double(2) },
      { _id: 3, n: 3 },
    ],
    [{ _id: 1, n: 1 }, { _id: 2 }, { _id: 3, n: 3 }],
  ],
  [
    '$fill within partitions',
    [{ $fill: { partitionByFields: ['p'], sortBy: { _id: 1 }, output: { n: { method: 'locf' } } } }],
    [
      { _id: 1, p: 1, n: 5 },
      { _id: 3, p: 1, n: 5 },
      { _id: 2, p: 2, n: null },
    ],
    [
      { _id: 1, p: 1, n: 5 },
      { _id: 2, p: 2 },
      { _id: 3, p: 1 },
    ],
  ],
  ['$fill by a value', [{ $fill: { output: { n: { value: 0 } } } }], [{ _id: 1, n: 0 }], [{ _id: 1 }]],
  [
    '$densify of numbers',
    [{ $densify: { field: 'n', range: { step: 1, bounds: 'full' } } }],
    [{ n: 1 }, { n: 2 }, { n: 3 }],
    [{ n: 1 }, { n: 3 }],
  ],
  [
    '$densify in the order of the partitions',
    [{ $densify: { field: 'n', partitionByFields: ['p'], range: { step: 1, bounds: 'partition' } } }],
    [
      { p: 'a', n: 1 },
      { p: 'b', n: 1 },
      { p: 'b', n: 2 },
      { p: 'b', n: 3 },
    ],
    [
      { p: 'b', n: 1 },
      { p: 'b', n: 3 },
      { p: 'a', n: 1 },
    ],
  ],
  [
    '$densify of dates per partition',
    [
      {
        $densify: {
          field: 'd',
          partitionByFields: ['p'],
          range: { step: 1, unit: 'day', bounds: 'partition' },
        },
      },
    ],
    [
      { p: 1, d: new Date(0) },
      { p: 1, d: new Date(day) },
      { p: 1, d: new Date(2 * day) },
      { p: 2, d: new Date(0) },
    ],
    [
      { p: 1, d: new Date(0) },
      { p: 1, d: new Date(2 * day) },
      { p: 2, d: new Date(0) },
    ],
  ],
];

describe.each([
  ['shapes documents', shaping],
  ['groups and orders', grouping],
  ['joins', joining],
  ['looks through windows', windows],
] as [string, Row[]][])('a pipeline that %s', (_area, rows) => {
  it.each(rows)('%s', (_title, pipeline, answer, docs = orders) => {
    const before = exact(docs);
    expect(exact(run(pipeline, docs))).toBe(exact(answer));
    // Stored documents are shared with readers: no stage may touch them.
    expect(exact(docs)).toBe(before);
  });
});

describe('a pipeline', () => {
  it('samples without repeating', () => {
    const ids = run([{ $sample: { size: 2 } }], orders).map((doc) => doc['_id']);
    expect(new Set(ids).size).toBe(2);
  });

  it('fills a partition that a collation joins like the document that follows', () => {
    const collation = compileCollation({ locale: 'en', strength: 1 });
    const step = { field: 'n', partitionByFields: ['p'], range: { step: 5, bounds: 'partition' } };
    const run = compilePipeline([{ $densify: step }], collation ? { ...ctx, collation } : ctx);
    const docs = [
      { p: 'apple', n: 0 },
      { p: 'Apple', n: 10 },
    ];
    expect([...run(docs)]).toEqual([docs[0], { p: 'Apple', n: 5 }, docs[1]]);
  });

  it('groups by a collation', () => {
    const collation = compileCollation({ locale: 'en', strength: 2 });
    const context = collation ? { ...ctx, collation } : ctx;
    expect(run([{ $group: { _id: '$a', n: { $sum: 1 } } }], [{ a: 'X' }, { a: 'x' }], context)).toEqual([
      { _id: 'X', n: 2 },
    ]);
  });

  it('reads no more than a limit asks for', () => {
    let read = 0;
    const source = {
      *[Symbol.iterator]() {
        for (;;) yield { n: read++ };
      },
    };
    expect([...runPipeline([{ $match: { n: { $gte: 2 } } }, { $limit: 2 }], source, ctx)]).toEqual([
      { n: 2 },
      { n: 3 },
    ]);
    expect(read).toBe(4);
  });

  it('stops at its deadline inside an expression', () => {
    let left = 1000;
    const tick = (): void => {
      if (--left < 0) throw new MongoError(50, 'operation exceeded time limit');
    };
    const numbers = { $range: [0, 1000] };
    const heavy = { $map: { input: numbers, in: { $map: { input: numbers, in: 1 } } } };
    expect(() => run([{ $project: { x: heavy } }], [{}], { ...ctx, tick })).toThrow(
      expect.objectContaining({ code: 50 }),
    );
  });

  it('joins by a hash: the foreign collection is read once', () => {
    let reads = 0;
    const collection = (): Iterable<Document> => {
      reads++;
      return Array.from({ length: 200 }, (_, i) => ({ _id: i, f: i }));
    };
    let ticks = 0;
    const context = { ...ctx, collection, tick: () => void ticks++ };
    const docs = Array.from({ length: 200 }, (_, i) => ({ k: i }));
    const equality = { $match: { $expr: { $eq: ['$f', '$$kk'] } } };
    const lookup = { $lookup: { from: 'x', let: { kk: '$k' }, pipeline: [equality], as: 'o' } };
    const out = [...runPipeline([lookup], docs, context)];
    expect(out.every((doc, i) => (doc['o'] as Document[])[0]?.['_id'] === i)).toBe(true);
    expect(reads).toBe(1);
    expect(ticks).toBeLessThan(200 * 10);
  });
});

describe('a text search', () => {
  const text = { fields: [{ path: 'k', weight: 1 }] };
  const search = { $match: { $text: { $search: 'a' } } };
  const searching = {
    ...ctx,
    text,
    found: { textScore: compileText(search.$match.$text, { ...ctx, text }) },
  };
  const score = { $meta: 'textScore' };

  it('orders and reports by score', () => {
    const docs = [
      { _id: 1, k: 'x' },
      { _id: 2, k: 'tea pot' },
      { _id: 3, k: 'tea tea' },
    ];
    const tea = { $text: { $search: 'tea' } };
    const context = { ...ctx, text, found: { textScore: compileText(tea.$text, { ...ctx, text }) } };
    const found = run([{ $match: tea }, { $sort: { s: score } }, { $project: { s: score } }], docs, context);
    expect(found.map((doc) => doc['_id'])).toEqual([3, 2]);
    expect(found.every((doc) => Number(doc['s']) > 0)).toBe(true);
  });

  it('begins the pipeline of a union, over the text index of its collection', () => {
    const pipeline = [search, { $sort: { s: score } }];
    const context = {
      ...ctx,
      collection: () => [
        { _id: 1, k: 'a b' },
        { _id: 2, k: 'c' },
      ],
      joinedIndexes: (name: string) => (name === 'other' ? { text: { ...text, language: 'none' } } : {}),
    };
    const union = (coll: string) => [{ $match: { _id: 0 } }, { $unionWith: { coll, pipeline } }];
    expect(run(union('other'), orders, context).map((doc) => doc['_id'])).toEqual([1]);
    expect(() => run(union('another'), orders, context)).toThrow(expect.objectContaining({ code: 27 }));
  });

  it.each([
    [
      'once a stage has made other documents',
      [search, { $group: { _id: '$k' } }, { $sort: { s: score } }],
      40218,
    ],
    ['in the pipeline of a join', [{ $unionWith: { coll: 'other', pipeline: [search] } }], 27],
    [
      'among the documents of a join',
      [{ $lookup: { from: 'other', pipeline: [{ $sort: { s: score } }], as: 'o' } }],
      40218,
    ],
  ] as [string, Document[], number][])('has no score %s', (_title, pipeline, code) => {
    expect(() => runPipeline(pipeline, orders, searching)).toThrow(expect.objectContaining({ code }));
  });
});

const joinWith = (pipeline: Document[], from = 'other'): Document => ({
  $lookup: { from, pipeline, as: 'o' },
});

const windowed = (window: Document): Document => ({
  $setWindowFields: { sortBy: { a: 1 }, output: { n: { $sum: '$n', window } } },
});

describe('a pipeline refuses', () => {
  it.each([
    ['a stage of two names', [{ $match: {}, $limit: 1 }], 40323],
    ['an unknown stage', [{ $bogus: 1 }], 40324],
    ['search', [{ $search: {} }], 31082],
    ['vector search', [{ $vectorSearch: {} }], 31082],
    ['vector search in a join', [joinWith([{ $vectorSearch: {} }])], 51047],
    ['an order by more than metadata', [{ $sort: { a: { $meta: 'randVal', b: 1 } } }], 9],
    ['an order by highlights', [{ $sort: { a: { $meta: 'searchHighlights' } } }], 31138],
    ['a change stream inside', [{ $changeStream: {} }], 238],
    ['$out inside a pipeline it does not execute', [{ $out: 'x' }], 51047],
    ['$out before the end', [{ $out: 'x' }, { $match: {} }], 40601],
    ['$geoNear after the start', [{ $match: { a: 1 } }, { $geoNear: {} }], 40602],
    ['$geoNear of four numbers', [{ $geoNear: { near: [0, 0, 0, 0], distanceField: 'd' } }], 2],
    ['$geoNear without an index', [{ $geoNear: { near: [0, 0], distanceField: 'd' } }], 27],
    ['$group without _id', [{ $group: {} }], 15955],
    [
      '$unwind that keeps what is no truth',
      [{ $unwind: { path: '$a', preserveNullAndEmptyArrays: 1 } }],
      28809,
    ],
    ['a limit past 64 bits', [{ $limit: 2 ** 63 }], 5107201],
    ['a count called _id', [{ $count: '_id' }], 9039800],
    [
      'an output of $bucketAuto that is no object',
      [{ $bucketAuto: { groupBy: '$n', buckets: 2, output: 1 } }],
      40244,
    ],
    [
      'a joined collection without a name',
      [{ $lookup: { from: '', localField: 'a', foreignField: 'b', as: 'c' } }],
      73,
    ],
    ['an unknown accumulator', [{ $group: { _id: null, a: { $nope: 1 } } }], 15952],
    ['a group field that is no accumulator', [{ $group: { _id: null, a: 1 } }], 40234],
    ['JavaScript accumulators', [{ $group: { _id: null, a: { $accumulator: {} } } }], 31264],
    ['a limit of zero', [{ $limit: 0 }], 15958],
    ['a negative skip', [{ $skip: -1 }], 5107200],
    ['an empty projection', [{ $project: {} }], 51272],
    ['an empty sort', [{ $sort: {} }], 15976],
    ['$unwind of a name without dollar', [{ $unwind: 'a' }], 28818],
    ['$lookup without a target', [{ $lookup: { from: 'x', localField: 'a', foreignField: 'b' } }], 9],
    ['$lookup with half an equality', [{ $lookup: { from: 'x', localField: 'a', as: 'o' } }], 9],
    ['unsorted boundaries', [{ $bucket: { groupBy: '$n', boundaries: [2, 1] } }], 40194],
    ['nested facets', [{ $facet: { a: [{ $facet: { b: [] } }] } }], 40600],
    ['a facet in a join in a facet', [{ $facet: { a: [joinWith([{ $facet: { b: [] } }])] } }], 40600],
    [
      'over 20 joins within each other',
      Array.from({ length: 21 }).reduce((inner: Document[]) => [joinWith(inner)], []),
      232,
    ],
    ['a facet with a dot', [{ $facet: { 'a.b': [] } }], 16412],
    ['a facet without a name', [{ $facet: { '': [] } }], 40352],
    ['a group by a number in an object', [{ $group: { _id: { a: 1 } } }], 17390],
    ['a group by a truth in an object', [{ $group: { _id: { a: '$a', b: true } } }], 17390],
    ['buckets of a constant', [{ $bucket: { groupBy: 2.5, boundaries: [0, 5] } }], 40202],
    ['buckets of an object without operator', [{ $bucketAuto: { groupBy: { a: 1 }, buckets: 2 } }], 40239],
    ['buckets of nothing', [{ $bucketAuto: { buckets: 2 } }], 40246],
    ['over 2^31 buckets', [{ $bucketAuto: { groupBy: '$n', buckets: 2 ** 31 } }], 40242],
    ['a count with a null byte', [{ $count: 'a\0b' }], 40159],
    ['a join of a name that begins with a dot', [joinWith([], '.x')], 73],
    ['a join of a collection and of $documents', [joinWith([{ $documents: [] }])], 73],
    [
      'a variable of a join with a capital',
      [{ $lookup: { from: 'x', let: { A: 1 }, pipeline: [], as: 'o' } }],
      9,
    ],
    [
      'an order by over 32 fields',
      [{ $sort: Object.fromEntries([...Array(33).keys()].map((i) => [`a${i}`, 1])) }],
      13103,
    ],
    ['an order called $natural', [{ $sort: { $natural: 1 } }], 16410],
    ['an unknown member of $unwind', [{ $unwind: { path: '$a', keep: true } }], 28811],
    ['null as a truth of $unwind', [{ $unwind: { path: '$a', preserveNullAndEmptyArrays: null } }], 28809],
    ['an unknown member of $replaceRoot', [{ $replaceRoot: { newRoot: '$a', keep: 1 } }], 40415],
    ['a dotted name within a new object', [{ $set: { a: { 'b.c': 1 } } }], 40183],
    ['an unknown member of a window', [windowed({ documents: [0, 0], last: 1 })], 9],
    ['a joined pipeline of over 1000 stages', [joinWith(Array(1001).fill({ $limit: 1 }))], 7749501],
    ['a unit of documents', [windowed({ documents: [0, 0], unit: 'day' })], 9],
    ['a group accumulator of several', [{ $group: { _id: null, n: { $push: ['$a'] } } }], 40237],
    [
      'numbers of documents by two fields',
      [{ $setWindowFields: { sortBy: { a: 1, b: 1 }, output: { n: { $documentNumber: {} } } } }],
      5371602,
    ],
    ['an unknown window function', [{ $setWindowFields: { output: { a: { $nope: 1 } } } }], 15952],
  ] as [string, Document[], number][])('%s, before reading a document', (_title, pipeline, code) => {
    expect(() => runPipeline(pipeline, [], ctx)).toThrow(expect.objectContaining({ code }));
  });

  it.each([
    ['a value outside all buckets', [{ $bucket: { groupBy: '$n', boundaries: [0, 1] } }], 40066],
    ['a new root that is no document', [{ $replaceRoot: { newRoot: '$n' } }], 40228],
    ['a division by zero', [{ $project: { x: { $divide: ['$n', 0] } } }], 2],
    [
      'days between dates past the last one',
      [
        { $project: { d: { $toDate: { $literal: new Double(8.64e15) } } } },
        { $densify: { field: 'd', range: { step: 1e9, unit: 'day', bounds: 'full' } } },
      ],
      5166406,
    ],
    [
      'a range of days past the last date',
      [
        { $project: { d: { $toDate: { $literal: new Double(8.64e15) } } } },
        {
          $setWindowFields: {
            sortBy: { d: 1 },
            output: { s: { $count: {}, window: { range: [0, 1], unit: 'day' } } },
          },
        },
      ],
      5166406,
    ],
  ] as [string, Document[], number][])('%s, when it meets it', (_title, pipeline, code) => {
    expect(() => run(pipeline, orders)).toThrow(expect.objectContaining({ code }));
  });
});

describe('a final writing stage', () => {
  it('is taken off and described', () => {
    expect(splitWriteStage([{ $match: {} }, { $out: { db: 'd', coll: 'c' } }])).toEqual({
      pipeline: [{ $match: {} }],
      write: { kind: 'out', db: 'd', coll: 'c' },
    });
    expect(
      splitWriteStage([{ $merge: { into: 'c', on: ['a', 'b'], whenMatched: 'fail' } }]).write,
    ).toMatchObject({
      kind: 'merge',
      coll: 'c',
      on: ['a', 'b'],
      whenMatched: 'fail',
      whenNotMatched: 'insert',
    });
    expect(splitWriteStage([{ $match: {} }])).toEqual({ pipeline: [{ $match: {} }] });
  });

  it.each([
    ['elsewhere', [{ $out: 'c' }, { $match: {} }], 40601],
    ['without a target', [{ $merge: {} }], 16990],
    ['with an unknown mode', [{ $merge: { into: 'c', whenMatched: 'guess' } }], 2],
    ['with a bad name', [{ $out: 'a$b' }], 73],
  ] as [string, Document[], number][])('is refused %s', (_title, pipeline, code) => {
    expect(() => splitWriteStage(pipeline)).toThrow(expect.objectContaining({ code }));
  });
});

describe('for any documents', () => {
  const docs = fc.array(
    fc.record({ k: fc.constantFrom('a', 'b', 'c'), n: fc.integer({ min: -9, max: 9 }) }),
    { maxLength: 20 },
  );

  it('$match in a pipeline is the filter of a query', () => {
    fc.assert(
      fc.property(docs, fc.integer({ min: -9, max: 9 }), (all, bound) => {
        const filter = { n: { $gte: bound } };
        expect(run([{ $match: filter }], all)).toEqual(
          all.filter((doc) => compileFilter(filter, ctx).matches(doc)),
        );
      }),
    );
  });

  it('the groups add up to the whole', () => {
    fc.assert(
      fc.property(docs, (all) => {
        const groups = run([{ $group: { _id: '$k', n: { $sum: '$n' }, c: { $count: {} } } }], all) as {
          n: number;
          c: number;
        }[];
        expect(groups.reduce((sum, group) => sum + group.c, 0)).toBe(all.length);
        expect(groups.reduce((sum, group) => sum + group.n, 0)).toBe(
          all.reduce((sum, doc) => sum + doc.n, 0),
        );
      }),
    );
  });

  it('a join by fields and a join by variables agree', () => {
    fc.assert(
      fc.property(docs, docs, (local, foreign) => {
        const context = { ...ctx, collection: () => foreign };
        const byFields = { $lookup: { from: 'x', localField: 'n', foreignField: 'n', as: 'o' } };
        const condition = { $match: { $expr: { $and: [{ $eq: ['$$m', '$n'] }] } } };
        const byVariables = { $lookup: { from: 'x', let: { m: '$n' }, pipeline: [condition], as: 'o' } };
        expect(run([byFields], local, context)).toEqual(run([byVariables], local, context));
      }),
    );
  });
});

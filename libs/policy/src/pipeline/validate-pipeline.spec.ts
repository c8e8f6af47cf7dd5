import { describe, expect, it } from 'vitest';
import { catchRefusal } from '../music.fixture.js';
import { validatePipeline } from './validate-pipeline.js';

const reasonOf = (pipeline: unknown) => {
  const refusal = catchRefusal(() => validatePipeline(pipeline));
  return refusal && [refusal.code, refusal.message, refusal.opaque, refusal.cause?.split(' at ')[0]];
};
const blockFilter = (reason: string) => ['security_blocked', 'Invalid params', true, reason];
const wrapped = (levels: number, core: unknown): unknown =>
  levels === 0 ? core : { a: wrapped(levels - 1, core) };
const limits = (count: number) => Array.from({ length: count }, () => ({ $limit: 1 }));
const lookup = (members: object) => [{ $lookup: { from: 'Artist', pipeline: [], as: 'x', ...members } }];
const graph = (members: object) => [
  {
    $graphLookup: {
      from: 'A',
      startWith: '$x',
      connectFromField: 'y',
      connectToField: 'z',
      as: 'w',
      ...members,
    },
  },
];

/** What a slip is answered with, and nothing denied is. */
const slipOf = (pipeline: unknown) => {
  const refusal = catchRefusal(() => validatePipeline(pipeline));
  return refusal && !refusal.opaque && refusal.code === 'invalid_argument' ? refusal.message : refusal;
};
const SLIPS: [string, unknown, string][] = [
  ['text', 'x', 'pipeline is a list of stages, such as [{'],
  ['a number', 5, 'pipeline is a list of stages'],
  ['a stage without a list', { $match: {} }, 'pipeline is a list of stages'],
  ['nothing in it', [], 'pipeline is empty'],
  ['21 stages', limits(21), 'pipeline has 21 stages; at most 20'],
  ['61 stages with inner ones', [{ $facet: { a: limits(30), b: limits(30) } }], 'more than 60 stages'],
  [
    '3001 fields and operators',
    [
      {
        $facet: {
          a: [{ $project: Object.fromEntries(Array.from({ length: 2_998 }, (_, at) => [`f${at}`, 1])) }],
        },
      },
    ],
    'pipeline exceeds 3000 fields and operators',
  ],
  ['a stage that is no object', ['$match'], 'stage 0: a stage is an object such as {"$limit":10}'],
  ['an array as a stage', [{ $limit: 1 }, [{ $match: {} }]], 'stage 1: a stage is an object'],
  ['an empty stage', [{}], 'stage 0: the stage is empty'],
  ['two keys in one stage', [{ $match: {}, $limit: 1 }], 'stage 0: a stage has one key'],
  [
    'two keys in a nested stage',
    [{ $facet: { a: [{ $match: {}, $limit: 1 }] } }],
    'a stage 0: a stage has one key',
  ],
  ['a stage name without $', [{ match: {} }], "'match' is no stage that can be used. Did you mean '$match'?"],
  ['a misspelt stage', [{ $gruop: {} }], "Did you mean '$group'?"],
  ...'$geoNear $densify $fill $setWindowFields $documents $foo'
    .split(' ')
    .map((stage): [string, unknown, string] => [
      stage,
      [{ [stage]: {} }],
      `stage 0: '${stage}' is no stage that can be used.`,
    ]),
  [
    'an unknown stage inside $lookup',
    lookup({ pipeline: [{ $geoNear: {} }] }),
    "stage 0: '$geoNear' is no stage",
  ],
  [
    'a negative $limit',
    [{ $limit: -1 }],
    'stage 0 $limit: its value is a whole number, 1 or more. Write {"$limit":10}',
  ],
  ['a fractional $skip', [{ $skip: 0.5 }], 'a whole number'],
  ['a $limit as text', [{ $limit: '5' }], 'a whole number'],
  [
    'a $sample without size',
    [{ $sample: {} }],
    'size is a whole number, 0 or more. Write {"$sample":{"size":10}}',
  ],
  [
    'a $match that is no object',
    [{ $match: 'x' }],
    'its value is an object. Write {"$match":{"FIELD":VALUE}}',
  ],
  ['a $facet branch that is no list', [{ $facet: { a: { $match: {} } } }], "'a' is a list of stages"],
  ['a $count without name', [{ $count: '' }], 'the value is a name without $. Write {"$count":"NAME"}'],
  [
    'an $unwind of a literal',
    [{ $unwind: 'tags' }],
    'the path is a field with $ in front. Write {"$unwind":"$FIELD"}',
  ],
  ['an $unwind of a variable', [{ $unwind: '$$ROOT' }], 'the path is a field'],
  ['an unknown $lookup member', lookup({ form: 1 }), "it does not take 'form'; it takes from, localField"],
  [
    'a $lookup without members',
    [{ $lookup: {} }],
    'from is the name of a class. Write {"$lookup":{"from":"CLASS"',
  ],
  ['a $lookup from a number', lookup({ from: 5 }), 'from is the name of a class'],
  ['a $lookup without as', [{ $lookup: { from: 'A', pipeline: [] } }], 'as is a name without $'],
  ['a $lookup with half a field pair', lookup({ localField: 'a' }), 'stand together'],
  ['a $lookup that joins by nothing', [{ $lookup: { from: 'A', as: 'x' } }], 'are required, or a pipeline'],
  ['a $graphLookup without a start', graph({ startWith: undefined as never }), 'startWith missing'],
  ['a $graphLookup output that is a path', graph({ as: 'a.b' }), 'as is one name, no path'],
  ['a $unionWith of two classes', [{ $unionWith: { coll: 'A', from: 'B' } }], 'it names one class'],
  ['a $unionWith of none', [{ $unionWith: {} }], 'coll is the name of a class'],
  ['a $group without key', [{ $group: { n: { $sum: 1 } } }], '_id is missing'],
  ['a $group of bare fields', [{ $group: { _id: null, n: '$likes' } }], "'n' is no accumulator such as"],
  [
    'a $sort by a word',
    [{ $sort: { likes: 'desc' } }],
    "'likes' is sorted by 1 (ascending) or -1 (descending)",
  ],
  ['an empty $project', [{ $project: {} }], 'it is empty'],
  ['a $bucket without boundaries', [{ $bucket: { groupBy: '$a' } }], 'boundaries missing'],
  ['a $replaceRoot without a root', [{ $replaceRoot: {} }], 'newRoot missing'],
];

/** What is refused without a word, each in a pipeline of its own. */
const FORBIDDEN: [string, object][] = [
  ...'$where $function $accumulator $out $merge $collMod $jsonSchema $_internalX'
    .split(' ')
    .map((name): [string, object] => [name, { [name]: 'x' }]),
  ...'$search $searchMeta $listSearchIndexes $vectorSearch $rankFusion $currentOp $indexStats $collStats $listSessions'
    .split(' ')
    .map((name): [string, object] => [name, { [name]: {} }]),
  ['$changeStream', { $changeStream: {} }],
  ['$planCacheStats', { $planCacheStats: {} }],
  ['a system collection', { $lookup: { from: 'system.users', pipeline: [], as: 'x' } }],
  ['a join table', { $unionWith: '_Join:users:_Role' }],
  ['another database', { $lookup: { from: { db: 'admin', coll: 'x' } } }],
  ['an internal class', { $graphLookup: { from: '_SCHEMA' } }],
  ['an internal column', { $match: { _rperm: 1 } }],
  ['a reference to one', { $project: { x: '$_hashed_password' } }],
  ['one by its bare name', { $lookup: { from: 'A', localField: '_rperm' } }],
  ['one that is taken out', { $unset: ['_hashed_password'] }],
  ['one that is counted into', { $count: '_rperm' }],
  ['a system variable', { $project: { x: '$$USER_ROLES' } }],
  ['a pattern that stalls', { $match: { a: { $regex: '(a+)+' } } }],
];

describe('validatePipeline: structure', () => {
  it.each<[string, unknown, string]>([
    ['a class instance as a value', [{ $match: { a: /x/ } }], 'invalid_value'],
    ['a value that JSON cannot say', [{ $match: { a: undefined } }], 'invalid_value'],
    ['a type of the driver’s own', [{ $match: { a: { _bsontype: 'Code', code: '1' } } }], 'invalid_key'],
    ['the prototype as a key', [{ $match: JSON.parse('{"__proto__":{"a":1}}') }], 'invalid_key'],
  ])('refuses %s', (_, pipeline, reason) => {
    expect(reasonOf(pipeline)).toEqual(blockFilter(reason));
  });

  it.each(SLIPS)('says what is wrong with %s', (_, pipeline, text) => {
    expect(slipOf(JSON.parse(JSON.stringify(pipeline)))).toContain(text);
  });

  it.each(FORBIDDEN)('says nothing about %s, in any position', (_, stage) => {
    const places = [
      [stage],
      [{ $facet: { a: [stage] } }],
      [{ $lookup: { from: 'A', as: 'x', pipeline: [stage] } }],
      [{ $facet: { a: [{ $unionWith: { coll: 'A', pipeline: [{ $limit: 1 }, stage] } }] } }],
    ];
    expect(places.filter((pipeline) => reasonOf(pipeline)?.[2] !== true)).toEqual([]);
  });

  it.each(FORBIDDEN)('says nothing of a mistake beside %s', (_, stage) => {
    const slips = [
      [stage, 'x'],
      ['x', stage],
      [{ $limit: 'x' }, stage],
      [{ ...stage, $limit: 1 }],
      [{ $limit: 1, ...stage }],
      [{ $nope: 1 }, stage],
      [...limits(30), stage],
      [{ $lookup: { pipeline: [stage] } }],
      [{ $facet: { a: [stage, {}] } }],
      [{ $facet: { a: stage } }],
      stage,
    ];
    expect(slips.filter((pipeline) => reasonOf(pipeline)?.[2] !== true)).toEqual([]);
  });

  it.each<[string, unknown]>([
    ['20 stages', limits(20)],
    ['60 stages with those of sub-pipelines', [{ $facet: { a: limits(30), b: limits(29) } }]],
    ['$facet and $sample', [{ $facet: { a: [{ $sample: { size: 3 } }] } }]],
    ['an empty sub-pipeline', lookup({})],
    ['$regexMatch outside $expr', [{ $project: { x: { $regexMatch: { input: '$title', regex: '^a' } } } }]],
    ['$expr with comparisons', [{ $match: { $expr: { $gt: ['$a', '$b'] } } }]],
    [
      'variables bound by let',
      lookup({ let: { id: '$artist' }, pipeline: [{ $match: { $expr: { $eq: ['$x', '$$id'] } } }] }),
    ],
    ['a literal', [{ $project: { x: { $literal: 'plain' } } }]],
    ['field names like token and password_hint', [{ $match: { token: 1, password_hint: 2 } }]],
    ['a Date object', [{ $match: { createdAt: { $gt: new Date(0) } } }]],
  ])('passes %s', (_, pipeline) => {
    expect(validatePipeline(pipeline)).toBe(pipeline);
  });

  it('passes 18 objects around one inside a stage and refuses 19', () => {
    expect(reasonOf([{ $match: wrapped(18, { b: 1 }) }])).toBeNull();
    expect(reasonOf([{ $match: wrapped(19, { b: 1 }) }])).toEqual(blockFilter('max_depth_exceeded'));
  });
});

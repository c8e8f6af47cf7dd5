import { describe, expect, it } from 'vitest';
import { INTERNAL_FIELDS } from '../model/internal-fields.js';
import { refusalOf } from '../music.fixture.js';
import { validatePipeline } from './validate-pipeline.js';

const reasonOf = (pipeline: unknown) => {
  const refusal = refusalOf(() => validatePipeline(pipeline));
  return refusal && [refusal.code, refusal.message, refusal.opaque, refusal.cause?.split(' at ')[0]];
};
const blocked = (reason: string) => ['security_blocked', 'Invalid params', true, reason];
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

describe('validatePipeline: structure', () => {
  it.each<[string, unknown, string]>([
    ['no array', { $match: {} }, 'invalid_type'],
    ['nothing in it', [], 'empty_pipeline'],
    ['21 stages', limits(21), 'too_many_stages'],
    [
      '61 stages with those of sub-pipelines',
      [{ $facet: { a: limits(30), b: limits(30) } }],
      'too_many_stages',
    ],
    ['a stage that is no object', ['$match'], 'invalid_stage_type'],
    ['an array as a stage', [[{ $match: {} }]], 'invalid_stage_type'],
    ['an empty stage', [{}], 'invalid_stage_type'],
    ['two keys in one stage', [{ $match: {}, $out: 'x' }], 'invalid_stage_type'],
    ['a stage name without $', [{ match: {} }], 'unknown_stage'],
    ...'$geoNear $densify $fill $setWindowFields $documents $indexStats $collStats $currentOp $listSessions $changeStream'
      .split(' ')
      .map((stage): [string, unknown, string] => [stage, [{ [stage]: {} }], 'unknown_stage']),
    ...'$search $searchMeta $listSearchIndexes $vectorSearch $rankFusion'
      .split(' ')
      .map((stage): [string, unknown, string] => [stage, [{ [stage]: {} }], 'stage0_only_atlas_stage']),
    ['an unknown stage inside $facet', [{ $facet: { a: [{ $collStats: {} }] } }], 'unknown_stage'],
    ['an unknown stage inside $lookup', lookup({ pipeline: [{ $geoNear: {} }] }), 'unknown_stage'],
    [
      'an unknown stage inside $unionWith',
      [{ $unionWith: { coll: 'A', pipeline: [{ $search: {} }] } }],
      'stage0_only_atlas_stage',
    ],
    ['two keys in a nested stage', [{ $facet: { a: [{ $match: {}, $limit: 1 }] } }], 'invalid_stage_type'],
    ['a negative $limit', [{ $limit: -1 }], 'invalid_stage_value'],
    ['a fractional $skip', [{ $skip: 0.5 }], 'invalid_stage_value'],
    ['a $limit as text', [{ $limit: '5' }], 'invalid_stage_value'],
    ['a $sample without size', [{ $sample: {} }], 'invalid_stage_value'],
    ['a $match that is no object', [{ $match: 'x' }], 'invalid_stage_value'],
    ['a $facet branch that is no pipeline', [{ $facet: { a: { $match: {} } } }], 'invalid_stage_value'],
    ['a $count without name', [{ $count: '' }], 'invalid_stage_value'],
    ['an $unwind of a literal', [{ $unwind: 'tags' }], 'invalid_stage_value'],
    ['an $unwind of a variable', [{ $unwind: '$$ROOT' }], 'invalid_stage_value'],
    ['an unknown $lookup member', lookup({ _internal: 1 }), 'invalid_stage_value'],
    ['a $lookup with half a field pair', lookup({ localField: 'a' }), 'invalid_stage_value'],
    ['a $lookup that joins by nothing', [{ $lookup: { from: 'A', as: 'x' } }], 'invalid_stage_value'],
    ['a $graphLookup output that is a path', graph({ as: 'a.b' }), 'invalid_stage_value'],
    ['a $unionWith of two classes', [{ $unionWith: { coll: 'A', from: 'B' } }], 'invalid_stage_value'],
    ['a class instance as a value', [{ $match: { a: /x/ } }], 'invalid_value'],
    ['a value that JSON cannot say', [{ $match: { a: undefined } }], 'invalid_value'],
    ['the prototype as a key', [{ $match: JSON.parse('{"__proto__":{"a":1}}') }], 'invalid_key'],
  ])('refuses %s', (_, pipeline, reason) => {
    expect(reasonOf(pipeline)).toEqual(blocked(reason));
  });

  it.each<[string, unknown]>([
    ['20 stages', limits(20)],
    ['60 stages with those of sub-pipelines', [{ $facet: { a: limits(30), b: limits(29) } }]],
    ['$limit 0', [{ $limit: 0 }]],
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
    expect(reasonOf([{ $match: wrapped(19, { b: 1 }) }])).toEqual(blocked('max_depth_exceeded'));
  });
});

describe('validatePipeline: denied at any depth', () => {
  const denied =
    '$where $function $accumulator $out $merge $collMod $createIndex $dropIndex $planCacheSetFilter $planCacheClear'.split(
      ' ',
    );

  it.each(denied)('refuses %s as a stage and deep inside one', (operator) => {
    expect(reasonOf([{ [operator]: 'x' }])).toEqual(blocked('denied_operator'));
    for (const pipeline of [
      [{ $project: { a: { b: [{ [operator]: 'x' }] } } }],
      [{ $facet: { a: [{ [operator]: 'x' }] } }],
      lookup({ pipeline: [{ [operator]: 'x' }] }),
    ]) {
      expect(reasonOf(pipeline)).toEqual(blocked('nested_denied_operator'));
    }
  });

  it.each<[string, unknown]>([
    ['schema matching', [{ $match: { $jsonSchema: { patternProperties: { '^_h': { pattern: 'a' } } } } }]],
    ['the database engine’s own operators', [{ $match: { $_internalExprEq: 1 } }]],
  ])('refuses %s', (_, pipeline) => {
    expect(reasonOf(pipeline)).toEqual(blocked('nested_denied_operator'));
  });

  it.each(
    '$regexMatch $regexFind $regexFindAll $substr $substrBytes $substrCP $indexOfBytes $indexOfCP $strLenBytes $strLenCP $strcasecmp'.split(
      ' ',
    ),
  )('refuses %s inside $expr', (operator) => {
    const use = { [operator]: { input: '$title', regex: 'a' } };
    expect(reasonOf([{ $match: { $expr: { $and: [{ $gt: [use, 1] }] } } }])).toEqual(
      blocked('forensic_operator_in_expr'),
    );
    expect(reasonOf([{ $project: { x: use } }])).toBeNull();
  });

  it.each<[string, unknown, string]>([
    ['513 bytes of $regex', [{ $match: { a: { $regex: 'é'.repeat(257) } } }], 'regex_pattern_too_long'],
    [
      '513 bytes in $regexFind',
      [{ $project: { a: { $regexFind: { input: '$t', regex: 'a'.repeat(513) } } } }],
      'regex_pattern_too_long',
    ],
    ['a nested quantifier in $match', [{ $match: { a: { $not: { $regex: '(a+)+' } } } }], 'regex_redos'],
    [
      'a nested quantifier in an expression',
      [{ $project: { a: { $regexMatch: { input: '$t', regex: '(a|a)*' } } } }],
      'regex_redos',
    ],
    [
      'a nested quantifier that blanks hide',
      [{ $match: { a: { $regex: '(ab{1,}) {2,}', $options: 'x' } } }],
      'regex_redos',
    ],
    [
      'a pattern taken from a column',
      [{ $project: { a: { $regexMatch: { input: '$t', regex: '$p' } } } }],
      'invalid_regex',
    ],
    [
      'a pattern that is computed',
      [{ $project: { a: { $regexMatch: { input: '$t', regex: { $concat: ['a', '+'] } } } } }],
      'invalid_regex',
    ],
    ['$regex that is no text', [{ $match: { a: { $regex: 1 } } }], 'invalid_regex'],
    ['a system variable that is not listed', [{ $project: { a: '$$USER_ROLES' } }], 'denied_system_variable'],
    [
      'a computed field name',
      [{ $project: { a: { $getField: { $concat: ['_rp', 'erm'] } } } }],
      'denied_field_ref_in_expr',
    ],
    [
      'a field name taken from data',
      [{ $project: { a: { $getField: { field: '$key', input: '$$ROOT' } } } }],
      'denied_field_ref_in_expr',
    ],
  ])('refuses %s', (_, pipeline, reason) => {
    expect(reasonOf(pipeline)).toEqual(blocked(reason));
  });

  it.each([
    '_Join:users:_Role',
    'system.users',
    '_Hooks',
    '_SCHEMA',
    '_PushStatus',
    '',
    'a b',
    { db: 'admin', coll: 'x' },
    5,
    null,
  ])('refuses %j as a join target', (from) => {
    for (const pipeline of [
      lookup({ from }),
      graph({ from }),
      [{ $unionWith: { coll: from } }],
      [{ $facet: { a: [{ $unionWith: { coll: 'A', pipeline: lookup({ from }) } }] } }],
    ]) {
      expect(reasonOf(pipeline)).toEqual(blocked('denied_internal_collection'));
    }
  });

  it.each(['_User', 'User', '_Role', '_Installation', '_Session'])(
    'lets the gate decide about %s',
    (from) => {
      expect(reasonOf(lookup({ from }))).toBeNull();
    },
  );
});

describe('validatePipeline: internal columns', () => {
  const names = [...INTERNAL_FIELDS, '_auth_data_facebook', 'auth_data', 'Session_Token'];
  const positions: readonly [string, (name: string) => unknown][] = [
    ['a $match key', (name) => [{ $match: { [name]: 1 } }]],
    ['a dotted key', (name) => [{ $match: { [`owner.${name}`]: 1, x: 1 } }]],
    ['the root of a dotted key', (name) => [{ $sort: { [`${name}.x`]: 1 } }]],
    ['an output name', (name) => [{ $group: { _id: null, [name]: { $sum: 1 } } }]],
    ['an inclusion', (name) => [{ $project: { [name]: 1 } }]],
    ['a nested inclusion', (name) => [{ $project: { owner: { [name]: 1 } } }]],
    ['a reference', (name) => [{ $group: { _id: `$${name}` } }]],
    ['a reference through a document', (name) => [{ $project: { x: `$owner.${name}` } }]],
    ['a reference below it', (name) => [{ $project: { x: `$${name}.x` } }]],
    ['$$ROOT', (name) => [{ $project: { x: `$$ROOT.${name}` } }]],
    ['$$CURRENT', (name) => [{ $project: { x: `$$CURRENT.${name}` } }]],
    ['a variable', (name) => [{ $project: { x: { $map: { input: '$l', in: `$$this.${name}` } } } }]],
    ['$getField', (name) => [{ $project: { x: { $getField: name } } }]],
    [
      '$getField over a document',
      (name) => [{ $project: { x: { $getField: { field: { $literal: name }, input: '$$ROOT' } } } }],
    ],
    ['$setField', (name) => [{ $project: { x: { $setField: { field: name, input: '$$ROOT', value: 1 } } } }]],
    ['$unsetField', (name) => [{ $project: { x: { $unsetField: { field: name, input: '$$ROOT' } } } }]],
    ['an array element', (name) => [{ $project: { x: [1, `$${name}`] } }]],
    ['a literal', (name) => [{ $project: { x: { $literal: [`$${name}`] } } }]],
    ['$unset', (name) => [{ $unset: ['title', name] }]],
    ['$count', (name) => [{ $count: name }]],
    ['$unwind', (name) => [{ $unwind: `$${name}` }]],
    ['includeArrayIndex', (name) => [{ $unwind: { path: '$x', includeArrayIndex: name } }]],
    ['localField', (name) => lookup({ localField: name, foreignField: 'a' })],
    ['foreignField', (name) => lookup({ localField: 'a', foreignField: `x.${name}` })],
    ['as', (name) => lookup({ as: name })],
    ['let', (name) => lookup({ let: { v: `$${name}` } })],
    ['connectFromField', (name) => graph({ connectFromField: name })],
    ['connectToField', (name) => graph({ connectToField: name })],
    ['depthField', (name) => graph({ depthField: name })],
    ['restrictSearchWithMatch', (name) => graph({ restrictSearchWithMatch: { [name]: 1 } })],
    ['a $facet branch', (name) => [{ $facet: { a: [{ $sortByCount: `$${name}` }] } }]],
    ['a sub-pipeline', (name) => lookup({ pipeline: [{ $match: { $or: [{ [name]: 1 }] } }] })],
    ['a union', (name) => [{ $unionWith: { coll: 'A', pipeline: [{ $project: { x: `$${name}` } }] } }]],
    ['$expr', (name) => [{ $match: { $expr: { $eq: [`$${name}`, 1] } } }]],
    ['sortBy', (name) => [{ $group: { _id: 1, x: { $top: { sortBy: { [name]: 1 }, output: '$a' } } } }]],
  ];

  it.each(positions)('refuses every internal name in %s', (_, build) => {
    for (const name of names) {
      expect([name, refusalOf(() => validatePipeline(build(name)))?.code]).toEqual([
        name,
        'security_blocked',
      ]);
    }
  });
});

import { describe, expect, it } from 'vitest';
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
    ['a type of the driver’s own', [{ $match: { a: { _bsontype: 'Code', code: '1' } } }], 'invalid_key'],
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

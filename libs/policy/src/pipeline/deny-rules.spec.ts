import { describe, expect, it } from 'vitest';
import { catchRefusal } from '../music.fixture.js';
import { validatePipeline } from './validate-pipeline.js';

const reasonOf = (pipeline: unknown) => {
  const refusal = catchRefusal(() => validatePipeline(pipeline));
  return refusal && [refusal.code, refusal.message, refusal.opaque, refusal.cause?.split(' at ')[0]];
};
const blockFilter = (reason: string) => ['security_blocked', 'Invalid params', true, reason];
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

describe('validatePipeline: denied at any depth', () => {
  const denied =
    '$where $function $accumulator $out $merge $collMod $createIndex $dropIndex $planCacheSetFilter $planCacheClear'.split(
      ' ',
    );

  it.each(denied)('refuses %s as a stage and deep inside one', (operator) => {
    expect(reasonOf([{ [operator]: 'x' }])).toEqual(blockFilter('denied_operator'));
    for (const pipeline of [
      [{ $project: { a: { b: [{ [operator]: 'x' }] } } }],
      [{ $facet: { a: [{ [operator]: 'x' }] } }],
      lookup({ pipeline: [{ [operator]: 'x' }] }),
    ]) {
      expect(reasonOf(pipeline)).toEqual(blockFilter('nested_denied_operator'));
    }
  });

  it.each<[string, unknown]>([
    ['schema matching', [{ $match: { $jsonSchema: { patternProperties: { '^_h': { pattern: 'a' } } } } }]],
    ['the database engine’s own operators', [{ $match: { $_internalExprEq: 1 } }]],
  ])('refuses %s', (_, pipeline) => {
    expect(reasonOf(pipeline)).toEqual(blockFilter('nested_denied_operator'));
  });

  it.each([
    'indexKey',
    'recordId',
    'sortKey',
    'randVal',
    'searchScore',
    'geoNearPoint',
    '$title',
    1,
    { a: 1 },
  ])(
    'refuses the metadata %j in a stage, a sort and a filter, and permits the score of a text search',
    (name) => {
      const places = (meta: unknown) => [
        [{ $project: { x: { $meta: meta } } }],
        [{ $sort: { x: { $meta: meta } } }],
        [{ $group: { _id: { $meta: meta } } }],
        [{ $facet: { a: [{ $addFields: { x: { y: [{ $meta: meta }] } } }] } }],
      ];
      for (const pipeline of places(name))
        expect(reasonOf(pipeline)).toEqual(blockFilter('nested_denied_operator'));
      for (const pipeline of places('textScore')) expect(reasonOf(pipeline)).toBeNull();
    },
  );

  it.each(
    '$regexMatch $regexFind $regexFindAll $substr $substrBytes $substrCP $indexOfBytes $indexOfCP $strLenBytes $strLenCP $strcasecmp'.split(
      ' ',
    ),
  )('refuses %s inside $expr', (operator) => {
    const use = { [operator]: { input: '$title', regex: 'a' } };
    expect(reasonOf([{ $match: { $expr: { $and: [{ $gt: [use, 1] }] } } }])).toEqual(
      blockFilter('forensic_operator_in_expr'),
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
    expect(reasonOf(pipeline)).toEqual(blockFilter(reason));
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
  ])('refuses %j as a join target', (from) => {
    for (const pipeline of [
      lookup({ from }),
      graph({ from }),
      [{ $unionWith: { coll: from } }],
      [{ $facet: { a: [{ $unionWith: { coll: 'A', pipeline: lookup({ from }) } }] } }],
    ]) {
      expect(reasonOf(pipeline)).toEqual(blockFilter('denied_internal_collection'));
    }
  });

  it.each(['_User', 'User', '_Role', '_Installation', '_Session'])(
    'lets the gate decide about %s',
    (from) => {
      expect(reasonOf(lookup({ from }))).toBeNull();
    },
  );
});

import { refusals } from '#core';
import { describe, expect, it } from 'vitest';
import { music, catchRefusal, shopReach } from '../music.fixture.js';
import { validatePipeline } from './validate-pipeline.js';
import { walkPipeline } from './walk-pipeline.js';

const walk = (pipeline: unknown) => walkPipeline(validatePipeline(pipeline), music('Song'), shopReach);
const deniedIn = (pipeline: unknown) => {
  const refusal = catchRefusal(() => walk(pipeline));
  return refusal && [refusal.code, refusal.details?.kind, refusal.details?.denied_field];
};
const deny = (root: string) => ['access_denied', 'field_denied', root];
const byGenre = { $group: { _id: '$genre', plays: { $sum: '$playCount' } } };

describe('walkPipeline: columns outside the allowlist', () => {
  it.each<[string, unknown]>([
    ['$match', [{ $match: { royalty: 1 } }]],
    ['$match below a path', [{ $match: { 'royalty.x': 1 } }]],
    ['$match branches', [{ $match: { $or: [{ title: 'x' }, { $nor: [{ $and: [{ royalty: 1 }] }] }] } }]],
    ['$match $expr', [{ $match: { $expr: { $gt: ['$royalty', 1] } } }]],
    ['$project inclusion', [{ $project: { royalty: 1 } }]],
    ['$project true', [{ $project: { royalty: true } }]],
    ['$project with another number', [{ $project: { royalty: 2 } }]],
    ['$project with a negative number', [{ $project: { royalty: -0.5 } }]],
    ['nested inclusion', [{ $project: { royalty: { amount: 1 } } }]],
    ['nested inclusion beside an exclusion', [{ $project: { title: 1, royalty: { a: 0, b: { c: 1 } } } }]],
    ['dotted inclusion', [{ $project: { 'royalty.amount': 1 } }]],
    ['a computed value', [{ $project: { x: '$royalty' } }]],
    ['a computed value in a nested object', [{ $project: { x: { y: { z: '$royalty.amount' } } } }]],
    ['a computed array', [{ $project: { x: ['$title', '$royalty'] } }]],
    ['$addFields', [{ $addFields: { x: { $add: ['$royalty', 1] } } }]],
    ['$set', [{ $set: { x: { y: '$royalty' } } }]],
    ['$group key', [{ $group: { _id: '$royalty' } }]],
    ['$group key of an object', [{ $group: { _id: { r: '$royalty' } } }]],
    ['$group accumulator', [{ $group: { _id: null, x: { $max: '$royalty' } } }]],
    ['$group sortBy', [{ $group: { _id: null, x: { $top: { sortBy: { royalty: 1 }, output: '$title' } } } }]],
    ['$bucket', [{ $bucket: { groupBy: '$royalty', boundaries: [0, 1] } }]],
    [
      '$bucket output',
      [{ $bucket: { groupBy: '$playCount', boundaries: [0, 1], output: { x: { $push: '$royalty' } } } }],
    ],
    ['$bucketAuto', [{ $bucketAuto: { groupBy: { $add: ['$royalty', 1] }, buckets: 2 } }]],
    ['$sortByCount', [{ $sortByCount: '$royalty' }]],
    ['$sort', [{ $sort: { royalty: 1 } }]],
    ['$unwind', [{ $unwind: '$royalty' }]],
    ['$unwind with options', [{ $unwind: { path: '$royalty.list' } }]],
    ['$replaceRoot', [{ $replaceRoot: { newRoot: '$royalty' } }]],
    ['$replaceRoot of an object', [{ $replaceRoot: { newRoot: { r: '$royalty' } } }]],
    ['$replaceWith text', [{ $replaceWith: '$royalty' }]],
    ['$redact', [{ $redact: { $cond: [{ $gt: ['$royalty', 1] }, '$$KEEP', '$$PRUNE'] } }]],
    ['$$ROOT', [{ $project: { x: '$$ROOT.royalty' } }]],
    ['$$CURRENT', [{ $project: { x: '$$CURRENT.royalty' } }]],
    [
      'a variable that holds the document',
      [{ $project: { x: { $let: { vars: { d: '$$ROOT' }, in: '$$d.royalty' } } } }],
    ],
    [
      'a variable of a variable',
      [
        {
          $project: {
            x: { $let: { vars: { d: '$$ROOT' }, in: { $let: { vars: { e: '$$d' }, in: '$$e.royalty' } } } },
          },
        },
      ],
    ],
    [
      '$map over the document',
      [{ $project: { x: { $map: { input: ['$$ROOT'], as: 'd', in: '$$d.royalty' } } } }],
    ],
    [
      '$filter over the document',
      [{ $project: { x: { $filter: { input: ['$$ROOT'], cond: { $gt: ['$$this.royalty', 1] } } } } }],
    ],
    [
      '$reduce over the document',
      [{ $project: { x: { $reduce: { input: ['$$ROOT'], initialValue: 0, in: '$$this.royalty' } } } }],
    ],
    [
      '$reduce that starts with the document',
      [{ $project: { x: { $reduce: { input: [1], initialValue: '$$ROOT', in: '$$value.royalty' } } } }],
    ],
    ['$getField', [{ $project: { x: { $getField: 'royalty' } } }]],
    [
      '$getField of the document',
      [{ $project: { x: { $getField: { field: { $literal: 'royalty' }, input: '$$ROOT' } } } }],
    ],
    [
      '$getField of a merged document',
      [{ $project: { x: { $getField: { field: 'royalty', input: { $mergeObjects: ['$$ROOT', {}] } } } } }],
    ],
    ['a reference written as a literal', [{ $project: { x: { $literal: '$royalty' } } }]],
    [
      '$lookup localField',
      [{ $lookup: { from: 'Artist', localField: 'royalty', foreignField: 'name', as: 'x' } }],
    ],
    ['$lookup let', [{ $lookup: { from: 'Artist', let: { r: '$royalty' }, pipeline: [], as: 'x' } }]],
    [
      '$graphLookup startWith',
      [
        {
          $graphLookup: {
            from: 'Artist',
            startWith: '$royalty',
            connectFromField: 'mentor',
            connectToField: 'objectId',
            as: 'x',
          },
        },
      ],
    ],
    ['a $facet branch', [{ $facet: { a: [{ $sort: { royalty: 1 } }] } }]],
    [
      'a variable of the joining class',
      [
        {
          $lookup: {
            from: 'Artist',
            let: { d: '$$ROOT' },
            pipeline: [{ $project: { x: '$$d.royalty' } }],
            as: 'x',
          },
        },
      ],
    ],
    ['after an exclusion, which hides nothing else', [{ $project: { title: 0 } }, { $sort: { royalty: 1 } }]],
    ['after $unset', [{ $unset: 'title' }, { $group: { _id: '$royalty' } }]],
  ])('refuses %s', (_, pipeline) => {
    expect(deniedIn(pipeline)).toEqual(deny('royalty'));
  });

  it('refuses a spelling of it, and names it as it was written', () => {
    expect(deniedIn([{ $project: { x: '$Royalty' } }])).toEqual(deny('Royalty'));
  });

  it.each<[string, unknown]>([
    ['foreignField', [{ $lookup: { from: 'Artist', localField: 'title', foreignField: 'fee', as: 'x' } }]],
    ['a $lookup pipeline', [{ $lookup: { from: 'Artist', pipeline: [{ $match: { fee: 1 } }], as: 'x' } }]],
    [
      'connectFromField',
      [
        {
          $graphLookup: {
            from: 'Artist',
            startWith: '$title',
            connectFromField: 'fee',
            connectToField: 'name',
            as: 'x',
          },
        },
      ],
    ],
    [
      'connectToField',
      [
        {
          $graphLookup: {
            from: 'Artist',
            startWith: '$title',
            connectFromField: 'name',
            connectToField: 'fee',
            as: 'x',
          },
        },
      ],
    ],
    [
      'restrictSearchWithMatch',
      [
        {
          $graphLookup: {
            from: 'Artist',
            startWith: '$title',
            connectFromField: 'name',
            connectToField: 'name',
            restrictSearchWithMatch: { fee: 1 },
            as: 'x',
          },
        },
      ],
    ],
    ['a union', [{ $unionWith: { coll: 'Artist', pipeline: [{ $group: { _id: '$fee' } }] } }]],
    [
      'a join inside a union inside $facet',
      [
        {
          $facet: {
            a: [
              {
                $unionWith: {
                  coll: 'Note',
                  pipeline: [{ $lookup: { from: 'Artist', pipeline: [{ $sort: { fee: 1 } }], as: 'x' } }],
                },
              },
            ],
          },
        },
      ],
    ],
  ])('judges %s by the joined class', (_, pipeline) => {
    expect(deniedIn(pipeline)).toEqual(deny('fee'));
  });

  it('judges union rows by both classes while they are whole documents, by their own afterwards', () => {
    const named = { $unionWith: { coll: 'Artist', pipeline: [{ $sort: { name: 1 } }] } };
    expect(deniedIn([named])).toEqual(deny('name'));
    expect(deniedIn([byGenre, named])).toBeNull();
  });

  it('refuses text search, whose index may cover hidden columns', () => {
    expect(deniedIn([{ $match: { $text: { $search: 'x' } } }])).toEqual(deny('$text'));
  });

  it('refuses expressions in the filter of a graph search', () => {
    const restrictSearchWithMatch = { $or: [{ name: 1 }, { $expr: { $eq: ['$name', 'x'] } }] };
    const join = {
      from: 'Artist',
      startWith: '$title',
      connectFromField: 'name',
      connectToField: 'name',
      as: 'x',
    };
    expect(catchRefusal(() => walk([{ $graphLookup: { ...join, restrictSearchWithMatch } }]))).toMatchObject({
      code: 'security_blocked',
    });
  });

  it.each(['CURRENT', 'ROOT', 'Big', ''])('refuses to bind the variable %j', (name) => {
    for (const expression of [
      { $let: { vars: { [name]: '$meta' }, in: '$title' } },
      { $map: { input: '$tags', as: name, in: 1 } },
    ]) {
      expect(catchRefusal(() => walk([{ $project: { x: expression } }]))).toMatchObject({
        code: 'security_blocked',
      });
    }
  });

  it('refuses a variable that nothing bound', () => {
    expect(catchRefusal(() => walk([{ $project: { x: '$$nobody.title' } }]))).toMatchObject({
      code: 'invalid_argument',
      message: expect.stringContaining('$$nobody'),
    });
  });

  it('gives the logical name when a storage column is referenced', () => {
    expect(catchRefusal(() => walk([{ $group: { _id: '$_p_artist' } }]))?.details).toMatchObject({
      kind: 'storage_form_field_ref',
      suggested_rewrite: '$artist',
    });
  });

  it('explains which fields are allowed', () => {
    const refusal = catchRefusal(() => walk([{ $sort: { royalty: 1 } }]));
    expect(refusal?.message).toContain('outside agent_fields allowlist');
    expect(refusal?.details?.allowed_fields).toContain('title');
  });
});

describe('walkPipeline: pointers into a withheld class', () => {
  const refusal = refusals.hiddenClass('Artist');
  const access = { ...music('Song'), withheld: new Map([['artist', { className: 'Artist', refusal }]]) };
  const reach = { reach: () => access };
  const judgeClass = (className: string) => (className === 'Artist' ? refusal : null);
  const judged = (pipeline: unknown) =>
    catchRefusal(() => walkPipeline(validatePipeline(pipeline), access, reach, { judgeClass }));
  const graph = {
    from: 'Song',
    startWith: '$title',
    connectFromField: 'title',
    connectToField: 'title',
    as: 'x',
  };
  const lookup = { from: 'Song', localField: 'title', foreignField: 'title', as: 'x' };

  it.each<[string, object]>([
    ['$match', { $match: { artist: 'a1' } }],
    ['$match with a pattern', { $match: { artist: { $regex: '^Artist.a' } } }],
    ['$match in a branch', { $match: { $or: [{ title: 'x' }, { artist: { $gt: 'Artist$a' } }] } }],
    ['localField', { $lookup: { ...lookup, localField: 'artist' } }],
    ['foreignField', { $lookup: { ...lookup, foreignField: 'artist' } }],
    ['connectFromField', { $graphLookup: { ...graph, connectFromField: 'artist' } }],
    ['connectToField', { $graphLookup: { ...graph, connectToField: 'artist' } }],
    ['restrictSearchWithMatch', { $graphLookup: { ...graph, restrictSearchWithMatch: { artist: 'a1' } } }],
  ])('refuses to compare them: %s', (_, stage) => {
    for (const pipeline of [[stage], [{ $sort: { title: 1 } }, stage], [{ $facet: { x: [stage] } }]])
      expect(judged(pipeline)).toEqual(refusal);
  });

  it.each<[string, object]>([
    ['presence', { $match: { artist: { $exists: true } } }],
    ['$project', { $project: { artist: 1 } }],
    ['$group', { $group: { _id: '$artist' } }],
    ['$sortByCount', { $sortByCount: '$artist' }],
    ['$addFields', { $addFields: { x: '$artist' } }],
  ])('lets what is seen of them be used: %s', (_, stage) => {
    expect(judged([stage])).toBeNull();
  });
});

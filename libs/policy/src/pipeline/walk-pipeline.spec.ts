import { describe, expect, it } from 'vitest';
import { music, refusalOf, shopReach } from '../music.fixture.js';
import type { Pipeline } from './stages.js';
import { validatePipeline } from './validate-pipeline.js';
import { walkPipeline, type WalkOptions } from './walk-pipeline.js';

const walk = (pipeline: unknown, className = 'Song', options?: WalkOptions) =>
  walkPipeline(validatePipeline(pipeline), music(className), shopReach, options);
const deniedIn = (pipeline: unknown) => {
  const refusal = refusalOf(() => walk(pipeline));
  return refusal && [refusal.code, refusal.details?.kind, refusal.details?.denied_field];
};
const denied = (root: string) => ['access_denied', 'field_denied', root];
const iso = (text: string) => ({ __type: 'Date', iso: text });
const byGenre = { $group: { _id: '$genre', plays: { $sum: '$playCount' } } };

describe('walkPipeline: columns outside the allowlist', () => {
  it.each<[string, unknown]>([
    ['$match', [{ $match: { royalty: 1 } }]],
    ['$match below a path', [{ $match: { 'royalty.x': 1 } }]],
    ['$match branches', [{ $match: { $or: [{ title: 1 }, { $nor: [{ $and: [{ royalty: 1 }] }] }] } }]],
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
    ['a spelling of it', [{ $project: { x: '$Royalty' } }]],
    ['after an exclusion, which hides nothing else', [{ $project: { title: 0 } }, { $sort: { royalty: 1 } }]],
    ['after $unset', [{ $unset: 'title' }, { $group: { _id: '$royalty' } }]],
  ])('refuses %s', (_, pipeline) => {
    expect(deniedIn(pipeline)).toEqual(denied('royalty'));
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
    expect(deniedIn(pipeline)).toEqual(denied('fee'));
  });

  it('judges union rows by both classes while they are whole documents, by their own afterwards', () => {
    const named = { $unionWith: { coll: 'Artist', pipeline: [{ $sort: { name: 1 } }] } };
    expect(deniedIn([named])).toEqual(denied('name'));
    expect(deniedIn([byGenre, named])).toBeNull();
  });

  it('refuses text search, whose index may cover hidden columns', () => {
    expect(deniedIn([{ $match: { $text: { $search: 'x' } } }])).toEqual(denied('$text'));
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
    expect(refusalOf(() => walk([{ $graphLookup: { ...join, restrictSearchWithMatch } }]))).toMatchObject({
      code: 'security_blocked',
    });
  });

  it.each(['CURRENT', 'ROOT', 'Big', ''])('refuses to bind the variable %j', (name) => {
    for (const expression of [
      { $let: { vars: { [name]: '$meta' }, in: '$title' } },
      { $map: { input: '$tags', as: name, in: 1 } },
    ]) {
      expect(refusalOf(() => walk([{ $project: { x: expression } }]))).toMatchObject({
        code: 'security_blocked',
      });
    }
  });

  it('refuses a variable that nothing bound', () => {
    expect(refusalOf(() => walk([{ $project: { x: '$$nobody.title' } }]))).toMatchObject({
      code: 'invalid_argument',
      message: expect.stringContaining('$$nobody'),
    });
  });

  it('tells the logical name when a storage column is referenced', () => {
    expect(refusalOf(() => walk([{ $group: { _id: '$_p_artist' } }]))?.details).toMatchObject({
      kind: 'storage_form_field_ref',
      suggested_rewrite: '$artist',
    });
  });

  it('explains which fields are allowed', () => {
    const refusal = refusalOf(() => walk([{ $sort: { royalty: 1 } }]));
    expect(refusal?.message).toContain('outside agent_fields allowlist');
    expect(refusal?.details?.allowed_fields).toContain('title');
  });
});

describe('walkPipeline: what stages leave to name', () => {
  it.each<[string, Pipeline, Pipeline?]>([
    ['a group alias', [byGenre, { $sort: { plays: -1 } }, { $match: { _id: 'x' } }]],
    ['an added field beside the source', [{ $addFields: { x: '$title' } }, { $project: { x: 1, genre: 1 } }]],
    ['a bucket count', [{ $bucket: { groupBy: '$playCount', boundaries: [0, 1] } }, { $sort: { count: 1 } }]],
    [
      'a bucket output',
      [
        { $bucketAuto: { groupBy: '$playCount', buckets: 2, output: { n: { $sum: 1 } } } },
        { $sort: { n: 1 } },
      ],
    ],
    ['the counts of $sortByCount', [{ $sortByCount: '$genre' }, { $match: { count: { $gt: 1 } } }]],
    ['the name of $count', [{ $count: 'n' }, { $project: { n: 1 } }]],
    ['an array index', [{ $unwind: { path: '$tags', includeArrayIndex: 'at' } }, { $sort: { at: 1 } }]],
    ['facet branches', [{ $facet: { a: [{ $limit: 1 }] } }, { $project: { a: 1 } }]],
    [
      'an alias of the same name as a column',
      [{ $group: { _id: '$genre', createdAt: { $max: '$createdAt' } } }, { $sort: { createdAt: -1 } }],
    ],
    ['whole documents, since they are projected', [{ $group: { _id: '$genre', all: { $push: '$$ROOT' } } }]],
    ['exclusions of what may not be read', [{ $project: { royalty: 0 } }]],
    [
      'values of a column through variables',
      [{ $project: { x: { $map: { input: '$tags', as: 't', in: '$$t.royalty' } } } }],
    ],
    [
      'a query with operators',
      [
        {
          $match: {
            tags: { $elemMatch: { a: 1 } },
            title: { $not: { $regex: '^a' } },
            meta: { $type: 'object' },
          },
        },
      ],
    ],
  ])('lets later stages use %s, unchanged', (_, pipeline) => {
    expect(walk(pipeline)).toEqual(pipeline);
  });

  it.each<[string, unknown, string]>([
    ['columns after $group', [byGenre, { $sort: { title: 1 } }], 'title'],
    ['columns that $project left out', [{ $project: { title: 1 } }, { $sort: { genre: 1 } }], 'genre'],
    [
      'anything after $replaceRoot',
      [{ $replaceRoot: { newRoot: '$meta' } }, { $sort: { title: 1 } }],
      'title',
    ],
    ['anything after $replaceWith', [{ $replaceWith: { a: '$title' } }, { $sort: { title: 1 } }], 'title'],
    ['columns after $count', [{ $count: 'n' }, { $sort: { title: 1 } }], 'title'],
    ['columns after $facet', [{ $facet: { a: [{ $limit: 1 }] } }, { $sort: { title: 1 } }], 'title'],
    [
      'names of another facet branch',
      [{ $facet: { a: [{ $addFields: { x: 1 } }], b: [{ $sort: { x: 1 } }] } }],
      'x',
    ],
    [
      'names of a sub-pipeline',
      [{ $unionWith: { coll: 'Artist', pipeline: [{ $addFields: { x: 1 } }] } }, { $sort: { x: 1 } }],
      'x',
    ],
    ['the storage id of the source', [{ $sort: { _id: 1 } }], '_id'],
  ])('no longer lets a stage name %s', (_, pipeline, root) => {
    expect(deniedIn(pipeline)).toEqual(denied(root));
  });

  it('brings the caller’s spellings to wire names as long as they mean columns', () => {
    expect(
      walk([
        { $match: { play_count: 1, externalStatus: 'x' } },
        { $addFields: { play_share: { $divide: ['$play_count', '$$ROOT.PlayCount'] } } },
        { $unset: ['external_status', 'externalStatus'] },
        { $project: { play_count: 1, play_share: 1, genre: 0 } },
        { $sort: { play_count: -1, play_share: 1 } },
        { $unwind: '$play_count' },
      ]),
    ).toEqual([
      { $match: { playCount: 1, ExtStatus: 'x' } },
      { $addFields: { play_share: { $divide: ['$playCount', '$$ROOT.playCount'] } } },
      { $unset: ['externalStatus', 'ExtStatus'] },
      { $project: { playCount: 1, play_share: 1, genre: 0 } },
      { $sort: { playCount: -1, play_share: 1 } },
      { $unwind: '$playCount' },
    ]);
  });

  it('resolves spellings in a joined class by that class', () => {
    expect(
      walk(
        [
          {
            $lookup: {
              from: 'Note',
              let: { t: '$external_status', u: '$externalStatus' },
              pipeline: [{ $match: { $expr: { $eq: ['$due_on', '$$u'] } } }],
              as: 'notes',
            },
          },
        ],
        'Note',
      ),
    ).toEqual([
      {
        $lookup: {
          from: 'Note',
          let: { t: '$externalStatus', u: '$externalStatus' },
          pipeline: [{ $match: { $expr: { $eq: ['$dueOn', '$$u'] } } }],
          as: 'notes',
        },
      },
    ]);
  });

  it('ANDs spellings of one $match key', () => {
    expect(walk([{ $match: { play_count: { $gt: 1 }, playCount: { $lt: 5 } } }])).toEqual([
      { $match: { $and: [{ playCount: { $gt: 1 } }, { playCount: { $lt: 5 } }] } },
    ]);
  });

  it('types dates and pointers that a $match compares with columns', () => {
    expect(
      walk([
        {
          $match: {
            releasedOn: { $gte: '2024-05-01' },
            $or: [{ artist: { $in: ['a1'] } }, { createdAt: { $not: { $lt: '2024-05-01' } } }],
          },
        },
      ]),
    ).toEqual([
      {
        $match: {
          releasedOn: { $gte: iso('2024-05-01T00:00:00.000Z') },
          $or: [
            { artist: { $in: [{ __type: 'Pointer', className: 'Artist', objectId: 'a1' }] } },
            { createdAt: { $not: { $lt: iso('2024-05-01T00:00:00.000Z') } } },
          ],
        },
      },
    ]);
  });

  it('leaves values alone that meet an alias of a column’s name', () => {
    const pipeline = [
      { $group: { _id: '$genre', createdAt: { $sum: 1 } } },
      { $match: { createdAt: 'many' } },
    ];
    expect(walk(pipeline)).toEqual(pipeline);
  });

  it('asks the class gate about pointers when it is given one', () => {
    const judgeClass = (className: string) => {
      const answer = shopReach.reach(className, 'constraint');
      return 'gate' in answer ? answer : null;
    };
    expect(
      refusalOf(() => walk([{ $match: { curator: 'Vault$v1' } }], 'Song', { judgeClass })),
    ).toMatchObject({
      details: { kind: 'hidden_class' },
    });
  });

  it('refuses questions to another class in a $match', () => {
    expect(
      refusalOf(() => walk([{ $match: { artist: { $inQuery: { className: 'Vault', where: {} } } } }])),
    ).toMatchObject({ code: 'invalid_query' });
  });

  it('lets a class without allowlist name anything that is not internal', () => {
    const pipeline = [
      { $match: { _p_song: 'Song$s1' } },
      { $replaceRoot: { newRoot: '$x' } },
      { $sort: { y: 1 } },
    ];
    expect(walk(pipeline, 'Note')).toEqual(pipeline);
  });
});

import { describe, expect, it } from 'vitest';
import { music, catchRefusal, shopReach } from '../music.fixture.js';
import type { Pipeline } from './stages.js';
import { validatePipeline } from './validate-pipeline.js';
import { walkPipeline, type WalkOptions } from './walk-pipeline.js';

const walk = (pipeline: unknown, className = 'Song', options?: WalkOptions) =>
  walkPipeline(validatePipeline(pipeline), music(className), shopReach, options);
const deniedIn = (pipeline: unknown) => {
  const refusal = catchRefusal(() => walk(pipeline));
  return refusal && [refusal.code, refusal.details?.kind, refusal.details?.denied_field];
};
const deny = (root: string) => ['access_denied', 'field_denied', root];
const iso = (text: string) => ({ __type: 'Date', iso: text });
const byGenre = { $group: { _id: '$genre', plays: { $sum: '$playCount' } } };

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
    [
      'the members of a new root',
      [{ $replaceWith: { a: '$title', b: 1 } }, { $match: { a: 'x' } }, { $sort: { b: 1 } }],
    ],
    [
      'the members of a column as the new root',
      [{ $replaceRoot: { newRoot: '$meta' } }, { $match: { any: 1 } }],
    ],
    [
      'merged members',
      [{ $replaceWith: { $mergeObjects: ['$meta', { a: 1 }] } }, { $project: { a: 1, other: '$b' } }],
    ],
    [
      'columns after documents were replaced by themselves',
      [{ $replaceWith: '$$ROOT' }, { $sort: { title: 1 } }],
    ],
  ])('lets later stages use %s, unchanged', (_, pipeline) => {
    expect(walk(pipeline)).toEqual(pipeline);
  });

  it.each<[string, unknown, string]>([
    ['columns after $group', [byGenre, { $sort: { title: 1 } }], 'title'],
    ['columns that $project left out', [{ $project: { title: 1 } }, { $sort: { genre: 1 } }], 'genre'],
    ['what $replaceWith left out', [{ $replaceWith: { a: '$title' } }, { $sort: { title: 1 } }], 'title'],
    [
      'what $replaceRoot left out of merged objects',
      [
        { $replaceRoot: { newRoot: { $mergeObjects: [{ a: '$title' }, { b: 1 }] } } },
        { $sort: { title: 1 } },
      ],
      'title',
    ],
    [
      'a hidden column after documents were replaced by themselves',
      [{ $replaceWith: '$$ROOT' }, { $sort: { royalty: 1 } }],
      'royalty',
    ],
    ['a hidden column as the new root', [{ $replaceWith: '$royalty' }, { $sort: { a: 1 } }], 'royalty'],
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
    expect(deniedIn(pipeline)).toEqual(deny(root));
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
      { $unset: ['ExtStatus'] },
      { $project: { playCount: 1, play_share: 1, genre: 0 } },
      { $sort: { playCount: -1, play_share: 1 } },
      { $unwind: '$playCount' },
    ]);
  });

  it('refuses an operator that it does not know, wherever an expression stands', () => {
    const unknown = { $readEverything: '$title' };
    for (const pipeline of [
      [{ $project: { x: { $add: [1, unknown] } } }],
      [{ $group: { _id: unknown } }],
      [{ $group: { _id: null, x: { $push: unknown } } }],
      [{ $addFields: { x: { $map: { input: '$tags', in: unknown } } } }],
      [{ $redact: unknown }],
      [{ $replaceWith: { x: unknown } }],
      [{ $bucket: { groupBy: unknown, boundaries: [1, 2] } }],
      [{ $facet: { a: [{ $sortByCount: unknown }] } }],
    ])
      expect(catchRefusal(() => walk(pipeline))?.message).toContain("'$readEverything' is no operator");
    expect(catchRefusal(() => walk([{ $project: { x: { $sums: '$title' } } }]))?.message).toContain("'$sum'");
  });

  it('refuses a list of conditions under and, or, nor without its $, unless the column is there', () => {
    const branches = [{ title: 'x' }];
    for (const name of ['and', 'or', 'nor'])
      for (const pipeline of [
        [{ $match: { [name]: branches } }],
        [{ $match: { $and: [{ [name]: branches }] } }],
        [{ $facet: { a: [{ $match: { [name]: branches } }] } }],
      ])
        expect(catchRefusal(() => walk(pipeline))?.message).toBe(
          `'${name}' is no operator: write '$${name}'`,
        );
    const made = [
      { $group: { _id: null, or: { $push: { title: '$title' } } } },
      { $match: { or: branches } },
    ];
    expect(catchRefusal(() => walk(made))).toBeNull();
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
    const pipeline = [{ $group: { _id: '$genre', createdAt: { $sum: 1 } } }, { $match: { createdAt: 3 } }];
    expect(walk(pipeline)).toEqual(pipeline);
  });

  it('asks the class gate about pointers when it is given one', () => {
    const judgeClass = (className: string) => {
      const answer = shopReach.reach(className, 'constraint');
      return 'gate' in answer ? answer : null;
    };
    expect(
      catchRefusal(() => walk([{ $match: { curator: 'Vault$v1' } }], 'Song', { judgeClass })),
    ).toMatchObject({
      details: { kind: 'hidden_class' },
    });
  });

  it('refuses questions to another class in a $match', () => {
    expect(
      catchRefusal(() => walk([{ $match: { artist: { $inQuery: { className: 'Vault', where: {} } } } }])),
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

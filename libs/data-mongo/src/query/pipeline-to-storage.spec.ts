import type { Document } from 'mongodb';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StoreError } from '#data';
import { MUSIC } from '#data-contracts';
import { INTERNAL_COLUMNS } from '../storage/internal-columns.js';
import { pipelineToStorage } from './pipeline-to-storage.js';

const STRIP = { $unset: [...INTERNAL_COLUMNS] };
const stagesOf = (pipeline: readonly Document[], className = 'Album') =>
  pipelineToStorage(pipeline, className, MUSIC).stages;
/** The stages without the strip of the outer source. */
const mapped = (...pipeline: Document[]) =>
  stagesOf(pipeline).filter(
    (stage) => stage['$unset'] !== STRIP.$unset && JSON.stringify(stage) !== JSON.stringify(STRIP),
  );
const split = (reference: string) => ({ $arrayElemAt: [{ $split: [reference, { $literal: '$' }] }, 1] });

describe('names in pipelines', () => {
  const cases: [string, Document[], Document[]][] = [
    [
      'maps filters with typed values',
      [{ $match: { artist: 'b', createdAt: { $gte: '2026-01-01T00:00:00Z' } } }],
      [{ $match: { _p_artist: 'Artist$b', _created_at: { $gte: new Date('2026-01-01') } } }],
    ],
    [
      'maps references in accumulators',
      [{ $group: { _id: '$artist', last: { $max: '$createdAt' } } }],
      [{ $group: { _id: '$_p_artist', last: { $max: '$_created_at' } } }],
    ],
    [
      'maps projected names and what follows them',
      [{ $project: { title: 1, createdAt: 1 } }, { $sort: { createdAt: -1 } }],
      [{ $project: { title: 1, _created_at: 1 } }, { $sort: { _created_at: -1 } }],
    ],
    [
      'does not rename an alias that looks like a field',
      [{ $group: { _id: '$title', createdAt: { $max: '$createdAt' } } }, { $sort: { createdAt: -1 } }],
      [{ $group: { _id: '$title', createdAt: { $max: '$_created_at' } } }, { $sort: { createdAt: -1 } }],
    ],
    [
      'stops renaming once the source is gone',
      [{ $group: { _id: null } }, { $project: { artist: '$artist' } }],
      [{ $group: { _id: null } }, { $project: { artist: '$artist' } }],
    ],
    [
      'maps $unwind, $sortByCount and $bucket',
      [
        { $unwind: { path: '$tags', includeArrayIndex: 'createdAt' } },
        { $sort: { createdAt: 1 } },
        { $sortByCount: '$artist' },
      ],
      [
        { $unwind: { path: '$tags', includeArrayIndex: 'createdAt' } },
        { $sort: { createdAt: 1 } },
        { $sortByCount: '$_p_artist' },
      ],
    ],
    [
      'maps $bucket with dates as boundaries',
      [
        {
          $bucket: {
            groupBy: '$createdAt',
            boundaries: [{ __type: 'Date', iso: '2026-01-01T00:00:00.000Z' }],
            default: 'x',
            output: { n: { $sum: '$price' } },
          },
        },
      ],
      [
        {
          $bucket: {
            boundaries: [new Date('2026-01-01')],
            default: 'x',
            groupBy: '$_created_at',
            output: { n: { $sum: '$price' } },
          },
        },
      ],
    ],
    [
      'maps references behind $$ROOT and $$CURRENT',
      [{ $addFields: { a: '$$ROOT.artist', b: '$$CURRENT.createdAt' } }],
      [{ $addFields: { a: '$$ROOT._p_artist', b: '$$CURRENT._created_at' } }],
    ],
    [
      'leaves literals and unknown variables alone',
      [
        {
          $addFields: {
            a: { $literal: '$artist' },
            b: { $let: { vars: { artist: '$artist' }, in: '$$artist' } },
          },
        },
      ],
      [
        {
          $addFields: {
            a: { $literal: '$artist' },
            b: { $let: { vars: { artist: '$_p_artist' }, in: '$$artist' } },
          },
        },
      ],
    ],
    [
      'maps every branch of $facet from the same source',
      [
        { $facet: { artist: [{ $sortByCount: '$artist' }], rows: [{ $sort: { createdAt: 1 } }] } },
        { $project: { 'rows.createdAt': 1 } },
      ],
      [
        { $facet: { artist: [{ $sortByCount: '$_p_artist' }], rows: [{ $sort: { _created_at: 1 } }] } },
        { $project: { 'rows._created_at': 1 } },
      ],
    ],
    [
      'follows rows that were pushed whole',
      [
        { $group: { _id: '$title', rows: { $push: '$$ROOT' } } },
        { $addFields: { first: { $map: { input: '$rows', as: 'r', in: '$$r.artist' } } } },
      ],
      [
        { $group: { _id: '$title', rows: { $push: '$$ROOT' } } },
        { $addFields: { first: { $map: { input: '$rows', as: 'r', in: '$$r._p_artist' } } } },
      ],
    ],
    [
      'maps sort keys inside accumulators',
      [{ $group: { _id: null, a: { $top: { sortBy: { createdAt: -1 }, output: '$artist' } } } }],
      [{ $group: { _id: null, a: { $top: { sortBy: { _created_at: -1 }, output: '$_p_artist' } } } }],
    ],
    [
      'maps field names given as text',
      [{ $addFields: { a: { $getField: 'artist' } } }],
      [{ $addFields: { a: { $getField: '_p_artist' } } }],
    ],
    [
      'maps $expr in a filter',
      [{ $match: { $expr: { $gt: ['$createdAt', '$updatedAt'] } } }],
      [{ $match: { $expr: { $gt: ['$_created_at', '$_updated_at'] } } }],
    ],
    [
      'keeps the new meaning of a field that a stage computed',
      [{ $set: { artist: { $toUpper: '$artist' } } }, { $match: { artist: 'ARTIST$B' } }],
      [{ $addFields: { artist: { $toUpper: '$_p_artist' } } }, { $match: { artist: 'ARTIST$B' } }],
    ],
    [
      'excludes an ACL as its three columns',
      [{ $project: { ACL: 0, objectId: 0 } }],
      [{ $project: { _acl: 0, _rperm: 0, _wperm: 0, _id: 0 } }],
    ],
    [
      'filters near points by a circle',
      [
        {
          $match: {
            home: { $nearSphere: { __type: 'GeoPoint', latitude: 1, longitude: 2 }, $maxDistance: 0.1 },
          },
        },
      ],
      [{ $match: { home: { $geoWithin: { $centerSphere: [[2, 1], 0.1] } } } }],
    ],
  ];
  it.each(cases)('%s', (_title, pipeline, expected) => {
    expect(mapped(...pipeline)).toEqual(expected);
  });

  it('takes the names of the class that $replaceRoot puts in place', () => {
    const stages = mapped(
      { $lookup: { from: 'Artist', localField: 'artist', foreignField: 'objectId', as: 'who' } },
      { $unwind: '$who' },
      { $match: { 'who.createdAt': { $gte: '2026-01-01T00:00:00Z' } } },
      { $replaceRoot: { newRoot: '$who' } },
      { $sort: { label: 1, artist: 1 } },
    );
    expect(stages.slice(1)).toEqual([
      { $unwind: '$who' },
      { $match: { 'who._created_at': { $gte: new Date('2026-01-01') } } },
      { $replaceRoot: { newRoot: '$who' } },
      { $sort: { _p_label: 1, artist: 1 } },
    ]);
  });
});

describe('joins between pointers and ids', () => {
  it('splits a pointer to meet an id', () => {
    const join = { from: 'Artist', localField: 'artist', foreignField: 'objectId', as: 'who' };
    expect(mapped({ $lookup: join })).toEqual([
      {
        $lookup: {
          from: 'Artist',
          let: { rwLookupId_artist: split('$_p_artist') },
          pipeline: [{ $match: { $expr: { $eq: ['$_id', '$$rwLookupId_artist'] } } }, STRIP],
          as: 'who',
        },
      },
    ]);
  });

  it('uses the column in which the target keeps its own reference', () => {
    const join = { from: 'Label', localField: 'label', foreignField: '_id', as: 'l' };
    expect(stagesOf([{ $lookup: join }], 'Artist').at(-1)).toEqual({
      $lookup: {
        from: 'Label',
        localField: '_p_label',
        foreignField: 'parseReference',
        pipeline: [STRIP],
        as: 'l',
      },
    });
  });

  it('joins back from an id to the pointers at it, over a bare foreign column', () => {
    const join = { from: 'Album', localField: 'objectId', foreignField: 'artist', as: 'albums' };
    expect(stagesOf([{ $lookup: join }], 'Artist').at(-1)).toEqual({
      $lookup: {
        from: 'Album',
        let: { rwReverseId_artist: { $concat: ['Artist$', '$_id'] } },
        pipeline: [{ $match: { $expr: { $eq: ['$_p_artist', '$$rwReverseId_artist'] } } }, STRIP],
        as: 'albums',
      },
    });
  });

  it('rewrites behind a projection of the source', () => {
    const forward = { from: 'Artist', localField: 'artist', foreignField: 'objectId', as: 'who' };
    const stages = mapped({ $project: { artist: 1, title: 1 } }, { $lookup: forward });
    expect(stages[1]?.['$lookup'].let).toEqual({ rwLookupId_artist: split('$_p_artist') });
    const back = { from: 'Album', localField: 'objectId', foreignField: 'artist', as: 'albums' };
    const reverse = stagesOf([{ $project: { name: 1 } }, { $lookup: back }], 'Artist');
    expect(reverse.at(-1)?.['$lookup'].let).toEqual({ rwReverseId_artist: { $concat: ['Artist$', '$_id'] } });
  });

  it('rewrites a join on the key of a group', () => {
    const join = { from: 'Artist', localField: '_id', foreignField: 'objectId', as: 'who' };
    const stages = mapped({ $group: { _id: '$artist' } }, { $lookup: join });
    expect(stages[1]?.['$lookup'].let).toEqual({ rwLookupId__id: split('$_id') });
    const composite = { ...join, localField: '_id.who' };
    const second = mapped({ $group: { _id: { who: '$artist' } } }, { $lookup: composite });
    expect(second[1]?.['$lookup'].let).toEqual({ rwLookupId__id_who: split('$_id.who') });
  });

  it('rewrites a join on a list of pointers', () => {
    const join = { from: 'Artist', localField: 'all', foreignField: 'objectId', as: 'who' };
    const [, lookup] = mapped({ $group: { _id: null, all: { $addToSet: '$artist' } } }, { $lookup: join });
    expect(lookup?.['$lookup'].pipeline[0]).toEqual({
      $match: { $expr: { $in: ['$_id', '$$rwLookupId_all'] } },
    });
  });

  it('does not mistake a pointer to another class for a join', () => {
    const join = { from: 'Label', localField: 'artist', foreignField: 'objectId', as: 'x' };
    expect(mapped({ $lookup: join })[0]?.['$lookup']).toMatchObject({
      localField: '_p_artist',
      foreignField: '_id',
    });
  });

  it('leaves joins as written when asked to', () => {
    const join = { from: 'Artist', localField: 'artist', foreignField: 'objectId', as: 'who' };
    const { stages } = pipelineToStorage([{ $lookup: join }], 'Album', MUSIC, { rewriteLookups: false });
    expect(stages.at(-1)?.['$lookup']).toMatchObject({ localField: '_p_artist', foreignField: '_id' });
  });

  it('maps the sub-pipeline in the names of the joined class, wherever it is', () => {
    const inner = [{ $match: { label: 'l1' } }, { $sort: { createdAt: 1 } }, { $project: { createdAt: 1 } }];
    const outer = [
      { $match: { _p_label: 'Label$l1' } },
      { $sort: { _created_at: 1 } },
      STRIP,
      { $project: { _created_at: 1 } },
    ];
    expect(mapped({ $facet: { a: [{ $unionWith: { coll: 'Artist', pipeline: inner } }] } })).toEqual([
      { $facet: { a: [{ $unionWith: { coll: 'Artist', pipeline: outer } }] } },
    ]);
  });

  it('names system classes as they are stored', () => {
    const join = { from: 'User', as: 'u', pipeline: [] };
    expect(mapped({ $lookup: join })[0]?.['$lookup'].from).toBe('_User');
  });

  it('refuses a graph over a pointer that could never meet an id', () => {
    const graph = {
      from: 'Album',
      startWith: '$artist',
      connectFromField: 'artist',
      connectToField: 'objectId',
      as: 'g',
    };
    expect(() => stagesOf([{ $graphLookup: graph }])).toThrow(new StoreError('unsupported'));
  });

  it('drops internal columns of rows a graph collects', () => {
    const graph = {
      from: 'Album',
      startWith: '$title',
      connectFromField: 'title',
      connectToField: 'title',
      as: 'g',
    };
    expect(stagesOf([{ $graphLookup: graph }]).at(-1)).toEqual({
      $unset: INTERNAL_COLUMNS.map((name) => `g.${name}`),
    });
  });
});

describe('the source of a pipeline', () => {
  it('loses its internal columns right behind the stages that choose rows', () => {
    const predicate = { $match: { $or: [{ _rperm: { $in: ['*'] } }, { _rperm: { $exists: false } }] } };
    const stages = stagesOf([
      predicate,
      { $sort: { title: 1 } },
      { $limit: 3 },
      { $group: { _id: '$$ROOT' } },
    ]);
    expect(stages.indexOf(stages.find((stage) => '$unset' in stage) as Document)).toBe(3);
    expect(stages[3]).toEqual(STRIP);
  });

  it('loses login data of any provider on users', () => {
    const stages = stagesOf([{ $group: { _id: '$$ROOT' } }], '_User');
    expect(JSON.stringify(stages[1])).toContain('_auth_data_');
  });

  const refused: [string, Document][] = [
    ['a stage that is not listed', { $out: 'Album' }],
    ['a stage with two operators', { $match: {}, $limit: 1 }],
    ['an empty stage', {}],
    ['server-side code', { $addFields: { x: { $function: { body: 'x', args: [], lang: 'js' } } } }],
    ['a typed value that is none', { $addFields: { x: { __type: 'Date', iso: 'never' } } }],
    ['a join without a class', { $lookup: { from: { db: 'other', coll: 'x' }, as: 'x' } }],
  ];
  it.each(refused)('refuses %s', (_title, stage) => {
    expect(() => stagesOf([stage])).toThrow(new StoreError('invalid_query'));
  });

  const reference = fc.constantFrom(
    '$title',
    '$artist',
    '$createdAt',
    '$$ROOT',
    '$$ROOT.artist',
    '$x',
    '$rows.artist',
  );
  const stage = fc.oneof(
    reference.map((value) => ({ $addFields: { x: value } })),
    reference.map((value) => ({ $group: { _id: value, rows: { $push: '$$ROOT' } } })),
    reference.map((value) => ({ $sortByCount: value })),
    fc.constant({ $project: { artist: 1, x: 1 } }),
    fc.constant({ $sort: { createdAt: 1 } }),
    fc.constant({ $lookup: { from: 'Artist', localField: 'artist', foreignField: 'objectId', as: 'rows' } }),
    fc.constant({ $unionWith: '_User' }),
    fc.constant({ $facet: { rows: [{ $lookup: { from: '_User', as: 'x', pipeline: [] } }] } }),
  );
  it('never reaches a row before its internal columns are gone, outer or joined', () => {
    const check = (stages: readonly Document[]): void => {
      const strip = stages.findIndex((entry) => JSON.stringify(entry) === JSON.stringify(STRIP));
      expect(strip).toBeGreaterThanOrEqual(0);
      for (const entry of stages.slice(0, strip))
        expect(['$match', '$sort', '$limit']).toContain(Object.keys(entry)[0]);
      joined(stages);
    };
    const joined = (stages: readonly Document[]): void => {
      for (const entry of stages) {
        if (entry['$lookup']) check(entry['$lookup'].pipeline);
        if (entry['$unionWith']) check(entry['$unionWith'].pipeline);
        for (const branch of Object.values(entry['$facet'] ?? {})) joined(branch as Document[]);
      }
    };
    fc.assert(
      fc.property(fc.array(stage, { maxLength: 6 }), (pipeline) => check(stagesOf(pipeline))),
      { numRuns: 200 },
    );
  });
});

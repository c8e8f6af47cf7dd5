import type { Document } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { MUSIC } from '#data/contracts';
import { INTERNAL_COLUMNS } from '../storage/parse-storage.js';
import { pipelineToStorage } from './pipeline-to-storage.js';

const STRIP = { $unset: [...INTERNAL_COLUMNS] };
const stagesOf = (pipeline: readonly Document[]) => pipelineToStorage(pipeline, 'Album', MUSIC).stages;
/** The stages without the strip of the outer source. */
const mapped = (...pipeline: Document[]) =>
  stagesOf(pipeline).filter(
    (stage) => stage['$unset'] !== STRIP.$unset && JSON.stringify(stage) !== JSON.stringify(STRIP),
  );
describe('names in pipelines', () => {
  const cases: [string, Document[], Document[]][] = [
    [
      'maps filters with typed values',
      [{ $match: { artist: 'b', createdAt: { $gte: { __type: 'Date', iso: '2026-01-01T00:00:00Z' } } } }],
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
      'keeps the new meaning in rows that were made of others, and their other names',
      [
        { $group: { _id: null, rows: { $push: '$$ROOT' } } },
        {
          $addFields: {
            rows: {
              $map: { input: '$rows', as: 'r', in: { $mergeObjects: ['$$r', { artist: '$$r.artist' }] } },
            },
          },
        },
        { $unset: ['rows._p_artist'] },
        { $unwind: '$rows' },
        { $match: { 'rows.createdAt': { $gte: { __type: 'Date', iso: '2026-01-01T00:00:00Z' } } } },
        { $replaceWith: { $mergeObjects: ['$rows', { createdAt: 1 }] } },
        { $project: { artist: 1, createdAt: 1, updatedAt: 1 } },
      ],
      [
        { $group: { _id: null, rows: { $push: '$$ROOT' } } },
        {
          $addFields: {
            rows: {
              $map: { input: '$rows', as: 'r', in: { $mergeObjects: ['$$r', { artist: '$$r._p_artist' }] } },
            },
          },
        },
        { $unset: ['rows._p_artist'] },
        { $unwind: '$rows' },
        { $match: { 'rows._created_at': { $gte: new Date('2026-01-01') } } },
        { $replaceWith: { $mergeObjects: ['$rows', { createdAt: 1 }] } },
        { $project: { artist: 1, createdAt: 1, _updated_at: 1 } },
      ],
    ],
    [
      'takes a pointer from the rows by the name of its column, whatever the name of the field holds',
      [{ $addFields: { artist: { $literal: 1 } } }, { $unset: ['_p_artist'] }, { $sortByCount: '$artist' }],
      [{ $addFields: { artist: { $literal: 1 } } }, { $unset: ['_p_artist'] }, { $sortByCount: '$artist' }],
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
      { $match: { 'who.createdAt': { $gte: { __type: 'Date', iso: '2026-01-01T00:00:00Z' } } } },
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

import type { Document } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { StoreError } from '#data';
import { MUSIC } from '#data/contracts';
import { INTERNAL_COLUMNS } from '../storage/parse-storage.js';
import { pipelineToStorage } from './pipeline-to-storage.js';

const STRIP = { $unset: [...INTERNAL_COLUMNS] };
const stagesOf = (pipeline: readonly Document[], className = 'Album') =>
  pipelineToStorage(pipeline, className, MUSIC).stages;
/** The stages without the strip of the outer source. */
const mapped = (...pipeline: Document[]) =>
  stagesOf(pipeline).filter(
    (stage) => stage['$unset'] !== STRIP.$unset && JSON.stringify(stage) !== JSON.stringify(STRIP),
  );
const split = (reference: string) => {
  const id = { $arrayElemAt: [{ $split: [reference, { $literal: '$' }] }, 1] };
  return { $cond: [{ $eq: [{ $type: reference }, 'string'] }, id, null] };
};
const text = (id: string) => ({ $convert: { input: id, to: 'string', onError: null, onNull: null } });

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
        let: { rwReverseId_artist: { $concat: ['Artist$', text('$_id')] } },
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
    expect(reverse.at(-1)?.['$lookup'].let).toEqual({
      rwReverseId_artist: { $concat: ['Artist$', text('$_id')] },
    });
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

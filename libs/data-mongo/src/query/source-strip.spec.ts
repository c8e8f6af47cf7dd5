import fc from 'fast-check';
import type { Document } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { StoreError } from '#data';
import { MUSIC, PATIENT } from '#data/contracts';
import { INTERNAL_COLUMNS } from '../storage/parse-storage.js';
import { pipelineToStorage } from './pipeline-to-storage.js';

const STRIP = { $unset: [...INTERNAL_COLUMNS] };
const stagesOf = (pipeline: readonly Document[], className = 'Album') =>
  pipelineToStorage(pipeline, className, MUSIC).stages;

describe('the source of a pipeline', PATIENT, () => {
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
    expect(stagesOf([{ $project: { username: 1 } }], '_User')).toHaveLength(2);
    const computed = stagesOf([{ $project: { username: 1, x: { $objectToArray: '$$ROOT' } } }], '_User');
    expect(JSON.stringify(computed[1])).toContain('_auth_data_');
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
      joinChunks(stages);
    };
    const joinChunks = (stages: readonly Document[]): void => {
      for (const entry of stages) {
        if (entry['$lookup']) check(entry['$lookup'].pipeline);
        if (entry['$unionWith']) check(entry['$unionWith'].pipeline);
        for (const branch of Object.values(entry['$facet'] ?? {})) joinChunks(branch as Document[]);
      }
    };
    fc.assert(
      fc.property(fc.array(stage, { maxLength: 6 }), (pipeline) => check(stagesOf(pipeline))),
      { numRuns: 200 },
    );
  });
});

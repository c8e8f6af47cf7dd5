import { expect, it } from 'vitest';
import type { RecordReader } from '../record-store.js';
import { unhurried } from './operation.js';

const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });

/** The contract of pipelines; part of the reader's contract. */
export function aggregationCases(reader: () => RecordReader, ofParse: boolean): void {
  it('groups by a pointer and keeps the names the pipeline gave', async () => {
    const { rows } = await reader().aggregate(
      {
        className: 'Album',
        pipeline: [
          { $match: { artist: { $in: [pointer('Artist', 'ivy'), pointer('Artist', 'oak')] } } },
          { $group: { _id: '$artist', createdAt: { $max: '$createdAt' }, total: { $sum: '$price' } } },
          { $sort: { createdAt: -1 } },
        ],
      },
      unhurried(),
    );
    expect(rows).toEqual([
      { _id: 'Artist$oak', createdAt: '2025-03-03T12:00:00.000Z', total: 28 },
      { _id: 'Artist$ivy', createdAt: '2024-06-01T12:00:00.000Z', total: 22 },
    ]);
  });

  it('joins from a pointer to an id and back', async () => {
    const { rows: forward } = await reader().aggregate(
      {
        className: 'Album',
        pipeline: [
          { $match: { objectId: 'a3' } },
          { $lookup: { from: 'Artist', localField: 'artist', foreignField: 'objectId', as: 'who' } },
          { $project: { name: { $first: '$who.name' } } },
        ],
      },
      unhurried(),
    );
    expect(forward).toMatchObject([{ name: 'Oak Lane' }]);
    const { rows: back } = await reader().aggregate(
      {
        className: 'Artist',
        pipeline: [
          { $lookup: { from: 'Album', localField: 'objectId', foreignField: 'artist', as: 'albums' } },
          { $project: { name: 1, made: { $size: '$albums' } } },
          { $sort: { name: 1 } },
        ],
      },
      unhurried(),
    );
    expect(back).toMatchObject([{ made: 1 }, { made: 2 }, { made: 2 }]);
  });

  it.runIf(ofParse)('never lets a pipeline carry credentials out under another name', async () => {
    const renamed = [
      [{ $project: { a: { $objectToArray: '$$ROOT' } } }],
      [{ $group: { _id: null, rows: { $push: '$$ROOT' } } }],
      [{ $replaceWith: { x: { $concat: ['', '$_hashed_password'] } } }],
      [{ $limit: 5 }],
    ];
    for (const pipeline of renamed) {
      const { rows } = await reader().aggregate({ className: '_User', pipeline }, unhurried());
      expect(JSON.stringify(rows)).not.toMatch(/\$2[aby]\$|_hashed_password|_rperm/);
    }
    const joined = [
      {
        $lookup: { from: '_User', as: 'u', pipeline: [{ $project: { a: { $objectToArray: '$$ROOT' } } }] },
      },
    ];
    const { rows } = await reader().aggregate({ className: 'Label', pipeline: joined }, unhurried());
    expect(JSON.stringify(rows)).toContain('ada@example.com');
    expect(JSON.stringify(rows)).not.toMatch(/\$2[aby]\$/);
  });
}

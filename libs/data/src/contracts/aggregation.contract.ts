import { expect, it } from 'vitest';
import type { RecordReader } from '../record-adapters.js';
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

  const join = { from: 'Artist', localField: 'artist', foreignField: 'objectId' };
  const MADE = '2024-01-10T12:00:00.000Z';
  const A1 = { objectId: 'a1', createdAt: MADE };
  const written: [title: string, stages: Record<string, unknown>[], row: unknown][] = [
    ['a projection', [{ $project: { objectId: 1, createdAt: true } }], A1],
    [
      'a projection, beside an id that it did not write',
      [{ $project: { updatedAt: 1 } }],
      { _id: 'a1', updatedAt: MADE },
    ],
    [
      'a projection, both names of the id',
      [{ $project: { _id: 1, objectId: 1 } }],
      { _id: 'a1', objectId: 'a1' },
    ],
    [
      'the last of several projections',
      [{ $project: { objectId: 1, title: 1 } }, { $project: { objectId: 1 } }],
      { objectId: 'a1' },
    ],
    [
      'a projection before further stages',
      [
        { $project: { objectId: 1, createdAt: 1 } },
        { $match: { createdAt: { $gte: { __type: 'Date', iso: '2024-01-01T00:00:00.000Z' } } } },
        { $sort: { createdAt: -1, objectId: 1 } },
      ],
      A1,
    ],
    [
      'a projection of which a stage replaces a value',
      [
        { $project: { objectId: 1, createdAt: 1 } },
        { $set: { createdAt: { $dateToString: { date: '$createdAt', format: '%Y' } } } },
      ],
      { objectId: 'a1', createdAt: '2024' },
    ],
    [
      'rows that a group collects',
      [{ $project: { objectId: 1, createdAt: 1 } }, { $group: { _id: null, rows: { $push: '$$ROOT' } } }],
      { _id: null, rows: [A1] },
    ],
    ['a branch', [{ $facet: { rows: [{ $project: { objectId: 1, createdAt: 1 } }] } }], { rows: [A1] }],
    [
      'the pipeline of a join',
      [
        { $lookup: { ...join, pipeline: [{ $project: { objectId: 1 } }], as: 'who' } },
        { $project: { _id: 0, who: 1 } },
      ],
      { who: [{ objectId: 'ivy' }] },
    ],
    [
      'paths into joined rows',
      [
        { $lookup: { ...join, as: 'who' } },
        { $project: { objectId: 1, 'who.objectId': 1, who: { name: 1 } } },
      ],
      { objectId: 'a1', who: [{ objectId: 'ivy', name: 'Ivy Row' }] },
    ],
    [
      'a joined row that takes the place of the row',
      [
        { $lookup: { ...join, pipeline: [{ $project: { objectId: 1 } }], as: 'who' } },
        { $unwind: '$who' },
        { $replaceRoot: { newRoot: '$who' } },
      ],
      { objectId: 'ivy' },
    ],
    ['a group', [{ $group: { _id: { objectId: '$objectId', createdAt: '$createdAt' } } }], { _id: A1 }],
  ];
  it.each(written)('names the columns of a row as its pipeline wrote them: %s', async (_, stages, row) => {
    const pipeline = [{ $match: { objectId: 'a1' } }, ...stages];
    const { rows } = await reader().aggregate({ className: 'Album', pipeline }, unhurried());
    expect(rows).toEqual([row]);
  });

  it('keeps the id of a row under its own name where the pipeline wrote none', async () => {
    const pipeline = [{ $match: { objectId: 'a1' } }, { $sort: { createdAt: 1, objectId: 1 } }];
    const { rows } = await reader().aggregate({ className: 'Album', pipeline }, unhurried());
    expect(rows).toMatchObject([{ _id: 'a1' }]);
    expect(rows[0]).not.toHaveProperty('objectId');
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

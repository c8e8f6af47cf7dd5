import { describe, expect, it } from 'vitest';
import type { ClassAccess } from '../model/class-access.js';
import type { FieldSchema } from '../model/class-schema.js';
import { catchRefusal, music, shopReach } from '../music.fixture.js';
import { validatePipeline } from './validate-pipeline.js';
import { walkPipeline } from './walk-pipeline.js';

const BILL: ClassAccess = {
  ...music('Note'),
  className: 'Bill',
  schema: {
    className: 'Bill',
    fields: new Map<string, FieldSchema>([
      ['total', { type: 'Number' }],
      ['tags', { type: 'Array', entries: { type: 'Number' } }],
      ['address', { type: 'Object', members: new Map([['floor', { type: 'Number' }]]) }],
      ['lines', { type: 'Array', members: new Map([['price', { type: 'Number' }]]) }],
      ['amount', { type: 'String', origin: 'sample', seen: { String: 2 } }],
    ]),
    indexes: [],
    classLevelPermissions: null,
    storage: 'plain',
  },
};

function walk(pipeline: unknown): readonly string[] {
  const notes: string[] = [];
  walkPipeline(validatePipeline(pipeline), BILL, shopReach, { note: (text) => notes.push(text) });
  return notes;
}

const STAGES: readonly ((accumulator: object) => object)[] = [
  (v) => ({ $group: { _id: null, v } }),
  (v) => ({ $bucket: { groupBy: '$total', boundaries: [0, 1], output: { v } } }),
  (v) => ({ $bucketAuto: { groupBy: '$total', buckets: 2, output: { v } } }),
];

describe('an accumulator that adds', () => {
  it.each([
    ['$tags', 'Array', '{"$unwind":"$tags"}'],
    ['$lines.price', 'Array', '{"$unwind":"$lines"}'],
    ['$lines', 'Array', '{"$unwind":"$lines"}'],
    ['$address', 'Object', '$address.NAME'],
  ])('refuses %s, which is %s, and says what to write instead', (reference, type, instead) => {
    for (const stage of STAGES)
      for (const operator of ['$sum', '$avg']) {
        const refusal = catchRefusal(() => walk([stage({ [operator]: reference })]));
        expect(refusal).toMatchObject({ code: 'invalid_query' });
        expect(refusal?.message).toContain(`'${reference}' is of type ${type}`);
        expect(refusal?.message).toContain(instead);
      }
  });

  it('notes a type that only a sample shows, and a name that nothing describes', () => {
    for (const stage of STAGES) {
      expect(walk([stage({ $sum: '$amount' })])).toEqual([expect.stringContaining("'$amount' held values")]);
      expect(walk([stage({ $avg: '$totl' })])).toEqual([expect.stringContaining("'$totl' is no column")]);
    }
  });

  it('takes numbers of each row, and sums of its lists', () => {
    const added = [
      1,
      '$total',
      '$address.floor',
      { $sum: '$tags' },
      { $sum: '$lines.price' },
      { $toDouble: '$amount' },
      { $multiply: ['$total', 2] },
    ];
    for (const stage of STAGES) for (const value of added) expect(walk([stage({ $sum: value })])).toEqual([]);
    const later = [{ $unwind: '$lines' }, { $group: { _id: null, v: { $sum: '$lines.price' } } }];
    expect(walk([...later, { $group: { _id: null, w: { $sum: '$v' } } }])).toEqual([]);
  });

  it('may be of the key of a group', () => {
    expect(walk([{ $group: { _id: { $sum: '$tags' }, output: { $sum: 1 }, groupBy: { $sum: 1 } } }])).toEqual(
      [],
    );
  });
});

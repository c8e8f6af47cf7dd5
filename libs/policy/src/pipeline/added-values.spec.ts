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
      expect(walk([stage({ $avg: '$totl' })])).toEqual([
        expect.stringContaining("'totl' is no column that is known"),
      ]);
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

describe('a text in a calculation', () => {
  it.each(['$add', '$subtract', '$multiply', '$divide', '$mod'])(
    '%s refuses it, and says what to write',
    (operator) => {
      const calculate = (value: unknown) => walk([{ $project: { x: { [operator]: ['$total', value] } } }]);
      expect(catchRefusal(() => calculate('0.10'))).toMatchObject({
        code: 'invalid_query',
        message: `${operator} takes numbers, and '0.10' is text: write the number, or {"$numberDecimal":"0.10"} for its digits`,
      });
      expect(catchRefusal(() => calculate('ten'))?.message).toContain('$toDouble');
      for (const number of [2, '$total', { $numberDecimal: '0.10' }, { $toDouble: '$amount' }, '$amount'])
        expect(calculate(number)).toEqual([]);
    },
  );
});

describe('what is no text in $concat', () => {
  const join = (value: unknown) => walk([{ $project: { x: { $concat: ['a', value] } } }]);
  it.each([
    ['$total', '{"$toString":"$total"}'],
    [5, '{"$toString":5}'],
    ['$address', 'by its path'],
  ])('is refused: %j', (value, instead) => {
    expect(catchRefusal(() => join(value))?.message).toContain(instead);
  });

  it('is taken once it is one', () => {
    for (const value of ['b', { $toString: '$total' }, '$amount', { $ifNull: ['$amount', ''] }])
      expect(join(value)).toEqual([]);
  });
});

describe('a path into a reference', () => {
  const reach = (pipeline: unknown) => () =>
    walkPipeline(validatePipeline(pipeline), music('Song'), shopReach, {});
  it.each([
    [[{ $group: { _id: '$artist.name' } }]],
    [[{ $project: { name: '$artist.name' } }]],
    [[{ $sort: { 'artist.name': 1 } }]],
    [[{ $unwind: '$artist.name' }]],
  ])('is refused with the join that leads there: %j', (pipeline) => {
    expect(catchRefusal(reach(pipeline))).toMatchObject({
      code: 'invalid_query',
      message: expect.stringContaining(`'artist' points to another class`),
    });
  });

  it('leads to the members of a placeholder', () => {
    expect(catchRefusal(reach([{ $project: { withheld: '$artist.__redacted' } }]))).toBeNull();
  });

  it('leads into what a join put in its place', () => {
    const lookup = { from: 'Artist', localField: 'artist', foreignField: 'objectId', as: 'artist' };
    const pipeline = [{ $lookup: lookup }, { $project: { name: '$artist.name' } }];
    expect(catchRefusal(reach(pipeline))).toBeNull();
  });
});

describe('a name that nothing describes', () => {
  it.each([
    ['totl', "did you mean 'total'"],
    ['id', "did you mean 'objectId'"],
    ['lines.prise', "did you mean 'price'"],
    ['unheard', 'get_schema lists'],
  ])('%s is noted wherever it stands', (name, hint) => {
    for (const stage of [
      { $match: { [name]: 1 } },
      { $group: { _id: `$${name}` } },
      { $sort: { [name]: 1 } },
    ])
      expect(walk([stage])).toEqual([
        expect.stringMatching(
          new RegExp(`^'${name}' is no column that is known of class 'Bill': .*${hint}|^${hint}`),
        ),
      ]);
    expect(walk([{ $match: { total: 1, 'lines.0.price': 2, 'address.floor': 3, objectId: 'a' } }])).toEqual(
      [],
    );
  });
});

import { describe, expect, it } from 'vitest';
import { music, catchRefusal, shopReach } from '../music.fixture.js';
import { translateWhere } from '../where/translate-where.js';
import { walkPipeline } from './walk-pipeline.js';
import { validatePipeline } from './validate-pipeline.js';

const DAY = '2024-03-01';
const DATE = { __type: 'Date', iso: '2024-03-01T00:00:00.000Z' };

const walk = (pipeline: unknown, notes: string[] = []) =>
  walkPipeline(validatePipeline(pipeline), music('Song'), shopReach, { note: (text) => notes.push(text) });
const where = (constraint: unknown, notes: string[] = []) =>
  translateWhere(constraint, music('Song'), shopReach, {
    strictPointerShapes: true,
    note: (text) => notes.push(text),
  });

/** The same value with a typed date in place of every text that is the day. */
function withDates(value: unknown): unknown {
  if (value === DAY) return DATE;
  if (Array.isArray(value)) return value.map(withDates);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, withDates(member)]));
}

const expr = (expression: unknown) => [{ $addFields: { x: expression } }];
const TRUNCATED = { $dateTrunc: { date: '$releasedOn', unit: 'month' } };
const JOIN = { $lookup: { from: 'Artist', localField: 'artist', foreignField: '_id', as: 'who' } };

const COMPARED: readonly (readonly [string, readonly unknown[]])[] = [
  ['a column in a $match', [{ $match: { releasedOn: { $gte: DAY, $nin: [DAY, null] } } }]],
  ['a column in an expression', expr({ $gt: ['$releasedOn', DAY] })],
  ['an expression on the right', expr({ $lte: [DAY, '$releasedOn'] })],
  ['a computed date', expr({ $eq: [TRUNCATED, DAY] })],
  ['a sum of a date and milliseconds', expr({ $lt: [{ $add: ['$releasedOn', 1000] }, DAY] })],
  ['a date in a list', expr({ $in: ['$releasedOn', [DAY, DAY]] })],
  ['a constant in a list of columns', expr({ $in: [DAY, ['$releasedOn', '$createdAt']] })],
  ['the order of two values', expr({ $cmp: ['$releasedOn', DAY] })],
  [
    'a case of a $switch',
    // oxlint-disable-next-line unicorn/no-thenable -- a branch of $switch
    expr({ $switch: { branches: [{ case: { $lt: ['$releasedOn', DAY] }, then: 1 }], default: 0 } }),
  ],
  ['a default of a missing date', expr({ $gt: [{ $ifNull: ['$releasedOn', '$createdAt'] }, DAY] })],
  ['the later of two', expr({ $max: ['$releasedOn', DAY] })],
  ['the time between two', expr({ $dateDiff: { startDate: '$releasedOn', endDate: DAY, unit: 'day' } })],
  ['a difference', expr({ $subtract: ['$releasedOn', DAY] })],
  ['the current time', expr({ $gt: ['$$NOW', DAY] })],
  ['the whole document', expr({ $gt: ['$$ROOT.releasedOn', DAY] })],
  [
    'what a $reduce begins with',
    expr({ $reduce: { input: ['$releasedOn'], initialValue: DAY, in: { $max: ['$$value', '$$this'] } } }),
  ],
  ['a variable', expr({ $let: { vars: { v: '$releasedOn' }, in: { $gt: ['$$v', DAY] } } })],
  [
    'the elements of a list',
    expr({ $filter: { input: ['$releasedOn', '$createdAt'], cond: { $gt: ['$$this', DAY] } } }),
  ],
  ['a mapped list', expr({ $map: { input: ['$releasedOn'], as: 'v', in: { $eq: ['$$v', DAY] } } })],
  [
    'what a $reduce has come to',
    expr({
      $reduce: {
        input: ['$releasedOn'],
        initialValue: null,
        in: { $cond: [{ $gt: ['$$value', DAY] }, '$$value', '$$this'] },
      },
    }),
  ],
  ['sets', expr({ $setIsSubset: [[DAY], ['$releasedOn']] })],
  ['a place in a list', expr({ $indexOfArray: [['$releasedOn', '$createdAt'], DAY] })],
  ['$expr', [{ $match: { $expr: { $gt: ['$releasedOn', DAY] } } }]],
  ['boundaries', [{ $bucket: { groupBy: '$releasedOn', boundaries: [DAY, DAY], default: 'other' } }]],
  ['boundaries of a computed date', [{ $bucket: { groupBy: TRUNCATED, boundaries: [DAY, DAY] } }]],
  [
    'the key of a bucket',
    [{ $bucket: { groupBy: '$releasedOn', boundaries: [DAY], default: 'other' } }, { $match: { _id: DAY } }],
  ],
  [
    'the ends of an even bucket',
    [{ $bucketAuto: { groupBy: '$releasedOn', buckets: 2 } }, { $match: { '_id.min': { $lt: DAY } } }],
  ],
  ['the key of a group', [{ $group: { _id: TRUNCATED } }, { $match: { _id: { $gte: DAY } } }]],
  ['a member of a key', [{ $group: { _id: { at: TRUNCATED } } }, { $match: { '_id.at': DAY } }]],
  ['the key of a count', [{ $sortByCount: '$releasedOn' }, { $match: { _id: DAY } }]],
  [
    'an accumulator',
    [{ $group: { _id: null, last: { $max: '$releasedOn' } } }, { $match: { last: { $gt: DAY } } }],
  ],
  ['a pushed list', [{ $group: { _id: null, all: { $push: '$releasedOn' } } }, { $match: { all: DAY } }]],
  [
    'an element of a pushed list',
    [
      { $group: { _id: null, all: { $addToSet: '$releasedOn' } } },
      { $unwind: '$all' },
      { $match: { all: DAY } },
    ],
  ],
  [
    'pushed rows',
    [
      { $group: { _id: null, rows: { $push: '$$ROOT' } } },
      { $match: { rows: { $elemMatch: { releasedOn: DAY } } } },
    ],
  ],
  ['a computed column', [{ $addFields: { day: TRUNCATED } }, { $match: { day: DAY } }]],
  [
    'a projected column',
    [{ $project: { day: '$releasedOn', createdAt: 1 } }, { $match: { day: DAY, createdAt: DAY } }],
  ],
  ['a joined row', [JOIN, { $match: { 'who.born': DAY } }]],
  ['a joined row in an expression', [JOIN, { $unwind: '$who' }, ...expr({ $gt: ['$who.born', DAY] })]],
  [
    'what a joined pipeline made',
    [
      {
        $lookup: {
          from: 'Artist',
          let: { at: '$releasedOn' },
          pipeline: [{ $match: { $expr: { $gt: ['$$at', DAY] } } }, { $project: { b: '$born' } }],
          as: 'who',
        },
      },
      { $match: { 'who.b': DAY } },
    ],
  ],
  [
    'a search of a graph',
    [
      {
        $graphLookup: {
          from: 'Artist',
          startWith: '$artist',
          connectFromField: 'mentor',
          connectToField: 'mentor',
          as: 'all',
          restrictSearchWithMatch: { born: DAY },
        },
      },
      { $match: { 'all.born': DAY } },
    ],
  ],
  [
    'a branch of a facet',
    [
      { $facet: { a: [{ $match: { releasedOn: DAY } }, { $project: { at: '$releasedOn' } }] } },
      { $match: { 'a.at': DAY } },
    ],
  ],
  [
    'a united class',
    [
      { $unionWith: { coll: 'Artist', pipeline: [{ $match: { updatedAt: DAY } }] } },
      { $match: { createdAt: DAY } },
    ],
  ],
  ['a replaced document', [{ $replaceWith: { at: '$releasedOn' } }, { $match: { at: DAY } }]],
  ['a pruned document', [{ $redact: { $cond: [{ $gt: ['$releasedOn', DAY] }, '$$KEEP', '$$PRUNE'] } }]],
];

describe('ISO text in a pipeline', () => {
  it.each(COMPARED)('is a date where it is compared with %s', (_, pipeline) => {
    const notes: string[] = [];
    const walked = walk(pipeline, notes);
    expect(walked).toEqual(walk(withDates(pipeline)));
    expect(JSON.stringify(walked)).not.toContain(`"${DAY}"`);
    expect(notes.filter((note) => !note.includes('equals 2024-03-01 at midnight UTC alone'))).toEqual([]);
  });

  it('is a date where a variable or a computed column always holds it', () => {
    const asked = [
      expr({ $let: { vars: { v: DAY }, in: { $gt: ['$releasedOn', '$$v'] } } }),
      [{ $addFields: { from: DAY } }, ...expr({ $gt: ['$releasedOn', '$from'] })],
    ];
    for (const pipeline of asked)
      expect(JSON.stringify(walk(pipeline))).toContain(JSON.stringify({ $gt: ['$releasedOn', DATE] }));
  });

  it('stays a text where it is compared with a text', () => {
    const texts = [
      expr({ $eq: [{ $dateToString: { date: '$releasedOn', format: '%Y-%m-%d' } }, DAY] }),
      expr({ $eq: ['$title', DAY] }),
      [{ $match: { title: DAY } }],
    ];
    const notes: string[] = [];
    for (const pipeline of texts) expect(walk(pipeline, notes)).toEqual(pipeline);
    expect(notes).toEqual([]);
  });

  it('leaves what is quoted as it is, and what else is in a quoted list of dates', () => {
    const pointers = expr({
      $in: ['$meta', { $literal: [{ __type: 'Pointer', className: 'Artist', objectId: 'a' }] }],
    });
    expect(walk(pointers)).toEqual(pointers);
    expect(walk(expr({ $in: ['$releasedOn', { $literal: [DAY, null] }] }))).toEqual(
      expr({ $in: ['$releasedOn', [DATE, { $literal: null }]] }),
    );
  });

  it('stays a text beside values of which nothing is known, and the answer says so', () => {
    for (const ask of [
      (notes: string[]) => walk([{ $match: { 'meta.at': { $gt: DAY } } }], notes),
      (notes: string[]) => walk(expr({ $gt: ['$meta.at', DAY] }), notes),
      (notes: string[]) => walk([{ $bucket: { groupBy: '$meta.at', boundaries: [DAY] } }], notes),
      (notes: string[]) => where({ 'meta.at': { $gt: DAY } }, notes),
    ]) {
      const notes: string[] = [];
      expect(JSON.stringify(ask(notes))).toContain(`"${DAY}"`);
      expect(notes).toEqual([expect.stringContaining(JSON.stringify(DATE))]);
      expect(notes[0]).toContain('meta.at');
    }
  });
});

describe('a value that can never match', () => {
  it.each<[string, string, unknown]>([
    ['a number beside a date', 'releasedOn', 5],
    ['a truth value beside a date', 'releasedOn', true],
    ['another text beside a date', 'releasedOn', 'soon'],
    ['a day that does not exist', 'releasedOn', '2025-02-30'],
    ['a month that does not exist', 'releasedOn', '2025-13-01'],
    ['an hour that does not exist', 'releasedOn', '2025-01-01T24:00:00Z'],
    ['a zone that does not exist', 'releasedOn', '2025-01-01T00:00:00+25:00'],
    ['a pointer beside a date', 'releasedOn', { __type: 'Pointer', className: 'Artist', objectId: 'a' }],
    ['a text beside a number', 'playCount', '10'],
    ['a date beside a number', 'playCount', DATE],
    ['a truth value beside a number', 'playCount', false],
    ['a number beside a text', 'title', 1],
  ])('is refused by every operator: %s', (_, column, value) => {
    const asked = [
      () => where({ [column]: value }),
      ...['$eq', '$ne', '$gt', '$gte', '$lt', '$lte'].map(
        (operator) => () => where({ [column]: { [operator]: value } }),
      ),
      ...['$in', '$nin', '$all'].map((operator) => () => where({ [column]: { [operator]: [null, value] } })),
      () => walk([{ $match: { $or: [{ [column]: { $not: { $gt: value } } }] } }]),
      ...['$eq', '$ne', '$gt', '$cmp'].map(
        (operator) => () => walk(expr({ [operator]: [`$${column}`, value] })),
      ),
      () => walk(expr({ $in: [`$${column}`, [null, value]] })),
      () => walk([{ $bucket: { groupBy: `$${column}`, boundaries: [value] } }]),
      () => walk([{ $group: { _id: `$${column}` } }, { $match: { _id: value } }]),
    ];
    for (const ask of asked) {
      const refusal = catchRefusal(ask);
      expect([refusal?.code, refusal?.message]).toEqual(['invalid_query', expect.stringContaining("' is ")]);
      expect(refusal?.message).toMatch(/compare it with|write |does not exist/);
    }
  });

  it('is a pattern beside a date or a number', () => {
    for (const column of ['releasedOn', 'playCount'])
      for (const ask of [
        () => where({ [column]: { $regex: '2' } }),
        () => walk([{ $match: { [column]: { $regex: '2' } } }]),
      ])
        expect(catchRefusal(ask)).toMatchObject({ code: 'invalid_query' });
  });

  it('is no integer beyond 2^53 that stands as text beside a number', () => {
    const large = '9007199254740993';
    expect(where({ playCount: { $gt: large } })).toEqual({ playCount: { $gt: large } });
    expect(walk(expr({ $gt: ['$playCount', large] }))).toEqual(
      expr({ $gt: ['$playCount', { $toLong: large }] }),
    );
  });

  it('is none of null, presence and type', () => {
    for (const column of ['releasedOn', 'playCount', 'title']) {
      for (const condition of [null, { $exists: true }, { $ne: null }, { $in: [null] }])
        expect(catchRefusal(() => where({ [column]: condition }))).toBeNull();
      expect(catchRefusal(() => walk([{ $match: { [column]: { $type: 'date' } } }]))).toBeNull();
      expect(catchRefusal(() => walk(expr({ $eq: [`$${column}`, null] })))).toBeNull();
    }
  });

  it('tells nothing of a column that the caller may not name', () => {
    const asked = (column: string, value: unknown) =>
      [where, (constraint: unknown) => walk([{ $match: constraint }])].map((ask) =>
        catchRefusal(() => ask({ [column]: value })),
      );
    for (const value of [5, 'x', DAY]) {
      const texts = asked('royalty', value).map((refusal) => [refusal?.code, refusal?.message]);
      expect(texts).toEqual(asked('royalty', null).map((refusal) => [refusal?.code, refusal?.message]));
      expect(texts[0]?.[0]).toBe('access_denied');
    }
    // `fee` of an artist is hidden, and so is not in joined rows.
    expect(catchRefusal(() => walk([JOIN, { $match: { 'who.fee': 'x' } }]))).toBeNull();
  });
});

describe('a sum of what is no number', () => {
  const SUMS = ['$sum', '$avg', '$stdDevPop', '$stdDevSamp'];
  const everywhere = (operator: string, operand: unknown) => [
    [{ $group: { _id: null, n: { [operator]: operand } } }],
    [{ $bucketAuto: { groupBy: '$playCount', buckets: 2, output: { n: { [operator]: operand } } } }],
    expr({ [operator]: operand }),
    expr({ [operator]: ['$playCount', operand] }),
  ];

  it.each([
    '$title',
    '$releasedOn',
    '$artist',
    '$place',
    { $eq: ['$title', 'x'] },
    { $toUpper: '$title' },
    'text',
  ])('is refused, because the database answers 0 or nothing: %j', (operand) => {
    for (const operator of SUMS)
      for (const pipeline of everywhere(operator, operand))
        expect(catchRefusal(() => walk(pipeline))).toMatchObject({
          code: 'invalid_query',
          message: expect.stringContaining(`${operator} takes numbers`) as string,
        });
  });

  it.each(['$playCount', 1, { $toDouble: '$title' }, { $size: '$tags' }, '$meta.a', { $sum: '$tags' }])(
    'is none where numbers are possible: %j',
    (operand) => {
      for (const operator of SUMS)
        for (const pipeline of everywhere(operator, operand))
          expect(catchRefusal(() => walk(pipeline))).toBeNull();
    },
  );

  it('tells nothing of a column that the caller may not name', () => {
    const texts = SUMS.flatMap((operator) => everywhere(operator, '$orgId'));
    for (const pipeline of texts)
      expect(catchRefusal(() => walk(pipeline))).toMatchObject({ code: 'access_denied' });
  });
});

/** Each would take hours, or minutes, if it were worked out again for every place that rests on it. */
describe('what is known of a pipeline', () => {
  it('is worked out once where documents of many stages rest on one another', () => {
    const twenty = Array.from({ length: 20 }, () => '$o');
    const pipeline = [
      { $addFields: { o: { a: '$playCount' } } },
      ...Array.from({ length: 12 }, () => ({ $addFields: { o: { $ifNull: twenty } } })),
      { $match: { 'o.a': '5' } },
    ];
    expect(catchRefusal(() => walk(pipeline))?.message).toContain("'o.a' is a number");
  });

  it('is asked once for all operands that are compared with one another', () => {
    const constants = Array.from({ length: 20_000 }, () => 1);
    const unknown = Array.from({ length: 20_000 }, () => '$title.x');
    expect(walk(expr({ $max: [...constants, ...unknown] }))).toHaveLength(1);
  });

  it('names no column that the caller did not write', () => {
    const missed: string[] = [];
    const access = music('Song');
    const names = Object.assign(Object.create(access.names) as typeof access.names, {
      noteMissing: (name: string) => missed.push(name),
    });
    walkPipeline(
      validatePipeline([{ $project: { title: 1, twice: { $add: ['$playCount', 1] } } }]),
      { ...access, names },
      shopReach,
    );
    expect(missed).toEqual([]);
  });
});

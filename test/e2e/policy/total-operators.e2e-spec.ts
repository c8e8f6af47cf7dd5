// oxlint-disable unicorn/no-thenable -- $cond and $switch call a field "then".
import {
  Binary,
  BSONRegExp,
  BSONSymbol,
  Code,
  DBRef,
  Decimal128,
  Double,
  Int32,
  Long,
  MaxKey,
  MinKey,
  MongoClient,
  ObjectId,
  Timestamp,
} from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { FILTER_OPERATORS, REFUSED_IN_FILTERS } from '../../../libs/policy/src/pipeline/operators.js';
import { assertCannotFail } from '../../../libs/policy/src/pipeline/total-filter.js';
import { applied } from '../../support/operator-arguments.js';

/** Values of every BSON type, at the ends of what they hold. */
const VALUES: Readonly<Record<string, unknown>> = {
  double: new Double(1.5),
  'not a number': NaN,
  infinity: -Infinity,
  'greatest double': Number.MAX_VALUE,
  text: 'text',
  'empty text': '',
  'text with a zero byte': 'a\0b',
  object: { a: 1, b: { c: [1] } },
  'empty object': {},
  array: [1, 'a', null, [2], { a: 1 }],
  'empty array': [],
  'array of pairs': [['k', 1]],
  binary: new Binary(Buffer.from([1, 2])),
  uuid: new Binary(Buffer.alloc(16), 4),
  id: new ObjectId(),
  boolean: true,
  date: new Date(0),
  'greatest date': new Date(8.64e15),
  null: null,
  pattern: new BSONRegExp('a', 'i'),
  reference: new DBRef('x', new ObjectId()),
  code: new Code('1'),
  symbol: new BSONSymbol('s'),
  int: new Int32(-1),
  zero: 0,
  timestamp: new Timestamp({ t: 1, i: 1 }),
  long: Long.MAX_VALUE,
  'least long': Long.MIN_VALUE,
  decimal: Decimal128.fromString('9.999999999999999999999999999999999E+6144'),
  'decimal not a number': Decimal128.fromString('NaN'),
  'least key': new MinKey(),
  'greatest key': new MaxKey(),
  'nested in an array': [{ a: [{ b: 1 }] }, 'x'],
  nested: { v: { v: [1] } },
};

let embedded: EmbeddedMongo;
let client: MongoClient;
const rows = () => client.db('total').collection('rows');

beforeAll(async () => {
  embedded = await EmbeddedMongo.start({ reorderFilters: 7 });
  client = await MongoClient.connect(embedded.uri);
  const values = Object.values(VALUES);
  // Each beside each, and each alone.
  const documents = values.flatMap((v) => [{ v }, ...values.map((w) => ({ v, w }))]);
  await rows().insertMany([{}, ...documents]);
});
afterAll(async () => {
  await client?.close();
  await embedded?.close();
});

const matching = (expression: unknown) => rows().countDocuments({ $expr: expression as object });

async function failureOf(expression: unknown): Promise<string | null> {
  try {
    await matching(expression);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : 'failed';
  }
}

/** What operands of each kind a caller may write. */
const OPERANDS: Readonly<Record<string, readonly unknown[]>> = {
  anything: ['$v', '$v.v', '$v.a.b', '$missing', '$$ROOT', ['$v', '$w'], { a: '$v' }, { $literal: '$v' }],
  arrays: [
    { $cond: [{ $isArray: '$v' }, '$v', []] },
    { $cond: { if: { $isArray: ['$v'] }, then: '$v', else: ['$w'] } },
    ['$v', '$w'],
  ],
  numbers: [
    { $cond: [{ $isNumber: '$v' }, '$v', 0] },
    { $cond: [{ $isNumber: '$v' }, '$v', { $cond: [{ $isNumber: '$w' }, '$w', 1] }] },
    { $sum: ['$v', '$w'] },
    { $cmp: ['$v', '$w'] },
    1e308,
  ],
};

/** Every form in which an operator takes the value, a second column beside it where it takes several. */
function forms(operator: string, value: unknown): unknown[] {
  const plain = applied(operator, value);
  const operands = plain[operator];
  // One that takes a single operand takes a list of them as several.
  const takesSeveral = Array.isArray(operands) && operands.length > 1 && operands !== value;
  if (!takesSeveral || operator === '$in') return [plain];
  return [plain, { [operator]: (operands as unknown[]).map((_, index) => (index === 1 ? '$w' : value)) }];
}

describe('an operator that may stand in a filter', () => {
  it.each(Object.entries(FILTER_OPERATORS))('%s fails on no value of any type', async (operator, fit) => {
    let run = 0;
    for (const operand of OPERANDS[fit] ?? (OPERANDS['anything'] as unknown[])) {
      for (const expression of forms(operator, operand)) {
        if (!mayStand(expression)) continue;
        run += 1;
        expect([expression, await failureOf(expression)]).toEqual([expression, null]);
      }
    }
    expect(run).toBeGreaterThan(0);
  });

  it('fails on none inside another one', async () => {
    const [list] = OPERANDS['arrays'] as unknown[];
    const [number] = OPERANDS['numbers'] as unknown[];
    const whole = {
      $switch: {
        branches: [
          {
            case: { $in: ['$v', list] },
            then: { $gt: [{ $size: { $setUnion: [list, ['$w']] } }, number] },
          },
          {
            case: { $getField: { field: 'a', input: '$v' } },
            then: { $multiply: [number, { $add: [number, 1] }] },
          },
        ],
        default: { $and: [{ $not: ['$v'] }, { $or: [{ $max: ['$v', '$w'] }, { $avg: '$v' }] }] },
      },
    };
    expect(mayStand(whole)).toBe(true);
    expect(await failureOf(whole)).toBe(null);
  });
});

const mayStand = (expression: unknown): boolean => {
  try {
    assertCannotFail({ $expr: expression });
    return true;
  } catch {
    return false;
  }
};

describe('an operator that may not stand in a filter', () => {
  const failing = Object.entries(REFUSED_IN_FILTERS).filter(([, why]) => why === 'fails');

  it.each(failing)('%s really fails on some value', async (operator) => {
    const failures = await Promise.all(forms(operator, '$v').map((expression) => failureOf(expression)));
    expect(failures.some((failure) => failure !== null && !/not support|Unrecognized/.test(failure))).toBe(
      true,
    );
  });

  it.each(Object.keys(REFUSED_IN_FILTERS))('%s is refused over whatever it is given', (operator) => {
    for (const value of ['$v', 1, { $literal: 'x' }, []]) {
      expect(mayStand(applied(operator, value))).toBe(false);
      expect(mayStand({ $cond: [true, 1, applied(operator, value)] })).toBe(false);
    }
  });

  it('is in one of both lists only', () => {
    const twice = Object.keys(FILTER_OPERATORS).filter((operator) => operator in REFUSED_IN_FILTERS);
    expect(twice).toEqual([]);
  });

  it('includes whatever nobody knows', () => {
    for (const operator of ['$frobnicate', '$constructor', '$__proto__', '$toString2', '$function'])
      expect(mayStand({ [operator]: '$v' })).toBe(false);
  });
});

/** Operands that look fit and are not. */
describe('an operand that is of its kind in some rows only', () => {
  it.each<[string, unknown]>([
    ['a column', { $size: '$v' }],
    ['a column as the only operand', { $size: ['$v'] }],
    ['another column than the guarded one', { $size: { $cond: [{ $isArray: '$w' }, '$v', []] } }],
    ['a deeper column than the guarded one', { $size: { $cond: [{ $isArray: '$v' }, '$v.v', []] } }],
    ['a guard the wrong way round', { $size: { $cond: [{ $isArray: '$v' }, [], '$v'] } }],
    ['a guard of the other kind', { $size: { $cond: [{ $isNumber: '$v' }, '$v', []] } }],
    ['a negated guard', { $size: { $cond: [{ $not: [{ $isArray: '$v' }] }, '$v', []] } }],
    ['a guard among others', { $size: { $cond: [{ $or: [{ $isArray: '$v' }, true] }, '$v', []] } }],
    ['a guard with two operands', { $size: { $cond: [{ $isArray: ['$v', '$w'] }, '$v', []] } }],
    ['a default for null', { $size: { $ifNull: ['$v', []] } }],
    ['a guard by $and', { $and: [{ $isArray: '$v' }, { $gt: [{ $size: '$v' }, 1] }] }],
    ['a guard by $cond around it', { $cond: [{ $isArray: '$v' }, { $size: '$v' }, 0] }],
    ['a quoted path', { $size: { $literal: '$v' } }],
    ['a list behind a variable', { $in: [1, '$$list'] }],
    ['a whole row', { $in: [1, '$$ROOT'] }],
    ['a number in a text', { $add: ['1', 1] }],
    ['a sum of a column', { $add: ['$v', 1] }],
    ['a default that is a column', { $add: [{ $cond: [{ $isNumber: '$v' }, '$v', '$w'] }, 1] }],
    ['the average, which can be null', { $add: [{ $avg: '$v' }, 1] }],
    ['three operands of $in', { $in: [1, [1], 2] }],
    ['an operator behind another one', { $eq: [1, 1], $divide: [1, '$v'] }],
  ])('is refused: %s', (_, expression) => {
    expect(mayStand(expression)).toBe(false);
  });
});

describe('a condition of the query language', () => {
  const OPERATORS: readonly object[] = [
    ...['$eq', '$ne', '$gt', '$gte', '$lt', '$lte'].map((operator) => ({ [operator]: 'text' })),
    { $in: ['a', 1, null, { a: 1 }, []] },
    { $nin: [] },
    { $all: ['a', 1] },
    { $all: [{ $elemMatch: { a: { $gt: 1 } } }] },
    { $exists: true },
    { $type: ['string', 'array'] },
    { $size: 2 },
    { $mod: [3, 1] },
    { $regex: '^(a|b)+c', $options: 'i' },
    { $elemMatch: { $gt: 1, $mod: [2, 0] } },
    { $elemMatch: { $and: [{ a: 1 }, { 'b.c': { $exists: false } }] } },
    { $not: { $regex: 'a' } },
    { $geoWithin: { $centerSphere: [[1, 1], 0.5] } },
    {
      $geoWithin: {
        $box: [
          [0, 0],
          [1, 1],
        ],
      },
    },
    { $geoIntersects: { $geometry: { type: 'Point', coordinates: [1, 1] } } },
  ];

  it.each(OPERATORS.map((operator) => [JSON.stringify(operator), operator]))(
    '%s fails on no value of any type',
    async (_, operator) => {
      for (const path of ['v', 'v.a', 'v.0', 'v.v.v', 'missing'])
        expect(await rows().countDocuments({ [path]: operator })).toBeGreaterThanOrEqual(0);
    },
  );

  it.each(['$near', '$nearSphere'])('%s fails on no value that is no place', async (operator) => {
    const places = client.db('total').collection('places');
    await places.insertMany(Object.values(VALUES).map((v) => ({ w: v })));
    await places.createIndex({ v: '2dsphere' });
    await places.insertMany([{ v: [1, 1] }, { v: { type: 'Point', coordinates: [2, 2] } }]);
    for (const v of Object.values(VALUES)) await failed(() => places.insertOne({ v }));
    const near = { [operator]: { $geometry: { type: 'Point', coordinates: [1, 1] }, $maxDistance: 5e6 } };
    expect((await places.find({ v: near }).toArray()).length).toBeGreaterThanOrEqual(2);
  });

  it('does not fail where a pattern meets more text than it can be tried on', async () => {
    const long = client.db('total').collection('long');
    await long.insertOne({ v: 'a'.repeat(400_000) });
    for (const pattern of ['a*a*a*b$', '(a|b|ab)*c', '^(?=.*b)a', '(a)\\1*b', 'a{1,30}a{1,30}b'])
      for (const condition of [{ $regex: pattern }, { $not: { $regex: pattern } }])
        expect(await failed(() => long.countDocuments({ v: condition }))).toBe(null);
  });
});

async function failed(act: () => Promise<unknown>): Promise<string | null> {
  try {
    await act();
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : 'failed';
  }
}

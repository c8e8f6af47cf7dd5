import { Binary, BSONRegExp, Decimal128, Double, Long, MaxKey, MinKey, ObjectId, Timestamp } from 'bson';
import { describe, expect, it } from 'vitest';
import { compileCollation } from '../bson/collation.js';
import type { Document } from '../bson/document.js';
import { MongoError } from '../errors.js';
import type { QueryContext } from './context.js';
import { compileFilter } from './filter.js';

import fc from 'fast-check';

const base: QueryContext = { tick: () => undefined, now: new Date(0) };
const one = new ObjectId('64b000000000000000000001');
const two = new ObjectId('64b000000000000000000002');
const copy = (id: ObjectId): ObjectId => new ObjectId(id.toHexString());
const insensitive = compileCollation({ locale: 'en', strength: 2 });
const dec = (text: string): Decimal128 => Decimal128.fromString(text);

function filterValues(values: readonly Document[], filter: Document, ctx = base): number[] {
  const compiled = compileFilter(filter, ctx);
  return values.flatMap((doc, i) => (compiled.matches(doc) ? [i + 1] : []));
}

/** Title, documents (counted from 1), filter, numbers of those MongoDB returns. */
type Row = [title: string, docs: Document[], filter: Document, matches: number[]];
const of = (...values: unknown[]): Document[] => values.map((a) => (a === undefined ? {} : { a }));

const types: Row[] = [
  ['an ObjectId equals another of the same bytes', of(one), { a: copy(one) }, [1]],
  ['$in finds an ObjectId', of(one), { a: { $in: [copy(one)] } }, [1]],
  ['ObjectIds are ordered by their bytes', of(one, two), { a: { $gt: one } }, [2]],
  ['dates are ordered by time', of(new Date(5)), { a: { $gt: new Date(1) } }, [1]],
  ['a long equals an int of the same value', of(Long.fromNumber(5)), { a: 5 }, [1]],
  ['a long compares with an int', of(Long.fromNumber(50)), { a: { $gt: 5 } }, [1]],
  ['longs compare as numbers, not as text', of(Long.fromNumber(10)), { a: { $gt: Long.fromNumber(9) } }, [1]],
  [
    'longs past 2^53 are told apart',
    of(Long.fromString('9007199254740993')),
    { a: Long.fromString('9007199254740992') },
    [],
  ],
  ['decimals compare as numbers', of(dec('10')), { a: { $gt: dec('9') } }, [1]],
  ['decimals of another scale are equal', of(dec('1.0')), { a: dec('1.00') }, [1]],
  ['a decimal equals an int', of(dec('5')), { a: 5 }, [1]],
  ['decimal 0.1 is not the double 0.1', of(dec('0.1')), { a: 0.1 }, []],
  ['binaries are equal by bytes', of(new Binary(Buffer.from('x'))), { a: new Binary(Buffer.from('x')) }, [1]],
  [
    'binaries of another subtype differ',
    of(new Binary(Buffer.from('x'), 5)),
    { a: new Binary(Buffer.from('x')) },
    [],
  ],
  [
    'timestamps are ordered',
    of(new Timestamp({ t: 10, i: 1 })),
    { a: { $gt: new Timestamp({ t: 9, i: 1 }) } },
    [1],
  ],
  [
    'bits of a double are those of its whole number, also past 2^53',
    of(1e18, 1.5, 2 ** 63),
    { a: { $bitsAllClear: [0] } },
    [1],
  ],
  ['bits past the 64th are those of the sign', of(-1, 1), { a: { $bitsAllSet: [200] } }, [1]],
  [
    'bits of a binary end with it',
    of(new Binary(Buffer.alloc(20, 255)), new Binary(Buffer.alloc(10, 255))),
    { a: { $bitsAllSet: [159] } },
    [1],
  ],
  ['$mod is exact for decimals', of(dec('999999999999999999')), { a: { $mod: [10, 9] } }, [1]],
  ['$gt MinKey takes in what is missing', of(1, undefined), { a: { $gt: new MinKey() } }, [1, 2]],
  ['$type knows objectId by name', of(one), { a: { $type: 'objectId' } }, [1]],
  ['$type knows objectId by number', of(one), { a: { $type: 7 } }, [1]],
  ['$type knows binData', of(new Binary(Buffer.from('x'))), { a: { $type: 'binData' } }, [1]],
  ['$type looks at array elements', of(['x', 1]), { a: { $type: 'string' } }, [1]],
  ['$type array is the array itself', of(['x'], 'x'), { a: { $type: 'array' } }, [1]],
  ['$type tells double from int', of(5, new Double(5), 5.5), { a: { $type: 'double' } }, [2, 3]],
  [
    '$type number is all four numeric types',
    of(1, new Double(1), Long.ONE, dec('1'), 'x'),
    { a: { $type: 'number' } },
    [1, 2, 3, 4],
  ],
  ['comparisons stay within one type', of('5', new Date(9), null, true), { a: { $gt: 1 } }, []],
  [
    'MinKey and MaxKey bound every type',
    of(1, 'x', {}),
    { a: { $gt: new MinKey(), $lt: new MaxKey() } },
    [1, 2, 3],
  ],
];

const nulls: Row[] = [
  ['null stands for missing as well', of(undefined, null, 1), { a: null }, [1, 2]],
  ['$gte null matches null and missing', of(undefined, null, 1), { a: { $gte: null } }, [1, 2]],
  ['$gt null matches nothing', of(undefined, null, 1), { a: { $gt: null } }, []],
  ['$ne null is neither', of(undefined, null, 1), { a: { $ne: null } }, [3]],
  ['$in with null', of(undefined, null, 1), { a: { $in: [null] } }, [1, 2]],
  ['$exists true counts null', of(undefined, null, 1), { a: { $exists: true } }, [2, 3]],
  [
    'a missing field below some array element is null',
    [{ a: [{ b: 1 }, { c: 2 }] }, { a: [{ b: 1 }] }],
    { 'a.b': null },
    [1],
  ],
  [
    '$exists false needs every element without the field',
    [{ a: [{ b: 1 }, { c: 2 }] }, { a: [{ c: 1 }] }],
    { 'a.b': { $exists: false } },
    [2],
  ],
  ['an array of scalars has no null below it', [{ a: [1, 2] }, { a: [] }, { a: 4 }], { 'a.b': null }, [3]],
  ['a name of the object prototype is no field', [{}], { constructor: { $exists: true } }, []],
];

const arrays: Row[] = [
  ['arrays are equal in order only', of([2, 1]), { a: [1, 2] }, []],
  ['an array equals as a whole or by an element', of([1, 2], [[1, 2], 3]), { a: [1, 2] }, [1, 2]],
  ['objects are equal in field order only', of({ y: 1, x: 2 }), { a: { x: 2, y: 1 } }, []],
  [
    '$elemMatch wants one element to satisfy all',
    of([1, 5, 9], [1, 9]),
    { a: { $elemMatch: { $gt: 4, $lt: 6 } } },
    [1],
  ],
  [
    '$elemMatch looks into documents',
    of([{ x: 1, y: 2 }], [{ x: 1 }, { y: 2 }]),
    { a: { $elemMatch: { x: 1, y: 2 } } },
    [1],
  ],
  ['without $elemMatch different elements may satisfy', of([1, 9]), { a: { $gt: 4, $lt: 6 } }, [1]],
  ['a number in a path is a position', of([7, 8]), { 'a.0': 7 }, [1]],
  ['a number in a path is a field too', of({ 0: 7 }, [{ 0: 7 }]), { 'a.0': 7 }, [1, 2]],
  ['$all accepts a scalar field', of('x'), { a: { $all: ['x'] } }, [1]],
  ['$all reaches through arrays', of([{ b: 1 }, { b: 2 }]), { 'a.b': { $all: [1, 2] } }, [1]],
  [
    '$all with $elemMatch',
    of([{ x: 1 }, { x: 2 }]),
    { a: { $all: [{ $elemMatch: { x: 1 } }, { $elemMatch: { x: 2 } }] } },
    [1],
  ],
  ['$all of nothing matches nothing', of([1]), { a: { $all: [] } }, []],
  ['$size counts elements', of([1, 2], 2), { a: { $size: 2 } }, [1]],
  ['$nin excludes by any element', of([1, 2]), { a: { $nin: [2] } }, []],
  ['$ne excludes by any element', of([1, 2], [3]), { a: { $ne: 2 } }, [2]],
  ['$not of a comparison holds for a missing field', of(undefined), { a: { $not: { $gt: 5 } } }, [1]],
  ['$not takes a pattern', of('b', 'a'), { a: { $not: new BSONRegExp('a') } }, [1]],
  ['$mod truncates', of(4.5), { a: { $mod: [4, 0] } }, [1]],
  ['NaN is not above anything', of(NaN), { a: { $gt: -1 } }, []],
  ['NaN equals NaN', of(NaN), { a: NaN }, [1]],
  ['$bitsAllSet reads two’s complement', of(-1, 5, 6), { a: { $bitsAllSet: [0, 2] } }, [1, 2]],
  ['a reference is a value, not an operator', of({ $ref: 'x', $id: 1 }), { a: { $ref: 'x', $id: 1 } }, [1]],
];

const patterns: Row[] = [
  ['$options x ignores white space', of('abc'), { a: { $regex: 'a b c', $options: 'x' } }, [1]],
  ['(?i) folds case', of('ABC'), { a: { $regex: '(?i)abc' } }, [1]],
  [String.raw`\Q…\E quotes`, of('a.c', 'abc'), { a: { $regex: String.raw`^\Qa.c\E` } }, [1]],
  ['a regular expression value', of('abc'), { a: new BSONRegExp('^ab', 'i') }, [1]],
  ['$in with patterns', of('abc', 'x'), { a: { $in: [new BSONRegExp('^ab')] } }, [1]],
  ['possessive quantifiers', of('aaa'), { a: { $regex: 'a++' } }, [1]],
  ['a pattern matches array elements', of(['x', 'abc']), { a: { $regex: '^ab' } }, [1]],
  ['a pattern equals the same pattern stored', of(new BSONRegExp('^ab')), { a: new BSONRegExp('^ab') }, [1]],
];

const combined: Row[] = [
  ['$comment changes nothing', of(1), { $comment: 'why', a: 1 }, [1]],
  [
    '$expr compares fields',
    [
      { a: 2, b: 1 },
      { a: 1, b: 2 },
    ],
    { $expr: { $gt: ['$a', '$b'] } },
    [1],
  ],
  ['$expr tells missing from null', of(undefined, null), { $expr: { $eq: ['$a', null] } }, [2]],
  [
    '$geoWithin $centerSphere',
    of([0, 0], [50, 50]),
    { a: { $geoWithin: { $centerSphere: [[0, 0], 0.1] } } },
    [1],
  ],
  [
    '$geoWithin $box',
    of([1, 1], [9, 9]),
    {
      a: {
        $geoWithin: {
          $box: [
            [0, 0],
            [2, 2],
          ],
        },
      },
    },
    [1],
  ],
  [
    '$geoWithin $polygon',
    of({ type: 'Point', coordinates: [1, 1] }),
    {
      a: {
        $geoWithin: {
          $polygon: [
            [0, 0],
            [0, 3],
            [3, 0],
          ],
        },
      },
    },
    [1],
  ],
  [
    '$near a GeoJSON point, in metres',
    of([0, 0], [1, 1]),
    { a: { $near: { $geometry: { type: 'Point', coordinates: [0, 0] }, $maxDistance: 1000 } } },
    [1],
  ],
  [
    '$geoIntersects of a stored polygon with a point',
    of(
      {
        type: 'Polygon',
        coordinates: [
          [
            [0, 0],
            [0, 3],
            [3, 3],
            [3, 0],
            [0, 0],
          ],
        ],
      },
      { type: 'Point', coordinates: [9, 9] },
    ),
    { a: { $geoIntersects: { $geometry: { type: 'Point', coordinates: [1, 1] } } } },
    [1],
  ],
  [
    '$nearSphere keeps within its distance',
    of([0, 0], [50, 50]),
    { a: { $nearSphere: [0, 0], $maxDistance: 0.1 } },
    [1],
  ],
];

describe.each([
  ['types', types],
  ['null and missing', nulls],
  ['arrays and objects', arrays],
  ['patterns', patterns],
  ['combinations', combined],
] as [string, Row[]][])('a filter on %s', (_area, rows) => {
  it.each(rows)('%s', (_title, docs, filter, matches) => {
    expect(filterValues(docs, filter)).toEqual(matches);
  });
});

describe('a filter with a collation', () => {
  const ctx: QueryContext = { ...base, ...(insensitive && { collation: insensitive }) };
  it.each([
    ['$eq', of('ABC', 'abd'), { a: 'abc' }, [1]],
    ['$in', of('ABC'), { a: { $in: ['abc'] } }, [1]],
    ['$gt', of('B', 'a'), { a: { $gt: 'A' } }, [1]],
    ['strings inside objects', of({ n: 'X' }), { a: { n: 'x' } }, [1]],
  ] as Row[])('compares strings by it in %s', (_title, docs, filter, matches) => {
    expect(filterValues(docs, filter, ctx)).toEqual(matches);
  });

  it('compares strings in $expr by it, but a field with a constant list', () => {
    const [inList, otherwise] = [{ $in: ['$a', ['abc']] }, { $in: ['abc', ['$a']] }];
    expect(filterValues(of('ABC'), { $expr: inList }, ctx)).toEqual([]);
    expect(filterValues(of('ABC'), { $expr: otherwise }, ctx)).toEqual([1]);
    expect(filterValues(of('ABC'), { $expr: { $or: [inList] } }, ctx)).toEqual([1]);
  });

  it('leaves patterns alone', () => {
    expect(filterValues(of('ABC'), { a: { $regex: 'abc' } }, ctx)).toEqual([]);
  });
});

describe('a malformed filter', () => {
  it.each([
    ['an unknown operator', { a: { $foo: 1 } }, 2],
    ['an unknown top-level operator', { $foo: 1 }, 2],
    ['a field among operators', { a: { $gt: 1, b: 2 } }, 2],
    ['$in without a list', { a: { $in: 1 } }, 2],
    ['operators nested in $in', { a: { $in: [{ $gt: 1 }] } }, 2],
    ['an empty $or', { $or: [] }, 2],
    ['$and of scalars', { $and: [1] }, 2],
    ['$not of a scalar', { a: { $not: 1 } }, 2],
    ['$elemMatch of a scalar', { a: { $elemMatch: 1 } }, 2],
    ['$size of a string', { a: { $size: 'x' } }, 2],
    ['$mod by zero', { a: { $mod: [0, 1] } }, 2],
    ['$options alone', { a: { $options: 'i' } }, 2],
    ['an unknown type alias', { a: { $type: 'nothing' } }, 2],
    ['an unknown regex option', { a: { $regex: 'a', $options: 'g' } }, 51108],
    ['a broken pattern', { a: { $regex: '(a' } }, 51091],
    ['an undefined variable in $expr', { $expr: '$$nobody' }, 17276],
    ['server-side JavaScript', { $where: 'return true' }, 31264],
    ['JavaScript inside $expr', { $expr: { $function: { body: 'x', args: [], lang: 'js' } } }, 31264],
    ['a $jsonSchema that is no object', { $jsonSchema: 1 }, 14],
    ['$text without an index', { $text: { $search: 'x' } }, 27],
  ])('is refused: %s', (_title, filter, code) => {
    expect(() => compileFilter(filter, base)).toThrow(expect.objectContaining({ code }) as MongoError);
  });

  it('is refused when it is no object', () => {
    expect(() => compileFilter([] as unknown as Document, base)).toThrow(MongoError);
  });
});

describe('the matched position', () => {
  it.each([
    ['an element equal to a value', { a: [1, 5] }, { a: 5 }, 1],
    ['a field below an array', { a: [{ q: 1 }, { q: 5 }] }, { 'a.q': 5 }, 1],
    ['$elemMatch', { a: [{ q: 1 }, { q: 5 }] }, { a: { $elemMatch: { q: 5 } } }, 1],
    ['a condition inside $and', { a: [1, 5] }, { $and: [{ a: 5 }] }, 1],
    ['the only branch of $or', { a: [1, 5] }, { $or: [{ a: 5 }] }, 1],
    ['the first element of several in $or', { a: [1, 4, 2] }, { $or: [{ a: 2 }, { a: 4 }] }, 1],
    ['an array below a document', { x: { a: [3, 4] } }, { 'x.a': { $gt: 3 } }, 1],
    ['the greater of two limits, which is looked at last', { a: [1, 2, 3] }, { a: { $gt: 1, $lt: 3 } }, 1],
    ['the last of equal conditions', { a: [1, 2, 3] }, { a: { $all: [1, 3] } }, 2],
    ['the same in another order', { a: [1, 2, 3] }, { $and: [{ a: { $gt: 1 } }, { a: { $lt: 3 } }] }, 1],
    ['the last path of two equal ones', { a: [5, 1], b: [1, 5] }, { b: 5, a: 5 }, 1],
    ['a limit after $elemMatch', { a: [9, 1, 5] }, { a: { $gt: 4, $elemMatch: { $eq: 5 } } }, 0],
  ])('is known for %s', (_title, doc, filter, index) => {
    expect(compileFilter(filter, base).findMatchedPosition(doc)).toBe(index);
  });

  it('is unknown where no array took part', () => {
    expect(compileFilter({ a: 1 }, base).findMatchedPosition({ a: 1 })).toBeUndefined();
    expect(compileFilter({ a: { $ne: 1 } }, base).findMatchedPosition({ a: [2] })).toBeUndefined();
    for (const other of [{ b: 1 }, { a: { $gt: 4 } }, { a: 5, b: 1 }]) {
      const filter = compileFilter({ $or: [{ a: 5 }, other] }, base);
      expect(filter.findMatchedPosition({ a: [1, 5] })).toBeUndefined();
    }
  });
});

describe('$text', () => {
  const ctx: QueryContext = { ...base, text: { fields: [{ path: 'a', weight: 1 }] } };
  it.each([
    ['any of the words', 'coffee tea', [1, 2]],
    ['other forms of a word', 'drinks', [2]],
    ['a phrase as a whole', '"strong coffee"', [1]],
    ['nothing with a banned word', 'coffee tea -tea', [1]],
  ])('finds %s', (_title, $search, matches) => {
    expect(
      filterValues(of('A strong Coffee', 'she was drinking tea', 'water'), { $text: { $search } }, ctx),
    ).toEqual(matches);
  });
});

describe('$text is refused', () => {
  const ctx: QueryContext = { ...base, text: { fields: [{ path: 'a', weight: 1 }] } };
  const search = { $text: { $search: 'a' } };
  it.each([
    ['without a search', { $text: {} }, 4],
    ['in an unknown language', { $text: { $search: 'a', $language: 'klingon' } }, 2],
    ['in a language that it does not stem', { $text: { $search: 'a', $language: 'es' } }, 238],
    ['with another option', { $text: { $search: 'a', $fuzzy: true } }, 2],
    ['with a flag that is none', { $text: { $search: 'a', $caseSensitive: 1 } }, 14],
    ['within $nor', { $nor: [search] }, 2],
    ['of an element', { a: { $elemMatch: search } }, 2],
  ])('%s', (_title, filter, code) => {
    expect(() => compileFilter(filter, ctx)).toThrow(expect.objectContaining({ code }));
  });
});

const scalar = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constantFrom('a', 'b', null, true));
const anyDoc = fc.record(
  { a: fc.oneof(scalar, fc.array(scalar, { maxLength: 3 })), b: scalar },
  { requiredKeys: [] },
);
const anyFilter = fc.oneof(
  fc.record({ a: scalar }),
  scalar.map((value) => ({ a: { $gte: value } })),
  scalar.map((value) => ({ b: { $ne: value } })),
  fc.array(scalar, { maxLength: 3 }).map((values) => ({ a: { $in: values } })),
);

describe('the logical operators', () => {
  it('are boolean algebra over their branches', () => {
    fc.assert(
      fc.property(anyDoc, fc.array(anyFilter, { minLength: 1, maxLength: 4 }), (doc, branches) => {
        const holds = (filter: Document): boolean => compileFilter(filter, base).matches(doc);
        const each = branches.map(holds);
        expect(holds({ $and: branches })).toBe(each.every(Boolean));
        expect(holds({ $or: branches })).toBe(each.some(Boolean));
        expect(holds({ $nor: branches })).toBe(!each.some(Boolean));
      }),
    );
  });

  it('make $not the complement of its condition', () => {
    fc.assert(
      fc.property(anyDoc, scalar, (doc, value) => {
        const plain = compileFilter({ a: { $gt: value } }, base).matches(doc);
        expect(compileFilter({ a: { $not: { $gt: value } } }, base).matches(doc)).toBe(!plain);
      }),
    );
  });
});

import {
  Binary,
  BSONRegExp,
  Code,
  Decimal128,
  Double,
  Long,
  MaxKey,
  MinKey,
  ObjectId,
  Timestamp,
} from 'bson';
import { describe, expect, it } from 'vitest';
import { type Collation, compileCollation } from './collation.js';
import { compareValues, identical, valuesEqual } from './compare.js';
import type { Document } from './document.js';
import { toKey, compileSort } from './keys.js';
import { typeName } from './type-name.js';

import fc from 'fast-check';

const dec = (text: string): Decimal128 => Decimal128.fromString(text);

/** One value of every type, in BSON order. */
const ladder: unknown[] = [
  new MinKey(),
  undefined,
  null,
  NaN,
  -Infinity,
  Long.MIN_VALUE,
  -1,
  dec('-0.5'),
  0,
  dec('1E-10'),
  1,
  1.5,
  Long.fromString('9007199254740993'),
  dec('9007199254740993.5'),
  Infinity,
  '',
  'B',
  'a',
  'é',
  '\uffee',
  '😀',
  {},
  { a: 1 },
  { a: 1, b: 0 },
  { b: 0 },
  { a: 'x' },
  [],
  [1],
  [1, 1],
  [2],
  ['a'],
  new Binary(Buffer.from('a')),
  new Binary(Buffer.from('a'), 5),
  new Binary(Buffer.from('aa')),
  new ObjectId('000000000000000000000001'),
  false,
  true,
  new Date(-1),
  new Date(0),
  new Timestamp({ t: 1, i: 2 }),
  new Timestamp({ t: 2, i: 1 }),
  new BSONRegExp('a'),
  new BSONRegExp('a', 'i'),
  new Code('x'),
  new MaxKey(),
];

describe('the order of values', () => {
  it('puts every type and value in its place', () => {
    const pairs = ladder.flatMap((a, i) => ladder.map((b, j) => ({ i, j, order: compareValues(a, b) })));
    const wrong = pairs.filter(({ i, j, order }) => order !== Math.sign(i - j));
    expect(wrong.map(({ i, j }) => [ladder[i], ladder[j]])).toEqual([]);
  });

  it.each([
    [1, new Double(1)],
    [1, Long.ONE],
    [1, dec('1.00')],
    [0, -0],
    [0.5, dec('0.50')],
    [NaN, dec('NaN')],
    [1e300, dec('1E300')],
    [Long.fromString('9007199254740993'), dec('9007199254740993')],
  ] as [unknown, unknown][])('takes %s and %s for equal only if they are the same number', (a, b) => {
    const same = !(a === 1e300);
    expect(valuesEqual(a, b)).toBe(same);
    expect(toKey(a) === toKey(b)).toBe(same);
  });

  it('tells stored bytes apart where values are equal', () => {
    expect(identical(1, Long.ONE)).toBe(false);
    expect(identical(dec('1.0'), dec('1.00'))).toBe(false);
    expect(identical({ a: 1, b: 2 }, { b: 2, a: 1 })).toBe(false);
    expect(identical({ a: [1, { b: new Date(5) }] }, { a: [1, { b: new Date(5) }] })).toBe(true);
  });

  it('takes a stored field called _bsontype for data', () => {
    const fake = { _bsontype: 'ObjectId', id: 1 };
    expect(typeName(fake)).toBe('object');
    expect(compareValues(fake, { ...fake })).toBe(0);
  });
});

const leaf = fc.oneof(
  fc.constantFrom(null, undefined, true, false, NaN, 0, -0, new MinKey(), new MaxKey()),
  fc.integer({ min: -5, max: 5 }),
  fc.integer({ min: -5, max: 5 }).map((n) => Long.fromNumber(n)),
  fc.integer({ min: -50, max: 50 }).map((n) => dec(`${n}E-1`)),
  fc.integer({ min: -50, max: 50 }).map((n) => n / 10),
  fc.integer({ min: -5, max: 5 }).map((n) => new Double(n)),
  fc.bigInt({ min: 2n ** 53n - 3n, max: 2n ** 53n + 3n }).map((n) => Long.fromBigInt(n)),
  fc.constantFrom(2 ** 53, 2 ** 53 + 2),
  fc.string({ maxLength: 2, unit: 'grapheme' }),
  fc.date({ min: new Date(0), max: new Date(3), noInvalidDate: true }),
  fc.constantFrom(new Binary(Buffer.from('a')), new Timestamp({ t: 1, i: 1 }), new BSONRegExp('a', 'i')),
);
const value = fc.oneof(
  { weight: 4, arbitrary: leaf },
  {
    weight: 1,
    arbitrary: fc.array(
      leaf.map((item) => item ?? null),
      { maxLength: 2 },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.dictionary(
      fc.constantFrom('a', 'b', '1'),
      leaf.map((item) => item ?? null),
      { maxKeys: 2 },
    ),
  },
);

describe('for any values', () => {
  it('the order is total: reflexive, antisymmetric and transitive', () => {
    fc.assert(
      fc.property(value, value, value, (a, b, c) => {
        expect(compareValues(a, a)).toBe(0);
        expect(compareValues(a, b) + compareValues(b, a)).toBe(0);
        // Wrapped, because Array.sort never asks about undefined.
        const [x, y, z] = [{ v: a }, { v: b }, { v: c }]
          .sort((m, n) => compareValues(m.v, n.v))
          .map((item) => item.v);
        expect(compareValues(x, y)).toBeLessThanOrEqual(0);
        expect(compareValues(y, z)).toBeLessThanOrEqual(0);
        expect(compareValues(x, z)).toBeLessThanOrEqual(0);
      }),
      { numRuns: 300 },
    );
  });

  it('keys are equal exactly where values are', () => {
    fc.assert(
      fc.property(value, value, (a, b) => {
        expect(toKey(a) === toKey(b)).toBe(compareValues(a, b) === 0);
      }),
      { numRuns: 500 },
    );
  });
});

describe('a sort', () => {
  const sortDocuments = (docs: Document[], spec: Document, collation?: Collation): unknown[] => {
    const { listKeys, compareKeys } = compileSort(spec, collation);
    return docs.toSorted((a, b) => compareKeys(listKeys(a), listKeys(b))).map((doc) => doc['_id']);
  };

  it.each([
    [
      'takes missing for null and is stable',
      [{ _id: 1, a: null }, { _id: 2 }, { _id: 3, a: null }],
      { a: 1 },
      [1, 2, 3],
    ],
    [
      'takes the smallest element ascending',
      [
        { _id: 1, a: [5, 1] },
        { _id: 2, a: [3] },
      ],
      { a: 1 },
      [1, 2],
    ],
    [
      'takes the largest element descending',
      [
        { _id: 2, a: [3] },
        { _id: 1, a: [5, 1] },
      ],
      { a: -1 },
      [1, 2],
    ],
    [
      'puts an empty array before null',
      [
        { _id: 1, a: null },
        { _id: 2, a: [] },
      ],
      { a: 1 },
      [2, 1],
    ],
    [
      'reaches through arrays',
      [
        { _id: 1, a: [{ b: 9 }, { b: 1 }] },
        { _id: 2, a: { b: 5 } },
      ],
      { 'a.b': 1 },
      [1, 2],
    ],
    [
      'takes a number in a path for the position that an array has, and for nothing else',
      [
        { _id: 1, a: [{}] },
        { _id: 2, a: [0] },
      ],
      { 'a.0': 1 },
      [2, 1],
    ],
    [
      'takes an element that is no document for null',
      [
        { _id: 1, a: [{ b: 1 }] },
        { _id: 2, a: [7, { b: 2 }] },
      ],
      { 'a.b': 1 },
      [2, 1],
    ],
    [
      'takes several keys of one element',
      [
        {
          _id: 1,
          a: [
            { x: 1, y: 5 },
            { x: 2, y: 1 },
          ],
        },
        { _id: 2, a: { x: 1, y: 2 } },
      ],
      { 'a.x': 1, 'a.y': 1 },
      [2, 1],
    ],
    [
      'goes on to the next key',
      [
        { _id: 1, k: 'b', n: 1 },
        { _id: 2, k: 'a', n: 1 },
        { _id: 3, k: 'a', n: 2 },
      ],
      { k: 1, n: -1 },
      [3, 2, 1],
    ],
    [
      'puts types in BSON order',
      [
        { _id: 'd', a: new Date(0) },
        { _id: 'b', a: true },
        { _id: 's', a: 'x' },
        { _id: 'n', a: 1 },
        { _id: 'O', a: {} },
      ],
      { a: 1 },
      ['n', 's', 'O', 'b', 'd'],
    ],
  ] as [string, Document[], Document, unknown[]][])('%s', (_title, docs, spec, ids) => {
    expect(sortDocuments(docs, spec)).toEqual(ids);
  });

  it('follows a collation', () => {
    const docs = [
      { _id: 1, a: 'b' },
      { _id: 2, a: 'A' },
    ];
    expect(sortDocuments(docs, { a: 1 }, compileCollation({ locale: 'en', strength: 2 }))).toEqual([2, 1]);
  });

  it('chooses among array elements by the collation too', () => {
    const docs = [
      { _id: 1, a: ['b'] },
      { _id: 2, a: ['Z', 'a'] },
    ];
    expect(sortDocuments(docs, { a: 1 }, compileCollation({ locale: 'en', strength: 2 }))).toEqual([2, 1]);
    expect(sortDocuments(docs, { a: 1 })).toEqual([2, 1]);
    expect(
      sortDocuments(
        [
          { _id: 1, a: ['B', 'a'] },
          { _id: 2, a: ['A', 'b'] },
        ],
        { a: 1, _id: -1 },
        compileCollation({ locale: 'en', strength: 2 }),
      ),
    ).toEqual([2, 1]);
  });

  it('refuses directions other than 1 and -1', () => {
    expect(() => compileSort({ a: 2 })).toThrow(expect.objectContaining({ code: 15975 }));
    expect(() => compileSort({ a: 'up' })).toThrow(expect.objectContaining({ code: 15974 }));
  });
});

describe('a collation', () => {
  const equal = (spec: Document, a: string, b: string): boolean => {
    const collation = compileCollation({ locale: 'en', ...spec });
    const same = valuesEqual(a, b, collation);
    expect(toKey(a, collation) === toKey(b, collation)).toBe(same);
    return same;
  };

  it.each([
    [{ strength: 1 }, 'Résumé', 'resume', true],
    [{ strength: 1, caseLevel: true }, 'Resume', 'resume', false],
    [{ strength: 1, caseLevel: true }, 'résumé', 'resume', true],
    [{ strength: 2 }, 'RESUME', 'resume', true],
    [{ strength: 2 }, 'résumé', 'resume', false],
    [{ strength: 3 }, 'Resume', 'resume', false],
    [{ locale: 'ja', strength: 3 }, 'かな', 'カナ', true],
    [{ strength: 3 }, 'かな', 'カナ', false],
    [{ strength: 2 }, 'かな', 'カナ', true],
    [{ locale: 'ja', strength: 4 }, 'かな', 'カナ', false],
    [{ strength: 1 }, 'smørrebrød', 'SMORREBROD', true],
    [{ strength: 1 }, 'Straße', 'strasse', true],
    [{ strength: 2 }, 'Straße', 'strasse', false],
    [{ locale: 'sv', strength: 1 }, 'å', 'a', false],
    [{ locale: 'sv', strength: 1 }, 'å', 'Å', true],
    [{ locale: 'hi', strength: 1 }, 'कि', 'क', false],
    [{ locale: 'tr', strength: 1 }, 'İ', 'i', true],
    [{ locale: 'tr', strength: 2 }, 'ı', 'I', true],
    [{ locale: 'tr', strength: 1 }, 'i', 'I', false],
    [{ locale: 'de@collation=phonebook', strength: 1 }, 'ä', 'ae', true],
    [{ locale: 'de', strength: 1 }, 'ä', 'ae', false],
    [{ locale: 'en_US_POSIX', strength: 1 }, 'a', 'A', false],
    [{ locale: 'th', strength: 1 }, 'a b', 'ab', true],
    [{ strength: 3 }, 'a\u200bb', 'ab', true],
    [{ strength: 4 }, 'a\u200bb', 'ab', true],
    [{ strength: 5 }, 'a\u200bb', 'ab', false],
    [{ strength: 5 }, 'e\u0301', '\u00e9', true],
    [{ alternate: 'shifted', maxVariable: 'space' }, 'a b', 'ab', true],
    [{ alternate: 'shifted', maxVariable: 'space' }, 'a-b', 'ab', false],
    [{ alternate: 'shifted', maxVariable: 'space' }, 'a\u00a0b', 'ab', false],
    [{ numericOrdering: true, strength: 4 }, 'a007', 'a7', true],
    [{ alternate: 'shifted', strength: 4 }, 'a-b', 'ab', false],
    [{ strength: 3 }, 'e\u0301', '\u00e9', true],
    [{ numericOrdering: true }, 'a007', 'a7', true],
    [{ numericOrdering: true }, 'a100', 'a10', false],
    [{ alternate: 'shifted', strength: 2 }, 'black-bird', 'blackbird', true],
  ] as [Document, string, string, boolean][])('%j compares %s and %s', (spec, a, b, same) => {
    expect(equal(spec, a, b)).toBe(same);
  });

  it('orders digits as numbers when asked', () => {
    expect(compareValues('a10', 'a9', compileCollation({ locale: 'en', numericOrdering: true }))).toBe(1);
    expect(compareValues('a10', 'a9', compileCollation({ locale: 'en' }))).toBe(-1);
  });

  it.each([
    [{ locale: 'fr' }, ['cote', 'coté', 'côte', 'côté']],
    [{ locale: 'fr', backwards: true }, ['cote', 'côte', 'coté', 'côté']],
    [{ locale: 'fr_CA' }, ['cote', 'côte', 'coté', 'côté']],
    [{ locale: 'fr_CA', backwards: false }, ['cote', 'coté', 'côte', 'côté']],
    [{ locale: 'en', strength: 4, alternate: 'shifted' }, ['a_b', 'a-b', 'ab']],
    [{ locale: 'da' }, ['A', 'a', 'Å', 'å']],
    [{ locale: 'da', caseFirst: 'off' }, ['a', 'A', 'å', 'Å']],
  ] as [Document, string[]][])('%j orders %j', (spec, ordered) => {
    const collation = compileCollation(spec);
    expect(ordered.toReversed().sort((a, b) => compareValues(a, b, collation))).toEqual(ordered);
  });

  it('calls equal what has the same key, whatever the text', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 4 });
    const locale = fc.constantFrom('en', 'de', 'sv', 'tr', 'ja', 'ko', 'zh', 'hi', 'fr_CA', 'th');
    const spec = fc.record({
      locale,
      strength: fc.integer({ min: 1, max: 5 }),
      caseLevel: fc.boolean(),
      alternate: fc.constantFrom('shifted', 'non-ignorable'),
      numericOrdering: fc.boolean(),
    });
    fc.assert(
      fc.property(spec, text, text, (chosen, a, b) => {
        for (const other of [b, a.toUpperCase(), a.normalize('NFD'), a + b]) equal(chosen, a, other);
      }),
    );
  });

  it('called simple is the order of bytes', () => {
    expect(compileCollation({ locale: 'simple' })).toBeUndefined();
  });

  it.each([
    [{}, 40414],
    [{ locale: 'xx-nowhere-land' }, 2],
    [{ locale: 'en', strength: 9 }, 2],
    [{ locale: 'en', strength: '2' }, 14],
    [{ locale: 1 }, 14],
    [{ locale: 'en', caseLevel: 1 }, 14],
    [{ locale: 'en', alternate: 'moved' }, 2],
    [{ locale: 'en', strength: 2, caseFirst: 'upper' }, 2],
    [{ locale: 'en', Strength: 2 }, 40415],
    [{ locale: 'en', version: '2' }, 161],
    [{ locale: 'en', backwards: true }, 238],
    [{ locale: 'zh@collation=big5han' }, 238],
  ] as [Document, number][])('refuses %j', (spec, code) => {
    expect(() => compileCollation(spec)).toThrow(expect.objectContaining({ code }));
  });
});

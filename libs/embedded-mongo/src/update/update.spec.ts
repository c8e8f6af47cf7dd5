import { Decimal128, Double, EJSON, Long, Timestamp } from 'bson';
import { describe, expect, it } from 'vitest';
import type { Document } from '../bson/document.js';
import { updateDescription } from '../feed/change-stream.js';
import type { QueryContext } from '../query/context.js';
import { compileFilter } from '../query/filter.js';
import { compileUpdate } from './update.js';

import fc from 'fast-check';

const ctx: QueryContext = { tick: () => undefined, now: new Date('2024-05-06T07:08:09Z') };

interface Case {
  readonly filter?: Document;
  readonly arrayFilters?: Document[];
  readonly insert?: boolean;
}

function updateDocument(
  doc: Document,
  update: Document | Document[],
  { filter, arrayFilters, insert }: Case = {},
): Document {
  const options = arrayFilters ? { ctx, arrayFilters } : { ctx };
  return compileUpdate(update, options).apply(doc, filter && compileFilter(filter, ctx), insert).doc;
}

/** Canonical extended JSON tells 3 from 3.0 and keeps field order. */
const exact = (value: unknown): string => EJSON.stringify(value, { relaxed: false });

type Row = [title: string, doc: Document, update: Document, result: Document, options?: Case];

const rows: Row[] = [
  ['$set adds and replaces', { a: 1 }, { $set: { a: 2, b: 3 } }, { a: 2, b: 3 }],
  ['$set creates the way to a field', {}, { $set: { 'a.b': 1 } }, { a: { b: 1 } }],
  [
    '$set fills an array with null up to the position',
    { a: [1] },
    { $set: { 'a.3': 9 } },
    { a: [1, null, null, 9] },
  ],
  ['$set of the same _id is allowed', { _id: 1, a: 1 }, { $set: { _id: 1, a: 2 } }, { _id: 1, a: 2 }],
  [
    '$set of another field order is a change',
    { a: { x: 1, y: 2 } },
    { $set: { a: { y: 2, x: 1 } } },
    { a: { y: 2, x: 1 } },
  ],
  ['$set adds new fields in the order of their names', {}, { $set: { b: 1, a: 2 } }, { a: 2, b: 1 }],
  [
    '$set orders names by their bytes',
    {},
    { $set: { '\u{1F600}': 1, '\uFB00': 2 } },
    { '\uFB00': 2, '\u{1F600}': 1 },
  ],
  ['$setOnInsert waits for an insert', { a: 1 }, { $setOnInsert: { b: 1 } }, { a: 1 }],
  ['$setOnInsert applies on insert', { a: 1 }, { $setOnInsert: { b: 1 } }, { a: 1, b: 1 }, { insert: true }],
  ['$unset removes a field', { a: 1, b: 2 }, { $unset: { a: '' } }, { b: 2 }],
  ['$unset leaves null in an array', { a: [1, 2] }, { $unset: { 'a.0': '' } }, { a: [null, 2] }],
  ['$unset of a missing field does nothing', { a: 1 }, { $unset: { 'x.y': '' } }, { a: 1 }],
  ['$inc creates the field', {}, { $inc: { a: 2 } }, { a: 2 }],
  ['$inc with a long gives a long', { a: 1 }, { $inc: { a: Long.ONE } }, { a: Long.fromNumber(2) }],
  [
    '$inc past 32 bits gives a long',
    { a: 2147483647 },
    { $inc: { a: 1 } },
    { a: Long.fromNumber(2147483648) },
  ],
  ['$inc with a double gives a double', { a: 1 }, { $inc: { a: new Double(1) } }, { a: new Double(2) }],
  [
    '$inc with a decimal stays exact',
    { a: Decimal128.fromString('0.1') },
    { $inc: { a: Decimal128.fromString('0.2') } },
    { a: Decimal128.fromString('0.3') },
  ],
  ['$set takes a dollar in a field name', {}, { $set: { 'a.$b': 1 } }, { a: { $b: 1 } }],
  [
    '$mul leaves a zero its sign',
    { a: Decimal128.fromString('-0') },
    { $mul: { a: -1 } },
    { a: Decimal128.fromString('-0') },
  ],
  [
    '$mul by a decimal gives a zero its sign',
    { a: Decimal128.fromString('-5') },
    { $mul: { a: 0 } },
    { a: Decimal128.fromString('-0') },
  ],
  ['$mul of a missing field is zero', {}, { $mul: { a: 5 } }, { a: 0 }],
  ['$mul keeps the wider type', { a: 3 }, { $mul: { a: Long.fromNumber(2) } }, { a: Long.fromNumber(6) }],
  ['$min follows the order of types', { a: new Date(1) }, { $min: { a: 5 } }, { a: 5 }],
  ['$max keeps the larger value', { a: 5 }, { $max: { a: 3, b: 1 } }, { a: 5, b: 1 }],
  ['$bit and', { a: 13 }, { $bit: { a: { and: 10 } } }, { a: 8 }],
  ['$bit or on a missing field', {}, { $bit: { a: { or: 5 } } }, { a: 5 }],
  ['$rename moves a field', { a: { b: 1 } }, { $rename: { 'a.b': 'c' } }, { a: {}, c: 1 }],
  ['$rename of a missing field does nothing', { a: 1 }, { $rename: { x: 'y' } }, { a: 1 }],
  ['$rename replaces the target', { a: 1, b: 2 }, { $rename: { a: 'b' } }, { b: 1 }],
  ['$currentDate gives the time of the operation', {}, { $currentDate: { a: true } }, { a: ctx.now }],
  [
    '$currentDate gives a timestamp',
    {},
    { $currentDate: { a: { $type: 'timestamp' } } },
    { a: new Timestamp({ t: 1714979289, i: 1 }) },
  ],
  ['$push creates the array', {}, { $push: { a: 1 } }, { a: [1] }],
  [
    '$push $each on a missing field heeds $slice',
    {},
    { $push: { a: { $each: [1, 2, 3], $slice: -2 } } },
    { a: [2, 3] },
  ],
  [
    '$push $each on a missing field heeds $sort',
    {},
    { $push: { a: { $each: [3, 1], $sort: 1 } } },
    { a: [1, 3] },
  ],
  [
    '$push sorts by several fields',
    { a: [] },
    {
      $push: {
        a: {
          $each: [
            { x: 1, y: 1 },
            { x: 1, y: 0 },
          ],
          $sort: { x: 1, y: 1 },
        },
      },
    },
    {
      a: [
        { x: 1, y: 0 },
        { x: 1, y: 1 },
      ],
    },
  ],
  [
    '$push sorts by an array at a path as a whole, and by a position in it',
    {},
    {
      $push: {
        a: { $each: [{ x: [1, 9] }, { x: [{ y: 0 }] }, 7, { x: 5 }, { x: [0] }], $sort: { x: -1, 'x.0': 1 } },
      },
    },
    { a: [{ x: [{ y: 0 }] }, { x: [1, 9] }, { x: [0] }, { x: 5 }, 7] },
  ],
  [
    '$push sorts by an element of an array at a path',
    { a: [{ x: [2, 0] }, { x: [1, 1] }] },
    { $push: { a: { $each: [], $sort: { 'x.0': 1 } } } },
    { a: [{ x: [1, 1] }, { x: [2, 0] }] },
  ],
  [
    '$push counts a negative position from the end',
    { a: [1, 2, 3] },
    { $push: { a: { $each: [9], $position: -1 } } },
    { a: [1, 2, 9, 3] },
  ],
  [
    '$push sorts, then slices',
    { a: [3] },
    { $push: { a: { $each: [1, 2], $sort: -1, $slice: 2 } } },
    { a: [3, 2] },
  ],
  ['$addToSet adds what is new', { a: [1] }, { $addToSet: { a: { $each: [1, 2, 2] } } }, { a: [1, 2] }],
  [
    '$addToSet tells field orders apart',
    { a: [{ x: 1, y: 2 }] },
    { $addToSet: { a: { y: 2, x: 1 } } },
    {
      a: [
        { x: 1, y: 2 },
        { y: 2, x: 1 },
      ],
    },
  ],
  ['$addToSet takes 1 and 1.0 as one value', { a: [1] }, { $addToSet: { a: new Double(1) } }, { a: [1] }],
  ['$pop takes the last', { a: [1, 2] }, { $pop: { a: 1 } }, { a: [1] }],
  ['$pop takes the first', { a: [1, 2] }, { $pop: { a: -1 } }, { a: [2] }],
  [
    '$pull by condition on documents',
    { a: [{ b: 1 }, { b: 2 }] },
    { $pull: { a: { b: { $gte: 2 } } } },
    { a: [{ b: 1 }] },
  ],
  ['$pull by condition on values', { a: [1, 5, 9] }, { $pull: { a: { $gt: 4 } } }, { a: [1] }],
  ['$pull by value', { a: [1, 2, 1] }, { $pull: { a: 1 } }, { a: [2] }],
  ['$pull by an array as one value', { a: [[1], 1] }, { $pull: { a: [1] } }, { a: [1] }],
  ['$pullAll', { a: [1, 2, 3] }, { $pullAll: { a: [1, 3] } }, { a: [2] }],
  ['$[] reaches every element', { a: [1, 2] }, { $inc: { 'a.$[]': 1 } }, { a: [2, 3] }],
  [
    '$[x] reaches the elements its filter accepts',
    { a: [{ q: 1 }, { q: 5 }] },
    { $set: { 'a.$[e].z': 1 } },
    { a: [{ q: 1 }, { q: 5, z: 1 }] },
    { arrayFilters: [{ 'e.q': { $gt: 2 } }] },
  ],
  [
    '$[x] nests',
    { a: [{ b: [1, 2] }, { b: [2] }] },
    { $set: { 'a.$[].b.$[e]': 0 } },
    { a: [{ b: [1, 0] }, { b: [0] }] },
    { arrayFilters: [{ e: 2 }] },
  ],
  [
    '$ is the element $elemMatch found',
    { a: [{ q: 1 }, { q: 5 }] },
    { $set: { 'a.$.z': 1 } },
    { a: [{ q: 1 }, { q: 5, z: 1 }] },
    { filter: { a: { $elemMatch: { q: 5 } } } },
  ],
  [
    '$ is the element a condition inside $and found',
    { a: [1, 5] },
    { $set: { 'a.$': 9 } },
    { a: [1, 9] },
    { filter: { $and: [{ a: 5 }] } },
  ],
  [
    'a field called __proto__ is data',
    {},
    { $set: { ['__proto__']: 1 } },
    JSON.parse('{"__proto__":1}') as Document,
  ],
  ['a replacement keeps _id', { _id: 1, a: 1 }, { b: 2 }, { _id: 1, b: 2 }],
];

describe('an update', () => {
  it.each(rows)('%s', (_title, doc, update, result, options = {}) => {
    expect(exact(updateDocument(doc, update, options))).toBe(exact(result));
  });

  it('keeps the stored _id when an equal one of another type arrives', () => {
    expect(exact(updateDocument({ _id: 1, a: 1 }, { _id: Long.ONE, a: 2 }))).toBe(exact({ _id: 1, a: 2 }));
  });

  it('runs a pipeline over the document', () => {
    expect(updateDocument({ _id: 1, a: 2 }, [{ $set: { b: { $add: ['$a', 1] } } }, { $unset: 'a' }])).toEqual(
      {
        _id: 1,
        b: 3,
      },
    );
  });

  it.each([
    ['an equal value', { a: 1 }, { $set: { a: 1 } }, false],
    ['an equal value of another numeric type', { a: 1 }, { $set: { a: Long.ONE } }, true],
    [
      'a decimal of another scale',
      { a: Decimal128.fromString('1.0') },
      { $set: { a: Decimal128.fromString('1.00') } },
      true,
    ],
    ['$inc by zero', { a: 1 }, { $inc: { a: 0 } }, false],
    ['$push of nothing', { a: [1] }, { $push: { a: { $each: [] } } }, false],
    ['$addToSet of a member', { a: [1] }, { $addToSet: { a: 1 } }, false],
    ['$min that keeps the value', { a: 1 }, { $min: { a: 2 } }, false],
    ['the same replacement', { _id: 1, a: 1 }, { _id: 1, a: 1 }, false],
    ['the same replacement without its _id', { _id: 1, a: 1 }, { a: 1 }, true],
  ])('says whether it changed anything: %s', (_title, doc, update, modified) => {
    expect(compileUpdate(update, { ctx }).apply(doc).modified).toBe(modified);
  });
});

describe('an update refuses', () => {
  it.each([
    ['an unknown modifier', {}, { $foo: { a: 1 } }, 9],
    ['a modifier without fields', {}, { $set: 1 }, 9],
    ['an empty part of a path', {}, { $set: { 'a..b': 1 } }, 56],
    ['a dollar at the top', {}, { $inc: { $a: 1 } }, 52],
    ['two matched elements in one path', { a: [{ b: [1] }] }, { $set: { 'a.$.b.$': 1 } }, 2],
    ['a dollar in a replacement', { a: 1 }, { b: 1, $c: 2 }, 52],
    ['a path through a scalar', { a: 1 }, { $set: { 'a.b': 1 } }, 28],
    ['a name where an array needs a position', { a: [1] }, { $set: { 'a.b': 1 } }, 28],
    ['the same path twice', {}, { $set: { a: 1 }, $inc: { a: 1 } }, 40],
    ['a path and one below it', {}, { $set: { a: 1, 'a.b': 2 } }, 40],
    ['overlapping elements found at run time', { a: [1] }, { $set: { 'a.$[]': 1, 'a.0': 2 } }, 40],
    ['another _id', { _id: 1 }, { $set: { _id: 2 } }, 66],
    ['a replacement with another _id', { _id: 1 }, { _id: 2 }, 66],
    ['the removal of _id', { _id: 1 }, { $unset: { _id: '' } }, 66],
    ['$inc by a string', {}, { $inc: { a: 'x' } }, 14],
    ['$inc of a string', { a: 'x' }, { $inc: { a: 1 } }, 14],
    ['$inc of null', { a: null }, { $inc: { a: 1 } }, 14],
    ['$inc past 64 bits', { a: Long.MAX_VALUE }, { $inc: { a: 1 } }, 2],
    ['$push onto a scalar', { a: 'x' }, { $push: { a: 1 } }, 2],
    ['$push with an unknown clause', {}, { $push: { a: { $each: [], $foo: 1 } } }, 2],
    ['$addToSet onto a scalar', { a: 'x' }, { $addToSet: { a: 1 } }, 2],
    ['$pop of a scalar', { a: 'x' }, { $pop: { a: 1 } }, 14],
    ['$pop by two', { a: [] }, { $pop: { a: 2 } }, 9],
    ['$pop below a scalar', { a: 'x' }, { $pop: { 'a.b': 1 } }, 28],
    ['$rename from below a scalar', { a: 1 }, { $rename: { 'a.b': 'c' } }, 28],
    ['$rename to _id', { _id: 1, a: 1 }, { $rename: { a: '_id' } }, 66],
    ['$pull from a scalar', { a: 1 }, { $pull: { a: 1 } }, 2],
    ['$pullAll without a list', {}, { $pullAll: { a: 1 } }, 2],
    ['$rename to no string', {}, { $rename: { a: 1 } }, 2],
    ['$rename onto itself', {}, { $rename: { a: 'a' } }, 2],
    ['$rename out of an array', { a: [{ b: 1 }] }, { $rename: { 'a.0.b': 'c' } }, 2],
    ['$bit of a double', { a: 1.5 }, { $bit: { a: { and: 1 } } }, 2],
    ['$bit with an unknown operation', {}, { $bit: { a: { nand: 1 } } }, 2],
    ['$currentDate of an unknown type', {}, { $currentDate: { a: { $type: 'year' } } }, 2],
    ['$currentDate with an unknown option', {}, { $currentDate: { a: { $type: 'date', x: 1 } } }, 2],
    ['$ without a match', { a: [1] }, { $set: { 'a.$': 1 } }, 2],
    ['$[] on a scalar', { a: 1 }, { $set: { 'a.$[]': 1 } }, 2],
    ['$[] on a missing field', {}, { $set: { 'a.$[]': 1 } }, 2],
    ['$[x] without its filter', { a: [] }, { $set: { 'a.$[x]': 1 } }, 2],
  ] as [string, Document, Document, number][])('%s', (_title, doc, update, code) => {
    expect(() => updateDocument(doc, update)).toThrow(expect.objectContaining({ code }));
  });

  it('an array filter that no path uses, or two of one name', () => {
    expect(() => updateDocument({}, { $set: { a: 1 } }, { arrayFilters: [{ x: 1 }] })).toThrow(
      expect.objectContaining({ code: 9 }),
    );
    expect(() =>
      updateDocument({ a: [] }, { $set: { 'a.$[x]': 1 } }, { arrayFilters: [{ x: 1 }, { x: 2 }] }),
    ).toThrow(expect.objectContaining({ code: 9 }));
  });

  it('a pipeline stage that is no update', () => {
    expect(() => updateDocument({}, [{ $match: {} }])).toThrow(expect.objectContaining({ code: 72 }));
  });

  it('says where and in which document', () => {
    expect(() => updateDocument({ _id: 7, a: 'x' }, { $inc: { a: 1 } })).toThrow(
      "Cannot apply $inc to a value of non-numeric type. {_id: 7} has the field 'a' of non-numeric type string",
    );
  });
});

describe('the seed of an upsert', () => {
  const seed = (filter: Document, update: Document = { $set: { z: 1 } }): Document =>
    compileUpdate(update, { ctx }).upsertSeed(filter);

  it.each([
    ['equalities', { a: 1, 'b.c': 2 }, { a: 1, b: { c: 2 } }],
    [
      '$eq, $and and lists of one',
      { $and: [{ a: { $eq: 1 } }, { b: { $in: [2] } }], c: { $all: [3] } },
      { a: 1, b: 2, c: 3 },
    ],
    ['nothing from ranges, patterns and alternatives', { a: { $gt: 1 }, $or: [{ b: 1 }, { b: 2 }] }, {}],
    ['the only alternative', { $or: [{ a: 1 }] }, { a: 1 }],
  ])('takes %s', (_title, filter, result) => {
    expect(seed(filter)).toEqual(result);
  });

  it('is the _id alone for a replacement', () => {
    expect(seed({ _id: 1, a: 2 }, { b: 1 })).toEqual({ _id: 1 });
  });

  it('refuses a field fixed twice', () => {
    expect(() => seed({ a: 1, $and: [{ a: 2 }] })).toThrow(expect.objectContaining({ code: 54 }));
  });
});

const value = fc.oneof(
  fc.integer(),
  fc.string({ maxLength: 3 }),
  fc.array(fc.integer(), { maxLength: 3 }),
  fc.record({ x: fc.integer() }),
);
const document = fc.dictionary(fc.constantFrom('a', 'b', 'c'), value);
const modifier = fc.oneof(
  fc.record({ $set: fc.dictionary(fc.constantFrom('a', 'b', 'c.x', 'd.e'), value, { minKeys: 1 }) }),
  fc.record({ $unset: fc.dictionary(fc.constantFrom('a', 'b.x', 'c.0'), fc.constant(''), { minKeys: 1 }) }),
  fc.record({ $push: fc.record({ a: value }) }),
  fc.record({ $rename: fc.record({ b: fc.constant('z') }) }),
  fc.record({ $inc: fc.record({ a: fc.integer() }) }),
);

describe('an update of any document', () => {
  it('never changes its input', () => {
    fc.assert(
      fc.property(document, modifier, (doc, update) => {
        const before = exact(doc);
        try {
          compileUpdate(update as Document, { ctx }).apply(doc);
        } catch {
          // A refusal must leave the input alone as well.
        }
        expect(exact(doc)).toBe(before);
      }),
    );
  });

  it('is described by changes that rebuild its result', () => {
    fc.assert(
      fc.property(document, document, (before, after) => {
        const { updatedFields, removedFields, truncatedArrays } = updateDescription(before, after);
        const fields = Object.fromEntries(removedFields.map((field) => [field, '']));
        let doc: Document = before;
        for (const { field, newSize } of truncatedArrays)
          doc = updateDocument(doc, { $push: { [field]: { $each: [], $slice: newSize } } });
        if (removedFields.length > 0) doc = updateDocument(doc, { $unset: fields });
        if (Object.keys(updatedFields).length > 0) doc = updateDocument(doc, { $set: updatedFields });
        const sortEntries = (of: Document): [string, unknown][] =>
          Object.entries(of).sort(([x], [y]) => (x < y ? -1 : 1));
        expect(exact(Object.fromEntries(sortEntries(doc)))).toBe(
          exact(Object.fromEntries(sortEntries(after))),
        );
      }),
    );
  });
});

import {
  Binary,
  BSON,
  BSONRegExp,
  Code,
  Decimal128,
  Double,
  Int32,
  Long,
  MaxKey,
  MinKey,
  ObjectId,
  Timestamp,
} from 'bson';
import { describe, expect, it, vi } from 'vitest';
import type { Document } from '../bson/document.js';
import { MongoError } from '../errors.js';
import { decodeDocument } from './decode.js';
import { encodeChanged, encodeDocument } from './encode.js';
import { RawBson, readRawDocuments } from './raw-bson.js';

import fc from 'fast-check';

// The machine may be busy: a slow rule is not a broken one.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const raw = (document: Document): Buffer => Buffer.from(BSON.serialize(document));

const leaf = fc.oneof(
  fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }).map((value) => new Int32(value)),
  fc.double().map((value) => new Double(value)),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => Long.fromBigInt(value)),
  fc.string({ unit: 'grapheme' }),
  fc.boolean(),
  fc.constant(null),
  fc.date({ noInvalidDate: true }),
  fc.uint8Array({ minLength: 12, maxLength: 12 }).map((bytes) => new ObjectId(bytes)),
  fc
    .tuple(fc.uint8Array({ maxLength: 20 }), fc.constantFrom(0, 1, 2, 5, 6, 7, 8, 128, 255))
    .map(([bytes, type]) => new Binary(bytes, type)),
  fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => new Binary(bytes, Binary.SUBTYPE_UUID)),
  fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => new Decimal128(bytes)),
  fc
    .tuple(fc.stringMatching(/^[a-z.*()|]{0,5}$/), fc.subarray(['i', 'm', 's', 'x']))
    .map(([pattern, options]) => new BSONRegExp(pattern, options.join(''))),
  fc.tuple(fc.nat(0xffffffff), fc.nat(0xffffffff)).map(([t, i]) => new Timestamp({ t, i })),
  // As often as any other type, so that none is left out by chance.
  ...[new MinKey(), new MaxKey(), new Code('f()'), new Code('f(x)', { x: new Int32(1) })].map((value) =>
    fc.constant(value),
  ),
);
/** Types that are stored as they come and read as others: a symbol as a text, an undefined as null or nothing. */
const foreign = fc.constantFrom(new BSON.BSONSymbol('s'), new BSON.DBRef('c', new ObjectId()));
const name = fc.oneof(fc.stringMatching(/^[a-z]{1,6}$/), fc.constantFrom('__proto__', 'constructor', 'ключ'));
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    leaf,
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.array(fc.tuple(name, tie('tree')), { maxLength: 4 }).map((entries) => {
      const document: Document = {};
      for (const [key, value] of entries) {
        Object.defineProperty(document, key, { value, enumerable: true, configurable: true, writable: true });
      }
      return document;
    }),
  ),
}));

describe('the type-keeping codec', () => {
  it('gives back the very bytes it decoded, whatever the types', () => {
    const seen = new Set<number>();
    fc.assert(
      fc.property(tree, (value) => {
        const bytes = raw({ value });
        seen.add(bytes[4] ?? 0);
        expect(encodeDocument(decodeDocument(bytes)).equals(bytes)).toBe(true);
      }),
      { numRuns: 600 },
    );
    // Every type of the specification but those that nobody may write any more.
    const types = [1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 13, 15, 16, 17, 18, 19, 127, 255];
    expect([...seen].toSorted((a, b) => a - b)).toEqual(types);
  });

  it('encodes the next version alike, whatever moved, vanished or came between', () => {
    const fields = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd', 'e', '1'), fc.integer());
    fc.assert(
      fc.property(fields, fields, (before, changes) => {
        const after = { ...changes, ...before, ...changes };
        const drawn = Object.fromEntries(Object.entries(after).filter(([name]) => changes[name] !== 0));
        expect(encodeChanged(encodeDocument(before), before, drawn, 100)).toEqual(encodeDocument(drawn));
      }),
    );
  });

  it('keeps the bytes of every type when another field changes', () => {
    fc.assert(
      fc.property(fc.oneof(tree, foreign), fc.oneof(tree, foreign), (one, other) => {
        const before = raw({ _id: 1, one, n: 1, inner: { other, m: 1 } });
        const document = decodeDocument(before);
        const after = encodeChanged(before, document, { ...document, n: 2 }, 100);
        expect(after.equals(raw({ _id: 1, one, n: 2, inner: { other, m: 1 } }))).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    ['int32', new Int32(3), 3],
    ['a fraction', new Double(3.5), 3.5],
    ['minus zero', new Double(-0), -0],
    ['a large double', new Double(2 ** 31), 2 ** 31],
    ['NaN', new Double(NaN), NaN],
  ])('decodes %s as a plain number', (_title, stored, number) => {
    expect(decodeDocument(raw({ v: stored }))['v']).toBe(number);
  });

  it('decodes an integral double and any int64 as their classes', () => {
    const document = decodeDocument(raw({ double: new Double(3), long: Long.fromNumber(3) }));
    expect(document['double']).toBeInstanceOf(Double);
    expect(document['long']).toBeInstanceOf(Long);
  });

  it('never lets a stored field become a prototype', () => {
    const bytes = encodeDocument(JSON.parse('{"__proto__": {"admin": true}}') as Document);
    const document = decodeDocument(bytes);
    expect(Object.getPrototypeOf(document)).toBe(Object.prototype);
    expect((document as { admin?: unknown }).admin).toBeUndefined();
    expect(Object.keys(document)).toEqual(['__proto__']);
  });

  it('takes a stored field called _bsontype for data', () => {
    const document = { value: { _bsontype: 'ObjectId', id: 'no bytes' } };
    expect(decodeDocument(encodeDocument(document))).toEqual(document);
  });

  it('refuses a document that is nested too deep', () => {
    let document: Document = {};
    for (let depth = 0; depth < 120; depth += 1) document = { document };
    const bytes = encodeDocument(document);
    expect(() => decodeDocument(bytes, 100)).toThrow(expect.objectContaining({ code: 15 }));
    expect(() => encodeDocument(document, 100)).toThrow(expect.objectContaining({ code: 15 }));
  });

  it.each([2n ** 62n, -(2n ** 62n)])(
    'refuses a date that JavaScript does not have: %s ms',
    (milliseconds) => {
      const bytes = raw({ at: new Date(0) });
      bytes.writeBigInt64LE(milliseconds, 8);
      expect(() => decodeDocument(bytes)).toThrow(expect.objectContaining({ code: 15 }));
    },
  );

  it('answers damaged bytes with a MongoError and nothing else', () => {
    const sound = raw({ a: 'text', b: [1, { c: new ObjectId() }], d: new Binary(Buffer.from('xyz')) });
    fc.assert(
      fc.property(fc.nat(sound.length - 1), fc.integer({ min: 0, max: 255 }), fc.nat(6), (at, byte, cut) => {
        const damaged = Buffer.from(sound.subarray(0, sound.length - cut));
        if (at < damaged.length) damaged[at] = byte;
        let failure: unknown;
        try {
          decodeDocument(damaged);
          readRawDocuments(damaged, 'b');
        } catch (error) {
          failure = error;
        }
        expect(failure === undefined || failure instanceof MongoError).toBe(true);
      }),
      { numRuns: 1_000 },
    );
  });

  it('copies the bytes of fields that did not change', () => {
    // A symbol decodes as a string: only a copy of its bytes keeps it a symbol.
    const before = raw({ _id: 1, symbol: new BSON.BSONSymbol('s'), n: 1 });
    const document = decodeDocument(before);
    const after = encodeChanged(before, document, { ...document, n: 2 }, 100);
    expect(BSON.deserialize(after, { promoteValues: false })['symbol']).toBeInstanceOf(BSON.BSONSymbol);
    expect(decodeDocument(after)).toMatchObject({ _id: 1, symbol: 's', n: 2 });
  });

  it('writes encoded documents verbatim', () => {
    const inner = raw({ x: 1 });
    expect(decodeDocument(encodeDocument({ list: [new RawBson(inner)] }))).toEqual({ list: [{ x: 1 }] });
  });

  it('finds the encoded documents of an array without decoding the rest', () => {
    const bytes = raw({ a: 1, documents: [{ x: 1 }, { x: 2 }], z: 'end' });
    expect(readRawDocuments(bytes, 'documents')?.map((one) => decodeDocument(one))).toEqual([
      { x: 1 },
      { x: 2 },
    ]);
    expect(readRawDocuments(bytes, 'missing')).toBeUndefined();
    expect(readRawDocuments(bytes, 'z')).toBeUndefined();
  });
});

describe('a document that holds itself many times over', () => {
  it('is refused before the memory is full', () => {
    let value: unknown = 'x'.repeat(1024 * 1024);
    for (let level = 0; level < 40; level += 1) value = [value, value];
    expect(() => encodeDocument({ value })).toThrow(expect.objectContaining({ code: 10334 }));
  });
});

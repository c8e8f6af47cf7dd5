import { BSON } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { MIN_VALUE_BYTES } from '#data';
import { bsonWeight } from './documents.js';

const { serialize } = BSON;
const weigh = (document: object): number => bsonWeight(serialize(document));

describe('the weight of a document', () => {
  it('is that of the document and of each of its values', () => {
    expect(weigh({})).toBe(MIN_VALUE_BYTES);
    expect(weigh({ a: 1, b: 'x', c: null, d: true })).toBe(5 * MIN_VALUE_BYTES);
  });

  it.each<[string, unknown]>([
    ['double', 1.5],
    ['text', 'x'],
    ['binary', new BSON.Binary(Buffer.from('abc'))],
    ['object id', new BSON.ObjectId()],
    ['date', new Date(0)],
    ['expression', /a+b/i],
    ['code', new BSON.Code('x')],
    ['int', 5],
    ['long', BSON.Long.fromNumber(2 ** 40)],
    ['time stamp', new BSON.Timestamp({ t: 1, i: 1 })],
    ['decimal', BSON.Decimal128.fromString('1.5')],
    ['smallest', new BSON.MinKey()],
    ['largest', new BSON.MaxKey()],
    ['symbol', new BSON.BSONSymbol('s')],
    ['code with scope', new BSON.Code('x', { a: 1 })],
    ['reference', new BSON.DBRef('c', new BSON.ObjectId())],
  ])('goes on behind a value of type %s', (_type, value) => {
    const alone = weigh({ a: value });
    expect(alone).toBeGreaterThanOrEqual(2 * MIN_VALUE_BYTES);
    expect(weigh({ a: value, b: 1 })).toBe(alone + MIN_VALUE_BYTES);
  });

  it('counts many small values as what they take in memory, and long texts as they are', () => {
    expect(weigh({ list: Array.from({ length: 1000 }, () => 1) })).toBeGreaterThan(1000 * MIN_VALUE_BYTES);
    const text = weigh({ text: 'x'.repeat(100_000) });
    expect(text).toBeGreaterThan(100_000);
    expect(text).toBeLessThan(101_000);
  });

  it('counts what is nested', () => {
    expect(weigh({ a: { b: { c: [{}, {}] } } })).toBeGreaterThanOrEqual(6 * MIN_VALUE_BYTES);
  });
});

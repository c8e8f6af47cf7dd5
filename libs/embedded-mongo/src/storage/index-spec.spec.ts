import { describe, expect, it } from 'vitest';
import { indexExists, normaliseIndex } from './index-spec.js';

const refusal = (code: number): unknown => expect.objectContaining({ code });

describe('normaliseIndex', () => {
  it.each([
    ['no key', { name: 'x' }, 9],
    ['no name', { key: { a: 1 } }, 9],
    ['an empty key', { key: {}, name: 'x' }, 67],
    ['a direction of zero', { key: { a: 0 }, name: 'x' }, 67],
    ['an unknown kind', { key: { a: 'fancy' }, name: 'x' }, 67],
    ['a wildcard', { key: { '$**': 1 }, name: 'x' }, 238],
    ['an unknown option', { key: { a: 1 }, name: 'x', fancy: 1 }, 197],
    ['an expiry over several fields', { key: { a: 1, b: 1 }, name: 'x', expireAfterSeconds: 1 }, 67],
    ['a negative expiry', { key: { a: 1 }, name: 'x', expireAfterSeconds: -1 }, 67],
    [
      'sparse and partial together',
      { key: { a: 1 }, name: 'x', sparse: true, partialFilterExpression: {} },
      67,
    ],
    ['a unique hash', { key: { a: 'hashed' }, name: 'x', unique: true }, 16764],
    ['two hashes', { key: { a: 'hashed', b: 'hashed' }, name: 'x' }, 31303],
    ['a time to live of _id', { key: { _id: 1 }, name: 'x', expireAfterSeconds: 1 }, 197],
    ['a name that is no text', { key: { a: 1 }, name: 1 }, 14],
    ['a text index with a collation', { key: { a: 'text' }, name: 'x', collation: { locale: 'en' } }, 67],
  ])('refuses %s', (_title, request, code) => {
    expect(() => normaliseIndex(request)).toThrow(refusal(code));
  });

  it.each([
    [{ a: { $ne: 1 } }, 67],
    [{ a: { $nin: [1] } }, 67],
    [{ a: { $not: { $gt: 1 } } }, 67],
    [{ a: /x/ }, 67],
    [{ a: { $exists: false } }, 67],
    [{ a: { $elemMatch: { b: 1 } } }, 67],
    [{ $nor: [{ a: 1 }] }, 67],
    [{ $and: [{ a: { $size: 1 } }] }, 67],
    [{ $expr: true }, 224],
    [{ $text: { $search: 'x' } }, 2],
    ['a', 14],
  ])('refuses the partial filter %j', (partialFilterExpression, code) => {
    expect(() => normaliseIndex({ key: { a: 1 }, name: 'x', partialFilterExpression })).toThrow(
      refusal(code),
    );
  });

  it('takes every operator that a partial filter may have', () => {
    const all = {
      a: { $gt: 1, $lte: 9, $in: [2], $type: 'number', $exists: true },
      $or: [{ b: 1 }, { c: { $all: [1] } }],
    };
    const spec = normaliseIndex({ key: { a: 1 }, name: 'x', partialFilterExpression: all });
    expect(spec['partialFilterExpression']).toEqual(all);
  });

  it('stores a text index as weights under _fts', () => {
    expect(normaliseIndex({ key: { title: 'text' }, name: 't', background: true })).toMatchObject({
      key: { _fts: 'text', _ftsx: 1 },
      weights: { title: 1 },
      default_language: 'english',
    });
  });
});

describe('indexExists', () => {
  const present = [normaliseIndex({ key: { a: 1 }, name: 'a_1', unique: true })];
  const check = (request: object): boolean => indexExists(present, normaliseIndex(request));

  it('knows an equal index and takes a new one', () => {
    expect(check({ key: { a: 1 }, name: 'a_1', unique: true })).toBe(true);
    expect(check({ key: { a: -1 }, name: 'a_-1' })).toBe(false);
    expect(check({ key: { a: 1 }, name: 'other' })).toBe(false);
    expect(check({ key: { a: 1 }, name: 'other', unique: true, sparse: true })).toBe(false);
  });

  it.each([
    ['its name for another key', { key: { b: 1 }, name: 'a_1' }, 86],
    ['its name with another uniqueness', { key: { a: 1 }, name: 'a_1' }, 86],
    [
      'its name with another time to live',
      { key: { a: 1 }, name: 'a_1', unique: true, expireAfterSeconds: 5 },
      85,
    ],
    ['its key under another name', { key: { a: 1 }, name: 'other', unique: true }, 85],
  ])('refuses %s', (_title, request, code) => {
    expect(() => check(request)).toThrow(refusal(code));
  });
});

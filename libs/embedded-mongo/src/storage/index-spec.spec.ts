import { describe, expect, it } from 'vitest';
import { indexExists, type IndexSpec, normaliseIndex } from './index-spec.js';

const refusal = (code: number): unknown => expect.objectContaining({ code });

describe('normaliseIndex', () => {
  it.each([
    ['no key', { name: 'x' }, 9],
    ['no name', { key: { a: 1 } }, 9],
    ['an empty key', { key: {}, name: 'x' }, 67],
    ['a direction of zero', { key: { a: 0 }, name: 'x' }, 67],
    ['an unknown kind', { key: { a: 'fancy' }, name: 'x' }, 67],
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
    ['a key that is no document', { key: 'a', name: 'x' }, 14],
    ['a hidden index by a number', { key: { a: 1 }, name: 'x', hidden: 1 }, 14],
    ['a sparse index by a text', { key: { a: 1 }, name: 'x', sparse: 'yes' }, 14],
    ['a field that begins with a dollar', { key: { 'a.$b': 1 }, name: 'x' }, 67],
    ['a descending _id', { key: { _id: -1 }, name: 'x' }, 2],
    ['the name of the _id index for another key', { key: { a: 1 }, name: '_id_' }, 2],
    ['an empty collation', { key: { a: 1 }, name: 'x', collation: {} }, 2],
    ['a weight of zero', { key: { a: 'text' }, name: 'x', weights: { a: 0 } }, 67],
    ['weights without a text index', { key: { a: 1 }, name: 'x', weights: { a: 1 } }, 67],
    ['an unknown language', { key: { a: 'text' }, name: 'x', default_language: 'klingon' }, 67],
    ['a language that is no text', { key: { a: 'text' }, name: 'x', default_language: 1 }, 14],
    ['no field for the language', { key: { a: 'text' }, name: 'x', language_override: '' }, 67],
    ['text fields apart', { key: { a: 'text', b: 1, c: 'text' }, name: 'x' }, 67],
    ['text beside a place', { key: { a: 'text', b: '2dsphere' }, name: 'x' }, 67],
    ['a version that is not there yet', { key: { a: '2dsphere' }, name: 'x', '2dsphereIndexVersion': 4 }, 67],
    ['no bits', { key: { a: '2d' }, name: 'x', bits: 0 }, 72],
    ['a plane without extent', { key: { a: '2d' }, name: 'x', min: 5, max: 5 }, 72],
    ['two wildcards', { key: { '$**': 1, 'a.$**': 1 }, name: 'x' }, 7246201],
    ['a wildcard before another part', { key: { 'a.$**.b': 1 }, name: 'x' }, 67],
    ['a hashed wildcard', { key: { '$**': 'hashed' }, name: 'x' }, 67],
    ['a text index over all fields', { key: { '$**': 'text' }, name: 'x' }, 238],
    ['a wildcard without direction', { key: { '$**': 0 }, name: 'x' }, 67],
    ['a unique wildcard', { key: { '$**': 1 }, name: 'x', unique: true }, 67],
    ['a wildcard of an earlier version', { key: { '$**': 1 }, name: 'x', v: 1 }, 67],
    ['fields of no wildcard', { key: { a: 1 }, name: 'x', wildcardProjection: { a: 1 } }, 2],
    ['no fields of a wildcard', { key: { '$**': 1 }, name: 'x', wildcardProjection: {} }, 9],
    ['fields of a wildcard below one', { key: { 'a.$**': 1 }, name: 'x', wildcardProjection: { b: 1 } }, 9],
    ['computed fields', { key: { '$**': 1 }, name: 'x', wildcardProjection: { a: 'b' } }, 51271],
    ['fields with and without', { key: { '$**': 1 }, name: 'x', wildcardProjection: { a: 1, b: 0 } }, 31254],
    [
      'a field that is a key of its own and within the wildcard',
      { key: { a: 1, '$**': 1 }, name: 'x', wildcardProjection: { b: 0 } },
      7246209,
    ],
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

  it('stores flags as such, whole seconds, and the limits of a plane as they came', () => {
    const request = {
      key: { a: '2d' },
      name: 'x',
      sparse: 1,
      unique: false,
      min: -5,
      expireAfterSeconds: 1.9,
    };
    const kept = { v: 2, key: { a: '2d' }, name: 'x', sparse: true, min: -5, expireAfterSeconds: 1 };
    expect(normaliseIndex(request)).toEqual(kept);
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
  it('takes partial filters for one whatever the order of their conditions', () => {
    const spec = (partialFilterExpression: object): IndexSpec =>
      normaliseIndex({ key: { a: 1 }, name: 'p', partialFilterExpression });
    const present = [spec({ $and: [{ a: 1 }, { b: 2 }] })];
    expect(indexExists(present, spec({ b: 2, a: 1 }))).toBe(true);
    expect(() => indexExists(present, spec({ a: 1, b: 3 }))).toThrow(refusal(86));
  });

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
    ['another visibility', { key: { a: 1 }, name: 'a_1', unique: true, hidden: true }, 85],
    ['its key under another name', { key: { a: 1 }, name: 'other', unique: true }, 85],
  ])('refuses %s', (_title, request, code) => {
    expect(() => check(request)).toThrow(refusal(code));
  });
});

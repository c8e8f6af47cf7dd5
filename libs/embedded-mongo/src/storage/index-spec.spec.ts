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
  ])('refuses %s', (_title, request, code) => {
    expect(() => normaliseIndex(request)).toThrow(refusal(code));
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
  });

  it.each([
    ['its name for another key', { key: { b: 1 }, name: 'a_1' }, 86],
    ['its name with other options', { key: { a: 1 }, name: 'a_1' }, 85],
    ['its key under another name', { key: { a: 1 }, name: 'other', unique: true }, 85],
  ])('refuses %s', (_title, request, code) => {
    expect(() => check(request)).toThrow(refusal(code));
  });
});

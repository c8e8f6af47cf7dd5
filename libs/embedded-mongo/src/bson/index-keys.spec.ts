import { describe, expect, it } from 'vitest';
import { extractKeys } from './keys.js';

const keys = (document: unknown, ...fields: string[]): unknown[][] =>
  extractKeys(
    document,
    fields.map((field) => field.split('.')),
  ).keys;

describe('extractKeys', () => {
  it.each([
    ['a plain value', { a: 1 }, ['a'], [[1]]],
    ['null for a missing field', {}, ['a'], [[null]]],
    ['one key per element', { a: [1, 2] }, ['a'], [[1], [2]]],
    ['equal elements once', { a: [1, 1] }, ['a'], [[1]]],
    ['undefined for an empty array', { a: [] }, ['a'], [[undefined]]],
    ['an inner array as it is', { a: [[1, 2]] }, ['a'], [[[1, 2]]]],
    ['a field inside elements', { a: [{ b: 1 }, { b: 2 }, 3] }, ['a.b'], [[1], [2], [null]]],
    ['the element at a position', { a: [5, 6] }, ['a.1'], [[6]]],
    [
      'fields of one element together',
      {
        a: [
          { x: 1, y: 2 },
          { x: 3, y: 4 },
        ],
      },
      ['a.x', 'a.y'],
      [
        [1, 2],
        [3, 4],
      ],
    ],
    [
      'an array beside a value',
      { a: [1, 2], b: 9 },
      ['a', 'b'],
      [
        [1, 9],
        [2, 9],
      ],
    ],
  ])('gives %s', (_title, document, fields, expected) => {
    expect(keys(document, ...fields)).toEqual(expected);
  });

  it('says whether an array was expanded', () => {
    expect(extractKeys({ a: [1] }, [['a']]).multikey).toBe(true);
    expect(extractKeys({ a: 1 }, [['a']]).multikey).toBe(false);
  });

  it('refuses two arrays side by side', () => {
    expect(() => keys({ a: [1], b: [2] }, 'a', 'b')).toThrow(expect.objectContaining({ code: 171 }));
  });

  it('refuses a position that is also a field name', () => {
    expect(() => keys({ a: [{ 0: 'x' }] }, 'a.0')).toThrow(expect.objectContaining({ code: 16746 }));
  });
});

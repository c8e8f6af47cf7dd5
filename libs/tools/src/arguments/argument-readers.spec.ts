import { Refused } from '#agent';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  boolean,
  canonicalFilterChoice,
  integer,
  oneOf,
  optionalObject,
  optionalString,
  optionalStringList,
  readArguments,
  requiredString,
} from './argument-readers.js';

function refusalOf(read: () => unknown) {
  try {
    return { value: read() };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { code: error.refusal.code, message: error.refusal.message };
  }
}

const refused = (message: string) => ({ code: 'invalid_argument', message: `Invalid arguments: ${message}` });
const LIMIT = { default: 100, min: 1, max: 1000 };

describe('arguments', () => {
  it.each([['text'], [['a']], [7], [true]])('refuses %j in place of an object', (value) => {
    expect(refusalOf(() => readArguments(value))).toEqual(refused('arguments must be an object'));
  });

  it.each([[undefined], [null]])('takes %j for no arguments', (value) => {
    expect(readArguments(value)).toEqual({});
  });

  it('reads only members of its own, never inherited ones', () => {
    const args = readArguments(JSON.parse('{"__proto__":{"limit":5}}'));
    expect(integer(args, 'limit', LIMIT)).toBe(100);
    expect(optionalString({}, 'constructor')).toBeUndefined();
  });
});

describe('an integer argument', () => {
  it.each([
    [undefined, 100],
    [null, 100],
    [1, 1],
    [1000, 1000],
    [5000, 1000],
  ])('reads %j as %d', (limit, expected) => {
    expect(integer({ limit }, 'limit', LIMIT)).toBe(expected);
  });

  it.each([['10'], [1.5], [Number.NaN], [Number.POSITIVE_INFINITY], [[5]], [{}], [true]])(
    'refuses %j: not an integer',
    (limit) => {
      expect(refusalOf(() => integer({ limit }, 'limit', LIMIT))).toEqual(
        refused('limit must be an integer'),
      );
    },
  );

  it.each([[0], [-1]])('refuses %d: below the least', (limit) => {
    expect(refusalOf(() => integer({ limit }, 'limit', LIMIT))).toEqual(refused('limit must be at least 1'));
  });

  it.each([[0], [1001], [1.5], ['5'], [true]])(
    'refuses %j where a bound is strict, naming both ends',
    (limit) => {
      expect(refusalOf(() => integer({ limit }, 'limit', { ...LIMIT, above: 'refuse' }))).toEqual(
        refused('limit must be between 1 and 1000'),
      );
    },
  );

  it('is never outside its bounds', () => {
    fc.assert(
      fc.property(fc.oneof(fc.integer(), fc.maxSafeInteger(), fc.anything()), (limit) => {
        const read = refusalOf(() => integer({ limit }, 'limit', LIMIT));
        const right =
          'value' in read
            ? Number(read.value) >= LIMIT.min && Number(read.value) <= LIMIT.max
            : read.code === 'invalid_argument';
        expect(right).toBe(true);
      }),
    );
  });
});

describe('text arguments', () => {
  it('refuses a missing or empty required one', () => {
    for (const args of [{}, { class_name: '' }, { class_name: null }])
      expect(refusalOf(() => requiredString(args, 'class_name'))).toEqual(refused('class_name is required'));
  });

  it.each([[5], [['Post']], [{}]])('refuses %j', (class_name) => {
    expect(refusalOf(() => requiredString({ class_name }, 'class_name'))).toEqual(
      refused('class_name must be a string'),
    );
  });

  it('reads a choice in any case and answers with the known spelling', () => {
    const format = (value: unknown) =>
      refusalOf(() => oneOf({ format: value }, 'format', ['json', 'csv'], 'json'));
    expect(format('CSV')).toEqual({ value: 'csv' });
    expect(format(undefined)).toEqual({ value: 'json' });
    expect(format('xml')).toEqual(refused('format must be one of json, csv'));
    expect(format('')).toEqual(refused('format must be one of json, csv'));
  });

  it('reads a list of strings and refuses anything else', () => {
    const names = (value: unknown) => refusalOf(() => optionalStringList({ names: value }, 'names'));
    expect(names(['a', 'b'])).toEqual({ value: ['a', 'b'] });
    expect(names(null)).toEqual({ value: undefined });
    expect(names('a')).toEqual(refused('names must be a list of strings'));
    expect(names(['a', 1])).toEqual(refused('names must be a list of strings'));
  });
});

describe('other arguments', () => {
  it('reads an object and refuses lists and scalars', () => {
    expect(optionalObject({ facets: { a: 1 } }, 'facets')).toEqual({ a: 1 });
    expect(optionalObject({}, 'facets')).toBeUndefined();
    for (const facets of [[], 'x', 1])
      expect(refusalOf(() => optionalObject({ facets }, 'facets'))).toEqual(
        refused('facets must be an object'),
      );
  });

  it('refuses a boolean that is not one', () => {
    expect(boolean({ compact: false }, 'compact', true)).toBe(false);
    expect(boolean({}, 'compact', true)).toBe(true);
    expect(refusalOf(() => boolean({ compact: 'no' }, 'compact', true))).toEqual(
      refused('compact must be true or false'),
    );
  });

  it('takes nothing but JSON false for opting out of the canonical filter', () => {
    const choice = (value: unknown) =>
      refusalOf(() => canonicalFilterChoice({ apply_canonical_filter: value }));
    expect(choice(false)).toEqual({ value: false });
    expect(choice(true)).toEqual({ value: true });
    expect(canonicalFilterChoice({})).toBeUndefined();
    for (const value of [null, 0, 'false', []])
      expect(choice(value)).toEqual(refused('apply_canonical_filter must be true or false'));
  });
});

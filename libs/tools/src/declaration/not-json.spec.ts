import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { notJson } from './checked-handler.js';

const circle: Record<string, unknown> = { rows: [] };
circle['rows'] = [{ parent: circle }];

describe('results that are no JSON', () => {
  it.each([
    [
      'a missing await',
      { rows: Promise.resolve([]) },
      "'rows' of the result is a promise: an await is missing",
    ],
    ['a promise among promises', [Promise.resolve(1)], "'0' of the result is a promise: an await is missing"],
    [
      'a bigint',
      { total: { cents: 12n } },
      "'total.cents' of the result is a bigint: make it a string or a number",
    ],
    ['a circle', circle, "'rows.0.parent' of the result contains itself"],
    [
      'a Map',
      new Map([['a', 1]]),
      'the result is a Map, which JSON has no word for: make it an object or an array',
    ],
    [
      'a Set',
      { tags: new Set(['a']) },
      "'tags' of the result is a Set, which JSON has no word for: make it an object or an array",
    ],
  ])('are named with their place: %s', (_, result, error) => {
    expect(notJson(result)).toBe(error);
  });

  it('leaves what speaks for itself, and what is met twice without a circle', () => {
    const twice = { a: 1 };
    expect(
      notJson({ at: new Date(0), one: twice, two: [twice, undefined], id: { toJSON: () => 'x', self: 1n } }),
    ).toBeNull();
  });

  it('never complains of JSON', () => {
    fc.assert(fc.property(fc.jsonValue(), (value) => notJson(value) === null));
  });
});

import { describe, expect, it } from 'vitest';
import { compareKeys, type SortKey } from './sorting.js';

const sort = (keys: readonly SortKey[], isDescending: boolean) =>
  [...keys].sort((one, other) => compareKeys(one, other, isDescending));

describe('rows that an operator sorts', () => {
  it('are sorted by size where they are numbers and by the alphabet where they are texts', () => {
    expect(sort([10, 9, 100], false)).toEqual([9, 10, 100]);
    expect(sort(['b', 'a10', 'a9'], true)).toEqual(['b', 'a10', 'a9']);
  });

  it('are last where they have nothing to be sorted by, in either direction', () => {
    expect(sort(['', 2, 1], false)).toEqual([1, 2, '']);
    expect(sort(['', 'a', 'b'], true)).toEqual(['b', 'a', '']);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BoundedNames, OTHER_NAME } from './bounded-names.js';

describe('bounded names', () => {
  it('are never more than the bound, and one for all others', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' })), fc.integer({ min: 1, max: 5 }), (names, limit) => {
        const bounded = new BoundedNames(limit);
        const shownNames = new Set(names.map((name) => bounded.of(name)));
        shownNames.delete(OTHER_NAME);
        expect(shownNames.size).toBeLessThanOrEqual(limit);
      }),
    );
  });

  it('are only those that exist at the moment', () => {
    const existing = new Set(['query_class']);
    const bounded = new BoundedNames(9, (name) => existing.has(name));
    expect(bounded.of('query_class')).toBe('query_class');
    expect(bounded.of('made_up')).toBe(OTHER_NAME);
    existing.delete('query_class');
    expect(bounded.of('query_class')).toBe(OTHER_NAME);
  });
});

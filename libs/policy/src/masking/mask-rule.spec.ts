import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describeMask, FULL_MASK, isAsStrict, type MaskRule, strictestOf } from './mask-rule.js';

const rules: fc.Arbitrary<MaskRule> = fc.oneof(
  fc.constantFrom('none' as const, 'drop' as const, 'deny' as const).map((kind) => ({ kind })),
  fc.nat(8).map((keep): MaskRule => ({ kind: 'mask', keep })),
  fc.record({
    kind: fc.constant('hash' as const),
    domain: fc.constantFrom(null, 'person', 'card'),
    acrossTenants: fc.boolean(),
  }),
);

describe('the strictest of two masks', () => {
  it('never shows what either does not', () => {
    fc.assert(
      fc.property(rules, rules, (one, other) => {
        const joined = strictestOf(one, other);
        expect([isAsStrict(joined, one), isAsStrict(joined, other)]).toEqual([true, true]);
      }),
    );
  });

  it('does not depend on who is asked first, and is strict in itself', () => {
    fc.assert(
      fc.property(rules, rules, (one, other) => {
        expect(strictestOf(one, other)).toEqual(strictestOf(other, one));
        expect(strictestOf(one, one)).toEqual(one);
      }),
    );
  });

  it('is the same over three of them, whichever two are joined first', () => {
    fc.assert(
      fc.property(rules, rules, rules, (one, two, three) => {
        const [left, right] = [
          strictestOf(strictestOf(one, two), three),
          strictestOf(one, strictestOf(two, three)),
        ];
        expect(isAsStrict(left, one) && isAsStrict(left, two) && isAsStrict(left, three)).toBe(true);
        expect(isAsStrict(right, one) && isAsStrict(right, two) && isAsStrict(right, three)).toBe(true);
      }),
    );
  });

  it('is a full mask for an ending and a pseudonym, of which neither is the stricter', () => {
    const hash: MaskRule = { kind: 'hash', domain: null, acrossTenants: false };
    expect(strictestOf({ kind: 'mask', keep: 4 }, hash)).toEqual(FULL_MASK);
    expect(strictestOf({ ...hash, domain: 'person' }, { ...hash, domain: 'card' })).toEqual(FULL_MASK);
  });

  it('takes a pseudonym of the field alone for stricter than a shared one', () => {
    const own: MaskRule = { kind: 'hash', domain: null, acrossTenants: false };
    expect(strictestOf({ ...own, domain: 'person', acrossTenants: true }, own)).toEqual(own);
  });
});

describe('a mask in words', () => {
  it.each<[MaskRule, string]>([
    [{ kind: 'drop' }, 'drop'],
    [{ kind: 'mask', keep: 4 }, 'mask, last 4 kept'],
    [{ kind: 'hash', domain: 'person', acrossTenants: true }, 'hash, shared as person, across tenants'],
  ])('%j is %s', (rule, words) => {
    expect(describeMask(rule)).toBe(words);
  });
});

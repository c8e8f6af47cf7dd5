import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileAgentDefinition } from '#core';
import { type ClassAccess, columnRefusal } from '../model/class-access.js';
import { FieldNames } from '../model/field-names.js';
import { parseKeys } from '../where/requested-fields.js';
import { findMaskedColumns, listDisclosedMasks, withoutColumns } from './column-masks.js';
import {
  describeMask,
  FULL_MASK,
  isAsStrict,
  type MaskRule,
  chooseStrictest,
  compileMasks,
  joinMasks,
  type MasksConfig,
} from './compile-masks.js';

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
        const joined = chooseStrictest(one, other);
        expect([isAsStrict(joined, one), isAsStrict(joined, other)]).toEqual([true, true]);
      }),
    );
  });

  it('does not depend on who is asked first, and is strict in itself', () => {
    fc.assert(
      fc.property(rules, rules, (one, other) => {
        expect(chooseStrictest(one, other)).toEqual(chooseStrictest(other, one));
        expect(chooseStrictest(one, one)).toEqual(one);
      }),
    );
  });

  it('is the same over three of them, whichever two are joined first', () => {
    fc.assert(
      fc.property(rules, rules, rules, (one, two, three) => {
        const [left, right] = [
          chooseStrictest(chooseStrictest(one, two), three),
          chooseStrictest(one, chooseStrictest(two, three)),
        ];
        expect(isAsStrict(left, one) && isAsStrict(left, two) && isAsStrict(left, three)).toBe(true);
        expect(isAsStrict(right, one) && isAsStrict(right, two) && isAsStrict(right, three)).toBe(true);
      }),
    );
  });

  it('is a full mask for an ending and a pseudonym, of which neither is the stricter', () => {
    const hash: MaskRule = { kind: 'hash', domain: null, acrossTenants: false };
    expect(chooseStrictest({ kind: 'mask', keep: 4 }, hash)).toEqual(FULL_MASK);
    expect(chooseStrictest({ ...hash, domain: 'person' }, { ...hash, domain: 'card' })).toEqual(FULL_MASK);
  });

  it('takes a pseudonym of the field alone for stricter than a shared one', () => {
    const own: MaskRule = { kind: 'hash', domain: null, acrossTenants: false };
    expect(chooseStrictest({ ...own, domain: 'person', acrossTenants: true }, own)).toEqual(own);
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

const KNOWN = ['objectId', 'name', 'pin', 'card'];

function accessWith(masks: MasksConfig, listed: readonly string[] | null): ClassAccess {
  const names = new FieldNames();
  const given = { masks: compileMasks(masks, '', []), isWithheld: () => false };
  const columns = findMaskedColumns(
    { ...given, listed: listed && new Set(listed), known: new Set(KNOWN) },
    compileAgentDefinition('x'),
  );
  if (!columns) throw new Error('nothing is masked');
  return { className: 'Card', schema: undefined, names, ...columns };
}

const disclosed = ({ masks }: ClassAccess) => Object.fromEntries(masks ? listDisclosedMasks(masks) : []);
const findKind = (name: string, access: ClassAccess) =>
  columnRefusal('where', name, name, access)?.details?.kind;

describe('what an agent may know of masks', () => {
  const masks: MasksConfig = { pin: 'deny', card: 'hash', name: 'mask' };

  it('is each form but drop', () => {
    expect(disclosed(accessWith({ ...masks, name: 'drop' }, null))).toEqual({ pin: 'deny', card: 'hash' });
  });

  it('is none of a field outside the allowlist, which is refused as one that does not exist', () => {
    const access = accessWith(masks, ['objectId', 'name']);
    expect(disclosed(access)).toEqual({ name: 'mask' });
    expect(['pin', 'card', 'nowhere', 'name'].map((name) => findKind(name, access))).toEqual([
      'field_denied',
      'field_denied',
      'field_denied',
      'masked_field',
    ]);
    expect(parseKeys(['pin', 'nowhere'], access)).toEqual(parseKeys(['nowhere'], access));
  });

  it.each([true, false])('is none of a field that permissions hide as well (on some rows: %s)', (perRow) => {
    const access = accessWith(masks, null);
    const hidden = access.masks && withoutColumns(access.masks, { hidden: new Set(['pin']), perRow });
    expect(disclosed({ ...access, ...(hidden && { masks: hidden }) })).toEqual({
      card: 'hash',
      name: 'mask',
    });
  });
});

describe('masks of two declarations', () => {
  it.each(['constructor', 'toString', 'valueOf', 'hasOwnProperty'])(
    'are joined for a column that is called %s',
    (name) => {
      expect(joinMasks({ ssn: 'drop' }, { [name]: 'mask' })).toEqual({ ssn: 'drop', [name]: 'mask' });
    },
  );
});

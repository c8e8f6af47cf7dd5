import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { contradicts } from './checked-stores.js';

const scalar = fc.oneof(fc.string(), fc.integer(), fc.boolean());
const column = fc.constantFrom('org', 'status', 'owner');

describe('a row is held against the plain constraints of its question', () => {
  it('never passes with another value than equality admits, however deep the constraint stands', () => {
    fc.assert(
      fc.property(column, scalar, scalar, fc.nat(4), (name, admitted, own, depth) => {
        fc.pre(admitted !== own);
        let where: Record<string, unknown> = { [name]: admitted };
        for (let level = 0; level < depth; level++) where = { $and: [{ $or: [{}] }, where] };
        expect(contradicts({ [name]: own }, where)).toBe(true);
        expect(contradicts({}, where)).toBe(true);
        expect(contradicts({ [name]: admitted }, where)).toBe(false);
      }),
    );
  });

  it('never falls for what a list of admitted values does not hold', () => {
    fc.assert(
      fc.property(fc.array(scalar), scalar, (admitted, own) => {
        expect(contradicts({ org: own }, { org: { $in: admitted } })).toBe(!admitted.includes(own));
      }),
    );
  });

  const acme = { __type: 'Pointer', className: 'Org', objectId: 'acme' };
  it.each([
    ['a pointer by its class and id', { org: acme }, { org: { ...acme, objectId: 'globex' } }, true],
    ['an included row by the same', { org: acme }, { org: { ...acme, __type: 'Object', name: 'A' } }, false],
    ['a list by one of its entries', { tags: 'tea' }, { tags: ['milk', 'tea'] }, false],
    ['a column that is not there as null', { org: null }, {}, false],
    ['`$eq` like the value itself', { org: { $eq: 'a' } }, { org: 'b' }, true],
    ['nothing that only the store can tell', { at: { $gt: 3 }, $or: [{ org: 'x' }], 'a.b': 1 }, {}, false],
  ])('%s', (_, where, row, wrong) => {
    expect(contradicts(row, where)).toBe(wrong);
  });
});

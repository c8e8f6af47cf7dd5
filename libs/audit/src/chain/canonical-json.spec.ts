import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalLine } from './audit-chain.js';

/** The same value with the members of every object in the opposite order. */
function reverseMembers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reverseMembers);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, held]) => [name, reverseMembers(held)]);
  return Object.fromEntries(members.toReversed());
}

describe('the one text of a record', () => {
  it('never depends on the order in which its members were set', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(canonicalLine(reverseMembers(value))).toBe(canonicalLine(value));
      }),
    );
  });

  it('is the text that a sorting replacer gives, whatever names and dates are in it', () => {
    const names = fc.constantFrom('a', 'b', 'B', '2', '10', '__proto__', 'toString', 'ü');
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        fc.constantFrom<unknown>(undefined, null, true, 1.5, 'text', new Date(0)),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(names, tie('value'), { maxKeys: 5 }),
      ),
    }));
    const inOrder = (_: string, held: unknown): unknown =>
      typeof held === 'object' && held !== null && !Array.isArray(held)
        ? Object.fromEntries(Object.entries(held).sort(([one], [other]) => (one < other ? -1 : 1)))
        : held;
    fc.assert(
      fc.property(fc.record({ b: value, a: value }), (record) => {
        expect(canonicalLine(record)).toBe(JSON.stringify(record, inOrder));
      }),
    );
  });

  it('is what JSON writes of a value that is in order already', () => {
    expect(canonicalLine({ a: [1, { b: null, c: 'x' }], d: { e: true } })).toBe(
      '{"a":[1,{"b":null,"c":"x"}],"d":{"e":true}}',
    );
  });

  it('has the members in order of what writes itself as well', () => {
    const written = { toJSON: () => ({ z: 1, a: 2 }) };
    expect(canonicalLine({ a: written, at: new Date(0) })).toBe(
      '{"a":{"a":2,"z":1},"at":"1970-01-01T00:00:00.000Z"}',
    );
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Refused } from '#core';
import type { ParseRow } from '../record-store.js';
import { mergeFields, withoutDeleted } from './merge-fields.js';

/** A number in tenths, as exact as a decimal. */
const toExact = (number: number): bigint =>
  Number.isInteger(number) ? BigInt(number) * 10n : BigInt(Math.round(number * 10));
const isSame = (one: unknown, other: unknown) =>
  one === other || (typeof one === 'string' && one !== '' && Number(one) === Number(other));

/** A row after a write, as a database with decimals applies it; undefined where the write does not fit the row. */
function write(row: ParseRow, fields: ParseRow): ParseRow | undefined {
  const after = { ...row };
  for (const [name, value] of Object.entries(fields)) {
    const operation = value as { __op?: string; amount?: number; objects?: unknown[] } | null;
    const held: unknown = after[name] ?? null;
    const list = held === null ? [] : held;
    const objects = operation?.objects ?? [];
    switch (operation?.__op) {
      case undefined:
        after[name] = typeof value === 'number' ? toExact(value) : value;
        break;
      case 'Delete':
        delete after[name];
        break;
      case 'Increment':
        if (held !== null && typeof held !== 'bigint') return undefined;
        after[name] = (held ?? 0n) + toExact(operation?.amount ?? 0);
        break;
      default: {
        if (!Array.isArray(list)) return undefined;
        if (operation?.__op === 'Remove')
          after[name] = list.filter((one) => !objects.some((object) => isSame(one, object)));
        else if (operation?.__op === 'Add') after[name] = [...(list as unknown[]), ...objects];
        else {
          const added: unknown[] = [...(list as unknown[])];
          for (const object of objects) if (!added.some((one) => isSame(one, object))) added.push(object);
          after[name] = added;
        }
      }
    }
  }
  return after;
}

const objects = fc.array(fc.constantFrom('x', 'y', 'z', '0.3', '0.30'), { maxLength: 3 });
const number = fc.oneof(
  fc.integer({ min: -9, max: 9 }),
  fc.constantFrom(0.1, 0.2, -0.7, 9_007_199_254_740_991),
);
const value = fc.oneof(
  number,
  fc.constant('text'),
  fc.constant(null),
  objects,
  fc.constant({ __op: 'Delete' }),
  number.map((amount) => ({ __op: 'Increment', amount })),
  fc.record({ __op: fc.constantFrom('Add', 'AddUnique', 'Remove'), objects }),
);
const fields = fc.dictionary(fc.constantFrom('a', 'b'), value, { maxKeys: 2 });
const row = fc.dictionary(fc.constantFrom('a', 'b'), fc.oneof(fc.integer().map(toExact), objects), {
  maxKeys: 2,
});

describe('Two writes of one row', () => {
  it('are one write that leads to the same row, or are refused', () => {
    fc.assert(
      fc.property(row, fields, fields, (before, first, second) => {
        const between = write(before, first);
        const apart = between && write(between, second);
        let merged: ParseRow;
        try {
          merged = mergeFields(first, second);
        } catch (error) {
          expect(error).toBeInstanceOf(Refused);
          return;
        }
        if (apart) expect(write(before, merged)).toEqual(apart);
      }),
    );
  });

  it.each<[ParseRow, ParseRow, ParseRow]>([
    [{ n: 1 }, { n: { __op: 'Increment', amount: 2 } }, { n: 3 }],
    [
      { n: { __op: 'Increment', amount: 1 } },
      { n: { __op: 'Increment', amount: 2 } },
      { n: { __op: 'Increment', amount: 3 } },
    ],
    [{ n: { __op: 'Delete' } }, { n: { __op: 'Increment', amount: 2 } }, { n: 2 }],
    [{ n: { __op: 'Increment', amount: 1 } }, { n: 7 }, { n: 7 }],
    [{ t: ['a'] }, { t: { __op: 'Add', objects: ['a', 'b'] } }, { t: ['a', 'a', 'b'] }],
    [{ t: { __op: 'Add', objects: ['a'] } }, { t: { __op: 'Delete' } }, { t: { __op: 'Delete' } }],
    [{ a: 1 }, { b: 2 }, { a: 1, b: 2 }],
  ])('%j and %j are %j', (first, second, merged) => {
    expect(mergeFields(first, second)).toEqual(merged);
  });

  it.each<[ParseRow, ParseRow]>([
    [{ t: { __op: 'Add', objects: ['a'] } }, { t: { __op: 'Remove', objects: ['a'] } }],
    [{ n: { __op: 'Increment', amount: 1 } }, { n: { __op: 'Add', objects: ['a'] } }],
    [{ n: { __op: 'Increment', amount: 0.1 } }, { n: { __op: 'Increment', amount: 0.2 } }],
    [{ n: { __op: 'Increment', amount: 9_007_199_254_740_991 } }, { n: { __op: 'Increment', amount: 2 } }],
    [{ n: 0.1 }, { n: { __op: 'Increment', amount: 0.2 } }],
    [{ t: ['0.30', 'a'] }, { t: { __op: 'Remove', objects: ['0.3'] } }],
    [{ t: ['0.30', 'a'] }, { t: { __op: 'AddUnique', objects: ['0.3'] } }],
    [{ n: 'text' }, { n: { __op: 'Increment', amount: 1 } }],
  ])('%j and %j are refused, with what to write instead', (first, second) => {
    expect(() => mergeFields(first, second)).toThrow('write the value that it should have at the end');
  });

  it('remove a field of a new row', () => {
    expect(withoutDeleted({ a: 1, b: { __op: 'Delete' } })).toEqual({ a: 1 });
  });
});

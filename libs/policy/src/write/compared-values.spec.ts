import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { equals, inRange } from './compared-values.js';

/** By a scale that leaves no fraction of the numbers below. */
function toScaled(text: string): bigint {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/.exec(text) ?? [];
  return BigInt(sign + whole + fraction) * 10n ** BigInt(200 + Number(exponent) - fraction.length);
}

const digits = fc.stringMatching(/^\d{1,25}$/);
const written = fc
  .tuple(fc.constantFrom('', '-'), digits, fc.option(digits), fc.option(fc.integer({ min: -60, max: 60 })))
  .map(([sign, whole, fraction, power]) =>
    [sign, whole, fraction === null ? '' : `.${fraction}`, power === null ? '' : `e${power}`].join(''),
  );
const number = fc.oneof(
  fc.integer(),
  fc.double({ min: -1e6, max: 1e6, noNaN: true }).map((one) => Number(one.toFixed(4))),
);

describe('digits that are compared with a number', () => {
  it('have the order of their values, however they are written', () => {
    const orders = new Set<number>();
    fc.assert(
      fc.property(fc.oneof(written, number.map(String)), number, (text, other) => {
        const difference = toScaled(text) - toScaled(String(other));
        orders.add(difference === 0n ? 0 : difference < 0n ? -1 : 1);
        expect(equals(text, other, false)).toBe(difference === 0n);
        expect(inRange((order) => order < 0)(text, other, false)).toBe(difference < 0n);
        expect(inRange((order) => order > 0)(text, other, false)).toBe(difference > 0n);
      }),
      {
        numRuns: 2_000,
        examples: [
          ['0e9', 0],
          ['-0', 0],
          ['5.0', 5],
          ['50e-1', 5],
        ],
      },
    );
    expect(orders.size).toBe(3);
  });

  it.each(['7'.repeat(401), `0.${'7'.repeat(401)}`, `${'7'.repeat(1_000_000)}e9999`, 'NaN', '1e99999'])(
    'are not decided where no database holds them: %#',
    (text) => {
      expect(equals(text, 5, false)).toBeUndefined();
      expect(inRange((order) => order > 0)(text, 5, false)).toBeUndefined();
    },
  );

  it('may have any exponent', () => {
    const list = Array.from({ length: 100_000 }, (_, at) => `${at + 1}e9999`);
    expect(equals(list, 5, false)).toBe(false);
    expect(inRange((order) => order < 0)(list, 5, false)).toBe(false);
  });
});

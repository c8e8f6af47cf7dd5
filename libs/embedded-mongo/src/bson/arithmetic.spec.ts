import { Decimal128, Double, EJSON, Long } from 'bson';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addNumbers,
  divideNumbers,
  multiplyNumbers,
  remainder,
  roundNumber,
  subtractNumbers,
} from './arithmetic.js';
import { compareNumbers } from './number.js';

const dec = (text: string): Decimal128 => Decimal128.fromString(text);
const exact = (value: unknown): string => EJSON.stringify(value, { relaxed: false });
const long = (text: string): Long => Long.fromString(text);

describe('arithmetic', () => {
  it.each([
    ['int and int stay int', addNumbers(1, 2), 3],
    ['an int overflow becomes a long', addNumbers(2147483647, 1), long('2147483648')],
    [
      'a large product of ints is exact',
      multiplyNumbers(2147483647, 2147483647),
      long('4611686014132420609'),
    ],
    ['int and long give a long', addNumbers(1, Long.ONE), long('2')],
    ['a long overflow becomes a double', addNumbers(Long.MAX_VALUE, 1), 9223372036854775808],
    ['int and double give a double', addNumbers(1, new Double(1)), new Double(2)],
    ['long and double give a double', multiplyNumbers(long('3'), 0.5), 1.5],
    ['decimals are exact', addNumbers(dec('0.1'), dec('0.2')), dec('0.3')],
    ['decimal and int give a decimal', multiplyNumbers(dec('1.1'), 2), dec('2.2')],
    ['decimal and double read the double to 15 digits', addNumbers(dec('1'), 0.1), dec('1.100000000000000')],
    ['decimals subtract', subtractNumbers(dec('1.5'), dec('0.5')), dec('1.0')],
    ['a quotient is a double', divideNumbers(4, 2), new Double(2)],
    [
      'a decimal quotient has 34 digits',
      divideNumbers(dec('1'), 3),
      dec('0.3333333333333333333333333333333333'),
    ],
    ['an exact decimal quotient is short', divideNumbers(dec('6'), dec('2')), dec('3')],
    ['a remainder has the sign of the dividend', remainder(-7, 3), -1],
    ['a remainder of doubles is a double', remainder(5.5, 2), 1.5],
    ['a remainder of decimals is exact', remainder(dec('5.5'), 2), dec('1.5')],
    [
      'a decimal past its digits is rounded half to even',
      addNumbers(dec('9999999999999999999999999999999999'), dec('0.5')),
      dec('1.000000000000000000000000000000000E+34'),
    ],
    ['infinity stays infinity', addNumbers(dec('Infinity'), 1), dec('Infinity')],
    ['zero stays a decimal zero', multiplyNumbers(dec('0'), 5), dec('0')],
  ] as [string, unknown, unknown][])('%s', (_title, result, expected) => {
    expect(exact(result)).toBe(exact(expected));
  });

  it.each([
    ['half to even', 2.5, 0, new Double(2)],
    ['half to even upwards', 3.5, 0, new Double(4)],
    ['negative half to even', -2.5, 0, new Double(-2)],
    ['places of a double', 1.25, 1, 1.2],
    ['decimals', dec('1.25'), 1, dec('1.2')],
    ['tens of an int', 1250, -2, 1200],
    ['an int as it is', 7, 2, 7],
  ] as [string, unknown, number, unknown][])('rounds %s', (_title, input, places, expected) => {
    expect(exact(roundNumber(input, places, 'halfEven'))).toBe(exact(expected));
  });

  it('of longs agrees with exact integers', () => {
    const small = fc.bigInt({ min: -(2n ** 31n), max: 2n ** 31n });
    fc.assert(
      fc.property(small, small, (a, b) => {
        const [x, y] = [Long.fromBigInt(a), Long.fromBigInt(b)];
        expect(compareNumbers(addNumbers(x, y), Long.fromBigInt(a + b))).toBe(0);
        expect(compareNumbers(multiplyNumbers(x, y), Long.fromBigInt(a * b))).toBe(0);
      }),
    );
  });

  it('of decimals agrees with exact integers scaled', () => {
    const cents = fc.bigInt({ min: -(10n ** 12n), max: 10n ** 12n });
    fc.assert(
      fc.property(cents, cents, (a, b) => {
        const [x, y] = [dec(`${a}E-2`), dec(`${b}E-2`)];
        expect(compareNumbers(addNumbers(x, y), dec(`${a + b}E-2`))).toBe(0);
        expect(compareNumbers(multiplyNumbers(x, y), dec(`${a * b}E-4`))).toBe(0);
      }),
    );
  });
});

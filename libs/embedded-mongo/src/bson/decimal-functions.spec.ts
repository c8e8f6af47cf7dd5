import { Decimal128 } from 'bson';
import fc from 'fast-check';
import { Decimal } from 'decimal.js';
import { describe, expect, it } from 'vitest';
import { compileExpression } from '../aggregate/expression.js';
import {
  addNumbers,
  divideNumbers,
  multiplyNumbers,
  remainder,
  roundNumber,
  subtractNumbers,
} from './arithmetic.js';

const dec = (text: string): Decimal128 => Decimal128.fromString(text);
const compute = (expression: unknown): string =>
  String(compileExpression(expression, { tick: () => {}, now: new Date(0) }).evaluate({}));

describe('a decimal', () => {
  it.each([
    [{ $sqrt: dec('2') }, '1.414213562373095048801688724209698'],
    [{ $sqrt: dec('0.25') }, '0.5'],
    [{ $sqrt: dec('-0') }, '-0'],
    [{ $sqrt: dec('1.0') }, '1.0'],
    [{ $sqrt: dec('4.0000') }, '2.00'],
    [{ $sqrt: dec('1E+6144') }, '1.00000000000000000E+3072'],
    [{ $exp: dec('1') }, '2.718281828459045235360287471352662'],
    [{ $exp: dec('-1E+6000') }, '0E-6176'],
    [{ $ln: dec('10') }, '2.302585092994045684017991454684364'],
    [{ $ln: dec('2.718281828459045') }, '0.9999999999999999134157889710887611'],
    [{ $ln: dec('9.999999999999999999999999999999999E+6144') }, '14149.38539644841072829055748903542'],
    [{ $log10: dec('2') }, '0.3010299956639811952137388947244930'],
    [{ $log10: dec('100') }, '2'],
    [{ $log: [dec('1000'), 10] }, '3.000000000000000000000000000000000'],
    [{ $log: [dec('64'), 2] }, '5.999999999999999999999999999999999'],
    [{ $pow: [dec('0.5'), 2] }, '0.2500000000000000000000000000000000'],
    [{ $pow: [2, dec('10')] }, '1024.000000000000000000000000000000'],
    [{ $pow: [dec('-0'), 3] }, '0E-6176'],
    [{ $pow: [dec('-Infinity'), -3] }, '0E-6176'],
    [{ $round: [dec('0.65'), 1] }, '0.6'],
    [{ $round: [dec('23.298'), -1] }, '2E+1'],
    [{ $round: dec('-0.5') }, '-0'],
    [{ $ceil: dec('-0.5') }, '-0'],
    [{ $floor: dec('1E+6144') }, 'NaN'],
    [{ $multiply: [dec('-0'), 5] }, '-0'],
    [{ $mod: [dec('-0'), 5] }, '-0'],
    [{ $abs: dec('-0') }, '0'],
    [{ $sum: [dec('0.1'), 0.1] }, '0.2000000000000000055511151231257827'],
    [{ $avg: [dec('5'), 1] }, '3'],
    [{ $sum: [dec('3.5'), 2.5] }, '6.0'],
    [{ $sum: [dec('9E+6144'), dec('9E+6144'), dec('-9E+6144')] }, 'Infinity'],
  ])('%j is %s', (expression, expected) => {
    expect(compute(expression)).toBe(expected);
  });

  it.each([
    { $ln: dec('NaN') },
    { $log10: dec('NaN') },
    { $log: [dec('NaN'), 2] },
    { $log: [2, dec('NaN')] },
  ])('%j is the double NaN', (expression) => {
    expect(compileExpression(expression, { tick: () => {}, now: new Date(0) }).evaluate({})).toBeNaN();
  });

  it('keeps the sign of a text that is no number, and gives it to no other', () => {
    const nan = compileExpression({ $toDecimal: '-NaN' }, { tick: () => {}, now: new Date(0) }).evaluate({});
    expect((nan as Decimal128).bytes[15]).toBe(0xfc);
    expect(dec('NaN').bytes[15]).toBe(0x7c);
  });

  it('is computed as a second implementation computes it', () => {
    const Exact = Decimal.clone({ precision: 34, rounding: Decimal.ROUND_HALF_EVEN });
    const number = fc.tuple(
      fc.bigInt({ min: -(10n ** 33n), max: 10n ** 33n }),
      fc.integer({ min: -60, max: 60 }),
    );
    const pairs: [(a: unknown, b: unknown) => unknown, (a: Decimal, b: Decimal) => Decimal][] = [
      [addNumbers, (a, b) => a.plus(b)],
      [subtractNumbers, (a, b) => a.minus(b)],
      [multiplyNumbers, (a, b) => a.times(b)],
      [divideNumbers, (a, b) => a.div(b)],
    ];
    fc.assert(
      fc.property(number, number, fc.constantFrom(...pairs), ([m, e], [n, f], [own, other]) => {
        fc.pre(n !== 0n);
        const [x, y] = [`${m}E${e}`, `${n}E${f}`];
        const [result, expected] = [own(dec(x), dec(y)), other(new Exact(x), new Exact(y))];
        expect(new Exact(String(result)).toString()).toBe(expected.toString());
      }),
    );
  });

  it('parts into a whole quotient and a remainder', () => {
    const number = fc.tuple(fc.bigInt({ min: 1n, max: 10n ** 15n }), fc.integer({ min: -9, max: 0 }));
    fc.assert(
      fc.property(number, number, ([m, e], [n, f]) => {
        const [x, y] = [dec(`${m}E${e}`), dec(`${n}E${f}`)];
        const rest = remainder(x, y);
        const quotient = roundNumber(divideNumbers(subtractNumbers(x, rest), y), 0, 'halfEven');
        expect(new Decimal(String(addNumbers(multiplyNumbers(quotient, y), rest))).eq(String(x))).toBe(true);
      }),
    );
  });
});

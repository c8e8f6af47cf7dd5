import { Decimal128 } from 'bson';
import type { Decimal } from 'decimal.js';
import { createRequire } from 'node:module';
import { exactDecimal, isNegative, toDecimal128, toDouble } from './number.js';
import { packDecimal, parseDecimal } from './decimal.js';

/** Loaded at the first decimal that needs it. */
const load = createRequire(import.meta.url);
const digits = 34;

let library: typeof Decimal | undefined;

/** Computes with more digits than a Decimal128 has, so that the last one is right. */
function exactLibrary(): typeof Decimal {
  const { Decimal: base } = load('decimal.js') as typeof import('decimal.js');
  return (library ??= base.clone({ precision: digits + 16, rounding: base.ROUND_HALF_EVEN }));
}

/** To the 113 binary digits in which MongoDB computes functions: they decide the last digit of a decimal. */
function roundToBinary(value: Decimal): Decimal {
  if (!value.isFinite() || value.isZero() || Math.abs(value.e) > 4900) return value;
  const power = value.abs().log(2).floor().minus(112);
  const unit = (value.constructor as typeof Decimal).pow(2, power.abs());
  return power.isNegative() ? value.times(unit).round().div(unit) : value.div(unit).round().times(unit);
}

/**
 * A function of decimals to 34 digits. `otherwise` is the same function of doubles, for NaN and infinities and what the
 * library cannot reduce. An exact result is as short as it can be; `padded` ones have 34 digits like any other. Those that
 * MongoDB computes in `plain` decimals are not rounded to binary digits.
 */
export function computeDecimal(
  values: readonly unknown[],
  apply: (...values: Decimal[]) => Decimal,
  otherwise: (...values: number[]) => number,
  padded = false,
  plain = false,
): Decimal128 {
  const Exact = exactLibrary();
  let result: Decimal | undefined;
  if (values.every((value) => typeof exactDecimal(value) !== 'number')) {
    try {
      const round = plain ? (value: Decimal): Decimal => value : roundToBinary;
      result = round(apply(...values.map((value) => round(new Exact(toDecimal128(value).toString())))));
    } catch {
      // Beyond the digits of pi that the library knows.
    }
  }
  if (!result?.isFinite()) {
    const given = values.find((value) => value instanceof Decimal128 && Number.isNaN(toDouble(value)));
    if (given) return given as Decimal128;
    return Decimal128.fromString(String(result ? result.toNumber() : otherwise(...values.map(toDouble))));
  }
  const kept = result.toSignificantDigits(digits);
  const short = !padded && (kept.eq(result) || kept.isInteger());
  const exact = parseDecimal(short ? kept.toString() : result.toPrecision(digits));
  return packDecimal(exact, values.length === 1 && isNegative(values[0]));
}

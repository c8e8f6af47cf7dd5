import { Decimal128 } from 'bson';

/** A finite decimal: coefficient × 10^exponent, exact. */
export interface ExactDecimal {
  readonly coefficient: bigint;
  readonly exponent: number;
}

const digits = 34;
const finiteForm = /^([+-]?)(\d*)(?:\.(\d*))?(?:E([+-]?\d+))?$/i;
const powersOfTen: bigint[] = [];

function powerOfTen(exponent: number): bigint {
  return (powersOfTen[exponent] ??= 10n ** BigInt(exponent));
}

/** The exact value of a finite Decimal128; NaN and the infinities as JS numbers. */
export function decimalParts(value: Decimal128): ExactDecimal | number {
  const text = value.toString();
  if (/n/i.test(text)) return text.endsWith('NaN') ? NaN : text.startsWith('-') ? -Infinity : Infinity;
  return parseDecimal(text);
}

/** The value of digits with a point, an exponent, both or none. */
export function parseDecimal(text: string): ExactDecimal {
  const match = finiteForm.exec(text) as RegExpExecArray;
  const fraction = match[3] ?? '';
  const coefficient = BigInt(`${match[2]}${fraction}`);
  return {
    coefficient: match[1] === '-' ? -coefficient : coefficient,
    exponent: Number(match[4] ?? 0) - fraction.length,
  };
}

/** The exact value of a finite double: every double is a decimal of enough digits. */
export function decimalOfDouble(value: number): ExactDecimal {
  if (Number.isInteger(value)) return { coefficient: BigInt(value), exponent: 0 };
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const rawExponent = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & 0xfffffffffffffn;
  let mantissa = rawExponent === 0 ? fraction : fraction | 0x10000000000000n;
  let power = (rawExponent === 0 ? 1 : rawExponent) - 1075;
  // As short as it can be: without zeros behind the last digit.
  for (; mantissa % 2n === 0n; power += 1) mantissa /= 2n;
  return { coefficient: (value < 0 ? -mantissa : mantissa) * 5n ** BigInt(-power), exponent: power };
}

export function compareDecimals(a: ExactDecimal, b: ExactDecimal): number {
  const low = Math.min(a.exponent, b.exponent);
  if (a.coefficient === 0n || b.coefficient === 0n || a.coefficient < 0n !== b.coefficient < 0n)
    return a.coefficient < b.coefficient ? -1 : a.coefficient > b.coefficient ? 1 : 0;
  // Magnitudes far apart are decided by their length, so no huge power is ever built.
  const sizeA = digitCount(a.coefficient) + a.exponent;
  const sizeB = digitCount(b.coefficient) + b.exponent;
  if (sizeA !== sizeB) return sizeA > sizeB === a.coefficient > 0n ? 1 : -1;
  const x = a.coefficient * powerOfTen(a.exponent - low);
  const y = b.coefficient * powerOfTen(b.exponent - low);
  return x < y ? -1 : x > y ? 1 : 0;
}

/** The same value without trailing zeros: one spelling per value. */
export function normalizeDecimal(value: ExactDecimal): ExactDecimal {
  let { coefficient, exponent } = value;
  if (coefficient === 0n) return { coefficient: 0n, exponent: 0 };
  while (coefficient % 10n === 0n) {
    coefficient /= 10n;
    exponent += 1;
  }
  return { coefficient, exponent };
}

export const addDecimals = (a: ExactDecimal, b: ExactDecimal): ExactDecimal => {
  const gap = Math.abs(a.exponent - b.exponent);
  // Beyond this distance the smaller operand cannot reach the 34 kept digits.
  if (gap > 200 && a.coefficient !== 0n && b.coefficient !== 0n) return a.exponent > b.exponent ? a : b;
  const low = Math.min(a.exponent, b.exponent);
  return {
    coefficient:
      a.coefficient * powerOfTen(Math.min(gap, a.exponent - low)) +
      b.coefficient * powerOfTen(Math.min(gap, b.exponent - low)),
    exponent: low,
  };
};

export const multiplyDecimals = (a: ExactDecimal, b: ExactDecimal): ExactDecimal => ({
  coefficient: a.coefficient * b.coefficient,
  exponent: a.exponent + b.exponent,
});

/** Quotient to 34 digits; an exact quotient keeps the exponent the operands suggest. */
export function divideDecimals(a: ExactDecimal, b: ExactDecimal): ExactDecimal {
  const ideal = a.exponent - b.exponent;
  const shift = Math.max(0, digits + 3 + digitCount(b.coefficient) - digitCount(a.coefficient));
  const numerator = a.coefficient * powerOfTen(shift);
  let coefficient = numerator / b.coefficient;
  let exponent = ideal - shift;
  const remainder = numerator % b.coefficient;
  if (remainder !== 0n) {
    const sign = a.coefficient < 0n !== b.coefficient < 0n ? -1n : 1n;
    // A sticky digit keeps half-even rounding honest.
    return { coefficient: coefficient * 10n + sign, exponent: exponent - 1 };
  }
  while (exponent < ideal && coefficient !== 0n && coefficient % 10n === 0n) {
    coefficient /= 10n;
    exponent += 1;
  }
  return coefficient === 0n ? { coefficient, exponent: ideal } : { coefficient, exponent };
}

/** Rounds to a number of digits after the point (negative: before it), which the result has; undefined for more than 34 in all. */
export function roundDecimal(
  value: ExactDecimal,
  places: number,
  mode: 'halfEven' | 'truncate',
): ExactDecimal | undefined {
  const drop = -places - value.exponent;
  const size = digitCount(value.coefficient);
  if (drop > size + 1) return { coefficient: 0n, exponent: -places };
  if (size - drop > digits) return undefined;
  const coefficient =
    drop > 0 ? dropDigits(value.coefficient, drop, mode) : value.coefficient * powerOfTen(-drop);
  return { coefficient, exponent: -places };
}

/** Rounds to the 34 digits a Decimal128 holds and packs the result. `negativeZero` is the sign of an exact zero. */
export function packDecimal(
  value: ExactDecimal,
  negativeZero = false,
  mode: 'halfEven' | 'truncate' = 'halfEven',
): Decimal128 {
  let { coefficient, exponent } = value;
  const excess = digitCount(coefficient) - digits;
  if (excess > 0) {
    coefficient = dropDigits(coefficient, excess, mode);
    exponent += excess;
  }
  const size = digitCount(coefficient) + exponent;
  const sign = coefficient < 0n || (coefficient === 0n && negativeZero) ? '-' : '';
  if (coefficient !== 0n && size > 6145) return Decimal128.fromString(`${sign}Infinity`);
  if (size < -6176) return Decimal128.fromString(`${sign}0E-6176`);
  if (exponent < -6176) {
    coefficient = dropDigits(coefficient, -6176 - exponent, mode);
    exponent = -6176;
  }
  return Decimal128.fromStringWithRounding(
    `${sign}${coefficient < 0n ? -coefficient : coefficient}E${exponent}`,
  );
}

/** The coefficient without its last digits. */
export function dropDigits(coefficient: bigint, count: number, mode: 'halfEven' | 'truncate'): bigint {
  const unit = powerOfTen(count);
  const kept = coefficient / unit;
  if (mode === 'truncate') return kept;
  const rest = coefficient % unit;
  const twice = (rest < 0n ? -rest : rest) * 2n;
  const up = twice > unit || (twice === unit && kept % 2n !== 0n);
  return up ? kept + (coefficient < 0n ? -1n : 1n) : kept;
}

function digitCount(value: bigint): number {
  return value === 0n ? 1 : value.toString().length - (value < 0n ? 1 : 0);
}

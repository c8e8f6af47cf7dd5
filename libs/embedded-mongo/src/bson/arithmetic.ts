import { Decimal128 } from 'bson';
import {
  addDecimals,
  divideDecimals,
  multiplyDecimals,
  packDecimal,
  roundDecimal,
  type ExactDecimal,
} from './decimal.js';
import {
  doubleValue,
  integerValue,
  numberKind,
  promoteToDecimal,
  toBigInt,
  toDouble,
  type NumberKind,
} from './number.js';

const width: Record<NumberKind, number> = { int: 0, long: 1, double: 2, decimal: 3 };

/** The wider of two numeric types: int < long < double < decimal. */
const widerKind = (a: NumberKind, b: NumberKind): NumberKind => (width[a] >= width[b] ? a : b);

const findKind = (value: unknown): NumberKind => numberKind(value) ?? 'double';
const decimalNaN = (): Decimal128 => Decimal128.fromString('NaN');

interface Operation {
  integer(a: bigint, b: bigint): bigint;
  double(a: number, b: number): number;
  decimal(a: ExactDecimal, b: ExactDecimal): ExactDecimal;
}

function operate(a: unknown, b: unknown, operation: Operation): unknown {
  const kind = widerKind(findKind(a), findKind(b));
  if (kind === 'int') {
    // Two 32-bit operands: exact in a double unless the product passes 2^53.
    const result = operation.double(toDouble(a), toDouble(b));
    if (Number.isSafeInteger(result)) {
      return Math.abs(result) <= 0x7fffffff ? result + 0 : integerValue(BigInt(result), 'int');
    }
  }
  if (kind === 'int' || kind === 'long')
    return integerValue(operation.integer(toBigInt(a), toBigInt(b)), kind);
  if (kind === 'double') return doubleValue(operation.double(toDouble(a), toDouble(b)));
  const x = promoteToDecimal(a);
  const y = promoteToDecimal(b);
  if (typeof x === 'number' || typeof y === 'number') {
    const special = operation.double(
      typeof x === 'number' ? x : toDouble(a),
      typeof y === 'number' ? y : toDouble(b),
    );
    return Decimal128.fromString(String(special));
  }
  return packDecimal(operation.decimal(x, y));
}

const addition: Operation = { integer: (a, b) => a + b, double: (a, b) => a + b, decimal: addDecimals };
const subtraction: Operation = {
  integer: (a, b) => a - b,
  double: (a, b) => a - b,
  decimal: (a, b) => addDecimals(a, { coefficient: -b.coefficient, exponent: b.exponent }),
};
const product: Operation = { integer: (a, b) => a * b, double: (a, b) => a * b, decimal: multiplyDecimals };

/** Sum in the wider type of the two; a 32-bit overflow gives a long, a 64-bit one a double. */
export const addNumbers = (a: unknown, b: unknown): unknown => operate(a, b, addition);
export const subtractNumbers = (a: unknown, b: unknown): unknown => operate(a, b, subtraction);
export const multiplyNumbers = (a: unknown, b: unknown): unknown => operate(a, b, product);

/** Quotient as a double, or a decimal when either operand is one. The divisor must not be zero. */
export function divideNumbers(a: unknown, b: unknown): unknown {
  if (widerKind(findKind(a), findKind(b)) !== 'decimal') return doubleValue(toDouble(a) / toDouble(b));
  const x = promoteToDecimal(a);
  const y = promoteToDecimal(b);
  if (typeof x === 'number' || typeof y === 'number') {
    return Decimal128.fromString(String(toDouble(a) / toDouble(b)));
  }
  return packDecimal(divideDecimals(x, y));
}

/** Truncated remainder with the sign of the dividend, in the wider type. */
export function remainder(a: unknown, b: unknown): unknown {
  const kind = widerKind(findKind(a), findKind(b));
  if (kind === 'int' || kind === 'long') return integerValue(toBigInt(a) % toBigInt(b), kind);
  if (kind === 'double') return doubleValue(toDouble(a) % toDouble(b));
  const x = promoteToDecimal(a);
  const y = promoteToDecimal(b);
  if (typeof x === 'number' || Number.isNaN(y)) return decimalNaN();
  if (typeof y === 'number') return a;
  const low = Math.min(x.exponent, y.exponent);
  const scale = (part: ExactDecimal): bigint => part.coefficient * 10n ** BigInt(part.exponent - low);
  return packDecimal({ coefficient: scale(x) % scale(y), exponent: low });
}

/** Rounds to `places` digits after the point, keeping the type; integers only change for negative places. */
export function roundNumber(value: unknown, places: number, mode: 'halfEven' | 'truncate'): unknown {
  const kind = findKind(value);
  if (kind === 'decimal') {
    const parts = promoteToDecimal(value);
    return typeof parts === 'number' ? value : packDecimal(roundDecimal(parts, places, mode));
  }
  if (kind === 'int' || kind === 'long') {
    if (places >= 0) return value;
    const exact = roundDecimal({ coefficient: toBigInt(value), exponent: 0 }, places, mode);
    return integerValue(exact.coefficient * 10n ** BigInt(exact.exponent), kind);
  }
  const double = toDouble(value);
  if (!Number.isFinite(double)) return value;
  if (places === 0) return doubleValue(mode === 'truncate' ? Math.trunc(double) : roundHalfEven(double));
  // The decimal spelling of the double decides, so 1.005 rounds as people read it.
  const exact = roundDecimal(promoteToDecimal(value) as ExactDecimal, places, mode);
  return doubleValue(Number(`${exact.coefficient}e${exact.exponent}`));
}

function roundHalfEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}

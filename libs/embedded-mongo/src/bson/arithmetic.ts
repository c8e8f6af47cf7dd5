import { Decimal128 } from 'bson';
import {
  addDecimals,
  decimalOfDouble,
  divideDecimals,
  dropDigits,
  type ExactDecimal,
  multiplyDecimals,
  packDecimal,
  roundDecimal,
} from './decimal.js';
import {
  doubleValue,
  integerValue,
  isNegative,
  numberKind,
  type NumberKind,
  promoteToDecimal,
  toBigInt,
  toDecimal128,
  toDouble,
} from './number.js';

const width: Record<NumberKind, number> = { int: 0, long: 1, double: 2, decimal: 3 };

/** The wider of two numeric types: int < long < double < decimal. */
const widerKind = (a: NumberKind, b: NumberKind): NumberKind => (width[a] >= width[b] ? a : b);

const findKind = (value: unknown): NumberKind => numberKind(value) ?? 'double';

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
    if (Number.isSafeInteger(result))
      return Math.abs(result) <= 0x7fffffff ? result + 0 : integerValue(BigInt(result), 'int');
  }
  if (kind === 'int' || kind === 'long')
    return integerValue(operation.integer(toBigInt(a), toBigInt(b)), kind);
  if (kind === 'double') return doubleValue(operation.double(toDouble(a), toDouble(b)));
  return operateDecimals(a, b, operation);
}

/** Decimals without NaN and infinities are exact; those, and the sign of a zero, follow the rules of doubles. */
function operateDecimals(
  a: unknown,
  b: unknown,
  operation: Pick<Operation, 'double' | 'decimal'>,
): Decimal128 {
  const x = promoteToDecimal(a);
  const y = promoteToDecimal(b);
  const given = [a, b].find((value) => value instanceof Decimal128 && Number.isNaN(toDouble(value)));
  if (given) return given as Decimal128;
  const sign = operation.double(signedUnit(a, x), signedUnit(b, y));
  if (typeof x === 'number' || typeof y === 'number') return Decimal128.fromString(String(sign));
  const exact = operation.decimal(x, y);
  return packDecimal(exact, Object.is(sign, -0));
}

/** A double that has the sign of a decimal and is zero, infinite or NaN where it is. */
function signedUnit(value: unknown, exact: ExactDecimal | number): number {
  if (typeof exact === 'number') return exact;
  const unit = exact.coefficient === 0n ? 0 : 1;
  return isNegative(value) ? -unit : unit;
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
  return operateDecimals(a, b, { double: (x, y) => x / y, decimal: divideDecimals });
}

/** Truncated remainder with the sign of the dividend, in the wider type. */
export function remainder(a: unknown, b: unknown): unknown {
  const kind = widerKind(findKind(a), findKind(b));
  if (kind === 'int' || kind === 'long') return integerValue(toBigInt(a) % toBigInt(b), kind);
  if (kind === 'double') return doubleValue(toDouble(a) % toDouble(b));
  if (Math.abs(toDouble(b)) === Infinity && Number.isFinite(toDouble(a))) return toDecimal128(a);
  return operateDecimals(a, b, { double: (x, y) => (x === 0 ? x : x % y), decimal: remainderDecimals });
}

function remainderDecimals(x: ExactDecimal, y: ExactDecimal): ExactDecimal {
  const low = Math.min(x.exponent, y.exponent);
  const scale = (part: ExactDecimal): bigint => part.coefficient * 10n ** BigInt(part.exponent - low);
  return { coefficient: scale(x) % scale(y), exponent: low };
}

/** Rounds to `places` digits after the point, keeping the type; integers only change for negative places. */
export function roundNumber(value: unknown, places: number, mode: 'halfEven' | 'truncate'): unknown {
  const kind = findKind(value);
  if (kind === 'decimal') {
    const parts = promoteToDecimal(value);
    const rounded = typeof parts === 'number' ? undefined : roundDecimal(parts, places, mode);
    return rounded ? packDecimal(rounded, isNegative(value)) : value;
  }
  if (kind === 'int' || kind === 'long') {
    if (places >= 0) return value;
    const exact = roundDecimal({ coefficient: toBigInt(value), exponent: 0 }, places, mode) as ExactDecimal;
    return integerValue(exact.coefficient * 10n ** BigInt(exact.exponent), kind);
  }
  const double = toDouble(value);
  if (!Number.isFinite(double)) return value;
  if (places === 0) return doubleValue(mode === 'truncate' ? Math.trunc(double) : roundHalfEven(double));
  // All digits of the double decide, not those that are printed.
  const exact = decimalOfDouble(double);
  if (places > -exact.exponent) return value;
  const drop = dropDigits(exact.coefficient, -places - exact.exponent, mode);
  return doubleValue(drop === 0n && double < 0 ? -0 : Number(`${drop}e${-places}`));
}

function roundHalfEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return Math.round(value);
  if (floor % 2 === 0) return floor;
  return floor === -1 ? -0 : floor + 1;
}

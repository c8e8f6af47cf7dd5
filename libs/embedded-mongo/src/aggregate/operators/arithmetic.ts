import { Decimal128, Long } from 'bson';
import type { Decimal } from 'decimal.js';
import {
  addNumbers,
  divideNumbers,
  multiplyNumbers,
  remainder,
  roundNumber,
  subtractNumbers,
} from '../../bson/arithmetic.js';
import { decimalParts, packDecimal, roundDecimal } from '../../bson/decimal.js';
import {
  compareNumbers,
  doubleValue,
  integerValue,
  isNegative,
  numberKind,
  toBigInt,
  toDouble,
  wholeNumber,
} from '../../bson/number.js';
import { printValue } from '../../bson/text.js';
import { createDate } from '../../bson/times.js';
import { typeName } from '../../bson/type-name.js';
import { mongoError } from '../../errors.js';
import {
  binaryOrNull,
  requireDocument,
  requireNumber,
  several,
  unaryOrNull,
  variadic,
} from '../arguments.js';
import { computeDecimal } from '../../bson/decimal-functions.js';
import { nullish, type OperatorCompiler, type OperatorTable } from '../evaluate.js';

/** What MongoDB computes in decimal digits. */
const DECIMAL = ['$sqrt', '$degreesToRadians', '$radiansToDegrees'];

/** A function of one number: doubles with the precision of doubles, decimals with that of decimals. */
const real = (
  apply: (value: number) => number,
  exact: (value: Decimal) => Decimal,
  check?: (value: unknown, name: string) => unknown,
): OperatorCompiler =>
  unaryOrNull((value, name) => {
    requireNumber(value, name, 28765);
    const known = check?.(value, name);
    if (known !== undefined) return known;
    if (!(value instanceof Decimal128)) return doubleValue(apply(toDouble(value)));
    const result = computeDecimal([value], exact, apply, false, DECIMAL.includes(name));
    return name === '$sqrt' ? scaleRoot(result, value) : result;
  });

/** An exact root has half the places of its square. */
function scaleRoot(root: Decimal128, square: Decimal128): Decimal128 {
  const [short, given] = [decimalParts(root), decimalParts(square)];
  if (typeof short === 'number' || typeof given === 'number') return root;
  const exponent = Math.floor(given.exponent / 2);
  const scaled = short.exponent > exponent ? roundDecimal(short, -exponent, 'truncate') : undefined;
  return scaled ? packDecimal(scaled, isNegative(root)) : root;
}

/** To the nearest whole number, halves away from zero. */
const roundAway = (value: number): number => Math.sign(value) * Math.round(Math.abs(value));

const sign = (value: unknown): number => compareNumbers(value, 0);

/** Refuses what has no logarithm; NaN has the double of that name. */
const positive =
  (code: number) =>
  (value: unknown, name: string): unknown => {
    if (Number.isNaN(toDouble(value))) return NaN;
    if (sign(value) <= 0)
      throw mongoError(code, `${name}'s argument must be a positive number, but is ${printValue(value)}`);
  };

const compileRounding = (mode: 'halfEven' | 'truncate'): OperatorCompiler =>
  several(1, 2, ([input, digits = 0], name) => {
    if (nullish(input) || digits === null) return null;
    requireNumber(input, name, 51081);
    const count = wholeNumber(digits);
    if (count === undefined || count < -20 || count > 100)
      throw mongoError(51083, `${name} takes -20 to 100 places, not ${printValue(digits)}`);
    const rounded = roundNumber(input, count, mode);
    if (numberKind(input) === 'long' && numberKind(rounded) === 'double')
      throw mongoError(51080, `${name} found no room for ${printValue(input)} with ${count} places`);
    return rounded;
  });

const toWhole = (apply: (value: number) => number, upward: boolean): OperatorCompiler =>
  unaryOrNull((value, name) => {
    const kind = numberKind(requireNumber(value, name, 28765));
    if (kind === 'int' || kind === 'long') return value;
    if (kind === 'double') return doubleValue(apply(toDouble(value)));
    const kept = roundNumber(value, 0, 'truncate');
    // Without room for all digits before the point MongoDB has no answer.
    const exact = decimalParts(kept as Decimal128);
    if (typeof exact === 'number' || exact.exponent !== 0) return Decimal128.fromString('NaN');
    const rest = compareNumbers(value, kept);
    return (upward ? rest > 0 : rest < 0) ? addNumbers(kept, upward ? 1 : -1) : kept;
  });

const largestDecimal = `9.${'9'.repeat(33)}E+6144`;

function power(base: unknown, exponent: unknown): unknown {
  const kinds = [numberKind(base), numberKind(exponent)];
  if (kinds.includes('decimal')) {
    const result = computeDecimal([base, exponent], (x, y) => x.pow(y), Math.pow, sign(exponent) !== 0);
    if (sign(result) === 0) return Decimal128.fromString('0E-6176');
    // MongoDB computes a power in binary digits, which the largest decimal does not survive.
    const ends = result.toString() === `${isNegative(result) ? '-' : ''}${largestDecimal}`;
    return ends ? Decimal128.fromString(String(sign(result) * Infinity)) : result;
  }
  // In JavaScript one to an infinite power is no number.
  const one = Math.abs(toDouble(base)) === 1 && Math.abs(toDouble(exponent)) === Infinity;
  const result = one ? 1 : toDouble(base) ** toDouble(exponent);
  const inverse = toDouble(exponent) < 0 && Math.abs(toDouble(base)) !== 1;
  if (kinds.includes('double') || inverse) return doubleValue(result);
  if (!Number.isFinite(result) || Math.abs(result) > 2 ** 64) return doubleValue(result);
  const whole = toBigInt(exponent);
  return integerValue(
    toBigInt(base) ** (whole < 0n ? -whole : whole),
    kinds.includes('long') ? 'long' : 'int',
  );
}

function bitwise(apply: (a: bigint, b: bigint) => bigint, start: bigint): OperatorCompiler {
  return variadic((values, name) => {
    let result = start;
    let long = false;
    for (const value of values) {
      if (nullish(value)) return null;
      const kind = numberKind(value);
      if (kind !== 'int' && kind !== 'long')
        throw mongoError(14, `${name} only supports int and long operands.`);
      long ||= kind === 'long';
      result = apply(result, toBigInt(value));
    }
    return integerValue(result, long ? 'long' : 'int');
  });
}

type FunctionName =
  `a${'sin' | 'cos' | 'tan'}` | `${'' | 'a'}${'sinh' | 'cosh' | 'tanh'}` | 'sin' | 'cos' | 'tan';

/** A function of one angle or ratio. */
const of = (functionName: FunctionName, low = -Infinity, high = Infinity): OperatorCompiler =>
  real(
    Math[functionName],
    (value) => value[functionName](),
    (value, name) => {
      const x = toDouble(value);
      if (x < low || x > high)
        throw mongoError(50989, `cannot apply ${name} to ${x}, value must be in [${low},${high}]`);
    },
  );

const finite = (functionName: FunctionName): OperatorCompiler =>
  of(functionName, -Number.MAX_VALUE, Number.MAX_VALUE);

const halfTurn = 180;

const pi = (value: Decimal): Decimal => (value.constructor as typeof Decimal).acos(-1);

export const arithmeticOperators: OperatorTable = {
  $add: variadic((values, name) => {
    let date: Date | undefined;
    let sum: unknown = 0;
    for (const value of values) {
      if (nullish(value)) return null;
      if (value instanceof Date) {
        if (date) throw mongoError(16612, 'only one date allowed in an $add expression');
        date = value;
      } else sum = addNumbers(sum, requireNumber(value, name, 14));
    }
    return date ? createDate(Number(date) + roundAway(toDouble(sum))) : sum;
  }),
  $subtract: binaryOrNull((a, b) => {
    if (a instanceof Date) {
      if (b instanceof Date) return Long.fromNumber(Number(a) - Number(b));
      if (numberKind(b) !== undefined) return createDate(Number(a) - roundAway(toDouble(b)));
    } else if (numberKind(a) !== undefined && numberKind(b) !== undefined) return subtractNumbers(a, b);
    throw mongoError(14, `can't $subtract ${typeName(b)} from ${typeName(a)}`);
  }),
  $multiply: variadic((values, name) => {
    let result: unknown = 1;
    for (const value of values) {
      if (nullish(value)) return null;
      result = multiplyNumbers(result, requireNumber(value, name, 14));
    }
    return result;
  }),
  $divide: binaryOrNull((a, b, name) => {
    for (const value of [a, b]) requireNumber(value, name, 14);
    if (sign(b) === 0) throw mongoError(2, "can't $divide by zero");
    return divideNumbers(a, b);
  }),
  $mod: binaryOrNull((a, b, name) => {
    for (const value of [a, b]) requireNumber(value, name, 16611);
    if (sign(b) === 0) throw mongoError(16610, "can't $mod by zero");
    return remainder(a, b);
  }),
  $abs: unaryOrNull((value, name) => {
    const kind = numberKind(requireNumber(value, name, 28765));
    if (kind === 'double') return doubleValue(Math.abs(toDouble(value)));
    if (kind === 'long' && toBigInt(value) === -(2n ** 63n))
      throw mongoError(28680, "can't take $abs of long long min");
    return isNegative(value) ? multiplyNumbers(value, -1) : value;
  }),
  $ceil: toWhole(Math.ceil, true),
  $floor: toWhole(Math.floor, false),
  $round: compileRounding('halfEven'),
  $trunc: compileRounding('truncate'),
  $sqrt: real(
    Math.sqrt,
    (value) => value.sqrt(),
    (value) => {
      if (sign(value) < 0 && !Number.isNaN(toDouble(value)))
        throw mongoError(28714, "$sqrt's argument must be greater than or equal to 0");
    },
  ),
  $exp: real(Math.exp, (value) => {
    const result = value.exp();
    // Nothing is its own exponent: what is left below the last digit is not a plain zero.
    return result.isZero() ? value.abs().pow(0).times('1E-9999') : result;
  }),
  $ln: real(Math.log, (value) => value.ln(), positive(28766)),
  $log10: real(Math.log10, (value) => value.log(10), positive(28761)),
  $log: binaryOrNull((value, base, name) => {
    requireNumber(value, name, 28756);
    requireNumber(base, `The base of ${name}`, 28757);
    const known = positive(28758)(value, name) ?? positive(28759)(base, `The base of ${name}`);
    if (compareNumbers(base, 1) === 0) throw mongoError(28759, 'The base of $log must not be 1');
    if (known !== undefined) return known;
    if (value instanceof Decimal128 || base instanceof Decimal128) {
      const [x, y] = [value, base].map((one) => computeDecimal([one], (exact) => exact.ln(), Math.log));
      return divideNumbers(x, y);
    }
    const [x, y] = [toDouble(value), toDouble(base)];
    return doubleValue(y === 10 ? Math.log10(x) : y === 2 ? Math.log2(x) : Math.log(x) / Math.log(y));
  }),
  $pow: binaryOrNull((base, exponent, name) => {
    requireNumber(base, name, 28762);
    requireNumber(exponent, `The exponent of ${name}`, 28763);
    if (toDouble(base) === 0 && toDouble(exponent) < 0)
      throw mongoError(28764, '$pow cannot take a base of 0 and a negative exponent');
    return power(base, exponent);
  }),
  $bitAnd: bitwise((a, b) => a & b, -1n),
  $bitOr: bitwise((a, b) => a | b, 0n),
  $bitXor: bitwise((a, b) => a ^ b, 0n),
  $bitNot: unaryOrNull((value, name) => {
    const kind = numberKind(value);
    if (kind !== 'int' && kind !== 'long')
      throw mongoError(28765, `${name} only supports int and long, not: ${typeName(value)}.`);
    return integerValue(~toBigInt(value), kind);
  }),
  $rand: (argument, _builder, name) => {
    if (
      Array.isArray(argument)
        ? argument.length > 0
        : Object.keys(requireDocument(argument, name, 10065)).length > 0
    )
      throw mongoError(3040501, `${name} takes no arguments`);
    return () => doubleValue(Math.random());
  },
  $sin: finite('sin'),
  $cos: finite('cos'),
  $tan: finite('tan'),
  $asin: of('asin', -1, 1),
  $acos: of('acos', -1, 1),
  $atan: of('atan'),
  $sinh: of('sinh'),
  $cosh: of('cosh'),
  $tanh: of('tanh'),
  $asinh: of('asinh'),
  $acosh: of('acosh', 1),
  $atanh: of('atanh', -1, 1),
  $degreesToRadians: real(
    (degrees) => degrees * (Math.PI / halfTurn),
    (degrees) => degrees.times(pi(degrees)).div(halfTurn),
  ),
  $radiansToDegrees: real(
    (radians) => radians * (halfTurn / Math.PI),
    (radians) => radians.times(halfTurn).div(pi(radians)),
  ),
  $atan2: binaryOrNull((y, x, name) => {
    for (const value of [y, x]) requireNumber(value, name, 51044);
    return y instanceof Decimal128 || x instanceof Decimal128
      ? computeDecimal([y, x], (a, b) => (a.constructor as typeof Decimal).atan2(a, b), Math.atan2)
      : doubleValue(Math.atan2(toDouble(y), toDouble(x)));
  }),
};

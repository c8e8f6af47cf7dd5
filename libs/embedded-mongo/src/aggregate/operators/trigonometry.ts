import { Decimal128 } from 'bson';
import { mongoError } from '../../errors.js';
import { doubleValue, numberKind, toDouble } from '../../bson/number.js';
import { typeName } from '../../bson/type-name.js';
import { binary, unary } from '../arguments.js';
import { nullish, type OperatorCompiler, type OperatorTable } from '../evaluate.js';

interface Bounds {
  readonly low: number;
  readonly high: number;
}

/** A function of one angle or ratio; a decimal argument gives a decimal, to the precision of a double. */
const of = (apply: (value: number) => number, bounds?: Bounds): OperatorCompiler =>
  unary((value, name) => {
    if (nullish(value)) return null;
    if (numberKind(value) === undefined)
      throw mongoError(28765, `${name} only supports numeric types, not ${typeName(value)}`);
    const x = toDouble(value);
    if (bounds && !Number.isNaN(x) && (x < bounds.low || x > bounds.high)) {
      throw mongoError(
        50989,
        `cannot apply ${name} to ${x}, value must be in [${bounds.low},${bounds.high}]`,
      );
    }
    return like(value, apply(x));
  });

const like = (value: unknown, result: number): unknown =>
  value instanceof Decimal128 ? Decimal128.fromString(String(result)) : doubleValue(result);

const ratio = { low: -1, high: 1 };
const finite = (apply: (value: number) => number): OperatorCompiler =>
  of(apply, { low: -Number.MAX_VALUE, high: Number.MAX_VALUE });

export const trigonometryOperators: OperatorTable = {
  $sin: finite(Math.sin),
  $cos: finite(Math.cos),
  $tan: finite(Math.tan),
  $asin: of(Math.asin, ratio),
  $acos: of(Math.acos, ratio),
  $atan: of(Math.atan),
  $sinh: of(Math.sinh),
  $cosh: of(Math.cosh),
  $tanh: of(Math.tanh),
  $asinh: of(Math.asinh),
  $acosh: of(Math.acosh, { low: 1, high: Infinity }),
  $atanh: of(Math.atanh, ratio),
  $degreesToRadians: of((degrees) => (degrees * Math.PI) / 180),
  $radiansToDegrees: of((radians) => (radians * 180) / Math.PI),
  $atan2: binary((y, x, name) => {
    if (nullish(y) || nullish(x)) return null;
    if (numberKind(y) === undefined || numberKind(x) === undefined) {
      throw mongoError(51044, `${name} only supports numeric types, not ${typeName(y)} and ${typeName(x)}`);
    }
    return like(x instanceof Decimal128 ? x : y, Math.atan2(toDouble(y), toDouble(x)));
  }),
};

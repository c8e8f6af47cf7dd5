import { Decimal128 } from 'bson';
import type { Decimal } from 'decimal.js';
import { computeDecimal } from '../../bson/decimal-functions.js';
import { mongoError } from '../../errors.js';
import { doubleValue, toDouble } from '../../bson/number.js';
import { binaryOrNull, requireNumber } from '../arguments.js';
import { type OperatorCompiler, type OperatorTable } from '../evaluate.js';
import { real } from './arithmetic.js';

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

export const trigonometryOperators: OperatorTable = {
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

const pi = (value: Decimal): Decimal => (value.constructor as typeof Decimal).acos(-1);

import { compareValues } from '../../bson/compare.js';
import { allHold, someHolds } from '../../query/evaluation-order.js';
import { positional, binary, unary } from '../arguments.js';
import { isConstant, truthy, type OperatorCompiler, type OperatorTable } from '../evaluate.js';

const compileOrder = (accept: (order: number) => unknown): OperatorCompiler =>
  binary((a, b, _name, { ctx }) => accept(compareValues(a, b, ctx.collation)));

/** `$and` and `$or`. As in MongoDB a constant that decides leaves nothing to evaluate. */
const compileLogic =
  (deciding: boolean): OperatorCompiler =>
  (argument, builder, name) => {
    const all = positional(argument, builder, name, 0, Infinity);
    if (Array.isArray(argument) && argument.some((one) => isConstant(one) && truthy(one) === deciding))
      return () => deciding;
    const judge = deciding ? someHolds : allHold;
    return (scope) => judge(all, (one) => truthy(one(scope)), builder.ctx.expressionOrder);
  };

export const comparisonOperators: OperatorTable = {
  $eq: compileOrder((order) => order === 0),
  $ne: compileOrder((order) => order !== 0),
  $gt: compileOrder((order) => order > 0),
  $gte: compileOrder((order) => order >= 0),
  $lt: compileOrder((order) => order < 0),
  $lte: compileOrder((order) => order <= 0),
  $cmp: compileOrder((order) => order),
  $and: compileLogic(false),
  $or: compileLogic(true),
  $not: unary((value) => !truthy(value)),
};

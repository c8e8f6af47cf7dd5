import { compareValues } from '../../bson/compare.js';
import type { Collation } from '../../bson/collation.js';
import { allHold, someHolds } from '../../query/evaluation-order.js';
import { positional } from '../arguments.js';
import { truthy, type Evaluator, type OperatorCompiler, type OperatorTable } from '../evaluate.js';

const compileOrder =
  (accept: (order: number) => unknown): OperatorCompiler =>
  (argument, builder, name) => {
    const [a, b] = positional(argument, builder, name, 2) as [Evaluator, Evaluator];
    const collation: Collation | undefined = builder.ctx.collation;
    return (scope) => accept(compareValues(a(scope), b(scope), collation));
  };

export const comparisonOperators: OperatorTable = {
  $eq: compileOrder((order) => order === 0),
  $ne: compileOrder((order) => order !== 0),
  $gt: compileOrder((order) => order > 0),
  $gte: compileOrder((order) => order >= 0),
  $lt: compileOrder((order) => order < 0),
  $lte: compileOrder((order) => order <= 0),
  $cmp: compileOrder((order) => order),
  $and: (argument, builder, name) => {
    const all = positional(argument, builder, name, 0, Infinity);
    return (scope) => allHold(all, (one) => truthy(one(scope)), builder.ctx.expressionOrder);
  },
  $or: (argument, builder, name) => {
    const all = positional(argument, builder, name, 0, Infinity);
    return (scope) => someHolds(all, (one) => truthy(one(scope)), builder.ctx.expressionOrder);
  },
  $not: (argument, builder, name) => {
    const [value] = positional(argument, builder, name, 1) as [Evaluator];
    return (scope) => !truthy(value(scope));
  },
};

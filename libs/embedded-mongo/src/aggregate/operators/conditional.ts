import { compareValues } from '../../bson/compare.js';
import { getField, isDocument } from '../../bson/document.js';
import { mongoError } from '../../errors.js';
import { allHold, someHolds } from '../../query/evaluation-order.js';
import { binary, positional, readNamedArguments, refuseOthers, requireMembers, unary } from '../arguments.js';
import type { Evaluator, OperatorCompiler, OperatorTable } from '../evaluate.js';
import { isConstant, nullish, truthy } from '../evaluate.js';

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

export const conditionalOperators: OperatorTable = {
  $cond: (argument, builder, name) => {
    let parts: readonly Evaluator[];
    if (isDocument(argument)) {
      const named = readNamedArguments(argument, builder, name, ['if', 'then', 'else']);
      parts = [named.if, named.then, named.else];
    } else parts = positional(argument, builder, name, 3);
    const [test, then, otherwise] = parts as [Evaluator, Evaluator, Evaluator];
    return (scope) => (truthy(test(scope)) ? then(scope) : otherwise(scope));
  },
  $ifNull: (argument, builder, name) => {
    const all = positional(argument, builder, name, 2, Infinity);
    return (scope) => {
      let value: unknown;
      for (const one of all) {
        value = one(scope);
        if (!nullish(value)) return value;
      }
      return value;
    };
  },
  $switch: (argument, builder) => {
    if (!isDocument(argument)) throw mongoError(40060, '$switch requires an object as an argument');
    const branches = getField(argument, 'branches');
    if (!Array.isArray(branches)) throw mongoError(40061, "$switch expected an array for 'branches'");
    if (branches.length === 0) throw mongoError(40068, '$switch requires at least one branch.');
    refuseOthers(argument, ['branches', 'default'], '$switch', 40067);
    const compiled = branches.map((branch) => {
      const { case: test, then } = readNamedArguments(branch, builder, '$switch branch', ['case', 'then']);
      return [test, then] as const;
    });
    const fallback = Object.hasOwn(argument, 'default') ? builder.compile(argument['default']) : undefined;
    return (scope) => {
      for (const [test, then] of compiled) if (truthy(test(scope))) return then(scope);
      if (fallback) return fallback(scope);
      throw mongoError(40066, '$switch has no branch for a value, and no default');
    };
  },
  $let: (argument, builder) => {
    if (!isDocument(argument)) throw mongoError(16874, '$let only supports an object as its argument');
    const definitions = getField(argument, 'vars');
    if (!isDocument(definitions)) throw mongoError(16876, "Missing 'vars' parameter to $let");
    requireMembers(argument, ['in'], '$let', 16877);
    refuseOthers(argument, ['vars', 'in'], '$let', 16875);
    const names = Object.keys(definitions);
    const values = names.map((name) => builder.compile(definitions[name]));
    const { builder: inner, slots } = builder.bind(names);
    const body = inner.compile(argument['in']);
    return (scope) => {
      const computed = values.map((value) => value(scope));
      slots.forEach((slot, i) => (scope.variables[slot] = computed[i]));
      return body(scope);
    };
  },
  $literal: (argument) => () => argument,
  $const: (argument) => () => argument,
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

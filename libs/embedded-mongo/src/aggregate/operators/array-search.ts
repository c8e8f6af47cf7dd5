import { mongoError } from '../../errors.js';
import { compareValues, compileElementSort } from '../../bson/compare.js';
import { isDocument } from '../../bson/document.js';
import { toKey } from '../../bson/key-string.js';
import { numberKind, toDouble } from '../../bson/number.js';
import {
  indexArgument,
  positional,
  refuseOthers,
  requireArray,
  requireDocument,
  several,
} from '../arguments.js';
import {
  isConstant,
  nullish,
  type Builder,
  type Evaluator,
  type OperatorCompiler,
  type OperatorTable,
} from '../evaluate.js';

export const isConstantList = (value: unknown): boolean => Array.isArray(value) && value.every(isConstant);

const isIn: OperatorCompiler = (argument, builder, name) => {
  const [value, list] = positional(argument, builder, name, 2) as [Evaluator, Evaluator];
  const collation = builder.ctx.collation;
  // A constant list is hashed once, as permission filters often test membership in long ones.
  const constant =
    Array.isArray(argument) && isConstantList(argument[1])
      ? new Set((argument[1] as unknown[]).map((item) => toKey(item, collation)))
      : undefined;
  if (constant) return (scope) => constant.has(toKey(value(scope), collation));
  return (scope) => {
    const items = requireArray(list(scope), name, 40081);
    const wanted = value(scope);
    return items.some((item) => compareValues(item, wanted, collation) === 0);
  };
};

const indexOfArray = several(2, 4, ([value, wanted, ...ends], name, { ctx }) => {
  if (nullish(value)) return null;
  const items = requireArray(value, name, 40090);
  const [from = 0, to = Infinity] = ends.map((end) => indexArgument(end, name));
  const end = Math.min(items.length, to);
  for (let i = from; i < end; i++) if (compareValues(items[i], wanted, ctx.collation) === 0) return i;
  return -1;
});

const sortArray: OperatorCompiler = (argument, builder, name) => {
  const spec = requireDocument(argument, name, 2942500);
  refuseOthers(spec, ['input', 'sortBy'], name, 2942501);
  if (!Object.hasOwn(spec, 'input')) throw mongoError(2942502, `${name} requires 'input' to be specified`);
  if (!Object.hasOwn(spec, 'sortBy')) throw mongoError(2942503, `${name} requires 'sortBy' to be specified`);
  const input = builder.compile(spec['input']);
  const order = arrayOrder(spec['sortBy'], builder);
  return (scope) => {
    const items = input(scope);
    return nullish(items) ? null : requireArray(items, name, 2942504).toSorted(order);
  };
};

function arrayOrder(sortBy: unknown, { ctx }: Builder): (a: unknown, b: unknown) => number {
  if (isDocument(sortBy)) {
    const order = compileElementSort(sortBy, ctx.collation);
    return (a, b) => {
      ctx.tick();
      return order(a, b);
    };
  }
  const direction = toDouble(sortBy);
  if (numberKind(sortBy) === undefined || Math.abs(direction) !== 1) {
    throw mongoError(2942507, 'The $sort field must be 1, -1 or an object of sort keys');
  }
  return (a, b) => {
    ctx.tick();
    return compareValues(a, b, ctx.collation) * direction;
  };
}

/** Operators that look for elements of arrays, and put them in order. */
export const arraySearchOperators: OperatorTable = {
  $in: isIn,
  $indexOfArray: indexOfArray,
  $sortArray: sortArray,
};

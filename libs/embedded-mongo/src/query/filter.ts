import { compileExpression } from '../aggregate/expression.js';
import { isConstantList } from '../aggregate/operators/array.js';
import { type Document, getField, isDocument } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { badValue, mongoError, scriptRefused } from '../errors.js';
import type { Filter, Predicate, QueryContext } from './context.js';
import { allHold, type EvaluationOrder, someHolds } from './evaluation-order.js';
import { fieldPredicate, findPosition } from './field-predicate.js';
import { compileJsonSchema } from './json-schema.js';
import { compileText, listSearches } from './text.js';
import { truthy } from '../aggregate/evaluate.js';

export type { Filter, QueryContext } from './context.js';

/**
 * Compiles a query filter once; the result holds no state between documents.
 * Errors: 2 for a malformed or unknown operator, 9 for a malformed `$jsonSchema`, 14 when the filter is no object,
 * 27 for `$text` without an index, 31264 for `$where`, 238 for what this server does not have.
 */
export function compileFilter(filter: Document, ctx: QueryContext): Filter {
  const root = compilePredicate(filter, ctx);
  const locate = findPosition(root.locators ?? []);
  return {
    matches: (doc) => root.test(doc),
    findMatchedPosition: (doc) => (root.test(doc) ? locate(doc) : undefined),
  };
}

export function compilePredicate(filter: unknown, ctx: QueryContext): Predicate {
  if (!isDocument(filter)) throw mongoError(14, 'Expected field filter to be of type object');
  const parts: Predicate[] = [];
  for (const key of Object.keys(filter)) {
    const argument = getField(filter, key);
    if (key.startsWith('$')) {
      const part = topLevel(key, argument, ctx);
      if (part) parts.push(part);
    } else
      parts.push(
        fieldPredicate(key, argument, { ctx, compileFilter: (nested) => compilePredicate(nested, ctx) }),
      );
  }
  return every(parts, ctx.order);
}

function topLevel(key: string, argument: unknown, ctx: QueryContext): Predicate | undefined {
  switch (key) {
    case '$and':
      return every(branches(key, argument, ctx), ctx.order);
    case '$or':
      return some(branches(key, argument, ctx), ctx.order);
    case '$nor': {
      if (Array.isArray(argument) && argument.some((branch) => listSearches(branch).length > 0))
        throw badValue('text expression not allowed in nor');
      const any = some(branches(key, argument, ctx), ctx.order);
      return { test: (doc) => !any.test(doc) };
    }
    case '$expr': {
      const { order, collation, ...plain } = ctx;
      const compared = collation && !isConstantIn(argument) ? ctx : plain;
      const expression = compileExpression(
        argument,
        order ? { ...compared, expressionOrder: order } : compared,
      );
      return { test: (doc) => truthy(expression.evaluate(doc)) };
    }
    case '$text': {
      const score = compileText(argument, ctx);
      return { test: (doc) => score(doc) > 0 };
    }
    case '$sampleRate': {
      const rate = numberKind(argument) === undefined ? NaN : toDouble(argument);
      if (!(rate >= 0 && rate <= 1)) throw badValue('numeric argument to $sampleRate must be in [0, 1]');
      return { test: () => Math.random() < rate };
    }
    case '$alwaysTrue':
      return { test: () => true };
    case '$alwaysFalse':
      return { test: () => false };
    case '$comment':
      return undefined;
    case '$where':
      throw scriptRefused('$where');
    case '$jsonSchema':
      return compileJsonSchema(argument);
    default:
      throw badValue(`unknown top level operator: ${key}`);
  }
}

/** A field in a constant list: MongoDB asks an index for it, and forgets the collation. */
function isConstantIn(expression: unknown): boolean {
  const parts = isDocument(expression) ? getField(expression, '$in') : undefined;
  return Array.isArray(parts) && /^\$[^$]/.test(String(parts[0])) && isConstantList(parts[1]);
}

function branches(key: string, argument: unknown, ctx: QueryContext): Predicate[] {
  if (!Array.isArray(argument)) throw badValue(`${key} must be an array`);
  if (argument.length === 0) throw badValue(`${key} must be a nonempty array`);
  return argument.map((branch) => {
    if (!isDocument(branch)) throw badValue(`${key} argument's entries must be objects`);
    return compilePredicate(branch, ctx);
  });
}

function every(parts: readonly Predicate[], order: EvaluationOrder | undefined): Predicate {
  const only = parts[0];
  if (parts.length === 1 && only) return only;
  return {
    test: (doc) => allHold(parts, (part) => part.test(doc), order),
    locators: parts.flatMap((part) => part.locators ?? []),
  };
}

function some(parts: readonly Predicate[], order: EvaluationOrder | undefined): Predicate {
  const only = parts[0];
  if (parts.length === 1 && only) return only;
  // MongoDB makes one $in of equalities of one field; no other alternatives say which element they met.
  const found = parts.flatMap(({ locators = [] }) => locators);
  const path = found[0]?.path ?? '';
  const isIn = parts.every(
    ({ locators: [one, more] = [] }) => one?.name === '$eq' && one.path === path && !more,
  );
  const locate = (doc: Document): number | undefined =>
    found.map((one) => one.locate(doc) ?? Infinity).toSorted((a, b) => a - b)[0];
  return {
    test: (doc) => someHolds(parts, (part) => part.test(doc), order),
    locators: isIn ? [{ name: '$in', path, locate }] : [],
  };
}

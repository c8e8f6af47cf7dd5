import { Refused, refusals } from '#agent';
import type { Where } from '../model/where.js';
import { isPlainObject, type PlainObject } from '../model/plain-object.js';
import { type Column, columnValue, columnValues, type ValueRules } from './column-values.js';
import { distance, geoCondition } from './geo-condition.js';
import { regexCondition } from './regex-condition.js';
import { isScalar } from './scan-where.js';
import { isTyped } from './typed-value.js';

/** What a field's conditions need from the constraint they stand in. */
export interface ConditionRules extends ValueRules {
  /** `$inQuery`, `$notInQuery`, `$select`, `$dontSelect`. */
  readonly crossClass: (operator: string, operand: unknown) => Record<string, unknown>;
}

type Translate = (operand: unknown, column: Column, rules: ConditionRules, beside: PlainObject) => Where;

/** Every operator that can stand under a field, and what it becomes. What is not here cannot be asked. */
const OPERATORS: Readonly<Record<string, Translate>> = {
  $eq: comparison('$eq'),
  $ne: comparison('$ne'),
  $lt: comparison('$lt'),
  $lte: comparison('$lte'),
  $gt: comparison('$gt'),
  $gte: comparison('$gte'),
  $in: list('$in'),
  $nin: list('$nin'),
  $all: list('$all'),
  $containedIn: list('$in'),
  $containsAll: list('$all'),
  $exists: (operand) => {
    if (typeof operand !== 'boolean') throw refused("'$exists' needs true or false");
    return { $exists: operand };
  },
  $regex: (operand, _column, _rules, beside) => regexCondition(operand, beside['$options']),
  $options: (_operand, _column, _rules, beside) => {
    if (!('$regex' in beside)) throw refused("'$options' needs '$regex' beside it");
    return {};
  },
  $near: (operand) => geoCondition('$near', operand),
  $nearSphere: (operand) => geoCondition('$nearSphere', operand),
  $geoWithin: (operand) => geoCondition('$geoWithin', operand),
  $geoIntersects: (operand) => geoCondition('$geoIntersects', operand),
  $maxDistance: nearOnly('$maxDistance'),
  $maxDistanceInMiles: nearOnly('$maxDistanceInMiles'),
  $maxDistanceInKilometers: nearOnly('$maxDistanceInKilometers'),
  $maxDistanceInRadians: nearOnly('$maxDistanceInRadians'),
  $inQuery: (operand, _column, rules) => rules.crossClass('$inQuery', operand),
  $notInQuery: (operand, _column, rules) => rules.crossClass('$notInQuery', operand),
  $select: (operand, _column, rules) => rules.crossClass('$select', operand),
  $dontSelect: (operand, _column, rules) => rules.crossClass('$dontSelect', operand),
};

/**
 * The conditions one field's value states, each a constraint of its own; the caller ANDs them.
 * `{ a: { b: { $gt: 1 } } }` speaks of the member `a.b`; an object without operators is compared whole.
 */
export function fieldConditions(value: unknown, column: Column, rules: ConditionRules): Where[] {
  if (column.type === 'Relation') {
    throw refused(`'${column.path}' is a relation: ask for its members with $relatedTo`);
  }
  if (isPlainObject(value) && !isTyped(value) && hasOperators(value)) {
    const operators = Object.keys(value).filter((key) => key.startsWith('$'));
    if (operators.length === 0) {
      if (column.type === 'Pointer') {
        throw refused(
          `'${column.path}' points to another class: compare it with a Pointer, or ask with $inQuery`,
        );
      }
      return Object.entries(value).flatMap(([key, member]) =>
        fieldConditions(member, { className: column.className, path: `${column.path}.${key}` }, rules),
      );
    }
    if (operators.length < Object.keys(value).length) {
      throw refused(`The condition on '${column.path}' mixes operators and field names`);
    }
    return operatorConditions(value, column, rules);
  }
  return [{ [column.path]: columnValue(value, column, rules) }];
}

function operatorConditions(value: PlainObject, column: Column, rules: ConditionRules): Where[] {
  const conditions: Record<string, unknown>[] = [];
  for (const [operator, operand] of Object.entries(value)) {
    if (operator === '$text') {
      throw refused("'$text' searches the whole class: write it at the top of the query");
    }
    const translate = Object.hasOwn(OPERATORS, operator) ? OPERATORS[operator] : undefined;
    if (!translate) throw refused(`Operator '${operator}' cannot stand under '${column.path}'`);
    place(translate(operand, column, rules, value), conditions);
  }
  return conditions.map((condition) => ({ [column.path]: condition }));
}

/** Two spellings of one operator (`$in`, `$containedIn`) must both hold, so they cannot share an object. */
function place(condition: Where, conditions: Record<string, unknown>[]): void {
  const names = Object.keys(condition);
  if (names.length === 0) return;
  const free = conditions.find((taken) => names.every((name) => !(name in taken)));
  if (free) Object.assign(free, condition);
  else conditions.push({ ...condition });
}

/** Objects only: an array is a value, and what it holds is refused there when it holds operators. */
function hasOperators(value: PlainObject): boolean {
  return Object.entries(value).some(
    ([key, member]) =>
      key.startsWith('$') || (isPlainObject(member) && !isTyped(member) && hasOperators(member)),
  );
}

function comparison(operator: string): Translate {
  return (operand, column, rules) => {
    if (!isScalar(operand) && !isTyped(operand) && !(operand instanceof Date)) {
      throw refused(`'${operator}' compares with one value, not with an array or object`);
    }
    return { [operator]: columnValue(operand, column, rules) };
  };
}

function list(operator: string): Translate {
  return (operand, column, rules) => {
    if (!Array.isArray(operand)) throw refused(`'${operator}' needs an array`);
    return { [operator]: columnValues(operand, column, rules) };
  };
}

function nearOnly(operator: string): Translate {
  return (operand, _column, _rules, beside) => {
    if (!('$near' in beside) && !('$nearSphere' in beside)) {
      throw refused(`'${operator}' needs '$near' or '$nearSphere' beside it`);
    }
    return { [operator]: distance(operator, operand) };
  };
}

function refused(message: string): Refused {
  return new Refused(refusals.invalidQuery(message));
}

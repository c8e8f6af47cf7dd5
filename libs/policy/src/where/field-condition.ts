import { cutText, refuse } from '#core';
import type { ClassAccess } from '../model/class-access.js';
import { assertMayBeText, describeNoList, isScalarType, noteMember } from '../model/value-type.js';
import {
  blockFilter,
  isPlainObject,
  isScalar,
  isTyped,
  type PlainObject,
  type Where,
} from '../model/where.js';
import { NO_PATTERN, regexIssue } from './regex-safety.js';
import {
  type Column,
  columnValue,
  columnValues,
  createNoMember,
  noteDay,
  noteOtherClass,
  notePattern,
  toMemberColumn,
  type ValueRules,
} from './column-values.js';
import { distance, geoCondition } from './geo-condition.js';
import { findOtherWord, isOfLists } from './other-words.js';

export interface ConditionRules extends ValueRules {
  /** `$inQuery`, `$notInQuery`, `$select`, `$dontSelect`. */
  readonly crossClass: (operator: string, operand: unknown) => Record<string, unknown>;
}

type Translate = (operand: unknown, column: Column, rules: ConditionRules, beside: PlainObject) => Where;

/** All operators that are allowed under a field, with their translations. */
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
  $containedBy: list('$containedBy'),
  $containsAll: list('$all'),
  $exists: (operand) => {
    if (typeof operand !== 'boolean') throw refuse.invalidQuery("'$exists' needs true or false");
    return { $exists: operand };
  },
  $regex: (operand, column, rules, beside) => {
    const condition = regexCondition(operand, beside['$options']);
    // Ids of plain classes are often words.
    if (column.type === 'Pointer' && !column.stored) throw createNoMember(column);
    assertMayBeText(column.known, { with: column.path });
    notePattern(operand, column, rules.note);
    return condition;
  },
  $options: (_operand, _column, _rules, beside) => {
    if (!('$regex' in beside)) throw refuse.invalidQuery("'$options' needs '$regex' beside it");
    return {};
  },
  $near: (operand) => geoCondition('$near', operand),
  $nearSphere: (operand) => geoCondition('$nearSphere', operand),
  $within: (operand) => geoCondition('$geoWithin', operand),
  $geoWithin: (operand) => geoCondition('$geoWithin', operand),
  $geoIntersects: (operand) => geoCondition('$geoIntersects', operand),
  $maxDistance: nearOnly('$maxDistance'),
  $maxDistanceInMiles: nearOnly('$maxDistanceInMiles'),
  $maxDistanceInKilometers: nearOnly('$maxDistanceInKilometers'),
  $maxDistanceInRadians: nearOnly('$maxDistanceInRadians'),
  $inQuery: byRow('$inQuery'),
  $notInQuery: byRow('$notInQuery'),
  $select: (operand, _column, rules) => rules.crossClass('$select', operand),
  $dontSelect: (operand, _column, rules) => rules.crossClass('$dontSelect', operand),
};

/**
 * The conditions in the value of one field, each a constraint of its own; the caller combines them with AND.
 * `{ a: { b: { $gt: 1 } } }` is a condition on `a.b`; an object without operators is compared as a whole.
 */
export function fieldConditions(value: unknown, column: Column, rules: ConditionRules): Where[] {
  const isObject = isPlainObject(value) && !isTyped(value);
  if (isObject && hasOperators(value)) {
    const operators = Object.keys(value).filter((key) => key.startsWith('$'));
    if (operators.length === 0) {
      if (column.type === 'Pointer') throw createNoMember(column);
      assertNoBareOperators(value, column);
      noteMember(column.known, Object.keys(value)[0] ?? '', { with: column.path, note: rules.note });
      return Object.entries(value).flatMap(([key, member]) =>
        fieldConditions(member, toMemberColumn(column, key), rules),
      );
    }
    if (operators.length < Object.keys(value).length) {
      throw refuse.invalidQuery(`The condition on '${column.path}' mixes operators and field names`);
    }
    return operatorConditions(value, column, rules);
  }
  if (isObject) assertNoBareOperators(value, column);
  noteDay(value, column, rules.note);
  return [{ [column.path]: columnValue(value, column, rules) }];
}

/**
 * An object whose names are all those of operators is a condition without its `$`, which no stored object would match.
 * @throws Refused
 */
export function assertNoBareOperators(value: PlainObject, { path, known }: Column): void {
  const names = Object.keys(value);
  const other = isScalarType(known) ? names.find(findOtherWord) : undefined;
  if (other !== undefined)
    throw refuse.invalidQuery(
      (isOfLists(other) ? describeNoList(known, other, path) : undefined) ??
        `'${cutText(other, 64)}' is no operator: write ${findOtherWord(other)} instead`,
    );
  const isOperator = (name: string) => Object.hasOwn(OPERATORS, `$${name}`) && !known?.member?.(name);
  const [name] = names;
  if (name === undefined || !names.every(isOperator)) return;
  throw refuse.invalidQuery(
    `'${name}' is no operator: write '$${name}'. For a member of that name write the path '${cutText(path, 128)}.${name}'`,
  );
}

/**
 * A list of conditions under `or`, where the class has no column of that name, is a condition without its `$`.
 * @throws Refused
 */
export function assertNoBareLogic(
  name: string,
  value: readonly unknown[],
  { readable, schema }: Pick<ClassAccess, 'readable' | 'schema'>,
): void {
  const operator = name.toLowerCase();
  if (!LOGIC.has(operator) || !value.every(isPlainObject)) return;
  if ((readable ?? schema?.fields)?.has(name)) return;
  throw refuse.invalidQuery(`'${name}' is no operator: write '$${operator}'`);
}

const LOGIC: ReadonlySet<string> = new Set(['and', 'or', 'nor']);

function operatorConditions(value: PlainObject, column: Column, rules: ConditionRules): Where[] {
  const conditions: Record<string, unknown>[] = [];
  for (const [operator, operand] of Object.entries(value)) {
    if (operator === '$text') {
      throw refuse.invalidQuery("'$text' searches the whole class: write it at the top of the query");
    }
    if (ALL.has(operator) && Array.isArray(operand) && operand.length > 0 && operand.every(isPattern)) {
      for (const pattern of operand) place(regexOperator(pattern, column, rules), conditions);
      continue;
    }
    const translate = Object.hasOwn(OPERATORS, operator) ? OPERATORS[operator] : undefined;
    if (!translate) throw refuse.invalidQuery(`Operator '${operator}' cannot stand under '${column.path}'`);
    place(translate(operand, column, rules, value), conditions);
  }
  return conditions.map((condition) => ({ [column.path]: condition }));
}

const ALL = new Set(['$all', '$containsAll']);

/** In a list of `$all`: what some entry begins with, as Parse SDKs ask for it. */
const isPattern = (value: unknown): value is PlainObject =>
  isPlainObject(value) &&
  '$regex' in value &&
  Object.keys(value).every((key) => key === '$regex' || key === '$options');

const regexOperator = (pattern: PlainObject, column: Column, rules: ConditionRules): Where =>
  (OPERATORS['$regex'] as Translate)(pattern['$regex'], column, rules, pattern);

/** Two spellings of one operator (`$in`, `$containedIn`) must both apply, so they need separate objects. */
function place(condition: Where, conditions: Record<string, unknown>[]): void {
  const names = Object.keys(condition);
  if (names.length === 0) return;
  const free = conditions.find((taken) => names.every((name) => !(name in taken)));
  if (free) Object.assign(free, condition);
  else conditions.push({ ...condition });
}

/** Objects only: an array is a value, in which operators are refused later. */
function hasOperators(value: PlainObject): boolean {
  return Object.entries(value).some(
    ([key, member]) =>
      key.startsWith('$') || (isPlainObject(member) && !isTyped(member) && hasOperators(member)),
  );
}

/** They also compare lists and objects as a whole. */
const WHOLE_VALUES = new Set(['$eq', '$ne']);

function comparison(operator: string): Translate {
  return (operand, column, rules) => {
    if (
      !WHOLE_VALUES.has(operator) &&
      !isScalar(operand) &&
      !isTyped(operand) &&
      !(operand instanceof Date)
    ) {
      throw refuse.invalidQuery(`'${operator}' compares with one value, not with an array or object`);
    }
    if (operator === '$eq') noteDay(operand, column, rules.note);
    return { [operator]: columnValue(operand, column, rules) };
  };
}

function list(operator: string): Translate {
  return (operand, column, rules) => {
    if (!Array.isArray(operand)) throw refuse.invalidQuery(`'${operator}' needs an array`);
    return { [operator]: columnValues(operand, column, rules) };
  };
}

function byRow(operator: string): Translate {
  return (operand, column, rules) => {
    const condition = rules.crossClass(operator, operand);
    noteOtherClass((condition[operator] as Where)['className'], column, rules.note);
    return condition;
  };
}

function nearOnly(operator: string): Translate {
  return (operand, _column, _rules, beside) => {
    if (!('$near' in beside) && !('$nearSphere' in beside)) {
      throw refuse.invalidQuery(`'${operator}' needs '$near' or '$nearSphere' beside it`);
    }
    return { [operator]: distance(operator, operand) };
  };
}

const MAX_CHARACTERS = 256;
const OPTIONS = /^[imsx]{0,8}$/;

/**
 * `$regex` with its `$options`, both checked.
 * @throws Refused `invalid_query` for what is no pattern, `security_blocked` for one that could run for ever
 */
function regexCondition(pattern: unknown, options: unknown): Record<string, unknown> {
  if (typeof pattern !== 'string') throw refuse.invalidQuery("'$regex' takes a pattern as text");
  if (options !== undefined && (typeof options !== 'string' || !OPTIONS.test(options))) {
    throw refuse.invalidQuery("'$options' takes the letters i, m, s and x");
  }
  if (Array.from(pattern).length > MAX_CHARACTERS) throw blockFilter('where', 'regex_too_long');
  const issue = regexIssue(pattern, options);
  if (issue === 'invalid_regex') throw refuse.invalidQuery(NO_PATTERN);
  if (issue) throw blockFilter('where', issue);
  return { $regex: pattern, ...(options !== undefined && options !== '' && { $options: options }) };
}

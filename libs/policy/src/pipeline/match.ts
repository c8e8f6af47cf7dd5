import { cutText, type Refusal, refuse } from '#core';
import { assertComparable, assertNotInsideFlat, noneWithheldOn } from '../masking/withheld-objects.js';
import { assertNotWithheld, assertNoTextOfOthers, listNameable } from '../model/class-access.js';
import { takeRoot } from '../model/field-names.js';
import { assertMayBeText, describeNoList } from '../model/value-type.js';
import { isPlainObject, isTyped, type Where } from '../model/where.js';
import { readWrittenValues } from '../model/written-values.js';
import {
  checkPath,
  type Column,
  columnAt,
  columnValue,
  columnValues,
  createNoMember,
  noteDay,
  notePattern,
  toMemberColumn,
  type ValueRules,
} from '../where/column-values.js';
import { assertNoBareLogic, assertNoBareOperators } from '../where/field-condition.js';
import { isOfLists } from '../where/other-words.js';
import { mapMembers, resolveExpression } from './expression.js';
import type { Frame } from './frame.js';
import { pipelineBlocked, invalidPipeline } from './stages.js';
import { assertCannotFail } from './total-filter.js';

export interface MatchRules {
  readonly strictPointerShapes: boolean;
  readonly judgeClass: (className: string) => Refusal | null;
}

/**
 * The `$match` with its keys checked and in wire names, and dates and pointers typed when compared with a column.
 * @throws Refused `invalid_query` when it could fail on a row; the refusal of a name
 */
export function resolveMatch(written: unknown, frame: Frame, rules: MatchRules): Where {
  const match = readWrittenValues(written);
  const resolved = resolveFilter(match, frame, rules);
  assertCannotFail(match);
  return resolved;
}

function resolveFilter(match: unknown, frame: Frame, rules: MatchRules): Where {
  if (!isPlainObject(match)) throw invalidPipeline('$match', 'its value is an object');
  const clauses = Object.entries(match).map(([key, value]) =>
    key.startsWith('$') ? operatorClause(key, value, frame, rules) : fieldClause(key, value, frame, rules),
  );
  const keys = new Set(clauses.map(([key]) => key));
  return keys.size === clauses.length
    ? Object.fromEntries(clauses)
    : { $and: clauses.map(([key, value]) => ({ [key]: value })) };
}

function operatorClause(
  operator: string,
  value: unknown,
  frame: Frame,
  rules: MatchRules,
): readonly [string, unknown] {
  switch (operator) {
    case '$and':
    case '$or':
    case '$nor':
      if (!Array.isArray(value))
        throw invalidPipeline(`$match ${operator}`, 'its value is a list of conditions');
      return [operator, value.map((branch) => resolveFilter(branch, frame, rules))];
    case '$not':
      return [operator, resolveFilter(value, frame, rules)];
    case '$expr':
      return [operator, resolveExpression(value, frame)];
    case '$comment':
    case '$sampleRate':
      return [operator, value];
    case '$text':
      // A text index may cover hidden columns.
      if (frame.access.readable === null) {
        assertNoTextOfOthers(frame.access);
        return [operator, value];
      }
      throw refuse.fieldDenied('$match operator', operator, operator, listNameable(frame.access));
    default:
      throw invalidPipeline(
        '$match',
        `'${cutText(operator, 64)}' cannot stand here; write field names, $and, $or, $nor or $expr`,
      );
  }
}

function fieldClause(
  path: string,
  value: unknown,
  frame: Frame,
  rules: MatchRules,
): readonly [string, unknown] {
  if (Array.isArray(value) && !frame.isIntroduced(path)) assertNoBareLogic(path, value, frame.access);
  const resolved = frame.resolve(path, '$match key');
  const fromSource = frame.sourceAddressable && !frame.isIntroduced(takeRoot(path));
  if (fromSource) assertNotWithheld(resolved, value, frame.access, rules.judgeClass);
  if (fromSource) checkPath(resolved, frame.access, frame.note);
  const known = frame.findType(path, false);
  const column: Column = fromSource
    ? { ...columnAt(resolved, frame.access), known }
    : { className: frame.access.className, path: resolved, known };
  if (fromSource && hasMemberCondition(value)) assertNotInsideFlat(resolved, frame.access, true);
  // A computed date may well be the first moment of a day.
  if (fromSource) noteDay(isPlainObject(value) && '$eq' in value ? value['$eq'] : value, column, frame.note);
  const condition = conditionValue(value, column, { ...rules, note: frame.note });
  if (fromSource && frame.access.mayHold?.columns.has(takeRoot(resolved)))
    assertComparable(value, frame.access, rules.judgeClass);
  const besides = fromSource ? noneWithheldOn(resolved, frame.access) : null;
  return besides ? ['$and', [{ [resolved]: condition }, besides]] : [resolved, condition];
}

const LISTS = new Set(['$in', '$nin', '$all']);
const COMPARISONS = new Set(['$eq', '$ne', '$lt', '$lte', '$gt', '$gte']);
/** Operators whose operand does not depend on the type of the column. */
const OTHERS = new Set(
  '$exists $type $size $mod $regex $options $geoWithin $geoIntersects $comment'.split(' '),
);

function conditionValue(value: unknown, column: Column, rules: ValueRules): unknown {
  if (!isPlainObject(value) || isTyped(value)) return columnValue(value, column, rules);
  if (!Object.keys(value).some((key) => key.startsWith('$'))) {
    assertNoBareOperators(value, column);
    return columnValue(value, column, rules);
  }
  return mapMembers(value, (operator, operand) => operandValue(operator, operand, column, rules));
}

function operandValue(operator: string, operand: unknown, column: Column, rules: ValueRules): unknown {
  // References below a field are not checked and have no meaning there.
  if (hasExpression(operand)) throw pipelineBlocked('denied_operator', `$match ${operator} $expr`);
  if (COMPARISONS.has(operator)) return columnValue(operand, column, rules);
  const noList = isOfLists(operator) ? describeNoList(column.known, operator, column.path) : undefined;
  if (noList !== undefined) rules.note?.(noList);
  if (operator === '$elemMatch') return elementCondition(operand, column, rules);
  // `$elemMatch` conditions in `$all` are not compared with the column itself.
  if (operator === '$all' && Array.isArray(operand) && operand.some(isElementMatch))
    return operand.map((each) => conditionValue(each, column, rules));
  if (operator === '$regex') {
    if (column.type === 'Pointer' && !column.stored) throw createNoMember(column);
    assertMayBeText(column.known, { with: column.path });
    notePattern(operand, column, rules.note);
  }
  if (LISTS.has(operator) && Array.isArray(operand)) return columnValues(operand, column, rules);
  if (operator === '$not') return conditionValue(operand, column, rules);
  if (OTHERS.has(operator) || LISTS.has(operator)) return operand;
  throw refuse.invalidQuery(
    `Operator '${cutText(operator, 64)}' cannot be used in a $match on '${column.path}'`,
  );
}

/** Conditions on each entry: on the entry itself by operators, on its members by their names. */
function elementCondition(condition: unknown, list: Column, rules: ValueRules): unknown {
  if (!isPlainObject(condition)) return condition;
  return mapMembers(condition, (key, value) => {
    if (LOGICAL.has(key) && Array.isArray(value))
      return value.map((branch) => elementCondition(branch, list, rules));
    if (key.startsWith('$')) return operandValue(key, value, toEntry(list), rules);
    return conditionValue(value, toMemberColumn(list, key), rules);
  });
}

const LOGICAL = new Set(['$and', '$or', '$nor']);

/** A column of its own: the entries of a list of pointers are compared as they are written. */
const toEntry = ({ className, path, known }: Column): Column => ({
  className,
  path,
  known: known?.type === 'Array' ? known.entries : known,
});

function isElementMatch(value: unknown): boolean {
  return isPlainObject(value) && '$elemMatch' in value;
}

/** Whether a filter contains `$expr`, at any depth. */
export function hasExpression(match: unknown): boolean {
  if (Array.isArray(match)) return match.some(hasExpression);
  return (
    isPlainObject(match) &&
    Object.entries(match).some(([key, value]) => key === '$expr' || hasExpression(value))
  );
}

/** Whether a filter contains `$elemMatch`, at any depth. */
export function hasMemberCondition(match: unknown): boolean {
  if (Array.isArray(match)) return match.some(hasMemberCondition);
  return (
    isPlainObject(match) &&
    Object.entries(match).some(([key, value]) => key === '$elemMatch' || hasMemberCondition(value))
  );
}

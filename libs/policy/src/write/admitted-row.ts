import { isDeepStrictEqual } from 'node:util';
import { refusals, Refused } from '#core';
import { isPlainObject, isTyped, type PlainObject, type Where } from '../model/where.js';
import { isOperation } from './written-value.js';

/*
 * A new row has to be one that the filters of the operator admit: its maker would not see any other, and could neither change nor
 * remove it.
 */

/** Column → the only value that a filter admits. */
export function findFixedValues(filter: Where): ReadonlyMap<string, unknown> {
  const fixed = new Map<string, unknown>();
  for (const [column, condition] of listConditions(filter)) {
    const value = findOnlyValue(condition);
    if (value !== undefined && !column.includes('.') && column !== 'objectId') fixed.set(column, value);
  }
  return fixed;
}

/** Whether a filter admits the row, as far as its values tell; a condition that they do not decide counts as not met. */
export function admitsRow(filter: Where, fields: PlainObject): boolean {
  return Object.entries(filter).every(([key, condition]) => {
    if (key === '$and' || key === '$or' || key === '$nor') return holds(key, condition, fields);
    if (key === '$readableBy') return isReadableBy(condition, fields);
    return !key.startsWith('$') && meets(valueAt(fields, key.split('.')), condition);
  });
}

/**
 * @param written the columns that the caller named: a refusal names no other, which it may not know
 * @throws Refused without the filter, which is the operator's
 */
export function assertAdmitted(
  className: string,
  filter: Where,
  fields: PlainObject,
  written: ReadonlySet<string>,
): void {
  if (admitsRow(filter, fields)) return;
  const named = listConditions(filter).find(([column, condition]) => {
    return written.has(column) && !meets(valueAt(fields, [column]), condition);
  });
  throw new Refused(refusals.rowNotAdmitted(className, named?.[0]));
}

/** The conditions that every row has to meet, one column in each. */
function listConditions(filter: Where): (readonly [string, unknown])[] {
  return Object.entries(filter).flatMap(([key, condition]) => {
    if (key === '$and' && Array.isArray(condition)) return (condition as Where[]).flatMap(listConditions);
    return key.startsWith('$') ? [] : [[key, condition] as const];
  });
}

const isCondition = (value: unknown): value is PlainObject =>
  isPlainObject(value) && !isTyped(value) && Object.keys(value).some((key) => key.startsWith('$'));

function findOnlyValue(condition: unknown): unknown {
  if (!isCondition(condition)) return Array.isArray(condition) ? undefined : (condition ?? undefined);
  const { $eq, $in } = condition;
  if ($eq !== undefined) return $eq ?? undefined;
  return Array.isArray($in) && $in.length === 1 ? ($in[0] ?? undefined) : undefined;
}

function holds(key: '$and' | '$or' | '$nor', branches: unknown, fields: PlainObject): boolean {
  const list = Array.isArray(branches) ? (branches as Where[]) : [];
  if (key === '$and') return list.every((branch) => admitsRow(branch, fields));
  if (key === '$or') return list.some((branch) => admitsRow(branch, fields));
  // What is not decided is not known to be false either.
  return list.every((branch) => isDecided(branch) && !admitsRow(branch, fields));
}

/** Whether the rights of a row let one of the principals read it. A row without rights is public. */
function isReadableBy(condition: unknown, { ACL: rights }: PlainObject): boolean {
  if (rights === undefined) return true;
  const principals = isPlainObject(condition) ? condition['principals'] : null;
  if (!isPlainObject(rights) || !Array.isArray(principals)) return false;
  return (principals as string[]).some((principal) => {
    const right = Object.hasOwn(rights, principal) ? rights[principal] : undefined;
    return isPlainObject(right) && right['read'] === true;
  });
}

/** The value that a write gives to a new row; undefined: none. */
function toWritten(value: unknown): unknown {
  if (!isOperation(value)) return value;
  if (value.__op === 'Delete') return undefined;
  return value.__op === 'Increment' ? value['amount'] : value.__op === 'Remove' ? [] : value['objects'];
}

function valueAt(fields: PlainObject, [name = '', ...rest]: readonly string[]): unknown {
  let value = toWritten(Object.hasOwn(fields, name) ? fields[name] : undefined);
  for (const member of rest) {
    if (Array.isArray(value)) return UNDECIDED_VALUE;
    value = isPlainObject(value) && Object.hasOwn(value, member) ? value[member] : undefined;
  }
  return value;
}

const UNDECIDED_VALUE = Symbol('undecided');

/** Whether the value, or an entry of the list, equals the operand. Null stands for a value that is absent, too. */
function equals(value: unknown, operand: unknown): boolean {
  if (operand === null)
    return value === undefined || value === null || (Array.isArray(value) && value.includes(null));
  const isSame = (one: unknown) =>
    isDeepStrictEqual(one, operand) ||
    // Numbers of plain classes may be their digits.
    (isNumeric(one) &&
      isNumeric(operand) &&
      Number(one) === Number(operand) &&
      typeof one !== typeof operand);
  return isSame(value) || (Array.isArray(value) && value.some(isSame));
}

const isNumeric = (value: unknown): boolean =>
  typeof value === 'number' || (typeof value === 'string' && /^-?\d+(?:\.\d+)?$/.test(value));

/** Texts and dates in their order, numbers in theirs; undefined: values of different kinds, which match no range. */
function compare(value: unknown, operand: unknown): number | undefined {
  const [one, other] = [value, operand].map((each) =>
    isTyped(each) && each.__type === 'Date' ? Date.parse(String(each['iso'])) : each,
  );
  if (isTyped(value) !== isTyped(operand)) return undefined;
  if (typeof one === 'number' && typeof other === 'number') return one - other;
  return typeof one === 'string' && typeof other === 'string'
    ? Buffer.compare(Buffer.from(one), Buffer.from(other))
    : undefined;
}

const inRange =
  (isMet: (order: number) => boolean) =>
  (value: unknown, operand: unknown): boolean =>
    [value].flat().some((one) => {
      const order = compare(one, operand);
      return order !== undefined && isMet(order);
    });

const listed = (value: unknown, operand: unknown): boolean =>
  Array.isArray(operand) && operand.some((one) => equals(value, one));

const OPERATOR_TESTS: Readonly<Record<string, (value: unknown, operand: unknown) => boolean>> = {
  $eq: equals,
  $ne: (value, operand) => !equals(value, operand),
  $in: listed,
  $containedIn: listed,
  $nin: (value, operand) => !listed(value, operand),
  $exists: (value, operand) => (value !== undefined) === operand,
  $gt: inRange((order) => order > 0),
  $gte: inRange((order) => order >= 0),
  $lt: inRange((order) => order < 0),
  $lte: inRange((order) => order <= 0),
  $all: (value, operand) => Array.isArray(operand) && operand.every((one) => equals(value, one)),
};

function meets(value: unknown, condition: unknown): boolean {
  if (value === UNDECIDED_VALUE) return false;
  if (!isCondition(condition)) return equals(value, condition);
  return Object.entries(condition).every(([operator, operand]) =>
    Object.hasOwn(OPERATOR_TESTS, operator) ? OPERATOR_TESTS[operator]?.(value, operand) : false,
  );
}

function isDecided(filter: Where): boolean {
  return Object.entries(filter).every(([key, condition]) => {
    if (key.startsWith('$')) return Array.isArray(condition) && (condition as Where[]).every(isDecided);
    const operators = isCondition(condition) ? Object.keys(condition) : [];
    return !key.includes('.') && operators.every((operator) => Object.hasOwn(OPERATOR_TESTS, operator));
  });
}

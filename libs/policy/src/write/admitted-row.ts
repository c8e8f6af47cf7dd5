import { refuse } from '#core';
import { isPlainObject, isTyped, type PlainObject, type Where } from '../model/where.js';
import type { ClassSchema } from '../model/class-schema.js';
import { typeAt, typeOfColumn } from '../model/value-type.js';
import { equals, everyOf, inRange, not, someOf, type RowVerdict } from './compared-values.js';
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

/** Whether a filter admits the row: what its values do not decide counts as no, also within what is denied. */
export function admitsRow(filter: Where, fields: PlainObject, schema?: ClassSchema): boolean {
  return decide(filter, fields, schema) === true;
}

function decide(filter: Where, fields: PlainObject, schema: ClassSchema | undefined): RowVerdict {
  return everyOf(
    Object.entries(filter).map(([key, condition]) => {
      if (key === '$and' || key === '$or' || key === '$nor')
        return decideBranches(key, condition, (branch) => decide(branch, fields, schema));
      if (key === '$readableBy') return isReadableBy(condition, fields);
      return key.startsWith('$') ? undefined : meets(key, condition, fields, schema);
    }),
  );
}

/**
 * @param written the columns that the caller named: a refusal names no other, which it may not know
 * @throws Refused without the filter, which is the operator's
 */
export function assertAdmitted(
  className: string,
  filter: Where,
  fields: PlainObject,
  { written, schema }: { readonly written: ReadonlySet<string>; readonly schema?: ClassSchema | undefined },
): void {
  if (admitsRow(filter, fields, schema)) return;
  const named = listConditions(filter).find(
    ([column, condition]) => written.has(column) && meets(column, condition, fields, schema) !== true,
  );
  throw refuse.rowNotAdmitted(className, named?.[0]);
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

function decideBranches(
  key: '$and' | '$or' | '$nor',
  branches: unknown,
  decideOne: (branch: Where) => RowVerdict,
): RowVerdict {
  const verdicts = (Array.isArray(branches) ? (branches as Where[]) : []).map(decideOne);
  if (key === '$and') return everyOf(verdicts);
  return key === '$or' ? someOf(verdicts) : not(someOf(verdicts));
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

/** The database sets them: of a row that is only planned nobody knows them. */
const SET_BY_THE_STORE = new Set(['createdAt', 'updatedAt']);

function valueAt(fields: PlainObject, [name = '', ...rest]: readonly string[]): unknown {
  if (!Object.hasOwn(fields, name)) {
    if (name === 'objectId') return NEW_ID;
    return SET_BY_THE_STORE.has(name) ? UNDECIDED_VALUE : undefined;
  }
  let value = toWritten(fields[name]);
  for (const member of rest) {
    if (Array.isArray(value)) return UNDECIDED_VALUE;
    value = isPlainObject(value) && Object.hasOwn(value, member) ? value[member] : undefined;
  }
  return value;
}

const UNDECIDED_VALUE = Symbol('undecided');

/** It equals none that there is. */
const NEW_ID = Symbol('id of a new row');

type Test = (value: unknown, operand: unknown, isText: boolean) => RowVerdict;

const listed: Test = (value, operand, isText) =>
  Array.isArray(operand) ? someOf(operand.map((one) => equals(value, one, isText))) : undefined;

const OPERATOR_TESTS: Readonly<Record<string, Test>> = {
  $eq: equals,
  $ne: (value, operand, isText) => not(equals(value, operand, isText)),
  $in: listed,
  $containedIn: listed,
  $nin: (value, operand, isText) => not(listed(value, operand, isText)),
  $exists: (value, operand) => (value !== undefined) === operand,
  $gt: inRange((order) => order > 0),
  $gte: inRange((order) => order >= 0),
  $lt: inRange((order) => order < 0),
  $lte: inRange((order) => order <= 0),
  // A list of nothing matches nothing.
  $all: (value, operand, isText) =>
    Array.isArray(operand)
      ? operand.length > 0 && everyOf(operand.map((one) => equals(value, one, isText)))
      : undefined,
};

const OF_NEW_IDS = new Set(['$eq', '$ne', '$in', '$nin', '$containedIn', '$exists']);

function meets(
  path: string,
  condition: unknown,
  fields: PlainObject,
  schema: ClassSchema | undefined,
): RowVerdict {
  const value = valueAt(fields, path.split('.'));
  if (value === UNDECIDED_VALUE) return undefined;
  const operators = isCondition(condition) ? condition : { $eq: condition };
  return everyOf(
    Object.entries(operators).map(([operator, operand]) =>
      Object.hasOwn(OPERATOR_TESTS, operator) && (value !== NEW_ID || OF_NEW_IDS.has(operator))
        ? OPERATOR_TESTS[operator]?.(value, operand, isOfTexts(path, schema))
        : undefined,
    ),
  );
}

/** Whether every text of a column is one: a plain class may hold numbers that rows show as their digits, and rows show time stamps as text. */
function isOfTexts(path: string, schema: ClassSchema | undefined): boolean {
  const [root = '', ...inside] = path.split('.');
  if (SET_BY_THE_STORE.has(root)) return false;
  if (schema?.storage !== 'plain') return true;
  const type = typeAt(typeOfColumn(root, schema), inside, false);
  return type?.type === 'String' && !type.uncertain;
}

import { type Refusal, Refused, refusals } from '#agent';
import type { ClassAccess } from '../model/class-access.js';
import { rootOf } from '../model/field-names.js';
import { isPlainObject, type PlainObject, type Where } from '../model/where.js';
import { isTyped } from '../where/column-values.js';
import {
  isWithheldName,
  isWithheldText,
  meetsWithheld,
  withheldClassIn,
  type WithheldNames,
} from './redact.js';

/** Containers inside a column that pipelines see; what lies deeper they see empty, rather than unlooked at. */
const DEPTH = 6;

/** Whether the path is a column that may hold objects of a class withheld from the agent, or leads into one. */
export function mayHoldWithheld(path: string, { mayHold }: ClassAccess): boolean {
  return mayHold?.columns.has(rootOf(path)) ?? false;
}

/**
 * What has to hold beside any condition on the path: that no object on the way is of a withheld class. Whatever such an object
 * says, the answer is the same. Null where there can be none.
 */
export function noneWithheldOn(path: string, access: ClassAccess): Where | null {
  const segments = path.split('.');
  const containers = segments.slice(0, -1).map((_, index) => segments.slice(0, index + 1).join('.'));
  return noneAmong(containers, access);
}

/** The same with what the path leads to: for conditions that look into it, such as a pattern or a range of texts. */
export function noneWithheldAt(path: string, access: ClassAccess): Where | null {
  const segments = path.split('.');
  return noneAmong(
    segments.map((_, index) => segments.slice(0, index + 1).join('.')),
    access,
  );
}

function noneAmong(paths: readonly string[], { mayHold }: ClassAccess): Where | null {
  const [root] = paths;
  if (!mayHold || root === undefined || !mayHold.columns.has(root)) return null;
  return { $nor: paths.flatMap((path) => meetsWithheld(path, mayHold.names)) };
}

/**
 * What a filter has to hold beside a condition, as stored rows are compared: nothing when the condition holds for a stored value
 * exactly when it holds for what the agent sees of it.
 * @throws Refused for a value of a withheld class, and for what has no such form
 */
export function besideCondition(
  path: string,
  condition: unknown,
  access: ClassAccess,
  judgeClass: (className: string) => Refusal | null,
): Where | null {
  if (!mayHoldWithheld(path, access)) return null;
  const own = withoutQuestions(condition);
  assertComparable(own, access, judgeClass);
  if (isExact(own)) return noneWithheldOn(path, access);
  if (ordersObjects(own)) {
    throw new Refused(
      refusals.invalidQuery(
        `'${path}' may hold objects of classes that are not yours: compare it with a number, a date or a text, or compare ` +
          'its members in a pipeline',
      ),
    );
  }
  return noneWithheldAt(path, access);
}

const QUESTIONS = new Set(['$inQuery', '$notInQuery', '$select', '$dontSelect']);

/** What is asked of another class is judged there, and its answer holds nothing withheld. */
function withoutQuestions(condition: unknown): unknown {
  if (!isOperators(condition)) return condition;
  return Object.fromEntries(Object.entries(condition).filter(([operator]) => !QUESTIONS.has(operator)));
}

/** A value to compare with names no withheld class: it would be a guess. @throws Refused */
export function assertComparable(
  value: unknown,
  { mayHold }: ClassAccess,
  judgeClass: (className: string) => Refusal | null,
): void {
  const className = mayHold ? withheldClassIn(value, mayHold.names) : null;
  const refusal = className === null ? null : judgeClass(className);
  if (refusal) throw new Refused(refusal);
}

const EQUALITIES = new Set(['$eq', '$ne', '$in', '$nin', '$all']);
const RANGES = new Set(['$gt', '$gte', '$lt', '$lte']);
/** Of what a placeholder leaves to be seen, or of numbers alone. */
const COUNTED = new Set(['$exists', '$size', '$mod', '$comment']);

/** The columns that a filter asks more of than stored values and what is seen of them answer alike. */
export function inexactColumns(match: unknown, access: ClassAccess): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (part: unknown): void => {
    if (Array.isArray(part)) return part.forEach(visit);
    if (!isPlainObject(part) || isGuard(part, access)) return;
    for (const [key, value] of Object.entries(part)) {
      if (key.startsWith('$')) visit(value);
      else if (mayHoldWithheld(key, access) && !isExact(value)) found.add(rootOf(key));
    }
  };
  visit(match);
  return found;
}

/** What stands beside other conditions has one answer for stored values and for what is seen of them, as a whole. */
function isGuard(part: PlainObject, access: ClassAccess): boolean {
  const conditions: unknown = part['$nor'];
  if (!Array.isArray(conditions)) return false;
  const [path] = Object.keys((conditions.at(-1) as PlainObject | undefined) ?? {});
  if (path === undefined) return false;
  return JSON.stringify(noneWithheldAt(path, access)) === JSON.stringify(part);
}

/** Whether a condition asks only what stored values and what is seen of them answer alike, given that it names nothing withheld. */
function isExact(condition: unknown): boolean {
  if (!isOperators(condition)) return true;
  return Object.entries(condition).every(([operator, operand]) => {
    if (operator === '$not') return isExact(operand);
    if (EQUALITIES.has(operator)) return !holdsOperator(operand);
    return COUNTED.has(operator) || (RANGES.has(operator) && isUnambiguous(operand));
  });
}

function ordersObjects(condition: unknown): boolean {
  return (
    isOperators(condition) &&
    Object.entries(condition).some(
      ([operator, operand]) => RANGES.has(operator) && typeof operand === 'object' && !isUnambiguous(operand),
    )
  );
}

function isUnambiguous(operand: unknown): boolean {
  if (isTyped(operand)) return operand.__type === 'Date';
  return operand === null || typeof operand === 'number' || typeof operand === 'boolean';
}

function isOperators(condition: unknown): condition is PlainObject {
  return isPlainObject(condition) && Object.keys(condition).some((key) => key.startsWith('$'));
}

function holdsOperator(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(holdsOperator);
  return isOperators(value);
}

/**
 * A filter that only rows meet in whose column no object of a withheld class stands, however deep. For places where the database
 * compares a stored column with values that nobody can look at before.
 */
export function noneWithheldWithin(column: string, { mayHold }: ClassAccess): Where | null {
  if (!mayHold?.columns.has(column)) return null;
  return { $expr: holdsNone(`$${column}`, mayHold.names, DEPTH) };
}

/** Never fails, whatever the value is; what lies too deep to be looked at counts as withheld. */
function holdsNone(value: string, names: WithheldNames, depth: number): unknown {
  const member = `inner${depth}`;
  const entries = { $objectToArray: value };
  const named = (part: 'k' | 'v') => ({ $map: { input: entries, as: 'entry', in: `$$entry.${part}` } });
  const members = { $cond: [{ $isArray: [value] }, value, { $concatArrays: [named('k'), named('v')] }] };
  const inside =
    depth === 0
      ? { $in: [value, [[], {}]] }
      : {
          $not: [
            {
              $in: [
                false,
                { $map: { input: members, as: member, in: holdsNone(`$$${member}`, names, depth - 1) } },
              ],
            },
          ],
        };
  return {
    $and: [
      { $not: [isWithheldText(value, names)] },
      { $not: [isWithheldObject(value, names)] },
      { $cond: [hasMembers(value), inside, true] },
    ],
  };
}

const isObject = (value: string): unknown => ({ $eq: [{ $type: value }, 'object'] });
const hasMembers = (value: string): unknown => ({ $or: [isObject(value), { $isArray: [value] }] });
const isWithheldObject = (value: string, names: WithheldNames): unknown => ({
  $and: [isObject(value), isWithheldName(`${value}.className`, names)],
});

/**
 * An expression for a value of such a column, with a placeholder in the place of every object of a withheld class, as rows that
 * are returned have it: a pipeline could part an id from the class that gives it away.
 * @param value a reference: `$column`, `$$row.column`
 */
export function withPlaceholders(value: string, names: WithheldNames, depth = DEPTH): unknown {
  const placeholder = (className: unknown) => ({ className, __redacted: { $literal: true } });
  const textClass = { $arrayElemAt: [{ $split: [value, { $literal: '$' }] }, 0] };
  const text = { $cond: [isWithheldText(value, names), placeholder(textClass), value] };
  const inside = { $cond: [hasMembers(value), withMembers(value, names, depth), text] };
  return { $cond: [isWithheldObject(value, names), placeholder(`${value}.className`), inside] };
}

/** Lists and objects go one way, as entries of key and value, so that the expression grows with its depth and not by its power. */
function withMembers(value: string, names: WithheldNames, depth: number): unknown {
  if (depth === 0) return { $cond: [{ $isArray: [value] }, [], {}] };
  const [member, members] = [`member${depth}`, `members${depth}`];
  // A key may be a stored pointer as well; rows lose such a member.
  const named = {
    $filter: {
      input: { $objectToArray: value },
      as: member,
      cond: { $not: [isWithheldText(`$$${member}.k`, names)] },
    },
  };
  const entries = {
    $cond: [
      { $isArray: [value] },
      { $map: { input: value, as: member, in: { k: '', v: `$$${member}` } } },
      named,
    ],
  };
  const seen = {
    $map: {
      input: entries,
      as: member,
      in: { k: `$$${member}.k`, v: withPlaceholders(`$$${member}.v`, names, depth - 1) },
    },
  };
  const together = {
    $cond: [{ $isArray: [value] }, `$$${members}.v`, { $arrayToObject: `$$${members}` }],
  };
  return { $let: { vars: { [members]: seen }, in: together } };
}

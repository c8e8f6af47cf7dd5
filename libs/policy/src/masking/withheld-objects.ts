import { cutText, canonicalClassName, type Refusal, Refused, refuse } from '#core';
import type { ClassAccess, WithheldNames } from '../model/class-access.js';
import type { FieldType } from '../model/class-schema.js';
import { takeRoot } from '../model/field-names.js';
import { isPlainObject, isTyped, type PlainObject, type Where } from '../model/where.js';

/** @param known the class names in rules of the agent and of the operator, and those of the schema */
export function withheldNames(
  known: Iterable<string>,
  isWithheld: (className: string) => boolean,
  othersAreWithheld: boolean,
): WithheldNames {
  const names = [...new Set([...known].map(canonicalClassName))];
  const chosen = names.filter((name) => isWithheld(name) !== othersAreWithheld);
  const sortSpellings = (classes: readonly string[]) => classes.flatMap(spellings).toSorted();
  return {
    kind: othersAreWithheld ? 'allBut' : 'listed',
    classes: sortSpellings(chosen),
    inTexts: sortSpellings(names.filter(isWithheld)),
  };
}

function spellings(name: string): readonly string[] {
  const bare = name.slice(1);
  return name.startsWith('_') && canonicalClassName(bare) === name ? [name, bare] : [name];
}

/** `Class$id`, as pointer columns are stored. */
export const STORED_POINTER = /^([A-Za-z_][A-Za-z0-9_]*)\$(.+)$/s;

function isNamed(className: string, { kind, classes }: WithheldNames): boolean {
  return classes.includes(className) === (kind === 'listed');
}

/** The first withheld class that a value names by a pointer, an object or a stored pointer, at any depth. */
export function withheldClassIn(value: unknown, names: WithheldNames): string | null {
  if (typeof value === 'string') {
    const className = STORED_POINTER.exec(value)?.[1];
    return className !== undefined && names.inTexts.includes(className) ? className : null;
  }
  if (Array.isArray(value)) return findFirst(value, names);
  if (!isPlainObject(value)) return null;
  const { className } = value;
  if (typeof className === 'string' && isNamed(className, names)) return className;
  return findFirst([...Object.values(value), ...Object.keys(value)], names);
}

function findFirst(values: readonly unknown[], names: WithheldNames): string | null {
  for (const value of values) {
    const found = withheldClassIn(value, names);
    if (found !== null) return found;
  }
  return null;
}

/** Conditions that match when the path leads to an object of a withheld class, or to its stored pointer. */
function meetsWithheld(path: string, names: WithheldNames): readonly Record<string, unknown>[] {
  const { kind, classes } = names;
  const className =
    kind === 'listed' ? { $in: classes } : { $regex: `^(?!(?:${alternatives(classes)})(?![\\s\\S]))` };
  return [{ [`${path}.className`]: className }, { [path]: { $regex: buildStoredPointerPattern(names) } }];
}

/** A pattern that matches stored pointers to withheld classes. */
function buildStoredPointerPattern({ inTexts }: WithheldNames): string {
  return `^(?:${alternatives(inTexts)})\\$[\\s\\S]`;
}

/** Without classes a pattern that matches nothing. */
function alternatives(classes: readonly string[]): string {
  return classes.length === 0 ? '(?!)' : classes.map((name) => name.replaceAll(/\W/g, '\\$&')).join('|');
}

/** An expression: whether the class name is that of a withheld class. */
function isWithheldName(className: string, { kind, classes }: WithheldNames): unknown {
  const listed = { $in: [className, { $literal: classes }] };
  return kind === 'listed'
    ? listed
    : { $and: [{ $eq: [{ $type: className }, 'string'] }, { $not: [listed] }] };
}

/** An expression: whether the value is a stored pointer to a withheld class. */
function isWithheldText(value: string, names: WithheldNames): unknown {
  const matches = { $regexMatch: { input: value, regex: buildStoredPointerPattern(names) } };
  return { $cond: [{ $eq: [{ $type: value }, 'string'] }, matches, false] };
}

/** Types whose values are no objects and no lists as Parse stores them. Other programs may have stored any. */
const FLAT: ReadonlySet<FieldType> = new Set(['String', 'Number', 'Boolean', 'Date']);

export const isFlat = (type: FieldType | undefined): boolean => type !== undefined && FLAT.has(type);

const isContainer = (value: string): unknown => ({ $in: [{ $type: value }, ['object', 'array']] });

/** An expression for a column of such a type: an object or a list in it is not shown, whatever it holds. */
export const withoutContainer = (value: string): unknown => ({
  $cond: [isContainer(value), { __redacted: { $literal: true } }, value],
});

/** Whoever looks into a column of such a type asks about an object that it is not declared to hold. @throws Refused */
export function assertNotInsideFlat(
  path: string,
  { flat }: ClassAccess,
  isInside = path.includes('.'),
): void {
  const root = takeRoot(path);
  if (!isInside || !flat?.has(root)) return;
  throw refuse.invalidQuery(
    `'${root}' is no object: '${cutText(path, 128)}' leads into it; compare '${root}' itself`,
  );
}

/** Levels of containers inside a column that pipelines see; deeper ones are empty for them rather than unchecked. */
const MAX_DEPTH = 6;

/** Whether the path is, or leads into, a column that may hold objects of a class withheld from the agent. */
export function mayHoldWithheld(path: string, { mayHold }: ClassAccess): boolean {
  return mayHold?.columns.has(takeRoot(path)) ?? false;
}

/**
 * The filter that is added to any condition on the path: no object along the path is of a withheld class. The result then does
 * not depend on such objects. Null when there can be none.
 */
export function noneWithheldOn(path: string, access: ClassAccess): Where | null {
  const segments = path.split('.');
  const containers = segments.slice(0, -1).map((_, index) => segments.slice(0, index + 1).join('.'));
  return noneAmong(containers, access);
}

/** The same including the value at the path: for conditions that look into it, such as a pattern or a range of texts. */
export function withoutWithheldObjects(path: string, access: ClassAccess): Where | null {
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
 * The filter that is added to a condition, because the database compares stored values: together they match exactly when the
 * condition matches what the agent sees.
 * @throws Refused for a value of a withheld class, and when there is no such filter
 */
export function besideCondition(
  path: string,
  condition: unknown,
  access: ClassAccess,
  judgeClass: (className: string) => Refusal | null,
): Where | null {
  if (!mayHoldWithheld(path, access)) return null;
  const own = withoutCrossClass(condition);
  assertComparable(own, access, judgeClass);
  if (isExact(own)) return noneWithheldOn(path, access);
  if (ordersObjects(own)) {
    throw refuse.invalidQuery(
      `'${path}' may hold objects of classes that are not yours: compare it with a number, a date or a text, or compare ` +
        'its members in a pipeline',
    );
  }
  return withoutWithheldObjects(path, access);
}

const CROSS_CLASS_OPERATORS = new Set(['$inQuery', '$notInQuery', '$select', '$dontSelect']);

/** Without the cross-class operators: their inner queries are checked for their own classes. */
function withoutCrossClass(condition: unknown): unknown {
  if (!isOperators(condition)) return condition;
  return Object.fromEntries(
    Object.entries(condition).filter(([operator]) => !CROSS_CLASS_OPERATORS.has(operator)),
  );
}

/** A value to compare with must not name a withheld class: it could be a guess. @throws Refused */
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
/** Operators whose result is the same for a placeholder, or that compare numbers alone. */
const COUNTING_OPERATORS = new Set(['$exists', '$size', '$mod', '$comment']);

/** The columns with a condition that may match a stored value and not what the agent sees of it, or the reverse. */
export function inexactColumns(match: unknown, access: ClassAccess): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (part: unknown): void => {
    if (Array.isArray(part)) return part.forEach(visit);
    if (!isPlainObject(part) || isGuard(part, access)) return;
    for (const [key, value] of Object.entries(part)) {
      if (key.startsWith('$')) visit(value);
      else if (mayHoldWithheld(key, access) && !isExact(value)) found.add(takeRoot(key));
    }
  };
  visit(match);
  return found;
}

/** Whether the part is a filter of `withoutWithheldObjects`, which makes the conditions around it exact. */
function isGuard(part: PlainObject, access: ClassAccess): boolean {
  const conditions: unknown = part['$nor'];
  if (!Array.isArray(conditions)) return false;
  const [path] = Object.keys((conditions.at(-1) as PlainObject | undefined) ?? {});
  if (path === undefined) return false;
  return JSON.stringify(withoutWithheldObjects(path, access)) === JSON.stringify(part);
}

/** Whether a condition that names nothing withheld has the same result for stored values and for what the agent sees. */
function isExact(condition: unknown): boolean {
  if (!isOperators(condition)) return true;
  return Object.entries(condition).every(([operator, operand]) => {
    if (operator === '$not') return isExact(operand);
    if (EQUALITIES.has(operator)) return !holdsOperator(operand);
    return COUNTING_OPERATORS.has(operator) || (RANGES.has(operator) && isUnambiguous(operand));
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
 * A filter for rows whose column holds no object of a withheld class, at any depth. For places where the database compares a
 * stored column with values that cannot be checked beforehand.
 */
export function noneWithheldWithin(column: string, { mayHold, flat }: ClassAccess): Where | null {
  if (flat?.has(column)) return { $expr: { $not: [isContainer(`$${column}`)] } };
  if (!mayHold?.columns.has(column)) return null;
  return { $expr: holdsNone(`$${column}`, mayHold.names, MAX_DEPTH) };
}

/** Never fails on any value; what is nested too deep to check counts as withheld. */
function holdsNone(value: string, names: WithheldNames, depth: number): unknown {
  const member = `inner${depth}`;
  const entries = { $objectToArray: value };
  const mapEntries = (part: 'k' | 'v') => ({ $map: { input: entries, as: 'entry', in: `$$entry.${part}` } });
  const members = {
    $cond: [{ $isArray: [value] }, value, { $concatArrays: [mapEntries('k'), mapEntries('v')] }],
  };
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
 * An expression for the value of such a column with a placeholder for every object of a withheld class, as in returned rows. A
 * pipeline could otherwise separate an id from its class name, by which `redact` recognises it.
 * @param value a reference: `$column`, `$$row.column`
 */
export function withPlaceholders(value: string, names: WithheldNames, depth = MAX_DEPTH): unknown {
  const placeholder = (className: unknown) => ({ className, __redacted: { $literal: true } });
  const textClass = { $arrayElemAt: [{ $split: [value, { $literal: '$' }] }, 0] };
  const text = { $cond: [isWithheldText(value, names), placeholder(textClass), value] };
  const inside = { $cond: [hasMembers(value), withMembers(value, names, depth), text] };
  return { $cond: [isWithheldObject(value, names), placeholder(`${value}.className`), inside] };
}

/** Lists and objects are both handled as entries of key and value: the size of the expression stays linear in its depth. */
function withMembers(value: string, names: WithheldNames, depth: number): unknown {
  if (depth === 0) return { $cond: [{ $isArray: [value] }, [], {}] };
  const [member, members] = [`member${depth}`, `members${depth}`];
  // A key may be a stored pointer, too; such members are removed.
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

import { cutText, canonicalClassName, isClassName, type Refusal, Refused, refuse } from '#core';
import type { ClassAccess } from '../model/class-access.js';
import type { FieldSchema } from '../model/class-schema.js';
import { takeRoot } from '../model/field-names.js';
import { noteMember, compareValue, type Note } from '../model/value-type.js';
import {
  isPlainObject,
  isPointer,
  isTyped,
  parsePrefixedPointer,
  type Pointer,
  pointer,
  reduceTyped,
  toTypedDate,
  type TypedValue,
} from '../model/where.js';
import { type Column, columnAt } from './column.js';
import {
  assertMayEqual,
  createNoMember,
  noteOtherClass,
  noteReference,
  noteText,
  noteWhole,
} from './unlikely-values.js';

export interface ValueRules {
  readonly strictPointerShapes: boolean;
  /** Texts that are never read as `Class$id`. */
  readonly literals?: ReadonlySet<string>;
  /** A text that is compared with values of every type. */
  readonly unchecked?: string | undefined;
  /** The class gate for every class that a pointer names. */
  readonly judgeClass: (className: string) => Refusal | null;
  /** Takes remarks for the answer. Default: none are made. */
  readonly note?: Note | undefined;
}

/** A path leads through its root. @throws Refused `invalid_query` where that is a pointer */
export function checkPath(path: string, access: ClassAccess, note: Note | undefined): void {
  const root = takeRoot(path);
  if (path === root) return;
  const column = columnAt(root, access);
  if (column.type === 'Pointer') throw createNoMember(column);
  noteMember(column.known, path.slice(root.length + 1), { with: root, note });
}

/** A number as text, in one spelling: no exponent, no zero that could be left out. */
const NUMBER = /^(?!-0$)-?(?:0|[1-9]\d*)(?:\.\d*[1-9])?$/;

/**
 * A value of the agent as it is compared with a column of a plain class: this value, and no other reading of its text. `Shop$1` is
 * not the shop `1`, and `1.0` is not the tenant `1`. Null: no row can have it.
 */
export function exactOperand(
  value: string | number | boolean,
  column: FieldSchema | undefined,
): string | number | boolean | Pointer | null {
  if (column?.targetClass !== undefined)
    return typeof value === 'boolean' ? null : pointer(column.targetClass, String(value));
  return typeof value === 'string' && column?.type === 'Number' && !NUMBER.test(value) ? null : value;
}

/** The value as it is compared with a column: typed values reduced, dates and pointers in typed form. */
export function columnValue(value: unknown, column: Column, rules: ValueRules): unknown {
  assertMayEqual(value, column);
  if (typeof value === 'string') return columnText(value, column, column.targetClass, rules);
  if (isPlainObject(value) && !isTyped(value) && column.type === 'Pointer') throw createNoMember(column);
  noteWhole(value, column, rules.note);
  const plain = isTyped(value) ? admitValue(reduceTyped(value), rules) : plainValue(value, rules);
  if (isReference(column) && isPointer(plain)) noteOtherClass(plain['className'], column, rules.note);
  return convertCompared(plain, column, rules);
}

const convertCompared = (
  value: unknown,
  { path, known }: Column,
  { note, unchecked }: ValueRules,
): unknown =>
  value !== undefined && value === unchecked ? value : compareValue(value, known, { with: path, note });

/** The members of `$in`, `$nin`, `$all`: bare ids get the class of typed pointers beside them. */
export function columnValues(values: readonly unknown[], column: Column, rules: ValueRules): unknown[] {
  const holdsPointers =
    isReference(column) || (column.type === undefined && values.some((value) => isPointer(value)));
  if (!holdsPointers) return values.map((value) => columnValue(value, column, rules));
  const target = column.targetClass ?? onlyClassAmong(values);
  const pointers: Column = { ...column, type: 'Pointer' };
  return values.map((value) =>
    typeof value === 'string'
      ? columnText(value, pointers, target, rules)
      : columnValue(value, pointers, rules),
  );
}

function columnText(text: string, column: Column, target: string | undefined, rules: ValueRules): unknown {
  // Groups give this key to rows without a value.
  if (text === 'null' && !rules.literals?.has(text))
    rules.note?.(
      `'${cutText(column.path, 128)}' is compared with the text "null": null without quotes finds rows without a value`,
    );
  if (column.stored && rules.literals?.has(text)) {
    const operand = exactOperand(text, column.stored);
    if (operand === null) throw createUnfitting(column);
    if (operand !== text) return operand;
  }
  if (!isReference(column)) {
    if (column.type === 'Array' && !column.stored && isLikeId(text))
      rules.note?.(describeListOfIds(text, column));
    if (!rules.literals?.has(text)) noteText(text, column, rules.note);
    return convertCompared(text, column, rules);
  }
  const prefixed = rules.literals?.has(text) ? null : parsePrefixedPointer(text);
  if (prefixed) {
    const named = admitValue({ ...prefixed }, rules);
    noteOtherClass(named['className'], column, rules.note);
    return named;
  }
  if (!rules.literals?.has(text)) noteReference(text, column, rules.note);
  if (target !== undefined) return admitValue({ ...pointer(target, text) }, rules);
  if (rules.strictPointerShapes) throw refuse.pointerShapeMismatch(column.className, column.path);
  return text;
}

/** A text beside its values is the id of a row. Lists of plain classes hold ids as they are. */
const isReference = ({ type, targetClass, stored }: Column): boolean =>
  type === 'Pointer' || (type === 'Array' && targetClass !== undefined && !stored);

/** As Parse generates ids: ten letters and digits, which are hardly ever a word. */
const isLikeId = (text: string): boolean => /^(?=.*[A-Z0-9])[A-Za-z0-9]{10}$/.test(text);

const describeListOfIds = (text: string, { path }: Column): string =>
  `'${text}' was compared as text with the entries of '${cutText(path, 128)}'. Where these are Pointers, write ` +
  `{"__type":"Pointer","className":"CLASS","objectId":"${text}"}`;

const createUnfitting = ({ className, path }: Column): Refused =>
  refuse.agentValueUnset(className, `the value of the agent is no value of '${path}'`);

/** Values inside arrays and objects are not compared with a column of their own. */
function plainValue(value: unknown, rules: ValueRules): unknown {
  if (value instanceof Date) return toTypedDate(value);
  if (isTyped(value)) return admitValue(reduceTyped(value), rules);
  if (Array.isArray(value)) return value.map((element) => plainValue(element, rules));
  if (!isPlainObject(value)) return value;
  const operator = Object.keys(value).find((key) => key.startsWith('$'));
  if (operator !== undefined) {
    throw refuse.invalidQuery(`Operator '${operator}' cannot stand inside a value`);
  }
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, plainValue(member, rules)]));
}

function admitValue(value: TypedValue, rules: ValueRules): TypedValue {
  const { className } = value;
  if (typeof className === 'string') {
    const refusal = rules.judgeClass(className);
    if (refusal) throw new Refused(refusal);
  }
  return value;
}

function onlyClassAmong(values: readonly unknown[]): string | undefined {
  const classes = new Set<string>();
  for (const value of values) {
    if (isPointer(value) && isClassName(value['className']))
      classes.add(canonicalClassName(value['className']));
  }
  const [only, ...others] = classes;
  return others.length === 0 ? only : undefined;
}

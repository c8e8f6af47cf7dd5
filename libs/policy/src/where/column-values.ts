import { canonicalClassName, isClassName, type Refusal, Refused, refusals } from '#agent';
import type { ClassAccess } from '../model/class-access.js';
import type { FieldType } from '../model/class-schema.js';
import { isPlainObject } from '../model/plain-object.js';
import {
  isPointer,
  isTyped,
  parseIsoDate,
  parsePrefixedPointer,
  pointer,
  reduceTyped,
  typedDate,
  type TypedValue,
} from './typed-value.js';

/** What is known of the column a condition speaks of. `type` is absent for undeclared columns and inside objects. */
export interface Column {
  readonly className: string;
  readonly path: string;
  readonly type?: FieldType;
  /** Of a pointer column. */
  readonly targetClass?: string;
}

export interface ValueRules {
  readonly strictPointerShapes: boolean;
  /** The class gate for every class a pointer names. */
  readonly judgeClass: (className: string) => Refusal | null;
}

export function columnOf(path: string, access: ClassAccess): Column {
  const column = { className: access.className, path };
  if (path.includes('.')) return column;
  const field = access.schema?.fields.get(path);
  if (!field) return path === 'createdAt' || path === 'updatedAt' ? { ...column, type: 'Date' } : column;
  return { ...column, type: field.type, ...(field.targetClass && { targetClass: field.targetClass }) };
}

/** One value as it is compared with a column: typed forms reduced, dates and pointers brought to their typed form. */
export function columnValue(value: unknown, column: Column, rules: ValueRules): unknown {
  if (value instanceof Date) return typedDate(value);
  if (isTyped(value)) return admitted(reduceTyped(value), rules);
  if (typeof value === 'string') return columnText(value, column, column.targetClass, rules);
  if (Array.isArray(value)) return value.map((element) => plainValue(element, rules));
  return plainValue(value, rules);
}

/** The members of `$in`, `$nin`, `$all`: a typed pointer lends its class to bare ids beside it. */
export function columnValues(values: readonly unknown[], column: Column, rules: ValueRules): unknown[] {
  const holdsPointers =
    column.type === 'Pointer' || (column.type === undefined && values.some((value) => isPointer(value)));
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
  if (column.type === 'Date') {
    const date = parseIsoDate(text);
    if (date) return typedDate(date);
    throw new Refused(refusals.invalidQuery(`'${column.path}' is a date: compare it with ISO 8601 text`));
  }
  if (column.type !== 'Pointer') return text;
  const prefixed = parsePrefixedPointer(text);
  if (prefixed) return admitted({ ...prefixed }, rules);
  if (target !== undefined) return admitted({ ...pointer(target, text) }, rules);
  if (rules.strictPointerShapes)
    throw new Refused(refusals.pointerShapeMismatch(column.className, column.path));
  return text;
}

/** Values inside arrays and objects have no column of their own. */
function plainValue(value: unknown, rules: ValueRules): unknown {
  if (value instanceof Date) return typedDate(value);
  if (isTyped(value)) return admitted(reduceTyped(value), rules);
  if (Array.isArray(value)) return value.map((element) => plainValue(element, rules));
  if (!isPlainObject(value)) return value;
  const operator = Object.keys(value).find((key) => key.startsWith('$'));
  if (operator !== undefined) {
    throw new Refused(refusals.invalidQuery(`Operator '${operator}' cannot stand inside a value`));
  }
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, plainValue(member, rules)]));
}

function admitted(value: TypedValue, rules: ValueRules): TypedValue {
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

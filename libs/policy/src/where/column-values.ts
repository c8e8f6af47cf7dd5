import { canonicalClassName, isClassName, type Refusal, refusals, Refused } from '#core';
import type { ClassAccess } from '../model/class-access.js';
import type { FieldType } from '../model/class-schema.js';
import { isPlainObject, type PlainObject } from '../model/where.js';

/** A pointer in Parse's JSON form. */
export interface Pointer {
  readonly __type: 'Pointer';
  readonly className: string;
  readonly objectId: string;
}

/** Parse's JSON form of a value that JSON does not have. */
export type TypedValue = PlainObject & { readonly __type: string };

export function isTyped(value: unknown): value is TypedValue {
  return isPlainObject(value) && typeof value['__type'] === 'string';
}

export function isPointer(value: unknown): value is TypedValue {
  return isTyped(value) && value.__type === 'Pointer';
}

function pointer(className: string, objectId: string): Pointer {
  return { __type: 'Pointer', className: canonicalClassName(className), objectId };
}

/** Parses `Class$id`, as pointers are stored; null for other text. */
export function parsePrefixedPointer(text: string): Pointer | null {
  const dollar = text.indexOf('$');
  const className = text.slice(0, Math.max(dollar, 0));
  return isClassName(className) && dollar < text.length - 1
    ? pointer(className, text.slice(dollar + 1))
    : null;
}

const ISO_DATE = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-]\d{2}:?\d{2})?)?$/;

/** Text without an offset is UTC: the result must not depend on the time zone of the server. */
function parseIsoDate(text: string): Date | null {
  const match = ISO_DATE.exec(text);
  if (!match) return null;
  const zone = match[3] ?? 'Z';
  const offset = /^[+-]\d{4}$/.test(zone) ? `${zone.slice(0, 3)}:${zone.slice(3)}` : zone;
  const date = new Date(`${match[1]}T${match[2] ?? '00:00'}${offset}`);
  return Number.isNaN(date.getTime()) ? null : date;
}

export function typedDate(date: Date): TypedValue {
  if (Number.isNaN(date.getTime())) throw malformed('Date', 'a valid date');
  return { __type: 'Date', iso: date.toISOString() };
}

/** Reduces a value of each type to its own members. */
const REDUCTIONS: Readonly<Record<string, (value: TypedValue) => TypedValue>> = {
  Pointer: ({ className, objectId }) => {
    if (!isClassName(className) || typeof objectId !== 'string' || objectId === '') {
      throw malformed('Pointer', 'className and objectId');
    }
    return { ...pointer(className, objectId) };
  },
  Date: ({ iso }) => {
    const date = typeof iso === 'string' ? parseIsoDate(iso) : null;
    if (!date) throw malformed('Date', 'iso, an ISO 8601 date');
    return typedDate(date);
  },
  File: ({ name, url }) => {
    if (typeof name !== 'string') throw malformed('File', 'name');
    return { __type: 'File', name, ...(typeof url === 'string' && { url }) };
  },
  GeoPoint: ({ latitude, longitude }) => {
    if (!isWithin(latitude, 90) || !isWithin(longitude, 180)) {
      throw malformed('GeoPoint', 'latitude (-90 to 90) and longitude (-180 to 180)');
    }
    return { __type: 'GeoPoint', latitude, longitude };
  },
  Bytes: ({ base64 }) => {
    if (typeof base64 !== 'string') throw malformed('Bytes', 'base64');
    return { __type: 'Bytes', base64 };
  },
  Polygon: ({ coordinates }) => {
    if (!isRing(coordinates))
      throw malformed('Polygon', 'coordinates, at least three [latitude, longitude] pairs');
    return {
      __type: 'Polygon',
      coordinates: coordinates.map(([latitude, longitude]) => [latitude, longitude]),
    };
  },
  Relation: ({ className }) => {
    if (!isClassName(className)) throw malformed('Relation', 'className');
    return { __type: 'Relation', className: canonicalClassName(className) };
  },
};

/** The value with the members of its type only. @throws Refused `invalid_query` */
export function reduceTyped(value: TypedValue): TypedValue {
  const smuggled = Object.keys(value).find((key) => key.startsWith('$'));
  if (smuggled !== undefined) {
    throw new Refused(
      refusals.invalidQuery(`A ${value.__type} value cannot carry the operator '${smuggled}'`),
    );
  }
  const reduce = Object.hasOwn(REDUCTIONS, value.__type) ? REDUCTIONS[value.__type] : undefined;
  if (!reduce) {
    throw new Refused(
      refusals.invalidQuery(`Unknown __type. Known types: ${Object.keys(REDUCTIONS).join(', ')}`),
    );
  }
  return reduce(value);
}

function malformed(type: string, needs: string): Refused {
  return new Refused(refusals.invalidQuery(`A ${type} value needs ${needs}`));
}

export function isWithin(value: unknown, limit: number): value is number {
  return typeof value === 'number' && Number.isFinite(value) && Math.abs(value) <= limit;
}

function isRing(value: unknown): value is [number, number][] {
  return (
    Array.isArray(value) &&
    value.length >= 3 &&
    value.every(
      (pair) => Array.isArray(pair) && pair.length === 2 && isWithin(pair[0], 90) && isWithin(pair[1], 180),
    )
  );
}

export function isScalar(value: unknown): value is string | number | boolean | null {
  return (
    value === null ||
    typeof value === 'string' ||
    typeof value === 'boolean' ||
    (typeof value === 'number' && Number.isFinite(value))
  );
}

/** The column of a condition. `type` is undefined for undeclared columns and inside objects. */
export interface Column {
  readonly className: string;
  readonly path: string;
  readonly type?: FieldType;
  /** Of a pointer column. */
  readonly targetClass?: string;
}

export interface ValueRules {
  readonly strictPointerShapes: boolean;
  /** The class gate for every class that a pointer names. */
  readonly judgeClass: (className: string) => Refusal | null;
}

export function columnAt(path: string, access: ClassAccess): Column {
  const column = { className: access.className, path };
  if (path.includes('.')) return column;
  const field = access.schema?.fields.get(path);
  if (!field) return path === 'createdAt' || path === 'updatedAt' ? { ...column, type: 'Date' } : column;
  return { ...column, type: field.type, ...(field.targetClass && { targetClass: field.targetClass }) };
}

/** The value as it is compared with a column: typed values reduced, dates and pointers in typed form. */
export function columnValue(value: unknown, column: Column, rules: ValueRules): unknown {
  if (value instanceof Date) return typedDate(value);
  if (isTyped(value)) return admitted(reduceTyped(value), rules);
  if (typeof value === 'string') return columnText(value, column, column.targetClass, rules);
  if (Array.isArray(value)) return value.map((element) => plainValue(element, rules));
  return plainValue(value, rules);
}

/** The members of `$in`, `$nin`, `$all`: bare ids get the class of typed pointers beside them. */
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

/** Values inside arrays and objects are not compared with a column of their own. */
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

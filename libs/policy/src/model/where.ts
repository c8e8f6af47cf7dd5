import { cutText, canonicalClassName, isClassName, Refused, refuse } from '#core';
import { takeRoot } from './field-names.js';

/**
 * A constraint in Parse form with wire names, after translation: pointers, dates and other typed values are
 * `{ __type }` objects, keys are wire names or operators. Only `translateWhere` and the policy of the operator create one.
 */
export type Where = Readonly<Record<string, unknown>>;

/** A pipeline in wire names that contains every predicate and projection of the policy. */
export type GovernedPipeline = readonly Readonly<Record<string, unknown>>[];

/** The conjunction of constraints without empty ones; the empty constraint when none is left. */
export function mergeFilters(...parts: readonly (Where | null | undefined)[]): Where {
  let first: Where | undefined;
  let all: Where[] | undefined;
  for (const part of parts) {
    if (!part || Object.keys(part).length === 0) continue;
    if (first === undefined) first = part;
    else (all ??= [first]).push(part);
  }
  return all ? { $and: all } : (first ?? {});
}

export type PlainObject = Readonly<Record<string, unknown>>;

/** An object as in JSON: no class instance, no array, not null. */
export function isPlainObject(value: unknown): value is PlainObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

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

export function pointer(className: string, objectId: string): Pointer {
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

/** Years beyond 9999 and before 0 have a sign and six digits, as JavaScript writes them. */
const ISO_DATE =
  /^(\d{4}|[+-]\d{6})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(\.\d{1,9})?)?(?:Z|([+-])(\d{2}):?(\d{2}))?)?$/;

/** Whether a text is written as a date, also as one that the calendar does not have. */
export const isDateLike = (text: string): boolean => ISO_DATE.test(text);

/**
 * Null for other text, and for days and times that do not exist: `Date` takes 30 February for 2 March. Text without an offset is
 * UTC: the result must not depend on the time zone of the server.
 */
export function parseIsoDate(text: string): Date | null {
  const match = ISO_DATE.exec(text);
  if (!match || match[1] === '-000000') return null;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map((part) => Number(part ?? 0));
  const [zoneHour, zoneMinute] = [Number(match[9] ?? 0), Number(match[10] ?? 0)];
  if (hour > 23 || minute > 59 || second > 59 || zoneHour > 23 || zoneMinute > 59) return null;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return null;
  date.setUTCHours(hour, minute, second, Number((match[7] ?? '').slice(1, 4).padEnd(3, '0')));
  const offset = (zoneHour * 60 + zoneMinute) * (match[8] === '-' ? -1 : 1);
  const time = date.getTime() - offset * 60_000;
  // JavaScript and MongoDB have dates up to the year 275760.
  return Math.abs(time) <= 8.64e15 ? new Date(time) : null;
}

export function toTypedDate(date: Date): TypedValue {
  if (Number.isNaN(date.getTime())) throw createMalformed('Date', 'a valid date');
  return { __type: 'Date', iso: date.toISOString() };
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Whether a text is base64 of whole bytes. */
export const isBase64 = (text: string): boolean => BASE64.test(text);

/** Reduces a value of each type to its own members. */
const REDUCTIONS: Readonly<Record<string, (value: TypedValue) => TypedValue>> = {
  Pointer: ({ className, objectId }) => {
    if (!isClassName(className) || typeof objectId !== 'string' || objectId === '') {
      throw createMalformed('Pointer', 'className and objectId');
    }
    return { ...pointer(className, objectId) };
  },
  Date: ({ iso }) => {
    const date = typeof iso === 'string' ? parseIsoDate(iso) : null;
    if (!date) throw createMalformed('Date', 'iso, an ISO 8601 date');
    return toTypedDate(date);
  },
  File: ({ name, url }) => {
    if (typeof name !== 'string') throw createMalformed('File', 'name');
    return { __type: 'File', name, ...(typeof url === 'string' && { url }) };
  },
  GeoPoint: ({ latitude, longitude }) => {
    if (!isWithin(latitude, 90) || !isWithin(longitude, 180)) {
      throw createMalformed('GeoPoint', 'latitude (-90 to 90) and longitude (-180 to 180)');
    }
    return { __type: 'GeoPoint', latitude, longitude };
  },
  Bytes: ({ base64 }) => {
    if (typeof base64 !== 'string' || !BASE64.test(base64))
      throw createMalformed('Bytes', 'base64, the text of all of its bytes');
    return { __type: 'Bytes', base64 };
  },
  Polygon: ({ coordinates }) => {
    if (!isRing(coordinates))
      throw createMalformed('Polygon', 'coordinates, at least three [latitude, longitude] pairs');
    return {
      __type: 'Polygon',
      coordinates: coordinates.map(([latitude, longitude]) => [latitude, longitude]),
    };
  },
  Relation: ({ className }) => {
    if (!isClassName(className)) throw createMalformed('Relation', 'className');
    return { __type: 'Relation', className: canonicalClassName(className) };
  },
};

/** The value with the members of its type only. @throws Refused `invalid_query` */
export function reduceTyped(value: TypedValue): TypedValue {
  const smuggled = Object.keys(value).find((key) => key.startsWith('$'));
  if (smuggled !== undefined) {
    throw refuse.invalidQuery(`A ${value.__type} value cannot carry the operator '${smuggled}'`);
  }
  const reduce = Object.hasOwn(REDUCTIONS, value.__type) ? REDUCTIONS[value.__type] : undefined;
  if (!reduce) {
    throw refuse.invalidQuery(
      value.__type === 'Object'
        ? 'A row that include shows is compared by its Pointer: {"__type":"Pointer","className":"…","objectId":"…"}, with its own two'
        : `Unknown __type. Known types: ${Object.keys(REDUCTIONS).join(', ')}`,
    );
  }
  return reduce(value);
}

function createMalformed(type: string, needs: string): Refused {
  return refuse.invalidQuery(`A ${type} value needs ${needs}`);
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

/** A query on another class inside a translated constraint; `where` contains no further one. */
export type CrossClassQuery =
  | {
      readonly operator: '$inQuery' | '$notInQuery';
      readonly field: string;
      readonly className: string;
      readonly where: Where;
    }
  | {
      readonly operator: '$select' | '$dontSelect';
      readonly field: string;
      readonly className: string;
      readonly where: Where;
      readonly key: string;
    }
  | RelationQuery
  | { readonly operator: '$relatedTo'; readonly object: Pointer; readonly key: string };

/** Rows whose relation `field` holds one of the members, or none of them. */
export interface RelationQuery {
  readonly operator: '$inRelation' | '$notInRelation';
  readonly field: string;
  /** Of the rows that have the relation. */
  readonly className: string;
  /** Rows of the class of the relation: these ids, or those that the constraint finds. */
  readonly members: { readonly className: string } & (
    { readonly ids: readonly string[] } | { readonly where: Where }
  );
}

/** Runs a query and returns the constraint that replaces it, such as `{ author: { $in: [pointers] } }`. */
export type ResolveCrossClass = (query: CrossClassQuery) => Promise<Where>;

/** Replaces every cross-class query by the result of `resolve`, innermost first, one after another. */
export async function mapCrossClass(where: Where, resolve: ResolveCrossClass): Promise<Where> {
  const parts: Where[] = [];
  const kept: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(where)) {
    if (key === '$and' || key === '$or' || key === '$nor') {
      kept[key] = await mapBranches(value, resolve);
    } else if (key === '$relatedTo') {
      parts.push(await resolve({ operator: key, ...(value as { object: Pointer; key: string }) }));
    } else if (isPlainObject(value)) {
      const condition: Record<string, unknown> = {};
      for (const [operator, operand] of Object.entries(value)) {
        const query = await resolveCrossClassQuery(key, operator, operand, resolve);
        if (query) parts.push(await resolve(query));
        else condition[operator] = operand;
      }
      if (Object.keys(condition).length > 0 || Object.keys(value).length === 0) kept[key] = condition;
    } else {
      kept[key] = value;
    }
  }
  return mergeFilters(kept, ...parts);
}

/** The roots of the fields that a constraint names, in all its branches. */
export function listConstrainedFields(where: Where): Set<string> {
  const fields = new Set<string>();
  for (const [key, value] of Object.entries(where)) {
    if (!key.startsWith('$')) fields.add(takeRoot(key));
    else if (Array.isArray(value))
      for (const branch of value.filter(isPlainObject))
        for (const field of listConstrainedFields(branch)) fields.add(field);
  }
  return fields;
}

/** Whether a constraint contains a cross-class query. */
export function hasCrossClassQuery(where: Where): boolean {
  return Object.entries(where).some(([key, value]) => {
    if (key === '$relatedTo') return true;
    if (Array.isArray(value) && key.startsWith('$')) return (value as Where[]).some(hasCrossClassQuery);
    return isPlainObject(value) && Object.keys(value).some((operator) => CROSS_CLASS.has(operator));
  });
}

const CROSS_CLASS = new Set([
  '$inQuery',
  '$notInQuery',
  '$select',
  '$dontSelect',
  '$inRelation',
  '$notInRelation',
]);

async function mapBranches(branches: unknown, resolve: ResolveCrossClass): Promise<Where[]> {
  const mapped: Where[] = [];
  for (const branch of branches as Where[]) mapped.push(await mapCrossClass(branch, resolve));
  return mapped;
}

async function resolveCrossClassQuery(
  field: string,
  operator: string,
  operand: unknown,
  resolve: ResolveCrossClass,
): Promise<CrossClassQuery | null> {
  if (operator === '$inQuery' || operator === '$notInQuery') {
    const { className, where } = operand as { className: string; where: Where };
    return { operator, field, className, where: await mapCrossClass(where, resolve) };
  }
  if (operator === '$inRelation' || operator === '$notInRelation') {
    const { className, members } = operand as RelationQuery;
    if (!('where' in members)) return { operator, field, className, members };
    const where = await mapCrossClass(members.where, resolve);
    return { operator, field, className, members: { ...members, where } };
  }
  if (operator === '$select' || operator === '$dontSelect') {
    const { query, key } = operand as { query: { className: string; where: Where }; key: string };
    return {
      operator,
      field,
      className: query.className,
      where: await mapCrossClass(query.where, resolve),
      key,
    };
  }
  return null;
}

/** Why a query or a write was blocked, for the operator's log alone (docs/reference/refusals.md#security-refusals-are-opaque). */
export const SECURITY_REASONS = [
  'code_execution',
  'cross_class_denied',
  'denied_field_ref_in_expr',
  'denied_internal_collection',
  'denied_internal_field',
  'denied_operator',
  'denied_system_variable',
  'forensic_operator_in_expr',
  'invalid_key',
  'invalid_regex',
  'invalid_value',
  'max_depth_exceeded',
  'nested_denied_operator',
  'operator_in_value',
  'regex_pattern_too_long',
  'regex_redos',
  'regex_too_long',
  'stage0_only_atlas_stage',
  'unknown_stage',
] as const;
export type SecurityReason = (typeof SECURITY_REASONS)[number];

/** @param at the place in the query or the fields; cut to 200 characters, because callers choose its names */
export function blockFilter(
  gate: 'where' | 'pipeline' | 'arguments',
  reason: SecurityReason,
  at?: string,
): Refused {
  return refuse.securityBlocked(gate, reason, at === undefined ? undefined : cutText(at, 200));
}

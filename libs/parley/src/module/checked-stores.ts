import { isJsonObject } from '#core';
import {
  type Caller,
  firstRows,
  type FindQuery,
  type IncludePlan,
  type OperationContext,
  overridden,
  type ParseRow,
  type Reads,
  type ReadStore,
  type Searches,
  type SearchHit,
  type SearchStore,
  type TextSearchQuery,
} from '#data';
import { isFieldName, type Where } from '#policy';

/** A column of the row itself: a dotted name or an operator with `$` is left to the reader. */
const isColumn = (name: string) => isFieldName(name);

/** Every condition that a row must meet, including those of `$and`. */
function* listConditions(where: Where): Generator<readonly [name: string, condition: unknown]> {
  for (const [name, condition] of Object.entries(where)) {
    if (name === '$and' && Array.isArray(condition))
      for (const part of condition as unknown[]) yield* isJsonObject(part) ? listConditions(part) : [];
    else if (isColumn(name)) yield [name, condition];
  }
}

/** A comparable value; undefined: only the store can compare it. */
function plain(value: unknown): string | undefined {
  if (value === null || ['string', 'number', 'boolean'].includes(typeof value)) return JSON.stringify(value);
  if (!isJsonObject(value) || value['__type'] !== 'Pointer') return undefined;
  return JSON.stringify(['Pointer', value['className'], value['objectId']]);
}

/** The values of which a column must have one; null: the condition is no equality. */
function listAdmitted(condition: unknown): ReadonlySet<string> | null {
  const isOperator = isJsonObject(condition) && Object.keys(condition).some((name) => name.startsWith('$'));
  const listed: unknown = isOperator
    ? (condition['$in'] ?? ('$eq' in condition ? [condition['$eq']] : null))
    : [condition];
  if (!Array.isArray(listed)) return null;
  const values = listed.map(plain);
  return values.every((value) => value !== undefined) ? new Set(values as string[]) : null;
}

/** Columns of `where` that a row can be checked against. */
function listComparedColumns(where: Where): string[] {
  return [...listConditions(where)].flatMap(([name, condition]) => (listAdmitted(condition) ? [name] : []));
}

/**
 * Whether `where` certainly excludes a row. Only equality is checked, which covers a tenant and an id; for other
 * conditions the reader is trusted.
 */
export function contradicts(row: Readonly<Record<string, unknown>>, where: Where): boolean {
  for (const [name, condition] of listConditions(where)) {
    const admitted = listAdmitted(condition);
    if (admitted && !hasOne(row[name], admitted)) return true;
  }
  return false;
}

/** A list matches when one of its entries does; a missing column is null. */
function hasOne(value: unknown, admitted: ReadonlySet<string>): boolean {
  const values: unknown[] = Array.isArray(value) ? value : [value ?? null];
  return values.some((one) => {
    const actual =
      isJsonObject(one) && one['__type'] === 'Object' ? plain({ ...one, __type: 'Pointer' }) : plain(one);
    return actual !== undefined && admitted.has(actual);
  });
}

const ALWAYS = ['objectId', 'createdAt', 'updatedAt'];
/** The identifying members of a nested row. */
const OF_OBJECTS = ['__type', 'className'];

const takeRoot = (path: string) => path.split('.', 1)[0] ?? path;

/** The query of a class. */
type Wanted = Pick<FindQuery, 'where' | 'keys' | 'include'>;

/** The query, with the columns that its rows are checked against added to its keys. */
function comparable({ where, keys, include }: Wanted): Pick<FindQuery, 'keys' | 'include'> {
  return {
    ...(keys && { keys: [...new Set([...keys, ...listComparedColumns(where)])] }),
    ...(include && { include: include.map((plan) => ({ ...plan, ...comparable(plan) })) }),
  };
}

const isAdmitted = (row: ParseRow, { where }: Wanted): boolean =>
  isJsonObject(row) && !contradicts(row, where);

/** The row limited to the queried columns, and nested rows likewise. */
function cut(row: ParseRow, { keys, include = [] }: Wanted): ParseRow {
  const kept = keys && new Set([...keys.map(takeRoot), ...ALWAYS, ...OF_OBJECTS]);
  const shown = kept ? Object.entries(row).filter(([name]) => kept.has(name)) : Object.entries(row);
  const included = new Map(include.map((plan) => [plan.field, plan]));
  return Object.fromEntries(shown.map(([name, value]) => [name, cutInside(value, included.get(name))]));
}

/** Without a plan only the pointer remains. */
function cutInside(value: unknown, plan: IncludePlan | undefined): unknown {
  if (Array.isArray(value)) return value.map((entry: unknown) => cutInside(entry, plan));
  if (!isJsonObject(value) || value['__type'] !== 'Object') return value;
  if (plan && isAdmitted(value, plan)) return cut(value, plan);
  return { __type: 'Pointer', className: value['className'], objectId: value['objectId'] };
}

/**
 * Checks the rows of a reader that the application bound against the query. It removes columns that were not queried,
 * and rows that a plain constraint (a tenant, an id) excludes.
 */
export function checkedReads(bound: ReadStore): ReadStore {
  const find = async (query: FindQuery, context: OperationContext, caller: Caller): Promise<ParseRow[]> => {
    const rows = await bound.run({ ...query, ...comparable(query), kind: 'find' }, context, caller);
    return rows
      .filter((row) => isAdmitted(row, query))
      .slice(0, query.limit)
      .map((row) => cut(row, query));
  };
  return overridden<Reads>(bound, {
    find,
    findShown: async (query, context, caller) => firstRows(await find(query, context, caller), query),
    related: async (query, context, caller) =>
      (await bound.run(query, context, caller)).slice(0, query.limit),
  });
}

/** As `checkedReads`, for a searcher that the application bound. */
export function checkedSearches(bound: SearchStore): SearchStore {
  return {
    canSearch: () => bound.canSearch(),
    ...overridden<Searches>(bound, {
      text: async (query, context, caller) =>
        keepAdmitted(await bound.run({ ...query, ...comparable(query) }, context, caller), query),
      nearest: async (query, context, caller) =>
        keepAdmitted(await bound.run({ ...query, ...comparable(query) }, context, caller), query),
    }),
  };
}

type Searched = Pick<TextSearchQuery, 'where' | 'keys' | 'limit' | 'highlight'>;

/** Passages come from the queried column only. */
function keepAdmitted(hits: readonly SearchHit[], query: Searched): SearchHit[] {
  return hits
    .filter(({ row }) => isAdmitted(row, query))
    .slice(0, query.limit)
    .map(({ row, score, highlights }) => ({
      row: cut(row, query),
      score,
      highlights: highlights.filter(({ path }) => path === query.highlight),
    }));
}

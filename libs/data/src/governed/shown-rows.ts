import { Logger } from '@nestjs/common';
import { findTenant, TIERS } from '#core';
import {
  ALL_TEXT,
  type ClassAccess,
  fetchableColumns,
  isTenantRefusal,
  MASKED_TEXT,
  maskRow,
  type NamePseudonym,
  parseKeys,
  type ReadOperation,
  redact,
  takeRoot,
  tenantBinding,
  listDisclosedMasks,
  type ValueType,
  withholdUnreadable,
} from '#policy';
import type { GovernedClass } from '../governed-access.js';
import type { SearchHit } from '../record-search.js';
import type { ParseRow, StoreCall } from '../record-store.js';
import { OPERATION_OF_TIER, type GovernedCall } from './governed-call.js';

/** The request of one find for a class and for the rows that it includes. */
export interface RowGuard {
  readonly access: ClassAccess;
  /** Wire names that are returned to the caller; absent: every column it may see. */
  readonly keys: readonly string[] | undefined;
  /** Keyed by pointer field. */
  readonly includes: ReadonlyMap<string, RowGuard>;
}

type Viewer = Pick<StoreCall, 'agent' | 'scope'>;

/** The columns to fetch: those whose values are returned, and those that decide which parts of a row are returned. */
export function fetchKeys({
  access,
  keys,
}: Pick<RowGuard, 'access' | 'keys'>): readonly string[] | undefined {
  const deciders = access.guarded?.perRow ? access.guarded.deciders : [];
  const fetchable = access.masks && fetchableColumns(access);
  const needed = fetchable ? keys?.filter((key) => fetchable.has(takeRoot(key))) : keys;
  return needed && (deciders.length > 0 ? [...new Set([...needed, ...deciders])] : needed);
}

/**
 * Removes from a fetched row, and from the rows inside it, the fields that class-level permissions hide on each of them, and
 * replaces the values of masked fields with their masked form.
 */
function guardRow(row: ParseRow, guard: RowGuard, viewer: Viewer): void {
  const { access, keys, includes } = guard;
  // Decided first: included rows may lose the fields that the decision reads.
  const hidden = access.guarded?.listHidden(row);
  for (const [field, inner] of includes) {
    const value = row[field];
    for (const entry of Array.isArray(value) ? value : [value])
      if (isRow(entry)) guardRow(entry, inner, viewer);
  }
  if (!access.guarded && !access.masks) return;
  for (const name of hidden ?? []) delete row[name];
  const asked = keys && new Set(keys.map(takeRoot));
  const isShown = (name: string) => !hidden?.has(name) && (asked?.has(name) ?? true);
  if (asked) for (const name of access.guarded?.deciders ?? []) if (!asked.has(name)) delete row[name];
  if (!access.masks) return;
  // Pseudonyms of withheld values would reveal which of these values are equal.
  const type = viewer.scope.withholding.rowType(access.className);
  for (const name of access.masks.shown)
    if (name in row) row[name] = redact(row[name], viewer.scope.withholding, type?.member?.(name));
  maskRow(row, access.masks, isShown, createPseudonyms(access.className, viewer));
}

function createPseudonyms(className: string, { scope, agent }: Viewer): NamePseudonym {
  return (value, { path, rule }) => {
    const { pseudonyms } = scope.policy;
    if (pseudonyms === null || rule.kind !== 'hash') return MASKED_TEXT;
    const { domain, acrossTenants } = rule;
    const bound = tenantBinding(agent, scope.classPolicy(className));
    const tenant = bound === null || isTenantRefusal(bound) ? findTenant(agent) : bound.value;
    return pseudonyms.of(value, { domain, className, path, tenant, acrossTenants });
  };
}

function isRow(value: unknown): value is ParseRow {
  return typeof value === 'object' && value !== null && (value as ParseRow)['__type'] === 'Object';
}

const logger = new Logger('RowRights');
const reported = new Set<string>();

/** Logs row rights that cannot be parsed, which admit no caller: one line for each type of value and process. */
function reportMalformed(type: string): void {
  if (reported.has(type)) return;
  reported.add(type);
  logger.warn(
    `[SECURITY] a row inside a row has _rperm of type ${type} instead of a list: nobody is shown such rows`,
  );
}

/** The last passes over fetched rows: protected and masked columns, rows inside rows, withheld classes and internal columns. */
export function showRows(
  rows: readonly ParseRow[],
  viewer: Viewer,
  guard?: RowGuard,
  type = guard && viewer.scope.withholding.rowType(guard.access.className),
): ParseRow[] {
  const { strings } = viewer.scope.rights.principals;
  return rows.map((row) => {
    if (guard) guardRow(row, guard, viewer);
    const own = strings === null ? row : withholdUnreadable(row, strings, reportMalformed);
    return redact(own, viewer.scope.withholding, type) as ParseRow;
  });
}

const NO_MASKS: ReadonlyMap<string, string> = new Map();
const READS: readonly ReadOperation[] = ['find', 'count', 'get'];

/** Whether a read of a class may go through the whole collection. */
export const mayScan = (className: string, { scope }: Pick<GovernedCall, 'scope'>): boolean =>
  !scope.policy.switches.refuseCollscan || scope.classPolicy(className).allowCollscan;

/** The parts of a class that the caller may see; null for a class whose schema is not known. */
export function showClass(
  { className, schema, readable, masks, names }: ClassAccess,
  { scope, agent }: Pick<GovernedCall, 'scope' | 'agent'>,
): GovernedClass | null {
  if (!schema) return null;
  const policy = scope.classPolicy(className);
  const bound = !isTenantRefusal(tenantBinding(agent, policy));
  return {
    className,
    schema,
    policy: policy.names === names ? policy : { ...policy, names },
    fields: [...schema.fields.keys()].filter((name) => readable?.has(name) ?? true),
    masks: masks ? listDisclosedMasks(masks) : NO_MASKS,
    maskedColumns: masks ? [...masks.shown].filter((name) => masks.disclosed.has(name)) : [],
    reads: new Set(READS.filter((operation) => bound && scope.rights.gate(className, operation) === null)),
    scans: mayScan(className, { scope }),
    methodTiers: new Set(
      TIERS.filter((tier) => scope.rights.gate(className, OPERATION_OF_TIER[tier]) === null),
    ),
  };
}

/** A row that a write returned, as a read would have returned it. */
export function presentRow(row: ParseRow, access: ClassAccess, viewer: Viewer): ParseRow {
  const fetchable = fetchableColumns(access);
  const deciders = access.guarded?.deciders ?? [];
  const kept = fetchable
    ? Object.fromEntries(
        Object.entries(row).filter(([field]) => fetchable.has(field) || deciders.includes(field)),
      )
    : row;
  guardRow(kept, { access, keys: parseKeys(undefined, access), includes: new Map() }, viewer);
  return redact(
    kept,
    viewer.scope.withholding,
    viewer.scope.withholding.rowType(access.className),
  ) as ParseRow;
}

/** The columns that a search fetches of its rows, and those that it must remove again. */
interface HitColumns {
  readonly keys?: readonly string[];
  readonly guard: RowGuard;
}

/** Every column that the agent may see, and those that decide about others row by row. */
export function hitColumns(access: ClassAccess): HitColumns {
  const keys = parseKeys(undefined, access);
  const fetched = fetchKeys({ access, keys });
  return { guard: { access, keys, includes: new Map() }, ...(fetched && { keys: fetched }) };
}

/** Of texts that a search took out of a column; undefined where they may be pointers. */
export function findTexts(
  { className }: ClassAccess,
  path: string,
  { scope }: Viewer,
): ValueType | undefined {
  const type = scope.withholding.rowType(className)?.member?.(path);
  return type?.type === 'String' && !type.uncertain ? ALL_TEXT : undefined;
}

/** Found rows as any read would return them; passages are redacted as the rows are. */
export function showHits(
  hits: readonly SearchHit[],
  viewer: Viewer,
  { guard }: HitColumns,
  highlight?: string,
): SearchHit[] {
  const { scope } = viewer;
  const passageType = highlight === undefined ? undefined : findTexts(guard.access, highlight, viewer);
  const rows = showRows(
    hits.map(({ row }) => row),
    viewer,
    guard,
  );
  return hits.flatMap(({ score, highlights }, index) => {
    const row = rows[index];
    if (!row) return [];
    const passages = redact(highlights, scope.withholding, passageType) as SearchHit['highlights'];
    return [{ row, score, highlights: passages }];
  });
}

import type { Agent } from '#agent';
import {
  type AgentScope,
  type ClassAccess,
  fetchableColumns,
  MASKED,
  maskRow,
  type NamePseudonym,
  redact,
  rootOf,
} from '#policy';
import type { ParseRow } from '../record-store.js';

/** What one find asked of a class, and of the rows it brings along. */
export interface RowGuard {
  readonly access: ClassAccess;
  /** Wire names that the caller gets; absent: every column it may see. */
  readonly keys: readonly string[] | undefined;
  /** By pointer field. */
  readonly includes: ReadonlyMap<string, RowGuard>;
}

/** For whom rows are shown. */
export interface Onlooker {
  readonly scope: AgentScope;
  readonly agent: Agent;
}

/** The columns to fetch: those the caller gets the values of, and those that decide what it gets of a row. */
export function fetchKeys({
  access,
  keys,
}: Pick<RowGuard, 'access' | 'keys'>): readonly string[] | undefined {
  const deciders = access.guarded?.perRow ? access.guarded.deciders : [];
  const fetchable = access.masks && fetchableColumns(access);
  const needed = fetchable ? keys?.filter((key) => fetchable.has(rootOf(key))) : keys;
  return needed && (deciders.length > 0 ? [...new Set([...needed, ...deciders])] : needed);
}

/**
 * Takes from a fetched row, and from the rows inside it, what class-level permissions hide on each of them, and puts the
 * masked form in the place of what the policy masks.
 */
export function guardRow(row: ParseRow, guard: RowGuard, onlooker: Onlooker): void {
  const { access, keys, includes } = guard;
  // Decided first: included rows may lose what the decision reads.
  const hidden = access.guarded?.hiddenOn(row);
  for (const [field, inner] of includes) {
    const value = row[field];
    for (const entry of Array.isArray(value) ? value : [value])
      if (isRow(entry)) guardRow(entry, inner, onlooker);
  }
  if (!access.guarded && !access.masks) return;
  for (const name of hidden ?? []) delete row[name];
  const asked = keys && new Set(keys.map(rootOf));
  const isShown = (name: string) => !hidden?.has(name) && (asked?.has(name) ?? true);
  if (asked) for (const name of access.guarded?.deciders ?? []) if (!asked.has(name)) delete row[name];
  if (!access.masks) return;
  // A pseudonym of what is withheld would tell which of it is the same.
  const isWithheld = (name: string) => onlooker.scope.isWithheld(name);
  for (const name of access.masks.shown) if (name in row) row[name] = redact(row[name], isWithheld);
  maskRow(row, access.masks, isShown, pseudonymsOf(access.className, onlooker));
}

function pseudonymsOf(className: string, { scope, agent }: Onlooker): NamePseudonym {
  return (value, { path, rule }) => {
    const { pseudonyms } = scope.policy;
    if (pseudonyms === null || rule.kind !== 'hash') return MASKED;
    const { domain, acrossTenants } = rule;
    return pseudonyms.of(value, { domain, className, path, tenant: agent.tenantId, acrossTenants });
  };
}

function isRow(value: unknown): value is ParseRow {
  return typeof value === 'object' && value !== null && (value as ParseRow)['__type'] === 'Object';
}

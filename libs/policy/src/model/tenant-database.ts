/** What the name of a database has in the place of the tenant. */
export const TENANT_PLACE = '{tenant}';

/** One database for each tenant, at the servers of one connection. */
export interface TenantDatabases {
  /** Their name, with `{tenant}` in it once. */
  readonly pattern: string;
  /** Names of other databases of the configuration, in lower case. */
  readonly taken: readonly string[];
}

/** Bytes of a name of a database that are not of the tenant. */
const LONGEST_REST = 40;

/** MongoDB keeps no two databases whose names differ by case alone, so tenants have one case. */
const TENANT_TEXT = /^[a-z0-9_-]{1,63}$/;
const PATTERN = /^[A-Za-z0-9_-]*\{tenant\}[A-Za-z0-9_-]*$/;
const LONGEST_NAME = 63;

/** Databases of the server's own. */
export const SERVER_DATABASES: ReadonlySet<string> = new Set(['admin', 'local', 'config']);

/** Why a name of a configuration cannot be that of one database for each tenant; null: it can. */
export function findPatternProblem(pattern: string): string | null {
  if (PATTERN.test(pattern) && pattern.length - TENANT_PLACE.length <= LONGEST_REST) return null;
  return `must have ${TENANT_PLACE} once, beside at most ${LONGEST_REST} letters, digits, _ and -, such as tenant_${TENANT_PLACE}`;
}

/** Whether one database could be that of a tenant of both. */
export function mayShareNames(one: string, other: string): boolean {
  const [start = '', end = ''] = one.toLowerCase().split(TENANT_PLACE);
  const [otherStart = '', otherEnd = ''] = other.toLowerCase().split(TENANT_PLACE);
  return (
    (start.startsWith(otherStart) || otherStart.startsWith(start)) &&
    (end.endsWith(otherEnd) || otherEnd.endsWith(end))
  );
}

/** The text of a tenant that may be part of a name; null: there is no tenant, or its text may not. */
export function readTenantText(tenant: string | number | null | undefined): string | null {
  const text = String(tenant ?? '');
  return TENANT_TEXT.test(text) ? text : null;
}

/**
 * The name of the database of a tenant. Null: there is no tenant, its text is no part of a name, or the name is that of another
 * database of the configuration or of the server. Nothing else makes a name of a tenant.
 */
export function nameTenantDatabase(
  { pattern, taken }: TenantDatabases,
  tenant: string | number | null | undefined,
): string | null {
  const text = readTenantText(tenant);
  if (text === null) return null;
  const name = pattern.replace(TENANT_PLACE, text);
  const plain = name.toLowerCase();
  return name.length > LONGEST_NAME || SERVER_DATABASES.has(plain) || taken.includes(plain) ? null : name;
}

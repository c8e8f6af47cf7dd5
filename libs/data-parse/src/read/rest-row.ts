import { isJsonObject } from '#core';
import type { ParseRow } from '#data';
import { AUTH_DATA_PREFIX, CREDENTIAL_FIELDS } from '#policy';

const ALWAYS = ['objectId', 'createdAt', 'updatedAt'];

/** Columns that Parse Server returns to some callers and that no caller reads here. */
const CREDENTIALS = new Set(['password', ...CREDENTIAL_FIELDS]);

/** A returned row in the form that every route has: no credentials, no links to files, only the requested fields. */
export function rowFromRest(answered: ParseRow, keys: readonly string[] | undefined): ParseRow {
  const paths = keys && pathsByRoot(keys);
  const row: ParseRow = {};
  for (const [name, value] of Object.entries(answered)) {
    if (CREDENTIALS.has(name) || name.startsWith(AUTH_DATA_PREFIX) || name.startsWith('_')) continue;
    if (!paths || ALWAYS.includes(name)) row[name] = cellValue(value);
    else {
      const within = paths.get(name);
      if (within) row[name] = pickPaths(cellValue(value), within);
    }
  }
  return row;
}

/** Names of top columns that a request with these keys needs. */
export function listRoots(keys: readonly string[]): string[] {
  return [...new Set(keys.map((key) => key.split('.', 1)[0] as string))];
}

/**
 * Parse Server chooses the URL of a column's file; it is not part of the row. Files inside objects and arrays are as they were
 * stored, with the URL that was stored.
 */
function cellValue(value: unknown): unknown {
  return isJsonObject(value) && value['__type'] === 'File' ? { __type: 'File', name: value['name'] } : value;
}

/** Root → paths below it; an empty list means the whole value. */
function pathsByRoot(keys: readonly string[]): Map<string, readonly string[]> {
  const paths = new Map<string, readonly string[]>();
  for (const root of listRoots(keys)) {
    const below = keys.filter((key) => key.startsWith(`${root}.`)).map((key) => key.slice(root.length + 1));
    paths.set(root, keys.includes(root) ? [] : below);
  }
  return paths;
}

/** Projects paths as a database does: through the members of lists; a value that is no object stays unchanged. */
function pickPaths(value: unknown, paths: readonly string[]): unknown {
  if (paths.length === 0 || !(isJsonObject(value) || Array.isArray(value))) return value;
  if (Array.isArray(value)) return value.filter(isJsonObject).map((member) => pickPaths(member, paths));
  if (typeof value['__type'] === 'string') return value;
  const below = pathsByRoot(paths);
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, member]): [string, unknown][] => {
      const within = below.get(key);
      return within ? [[key, pickPaths(member, within)]] : [];
    }),
  );
}

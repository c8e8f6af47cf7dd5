import { orThrow, Refused, refusals } from '#agent';
import { type ClassAccess, columnRefusal, mayShow, shownColumns } from '../model/class-access.js';
import { isDeniedPath } from '../masking/column-masks.js';
import { ALWAYS_KEEP } from '../model/class-policy.js';
import { rootOf } from '../model/field-names.js';
import { hasInternalSegment } from '../model/internal-fields.js';

const ENTRY = /^[A-Za-z][A-Za-z0-9_.]{0,127}$/;
const MAX_KEYS = 64;

/**
 * The effective projection in wire names; `undefined` when a class without allowlist is read whole. Never empty: keys
 * that may not be read leave the always-kept three, not an unprojected row.
 * @throws Refused `invalid_argument`, `access_denied` for a field whose mask is `deny`
 */
export function parseKeys(keys: unknown, access: ClassAccess): string[] | undefined {
  const asked = requestedKeys(keys);
  if (asked.length === 0) {
    const shown = shownColumns(access);
    return shown === null ? undefined : readableFields(shown);
  }
  const wire = asked
    .map((key) => access.names.wirePath(key))
    .filter((path) => !hasInternalSegment(path) && isAskable(path, access));
  return [...new Set([...wire, ...ALWAYS_KEEP])];
}

/** An allowlist as a projection: what a declaration let in by mistake is left out here. */
export function readableFields(readable: Iterable<string>): string[] {
  return [...new Set([...readable, ...ALWAYS_KEEP])].filter((name) => !hasInternalSegment(name));
}

/**
 * Whether a projection may hold the wire path. What may not be read is passed over.
 * @throws Refused `access_denied` for a field whose mask is `deny`
 */
export function isAskable(path: string, access: ClassAccess): boolean {
  if (access.masks && isDeniedPath(access.masks, path))
    orThrow(columnRefusal('keys', path, rootOf(path), access));
  return mayShow(access, rootOf(path));
}

function requestedKeys(keys: unknown): string[] {
  if (keys === undefined || keys === null) return [];
  if (!Array.isArray(keys)) throw refused('keys is an array of field names');
  if (keys.length > MAX_KEYS) throw refused(`keys holds at most ${MAX_KEYS} names`);
  return keys.map((key: unknown) => {
    if (typeof key === 'string' && isKeyName(key)) return key;
    throw refused(
      'keys entries are field names of letters, digits, _ and dots; underscore-prefixed names are not permitted',
    );
  });
}

function isKeyName(key: string): boolean {
  return ENTRY.test(key) && key.split('.').every((segment) => /^[A-Za-z]/.test(segment));
}

function refused(message: string): Refused {
  return new Refused(refusals.invalidArgument(message));
}

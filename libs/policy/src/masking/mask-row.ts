import { createHmac } from 'node:crypto';
import { setOwn } from '#core';
import { isPlainObject } from '../model/where.js';
import type { ColumnMasks, PathMask } from './column-masks.js';
import { FULL_MASK } from './compile-masks.js';

/** Replaces every value of a masked field, of any type, and a missing one: it reveals neither. */
export const MASKED_TEXT = '***';

/** Returns the pseudonym of a value; only called when the rule is `hash`. */
export type NamePseudonym = (value: unknown, mask: PathMask) => string;

/**
 * Replaces each masked column by its masked form, in the row itself.
 * @param isShown whether the caller receives the column of this row
 */
export function maskRow(
  row: Record<string, unknown>,
  { columns, shown }: ColumnMasks,
  isShown: (column: string) => boolean,
  pseudonym: NamePseudonym,
): void {
  for (const [column, paths] of columns) {
    if (!shown.has(column) || !isShown(column)) {
      delete row[column];
      continue;
    }
    for (const mask of paths) {
      const value = row[column];
      if (mask.segments.length > 0) {
        if (column in row) putMasked(row, column, maskInside(value, mask.segments, mask, pseudonym));
        continue;
      }
      // Moved to the end: its position in the row would reveal whether it had a value.
      delete row[column];
      row[column] = maskValue(value, mask, pseudonym);
    }
  }
}

/** Sets a member to what a mask leaves of it; undefined: nothing. */
function putMasked(target: Record<string, unknown>, name: string, value: unknown): void {
  if (value === undefined) delete target[name];
  else setOwn(target, name, value);
}

/** Parse types that stand for GeoJSON: their members have other names than those of the stored value. */
const PLACES: ReadonlySet<unknown> = new Set(['GeoPoint', 'Polygon']);

/** Whether a path names a part of the GeoJSON, or of the pair of numbers, that is stored where a row shows a place. */
const isStoredPart = (value: Readonly<Record<string, unknown>>, [name = '']: readonly string[]): boolean =>
  PLACES.has(value['__type']) && (name === 'type' || name === 'coordinates' || NUMBER.test(name));

/**
 * Masks a path inside a value; undefined: nothing is left of it. A value of a Parse type has no fields that a path could mean, but
 * a place is masked as a whole with any part of what is stored.
 */
function maskInside(
  value: unknown,
  segments: readonly string[],
  mask: PathMask,
  pseudonym: NamePseudonym,
): unknown {
  if (Array.isArray(value))
    return value
      .map((entry: unknown) => maskInside(entry, segments, mask, pseudonym))
      .filter((entry) => entry !== undefined);
  if (!isPlainObject(value)) return value;
  if (isStoredPart(value, segments)) return isRemoved(mask) ? undefined : MASKED_TEXT;
  const masked: Record<string, unknown> = { ...value };
  maskMember(masked, segments, mask, pseudonym);
  for (const key of Object.keys(masked)) {
    const behind = key === segments[0] ? null : pathBehind(key, segments);
    if (behind === null) continue;
    const { rest, isPart } = behind;
    if (rest.length > 0) putMasked(masked, key, maskInside(masked[key], rest, mask, pseudonym));
    else maskMember(masked, [key], isPart ? ofPart(mask) : mask, pseudonym);
  }
  return masked;
}

interface PathBehind {
  /** What is left of the path. */
  readonly rest: readonly string[];
  /** Whether the name lies below the path. */
  readonly isPart: boolean;
}

/**
 * What a name leaves of a path: of a path that was stored as one name, dots included, or where a list was stored as an object
 * with numbers as names. Null for a name that is not on the path.
 */
function pathBehind(key: string, segments: readonly string[]): PathBehind | null {
  let rest = segments;
  for (const part of key.split('.')) {
    if (rest.length === 0) return { rest, isPart: true };
    if (part === rest[0]) rest = rest.slice(1);
    else if (!NUMBER.test(part)) return null;
  }
  return { rest, isPart: false };
}

const NUMBER = /^\d+$/;

/** The mask of a part alone: its end or its pseudonym would say more than that of the whole. */
function ofPart(mask: PathMask): PathMask {
  const { kind } = mask.rule;
  return kind === 'mask' || kind === 'hash' ? { ...mask, rule: FULL_MASK } : mask;
}

/** Masks a path inside an object, in the object itself. */
function maskMember(
  target: Record<string, unknown>,
  segments: readonly string[],
  mask: PathMask,
  pseudonym: NamePseudonym,
): void {
  const [name, ...rest] = segments as [string, ...string[]];
  const isThere = Object.hasOwn(target, name);
  const isTyped = typeof target['__type'] === 'string';
  if (!isThere && (isTyped || rest.length > 0)) return;
  const member = isThere ? target[name] : undefined;
  // Moved to the end, as in `maskRow`.
  delete target[name];
  if (rest.length > 0) putMasked(target, name, maskInside(member, rest, mask, pseudonym));
  else if (!isRemoved(mask)) setOwn(target, name, maskValue(member, mask, pseudonym));
}

const isRemoved = ({ rule }: PathMask): boolean => rule.kind === 'drop' || rule.kind === 'deny';

function maskValue(value: unknown, mask: PathMask, pseudonym: NamePseudonym): unknown {
  const { rule } = mask;
  if (rule.kind === 'hash') return pseudonym(value, mask);
  return rule.kind === 'mask' ? keepEnding(value, rule.keep) : MASKED_TEXT;
}

/** The end of a text that is at least twice as long; of a shorter text it would disclose most. */
function keepEnding(value: unknown, keep: number): string {
  if (keep === 0 || (typeof value !== 'string' && typeof value !== 'number')) return MASKED_TEXT;
  const characters = [...String(value)];
  return characters.length < 2 * keep ? MASKED_TEXT : MASKED_TEXT + characters.slice(-keep).join('');
}

/** Characters of base64url: 132 bits, enough to avoid collisions. */
const HASH_LENGTH = 22;
const PREFIX = 'h_';

/** The scope in which equal values have equal pseudonyms: a field or domain, one tenant or all. */
interface PseudonymScope {
  /** Shared by several fields; null: of the field alone. */
  readonly domain: string | null;
  readonly className: string;
  readonly path: string;
  /** Null: no tenant, or shared by all. */
  readonly tenant: string | number | null;
  readonly acrossTenants: boolean;
}

/** Keyed pseudonyms (HMAC-SHA-256). Equal values of a scope have equal pseudonyms; without the key values cannot be guessed. */
export class Pseudonyms {
  readonly #key: string;

  constructor(key: string) {
    this.#key = key;
  }

  /** A missing value has a pseudonym like any other. */
  of(value: unknown, scope: PseudonymScope): string {
    const { domain, className, path, tenant, acrossTenants } = scope;
    const field = domain === null ? ['field', className, path] : ['domain', domain];
    const owner = acrossTenants ? ['all'] : ['tenant', tenant];
    const text = JSON.stringify([field, owner, sortKeys(value ?? null)]);
    return (
      PREFIX + createHmac('sha256', this.#key).update(text, 'utf8').digest('base64url').slice(0, HASH_LENGTH)
    );
  }
}

/** A canonical form that does not depend on the order of members. */
function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (!isPlainObject(value)) return value;
  // Wrapped, so that it differs from a list of pairs.
  const members = Object.keys(value).sort();
  return { members: members.map((key) => [key, sortKeys(value[key])]) };
}

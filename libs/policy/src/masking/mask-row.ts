import { createHmac } from 'node:crypto';
import { isPlainObject } from '../model/where.js';
import type { ColumnMasks, PathMask } from './column-masks.js';

/** Replaces every value of a masked field, of any type, and a missing one: it reveals neither. */
export const MASKED = '***';

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
        if (column in row) row[column] = maskInside(value, mask.segments, mask, pseudonym);
        continue;
      }
      // Moved to the end: its position in the row would reveal whether it had a value.
      delete row[column];
      row[column] = maskedForm(value, mask, pseudonym);
    }
  }
}

/** Masks a path inside a value. A value of a Parse type has no fields that a path could mean. */
function maskInside(
  value: unknown,
  segments: readonly string[],
  mask: PathMask,
  pseudonym: NamePseudonym,
): unknown {
  if (Array.isArray(value)) return value.map((entry) => maskInside(entry, segments, mask, pseudonym));
  if (!isPlainObject(value)) return value;
  const [name, ...rest] = segments as [string, ...string[]];
  const isThere = Object.hasOwn(value, name);
  const isTyped = typeof value['__type'] === 'string';
  if (!isThere && (isTyped || rest.length > 0)) return value;
  const { [name]: member, ...others } = value;
  if (rest.length > 0) return { ...others, [name]: maskInside(member, rest, mask, pseudonym) };
  if (mask.rule.kind === 'drop' || mask.rule.kind === 'deny') return others;
  return { ...others, [name]: maskedForm(member, mask, pseudonym) };
}

function maskedForm(value: unknown, mask: PathMask, pseudonym: NamePseudonym): unknown {
  const { rule } = mask;
  if (rule.kind === 'hash') return pseudonym(value, mask);
  return rule.kind === 'mask' ? ending(value, rule.keep) : MASKED;
}

/** The end of a text that is at least twice as long; of a shorter text it would disclose most. */
function ending(value: unknown, keep: number): string {
  if (keep === 0 || (typeof value !== 'string' && typeof value !== 'number')) return MASKED;
  const characters = [...String(value)];
  return characters.length < 2 * keep ? MASKED : MASKED + characters.slice(-keep).join('');
}

/** Characters of base64url: 132 bits, enough to avoid collisions. */
const LENGTH = 22;
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
    const text = JSON.stringify([field, owner, ordered(value ?? null)]);
    return PREFIX + createHmac('sha256', this.#key).update(text, 'utf8').digest('base64url').slice(0, LENGTH);
  }
}

/** A canonical form that does not depend on the order of members. */
function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (!isPlainObject(value)) return value;
  // Wrapped, so that it differs from a list of pairs.
  const members = Object.keys(value).sort();
  return { members: members.map((key) => [key, ordered(value[key])]) };
}

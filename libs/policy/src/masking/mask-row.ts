import { createHmac } from 'node:crypto';
import { isPlainObject } from '../model/where.js';
import type { ColumnMasks, PathMask } from './column-masks.js';

/** Stands for every value of a masked field, whatever its type, and for a missing one: its form tells nothing. */
export const MASKED = '***';

/** What a pseudonym is asked for; only called where a rule is `hash`. */
export type NamePseudonym = (value: unknown, mask: PathMask) => string;

/**
 * Puts the masked form of each masked column in its place, in the row itself.
 * @param isShown whether the caller gets the column of this row at all
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
      // Its place in the row would tell whether a value was there.
      delete row[column];
      row[column] = maskedForm(value, mask, pseudonym);
    }
  }
}

/** A value of a Parse type has no members of its own that a path could mean. */
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

/** The end of a text at least twice as long; of a shorter one it would be most of it. */
function ending(value: unknown, keep: number): string {
  if (keep === 0 || (typeof value !== 'string' && typeof value !== 'number')) return MASKED;
  const characters = [...String(value)];
  return characters.length < 2 * keep ? MASKED : MASKED + characters.slice(-keep).join('');
}

/** Characters of base64url: 132 bits, so that two values share one by design only. */
const LENGTH = 22;
const PREFIX = 'h_';

/** Where a pseudonym means the same: in one field or domain, for one tenant or for all. */
export interface PseudonymScope {
  /** Of fields that share their pseudonyms; null: the field's own. */
  readonly domain: string | null;
  readonly className: string;
  readonly path: string;
  /** Null: none, or shared by all. */
  readonly tenant: string | number | null;
  readonly acrossTenants: boolean;
}

/** Keyed names for values. Without the key nobody can find a value by trying; equal values of a scope have equal names. */
export class Pseudonyms {
  readonly #key: string;

  constructor(key: string) {
    this.#key = key;
  }

  /** A value that is missing has a name like any other. */
  of(value: unknown, scope: PseudonymScope): string {
    const { domain, className, path, tenant, acrossTenants } = scope;
    const field = domain === null ? ['field', className, path] : ['domain', domain];
    const owner = acrossTenants ? ['all'] : ['tenant', tenant];
    const text = JSON.stringify([field, owner, ordered(value ?? null)]);
    return PREFIX + createHmac('sha256', this.#key).update(text, 'utf8').digest('base64url').slice(0, LENGTH);
  }
}

/** The same object written in another order is the same value. */
function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (!isPlainObject(value)) return value;
  // Under a name of its own, so that a list of pairs is another value.
  const members = Object.keys(value).sort();
  return { members: members.map((key) => [key, ordered(value[key])]) };
}

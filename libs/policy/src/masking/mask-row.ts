import { isPlainObject } from '../model/plain-object.js';
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

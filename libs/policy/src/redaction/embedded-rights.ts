/** Objects nested deeper than this are not looked into, and so not shown. */
const MAX_DEPTH = 32;

/**
 * Rows that stand inside another row with rights of their own (`_rperm`) which leave the caller out: a list loses them,
 * a field becomes null. Rights in a form nobody could read leave everybody out. The row itself is not judged again.
 */
export function withholdUnreadable(
  row: Readonly<Record<string, unknown>>,
  principals: readonly string[],
  onMalformed: OnMalformed = () => undefined,
): Record<string, unknown> {
  return members(row, { principals: new Set(principals), onMalformed }, 0);
}

/** Hears of rights in a form nobody could read, by the type of what stands there. */
export type OnMalformed = (type: string) => void;

interface Reader {
  readonly principals: ReadonlySet<string>;
  readonly onMalformed: OnMalformed;
}

const WITHHELD = Symbol('withheld');

function members(
  object: Readonly<Record<string, unknown>>,
  reader: Reader,
  depth: number,
): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(object)) {
    const value = key === '_rperm' ? member : shown(member, reader, depth + 1);
    Object.defineProperty(kept, key, {
      value: value === WITHHELD ? null : value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return kept;
}

function shown(value: unknown, reader: Reader, depth: number): unknown {
  if (value === null || typeof value !== 'object' || value instanceof Date) return value;
  if (depth > MAX_DEPTH) return WITHHELD;
  if (Array.isArray(value)) {
    return value.map((entry) => shown(entry, reader, depth + 1)).filter((entry) => entry !== WITHHELD);
  }
  const object = value as Record<string, unknown>;
  return isReadableBy(object, reader) ? members(object, reader, depth) : WITHHELD;
}

function isReadableBy(
  object: Readonly<Record<string, unknown>>,
  { principals, onMalformed }: Reader,
): boolean {
  if (!Object.hasOwn(object, '_rperm')) return true;
  const readers = object['_rperm'];
  if (Array.isArray(readers)) return readers.some((reader) => principals.has(reader as string));
  onMalformed(readers === null ? 'null' : typeof readers);
  return false;
}

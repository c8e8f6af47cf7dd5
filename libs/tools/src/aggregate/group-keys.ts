import type { GovernedClass, ParseRow } from '#data';

const STORED_POINTER = /^([A-Za-z_][A-Za-z0-9_]*)\$(.+)$/s;
/** Columns whose values may be pointers; in any other, `USD$5` is a text like any. */
const MAY_POINT: ReadonlySet<unknown> = new Set(['Pointer', 'Array', undefined]);

interface Pointer {
  readonly className: string;
  readonly objectId: string;
}

export interface ShownKeys {
  /** In the order of the rows; null where there is no value. A value of a withheld class is the placeholder that queries show. */
  readonly keys: readonly unknown[];
  /** The class of all keys, which are then bare ids. */
  readonly pointerClass: string | null;
}

const isObject = (value: unknown): value is ParseRow =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

function pointerOf(value: unknown): Pointer | null {
  if (typeof value === 'string') {
    const [, className, objectId] = STORED_POINTER.exec(value) ?? [];
    return className !== undefined && objectId !== undefined ? { className, objectId } : null;
  }
  if (!isObject(value) || value['__type'] !== 'Pointer') return null;
  const { className, objectId } = value;
  return typeof className === 'string' && typeof objectId === 'string' ? { className, objectId } : null;
}

/** The key of a group, however the route names it. */
export function keyOf(row: ParseRow): unknown {
  return (Object.hasOwn(row, '_id') ? row['_id'] : row['objectId']) ?? null;
}

/** @param field wire name of the column whose values the keys are */
export function shownKeys(rows: readonly ParseRow[], known: GovernedClass, field: string): ShownKeys {
  const raw = rows.map(keyOf);
  if (!MAY_POINT.has(known.schema.fields.get(field)?.type)) {
    return { keys: raw, pointerClass: null };
  }
  const present = raw.filter((key) => key !== null).map(pointerOf);
  const pointerClass = present[0]?.className ?? null;
  const oneClass = pointerClass !== null && present.every((pointer) => pointer?.className === pointerClass);
  const keys = raw.map((key) => {
    const pointer = pointerOf(key);
    if (!pointer) return key;
    return oneClass ? pointer.objectId : `${pointer.className}$${pointer.objectId}`;
  });
  return { keys, pointerClass: oneClass ? pointerClass : null };
}

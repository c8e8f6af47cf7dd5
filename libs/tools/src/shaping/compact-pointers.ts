import type { ParseRow } from '#data';

const PREFIX = '_p_';
const FIELD = /^[A-Za-z][A-Za-z0-9_]*$/;
const STORED_POINTER = /^([A-Za-z_][A-Za-z0-9_]*)\$(.+)$/s;

export interface CompactedRows {
  readonly rows: ParseRow[];
  /** Field → class, for the columns that were compacted; null when there were none. */
  readonly pointerClasses: Readonly<Record<string, string>> | null;
}

type Visit = (object: Readonly<Record<string, unknown>>) => void;

function eachObject(value: unknown, visit: Visit): void {
  if (Array.isArray(value)) {
    for (const entry of value) eachObject(entry, visit);
  } else if (value !== null && typeof value === 'object') {
    visit(value as Record<string, unknown>);
    for (const member of Object.values(value)) eachObject(member, visit);
  }
}

/** `author` for `_p_author`; names that could not be a field are left alone, so that no internal name can arise. */
function fieldOf(key: string): string | null {
  if (!key.startsWith(PREFIX)) return null;
  const field = key.slice(PREFIX.length);
  return FIELD.test(field) ? field : null;
}

function parsePointer(value: unknown): { className: string; objectId: string } | null {
  const match = typeof value === 'string' ? STORED_POINTER.exec(value) : null;
  return match ? { className: match[1] as string, objectId: match[2] as string } : null;
}

/** Columns seen with exactly one class and never beside a field of their short name. */
function compactColumns(rows: readonly ParseRow[]): Map<string, string> {
  const classes = new Map<string, string>();
  const unfit = new Set<string>();
  eachObject(rows, (object) => {
    for (const [key, value] of Object.entries(object)) {
      const field = fieldOf(key);
      if (field === null) continue;
      if (Object.hasOwn(object, field)) unfit.add(field);
      const pointer = parsePointer(value);
      if (!pointer) continue;
      const seen = classes.get(field);
      if (seen !== undefined && seen !== pointer.className) unfit.add(field);
      classes.set(field, pointer.className);
    }
  });
  for (const field of unfit) classes.delete(field);
  return classes;
}

function renamed(value: unknown, columns: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value)) return value.map((entry) => renamed(entry, columns));
  if (value === null || typeof value !== 'object' || value instanceof Date) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => {
      const field = fieldOf(key);
      const pointer = field !== null && columns.has(field) ? parsePointer(member) : null;
      return pointer ? [field, pointer.objectId] : [key, renamed(member, columns)];
    }),
  );
}

/**
 * Storage pointers `_p_f: "Class$id"` as `f: "id"`, the class told once for the whole result. Values that are not a
 * pointer stay where they are, as do columns of more than one class.
 */
export function compactPointers(rows: readonly ParseRow[]): CompactedRows {
  const columns = compactColumns(rows);
  if (columns.size === 0) return { rows: [...rows], pointerClasses: null };
  return {
    rows: rows.map((row) => renamed(row, columns) as ParseRow),
    pointerClasses: Object.fromEntries(columns),
  };
}

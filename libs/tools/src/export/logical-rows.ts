import type { ParseRow } from '#data';
import { compactPointers } from '../shaping/compact-pointers.js';

const POINTER = /^_p_([A-Za-z][A-Za-z0-9_]*)$/;

/** Whole documents of a class, as the database names their columns. */
const STORED = [
  ['_id', 'objectId'],
  ['_created_at', 'createdAt'],
  ['_updated_at', 'updatedAt'],
] as const;

/**
 * Rows of a pipeline under the names that callers write: a pointer is `author` with the id of its object, whatever the database
 * calls the column. One that leads into several classes keeps them in its values.
 */
export function logicalRows(rows: readonly ParseRow[]): readonly ParseRow[] {
  const documents = rows.length > 0 && rows.every((row) => '_created_at' in row && '_updated_at' in row);
  return compactPointers(rows).rows.map((row) =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [logicalName(name, row, documents), value]),
    ),
  );
}

function logicalName(name: string, row: ParseRow, documents: boolean): string {
  const [, pointer] = POINTER.exec(name) ?? [];
  const stored = documents ? STORED.find(([column]) => column === name)?.[1] : undefined;
  const logical = pointer ?? stored ?? name;
  return logical !== name && Object.hasOwn(row, logical) ? name : logical;
}

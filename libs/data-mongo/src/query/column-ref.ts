import type { FieldSchema } from '#policy';
import { pointerColumn, type StorageNames } from '../storage/storage-names.js';

/** Where a path of a query leads in the stored documents. */
export interface ColumnRef {
  /** Storage path. */
  readonly column: string;
  /** What the path holds, when it is a whole column of known type. */
  readonly field?: FieldSchema;
  /** Inside an array or object column: values keep their nested form. */
  readonly nested: boolean;
  /** A top-level name of the source that its schema does not know. */
  readonly undeclared: boolean;
}

export type ColumnResolver = (path: string) => ColumnRef;

/** Paths of rows as they are stored, before any pipeline stage. */
export function sourceColumn(names: StorageNames, path: string): ColumnRef {
  const nested = path.includes('.');
  const field = nested ? undefined : names.field(path);
  return {
    column: names.path(path),
    ...(field && { field }),
    nested,
    undeclared: !nested && !field && !path.startsWith('_'),
  };
}

/** The same reference seen as a pointer column: an undeclared name that is compared with pointers. */
export function asPointerColumn(ref: ColumnRef): ColumnRef {
  return { column: pointerColumn(ref.column), field: { type: 'Pointer' }, nested: false, undeclared: false };
}

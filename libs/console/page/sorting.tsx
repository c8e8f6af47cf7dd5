import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

export type SortKey = string | number;

/** How rows are sorted that are shown; null: as they came. */
interface Sorting {
  readonly column: string;
  readonly isDescending: boolean;
}

/** Texts by the alphabet, numbers by size; what is empty comes last either way. */
export function compareKeys(one: SortKey, other: SortKey, isDescending: boolean): number {
  if (one === other) return 0;
  if (one === '' || other === '') return one === '' ? 1 : -1;
  const isLess =
    typeof one === 'number' && typeof other === 'number'
      ? one < other
      : String(one).localeCompare(String(other), undefined, { numeric: true }) < 0;
  return isLess === isDescending ? 1 : -1;
}

/** Rows in the order that the operator chose, and the content of a header with which it is chosen. */
export function useSorting<Row>(rows: readonly Row[], readKey: (row: Row, column: string) => SortKey) {
  const [sorting, setSorting] = useState<Sorting | null>(null);
  const sorted =
    sorting === null
      ? rows
      : [...rows].sort((one, other) =>
          compareKeys(readKey(one, sorting.column), readKey(other, sorting.column), sorting.isDescending),
        );
  const press = (column: string) => {
    if (sorting?.column !== column) setSorting({ column, isDescending: false });
    else setSorting(sorting.isDescending ? null : { column, isDescending: true });
  };
  return {
    sorted,
    describeSort: (column: string) =>
      sorting?.column !== column
        ? undefined
        : sorting.isDescending
          ? ('descending' as const)
          : ('ascending' as const),
    sortButton: (column: string): ComponentChildren => (
      <button type="button" class="plain sort" title={`Sort by ${column}`} onClick={() => press(column)}>
        {column}
        <span aria-hidden="true">{sorting?.column !== column ? '' : sorting.isDescending ? ' ▾' : ' ▴'}</span>
      </button>
    ),
  };
}

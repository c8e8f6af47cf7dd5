import type { Document } from 'mongodb';
import type { ParseRow } from '#data';
import type { RowScope } from '../query/row-scope.js';
import { columnFromStorage } from './from-storage.js';
import { isInternalColumn } from './internal-columns.js';
import { isPlainObject, setOwn } from './own-property.js';

const keepKey = (key: string): boolean => !isInternalColumn(key);

/** Rights of an object inside a row are judged by governed records, which take them out afterwards. */
const keepNestedKey = (key: string): boolean => key === '_rperm' || keepKey(key);

/** A result document of a pipeline: values as JSON with dates as text, keys as the pipeline named them. */
export function aggregateRow(document: Document, scope: RowScope): ParseRow {
  const row: ParseRow = {};
  for (const [column, value] of Object.entries(document)) {
    if (keepKey(column)) setOwn(row, column, contentValue(value, scope.contentOf(column)));
  }
  return row;
}

function contentValue(value: unknown, content: ReturnType<RowScope['contentOf']>): unknown {
  const { rows, field, list } = content;
  if (rows && Array.isArray(value)) return value.map((member) => contentValue(member, content));
  if (rows && isPlainObject(value)) return aggregateRow(value, rows);
  if (list && Array.isArray(value))
    return value.map((member) => columnFromStorage(member, field, 'text', keepNestedKey));
  return columnFromStorage(value, field, 'text', keepNestedKey);
}

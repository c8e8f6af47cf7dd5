import { type ClassAccess, type IndexSchema, rootOf } from '#policy';
import { StoreError } from '../record-store.js';
import type { RecordsParts } from './row-rules.js';
import { atStore } from './store-faults.js';

type Parts = Pick<RecordsParts, 'indexesOf' | 'operation'>;

/** For rules that nobody may judge by while one is missing. @throws Refused when the store does not tell them */
export async function everyIndex(
  { schema }: ClassAccess,
  { indexesOf, operation }: Parts,
): Promise<readonly IndexSchema[]> {
  return schema ? atStore(operation, () => indexesOf(schema)) : [];
}

/** For telling the caller: over readable fields only. Where the store does not tell them, those that the class itself names. */
export async function toldIndexes(
  access: ClassAccess,
  { indexesOf }: Pick<Parts, 'indexesOf'>,
): Promise<readonly IndexSchema[]> {
  const { schema, readable } = access;
  if (!schema) return [];
  const known = await indexesOf(schema).catch((error: unknown) => {
    if (error instanceof StoreError) return schema.indexes;
    throw error;
  });
  return known.filter(({ fields }) => fields.every((field) => readable?.has(rootOf(field)) ?? true));
}

import type { ParseRow } from '#data';
import { type ClassSchema, type FieldSchema, fieldTypeOf, isSameType, typeName } from '#policy';
import { UNLISTED_COLUMNS } from '../schema/default-columns.js';
import { isPlainObject } from '../storage/own-property.js';
import { UnstorableValue } from '../storage/unstorable-value.js';

const SET_BY_THE_STORE = new Set(['objectId', 'createdAt', 'updatedAt']);

const FIELD_NAME = /^[A-Za-z][A-Za-z0-9_]*$/;

/**
 * Checks the fields of a write against the schema.
 * @returns columns the class does not have yet
 * @throws UnstorableValue for reserved names and values of another type than the column's
 */
export function newColumns(fields: ParseRow, schema: ClassSchema | undefined): Map<string, FieldSchema> {
  const added = new Map<string, FieldSchema>();
  for (const [name, value] of Object.entries(fields)) {
    if (name === 'ACL') continue;
    if (SET_BY_THE_STORE.has(name)) throw new UnstorableValue(name, 'is set by the store');
    if (!FIELD_NAME.test(name) || UNLISTED_COLUMNS.has(name))
      throw new UnstorableValue(name, 'cannot be written');
    const asked = fieldTypeOf(value);
    const column = schema?.fields.get(name);
    if (!asked) {
      refuseUntyped(name, value, column);
      continue;
    }
    if (!column) added.set(name, asked);
    else if (!isSameType(column, asked))
      throw new UnstorableValue(name, `a ${typeName(asked)} does not fit a ${typeName(column)}`);
  }
  return added;
}

/** Null and `Delete` fit any column but a required one. */
function refuseUntyped(name: string, value: unknown, column: FieldSchema | undefined): void {
  const clears = value === null || (isPlainObject(value) && value['__op'] === 'Delete');
  if (!clears) throw new UnstorableValue(name, 'is not a value that can be stored');
  if (column?.required) throw new UnstorableValue(name, 'is required');
}

/** A new row with the defaults of its class. @throws UnstorableValue when a required field has no value */
export function withDefaults(row: ParseRow, schema: ClassSchema | undefined): ParseRow {
  const complete = { ...row };
  for (const [name, { required, defaultValue }] of schema?.fields ?? []) {
    if (complete[name] === undefined && defaultValue !== undefined) complete[name] = defaultValue;
    if (required && (complete[name] ?? null) === null) throw new UnstorableValue(name, 'is required');
  }
  return complete;
}

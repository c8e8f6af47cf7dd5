import type { Document } from 'mongodb';
import type { ParseRow } from '#data';
import { type ClassSchema, type FieldSchema, fieldTypeOf, isSameType, typeName } from '#policy';
import { UnstorableValue } from '../errors.js';
import { UNLISTED_COLUMNS } from '../schema/schema-row.js';
import { aclToColumns, fieldToStorage, nestedToStorage } from '../storage/stored-values.js';
import { isPlainObject, setOwn } from '../storage/own-property.js';
import type { StorageNames } from '../storage/storage-names.js';

const SET_BY_THE_STORE = new Set(['objectId', 'createdAt', 'updatedAt']);

const FIELD_NAME = /^[A-Za-z][A-Za-z0-9_]*$/;

/**
 * Checks the fields of a write against the schema.
 * @returns columns that the class does not have yet
 * @throws UnstorableValue for reserved names and values of another type than the column's
 */
export function newColumns(fields: ParseRow, schema: ClassSchema | undefined): Map<string, FieldSchema> {
  const added = new Map<string, FieldSchema>();
  for (const [name, value] of Object.entries(fields)) {
    if (name === 'ACL') continue;
    if (SET_BY_THE_STORE.has(name)) throw new UnstorableValue(name, 'is set by the store');
    if (!FIELD_NAME.test(name) || UNLISTED_COLUMNS.has(name))
      throw new UnstorableValue(name, 'cannot be written');
    const written = fieldTypeOf(value);
    const column = schema?.fields.get(name);
    if (!written) {
      refuseUntyped(name, value, column);
      continue;
    }
    if (!column) added.set(name, written);
    else if (!isSameType(column, written))
      throw new UnstorableValue(name, `a ${typeName(written)} does not fit a ${typeName(column)}`);
  }
  return added;
}

/** Null and `Delete` are valid for any column except a required one. */
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

type Operation = Readonly<Record<string, unknown>> & { readonly __op: unknown };

const ACL_COLUMNS = ['_acl', '_rperm', '_wperm'];

function isOperation(value: unknown): value is Operation {
  return isPlainObject(value) && '__op' in value;
}

function amountOf(operation: Operation): number {
  const { amount } = operation as { amount?: unknown };
  if (typeof amount !== 'number' || !Number.isFinite(amount))
    throw new UnstorableValue('amount', 'must be a number');
  return amount;
}

function objectsOf(operation: Operation): unknown[] {
  const { objects } = operation as { objects?: unknown };
  if (!Array.isArray(objects)) throw new UnstorableValue('objects', 'must be a list');
  return objects;
}

interface WriteOperator {
  /** The value of the field in a new row; undefined: none. */
  readonly onCreate: (operation: Operation) => unknown;
  /** The operator and operand for a stored row. */
  readonly onUpdate: (operation: Operation) => readonly [string, unknown];
}

const storedObjects = (operation: Operation) => objectsOf(operation).map(nestedToStorage);

const OPERATORS: Readonly<Record<string, WriteOperator>> = {
  Increment: { onCreate: amountOf, onUpdate: (operation) => ['$inc', amountOf(operation)] },
  Add: { onCreate: objectsOf, onUpdate: (operation) => ['$push', { $each: storedObjects(operation) }] },
  AddUnique: {
    onCreate: (operation) => distinct(objectsOf(operation)),
    onUpdate: (operation) => ['$addToSet', { $each: storedObjects(operation) }],
  },
  Remove: {
    onCreate: (operation) => objectsOf(operation).slice(0, 0),
    onUpdate: (operation) => ['$pullAll', storedObjects(operation)],
  },
  Delete: { onCreate: () => undefined, onUpdate: () => ['$unset', ''] },
};

/** Values are JSON, so equal text means equal values. */
function distinct(values: readonly unknown[]): unknown[] {
  return [...new Map(values.map((value) => [JSON.stringify(value), value])).values()];
}

function operatorOf(field: string, { __op }: Operation): WriteOperator {
  const operator = typeof __op === 'string' && Object.hasOwn(OPERATORS, __op) ? OPERATORS[__op] : undefined;
  if (!operator)
    throw new UnstorableValue(field, `no such write operation; known: ${Object.keys(OPERATORS).join(', ')}`);
  return operator;
}

/** The fields of a new row: operations are replaced by the value that they produce. */
export function valuesOnCreate(fields: ParseRow): ParseRow {
  const values: ParseRow = {};
  for (const [field, value] of Object.entries(fields)) {
    const plain = isOperation(value) ? operatorOf(field, value).onCreate(value) : value;
    if (plain !== undefined) values[field] = plain;
  }
  return values;
}

/** A MongoDB update that applies the fields and sets the time stamp of the row. */
export function updateOf(fields: ParseRow, names: StorageNames, now: Date): Document {
  const update: Record<string, Document> = { $set: { _updated_at: now } };
  const put = (operator: string, column: string, operand: unknown) => {
    update[operator] ??= {};
    setOwn(update[operator], column, operand);
  };
  for (const [field, value] of Object.entries(fields)) {
    if (field === 'ACL') putAcl(value, put);
    else if (isOperation(value)) {
      const [operator, operand] = operatorOf(field, value).onUpdate(value);
      put(operator, names.column(field), operand);
    } else {
      const [column, stored] = fieldToStorage(field, value, names);
      put('$set', column, stored);
    }
  }
  return update;
}

function putAcl(value: unknown, put: (operator: string, column: string, operand: unknown) => void): void {
  if (isOperation(value)) {
    if (value.__op !== 'Delete') throw new UnstorableValue('ACL', 'can only be set or deleted');
    for (const column of ACL_COLUMNS) put('$unset', column, '');
    return;
  }
  for (const [column, stored] of Object.entries(aclToColumns(value))) put('$set', column, stored);
}

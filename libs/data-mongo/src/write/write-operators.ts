import type { Document } from 'mongodb';
import type { ParseRow } from '#data';
import { aclToColumns } from '../storage/access-lists.js';
import { isPlainObject, setOwn } from '../storage/own-property.js';
import type { StorageNames } from '../storage/storage-names.js';
import { fieldToStorage, nestedToStorage } from '../storage/to-storage.js';
import { UnstorableValue } from '../storage/unstorable-value.js';

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
  /** The value a new row gets; undefined: none. */
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

/** Values are JSON, so equal text is equal value. */
function distinct(values: readonly unknown[]): unknown[] {
  return [...new Map(values.map((value) => [JSON.stringify(value), value])).values()];
}

function operatorOf(field: string, { __op }: Operation): WriteOperator {
  const operator = typeof __op === 'string' && Object.hasOwn(OPERATORS, __op) ? OPERATORS[__op] : undefined;
  if (!operator)
    throw new UnstorableValue(field, `no such write operation; known: ${Object.keys(OPERATORS).join(', ')}`);
  return operator;
}

/** The fields of a new row: operations come down to the value they would leave. */
export function valuesOnCreate(fields: ParseRow): ParseRow {
  const values: ParseRow = {};
  for (const [field, value] of Object.entries(fields)) {
    const plain = isOperation(value) ? operatorOf(field, value).onCreate(value) : value;
    if (plain !== undefined) values[field] = plain;
  }
  return values;
}

/** A MongoDB update that applies the fields and stamps the row. */
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

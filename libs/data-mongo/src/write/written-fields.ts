import { setOwn } from '#core';
import type { Document } from 'mongodb';
import type { ParseRow } from '#data';
import { type ClassSchema, isPlainObject } from '#policy';
import { UnstorableValue } from '../errors.js';
import type { ClassStorage } from '../storage/class-storage.js';
import { listStoredForms } from '../storage/mixed-references.js';

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

function isOperation(value: unknown): value is Operation {
  return isPlainObject(value) && '__op' in value;
}

function readObjects(operation: Operation): unknown[] {
  const { objects } = operation as { objects?: unknown };
  if (!Array.isArray(objects)) throw new UnstorableValue('objects', 'must be a list');
  return objects;
}

/** The field of an operation and how its class is stored. */
interface Target {
  readonly field: string;
  readonly storage: ClassStorage;
}

interface WriteOperator {
  /** The value of the field in a new row; undefined: none. */
  readonly onCreate: (operation: Operation, target: Target) => unknown;
  /** The operator and operand for a stored row. */
  readonly onUpdate: (operation: Operation, target: Target) => readonly [string, unknown];
}

const toStoredAmount = ({ amount }: Operation, { field, storage }: Target): unknown =>
  storage.amountToStorage(field, amount);

const toStoredObjects = (operation: Operation, { field, storage }: Target): unknown[] =>
  readObjects(operation).map((member) => storage.memberToStorage(field, member));

const OPERATORS: Readonly<Record<string, WriteOperator>> = {
  Increment: {
    onCreate: (operation, target) => {
      toStoredAmount(operation, target);
      return operation['amount'];
    },
    onUpdate: (operation, target) => ['$inc', toStoredAmount(operation, target)],
  },
  Add: {
    onCreate: readObjects,
    onUpdate: (operation, target) => ['$push', { $each: toStoredObjects(operation, target) }],
  },
  AddUnique: {
    onCreate: (operation) => distinct(readObjects(operation)),
    onUpdate: (operation, target) => ['$addToSet', { $each: toStoredObjects(operation, target) }],
  },
  Remove: {
    onCreate: (operation) => readObjects(operation).slice(0, 0),
    onUpdate: (operation, target) => [
      '$pullAll',
      toStoredObjects(operation, target).flatMap((member) =>
        listStoredForms(member, target.storage.field(target.field)),
      ),
    ],
  },
  Delete: { onCreate: () => undefined, onUpdate: () => ['$unset', ''] },
};

/** Values are JSON, so equal text means equal values. */
function distinct(values: readonly unknown[]): unknown[] {
  return [...new Map(values.map((value) => [JSON.stringify(value), value])).values()];
}

function toOperator(field: string, { __op }: Operation): WriteOperator {
  const operator = typeof __op === 'string' && Object.hasOwn(OPERATORS, __op) ? OPERATORS[__op] : undefined;
  if (!operator)
    throw new UnstorableValue(field, `no such write operation; known: ${Object.keys(OPERATORS).join(', ')}`);
  return operator;
}

/** The fields of a new row: operations are replaced by the value that they produce. */
export function valuesOnCreate(fields: ParseRow, storage: ClassStorage): ParseRow {
  const values: ParseRow = {};
  for (const [field, value] of Object.entries(fields)) {
    const left = isOperation(value) ? toOperator(field, value).onCreate(value, { field, storage }) : value;
    if (left !== undefined) values[field] = left;
  }
  return values;
}

/** A MongoDB update that applies the fields and sets the time stamp of the row. */
export function toUpdate(fields: ParseRow, storage: ClassStorage, now: Date): Document {
  const update: Record<string, Document> = { $set: storage.createStamp(now) };
  const put = (operator: string, column: string, operand: unknown) => {
    update[operator] ??= {};
    setOwn(update[operator], column, operand);
  };
  for (const [field, value] of Object.entries(fields)) {
    if (field === 'ACL') putAcl(value, storage, put);
    else if (isOperation(value)) {
      const [operator, operand] = toOperator(field, value).onUpdate(value, { field, storage });
      put(operator, storage.column(field), operand);
    } else {
      const [column, stored] = storage.fieldToStorage(field, value);
      put('$set', column, stored);
    }
  }
  return update;
}

function putAcl(
  value: unknown,
  storage: ClassStorage,
  put: (operator: string, column: string, operand: unknown) => void,
): void {
  if (isOperation(value)) {
    if (value.__op !== 'Delete') throw new UnstorableValue('ACL', 'can only be set or deleted');
    for (const column of storage.rightsColumns) put('$unset', column, '');
    return;
  }
  for (const [column, stored] of Object.entries(storage.rightsToStorage(value))) put('$set', column, stored);
}

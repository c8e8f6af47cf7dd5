import type { FieldSchema } from '../model/class-schema.js';
import { isPlainObject, isTyped, type PlainObject } from '../model/where.js';
import { inferFieldType, isSameType, sayForm, typeName } from './field-types.js';
import { isOperation, refuseFields } from './written-value.js';

/** What a decimal or a 64-bit number is written as: its digits, so that none is lost. */
const DIGITS = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Names that Parley or the database sets, and what to do instead. */
const SET_FOR_THE_WRITER: ReadonlyMap<string, string> = new Map([
  ['_id', 'the database gives each row its id, which is objectId'],
  ['objectId', 'the database gives each row its id'],
  ['createdAt', 'it is set when the row is created'],
  ['updatedAt', 'it is set at every change'],
]);

/** Refuses a name that a write to a plain class never contains. @throws Refused */
export function assertNotSetForTheWriter(written: string): void {
  const reason = SET_FOR_THE_WRITER.get(written);
  if (reason !== undefined) refuseFields(`'${written}' may not be written: ${reason}; leave it out`);
}

/**
 * A plain class has the columns that the operator or the validator of the collection declares. Values of others would be data
 * that its own program does not expect.
 * @throws Refused
 */
export function assertFitsPlain(name: string, value: unknown, column: FieldSchema | undefined): void {
  if (!column) return refuseFields(`${name} may not be written: it is no declared column of the class`);
  if (column.origin === 'sample')
    refuseFields(
      `${name} may not be written: its type is only known from a sample, and the operator has not declared it`,
    );
  if (isOperation(value)) return operationFits(name, value, column);
  valueFits(name, value, column);
}

function operationFits(name: string, value: PlainObject, column: FieldSchema): void {
  const { objects } = value;
  if (Array.isArray(objects)) {
    if (column.type !== 'Array') wrongType(name, column, 'Array');
    entriesFit(name, objects, column);
  } else if (value['__op'] === 'Increment' && column.type !== 'Number') wrongType(name, column, 'Number');
  else if (value['__op'] === 'Delete' && column.required) refuseFields(`${name} is required`);
}

function valueFits(path: string, value: unknown, column: FieldSchema): void {
  if (value === null) {
    if (column.required) refuseFields(`${path} is required`);
    return;
  }
  if (column.type === 'Number' && typeof value === 'string') {
    if (!DIGITS.test(value)) refuseFields(`${path} takes a number, or its digits as text: "12.50"`);
    return;
  }
  const asked = inferFieldType(value);
  if (!asked || !isSameType(column.type === 'Array' ? { type: 'Array' } : column, asked))
    wrongType(path, column, asked ? typeName(asked) : typeof value);
  if (Array.isArray(value)) entriesFit(path, value, column);
  else if (isPlainObject(value) && !isTyped(value)) membersFit(path, value, column);
}

function entriesFit(path: string, entries: readonly unknown[], column: FieldSchema): void {
  const { targetClass } = column;
  for (const entry of entries) {
    if (targetClass !== undefined) {
      if (entry !== null && !isPointerTo(entry, targetClass))
        refuseFields(
          `${path} takes a list of pointers: {"__type":"Pointer","className":"${targetClass}","objectId":"…"}`,
        );
    } else if (isPlainObject(entry) && !isTyped(entry)) membersFit(path, entry, column);
    else if (entry !== null && isClosed(column))
      refuseFields(
        `${path} takes a list of objects with ${[...readDeclaredMembers(column).keys()].join(', ')}`,
      );
  }
}

function isPointerTo(value: unknown, className: string): boolean {
  return isTyped(value) && value.__type === 'Pointer' && value['className'] === className;
}

/** Members that are declared close the object; without any, its content is free. */
function membersFit(path: string, value: PlainObject, column: FieldSchema): void {
  if (!isClosed(column)) return;
  const members = readDeclaredMembers(column);
  for (const [key, member] of Object.entries(value)) {
    const declared = members.get(key);
    if (!declared)
      refuseFields(`${path}.${key} may not be written: ${path} has ${[...members.keys()].join(', ')}`);
    else valueFits(`${path}.${key}`, member, declared);
  }
  for (const [key, { required }] of members)
    if (required && (value[key] ?? null) === null) refuseFields(`${path}.${key} is required`);
}

const isClosed = (column: FieldSchema): boolean => readDeclaredMembers(column).size > 0;

function readDeclaredMembers({ members }: FieldSchema): ReadonlyMap<string, FieldSchema> {
  return new Map([...(members ?? [])].filter(([, { origin }]) => origin !== 'sample'));
}

function wrongType(path: string, column: FieldSchema, given: string): never {
  return refuseFields(`${path} takes a ${typeName(column)}, not a ${given}${sayForm(column)}`);
}

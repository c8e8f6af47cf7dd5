import { isObjectId, Refused, refuse } from '#core';
import { isInternalField, MAGIC_NAMES, toLowerCamel } from '../model/field-names.js';
import {
  blockFilter,
  isPlainObject,
  isTyped,
  type PlainObject,
  reduceTyped,
  toTypedDate,
  type TypedValue,
} from '../model/where.js';

/** The maximum depth of objects and lists inside one field. */
const MAX_DEPTH = 8;

/** Checks the class of a pointer with the class gate. @throws Refused */
export type CheckClass = (className: string) => void;

/** Whether a value can be the id of a row of the class. */
type IsId = (id: unknown, className: string) => boolean;

/** What a value may name: classes, and rows by their ids. */
interface Named {
  readonly checkClass: CheckClass;
  readonly isId: IsId;
}

export function refuseFields(message: string): never {
  throw refuse.invalidArgument(message, 'fields');
}

const OPERATIONS: Readonly<Record<string, readonly string[]>> = {
  Increment: ['__op', 'amount'],
  Add: ['__op', 'objects'],
  AddUnique: ['__op', 'objects'],
  Remove: ['__op', 'objects'],
  Delete: ['__op'],
};

/** A Parse operation on a stored value: `{ __op: 'Increment', amount: 1 }`. */
type WriteOperation = PlainObject & { readonly __op: string };

export function isOperation(value: unknown): value is WriteOperation {
  return isPlainObject(value) && Object.hasOwn(value, '__op');
}

/**
 * The value of a field as it may be stored: plain JSON, typed values with their own members only, or one of the permitted
 * operations. A key like a database operator is a security refusal, at any depth.
 * @throws Refused
 */
export function convertValue(
  field: string,
  value: unknown,
  checkClass: CheckClass,
  isId: IsId = isObjectId,
): unknown {
  refuseOperators(value, field, 0);
  const named = { checkClass, isId };
  return isOperation(value) ? operation(field, value, named) : plainValue(field, value, named);
}

/** Runs before all other checks and before anything is copied; also limits the depth. */
function refuseOperators(value: unknown, path: string, depth: number): void {
  if (value === null || typeof value !== 'object') return;
  if (depth >= MAX_DEPTH) refuseFields(`${root(path)} is nested more than ${MAX_DEPTH} levels deep`);
  for (const [key, member] of Object.entries(value)) {
    if (key.startsWith('$')) throw blockFilter('arguments', 'operator_in_value', `${path}.${key}`);
    refuseOperators(member, `${path}.${key}`, depth + 1);
  }
}

function operation(field: string, value: WriteOperation, named: Named): unknown {
  // Unvalidated: an object may even have no text.
  const { __op: name } = value;
  const members = typeof name === 'string' && Object.hasOwn(OPERATIONS, name) ? OPERATIONS[name] : undefined;
  if (!members) return refuseFields(`${field}: __op must be one of ${Object.keys(OPERATIONS).join(', ')}`);
  if (Object.keys(value).some((key) => !members.includes(key)))
    refuseFields(`${field}: ${name} takes only ${members.slice(1).join(', ') || 'its name'}`);
  if (name === 'Delete') return { __op: name };
  if (name === 'Increment') {
    const amount = value['amount'];
    if (typeof amount !== 'number' || !Number.isFinite(amount))
      return refuseFields(`${field}: Increment needs a number as amount`);
    return { __op: name, amount };
  }
  const objects = value['objects'];
  if (!Array.isArray(objects)) return refuseFields(`${field}: ${name} needs a list as objects`);
  return { __op: name, objects: objects.map((entry) => plainValue(field, entry, named)) };
}

function plainValue(field: string, value: unknown, named: Named): unknown {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (value instanceof Date && !Number.isNaN(value.getTime())) return toTypedDate(value);
  if (Array.isArray(value)) return value.map((entry) => plainValue(field, entry, named));
  if (isTyped(value)) return convertTypedValue(field, value, named);
  if (isPlainObject(value)) return plainMembers(field, value, named);
  return refuseFields(`${field} holds something that is not JSON`);
}

function plainMembers(field: string, value: PlainObject, named: Named): PlainObject {
  const kept: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) {
    if (key === '__op') refuseFields(`${field}: an __op stands for a whole field, not inside one`);
    if (key === '' || key.includes('.') || key.includes('$') || key.includes('\0'))
      refuseFields(`${field}: keys must not be empty or hold '.', '$' or NUL`);
    if (key === '__type') refuseFields(`${field}: __type must be text`);
    if (isCredentialOrRight(key)) refuseFields(`${field}: '${key}' may not be written`);
    kept[key] = plainValue(field, member, named);
  }
  return kept;
}

function convertTypedValue(field: string, value: TypedValue, named: Named): TypedValue {
  if (value.__type === 'Relation') refuseFields(`${field}: relations are not changed by raw writes`);
  const reduced = ownMembers(field, value);
  if (reduced.__type === 'Pointer') {
    const className = reduced['className'] as string;
    if (!named.isId(reduced['objectId'], className))
      refuseFields(`${field}: the objectId of a Pointer is not an id`);
    named.checkClass(className);
  }
  return reduced;
}

/** Reports the `invalid_query` of `reduceTyped` as an invalid argument of the write. */
function ownMembers(field: string, value: TypedValue): TypedValue {
  try {
    return reduceTyped(value);
  } catch (error) {
    if (error instanceof Refused) return refuseFields(`${field}: ${error.refusal.message}`);
    throw error;
  }
}

const root = (path: string): string => path.split('.', 1)[0] as string;

/** Fields that the store sets itself, or that would make a value look like another object. */
const SET_BY_THE_STORE = new Set([
  'objectId',
  'id',
  'createdAt',
  'created_at',
  'updatedAt',
  'updated_at',
  'className',
  '__type',
]);

/** Deeper than any argument needs. Anything deeper is refused rather than passed unchecked. */
const MAX_ARGUMENT_DEPTH = 32;

/** Credentials and row rights in every spelling, and names with a special meaning: refused at any depth. */
function isCredentialOrRight(key: string): boolean {
  return isInternalField(key) || toLowerCamel(key) === 'acl' || MAGIC_NAMES.has(key);
}

/** A top-level name that no write to a plain class contains: its program may have any other. */
export function isNeverStored(key: string): boolean {
  return isCredentialOrRight(key) || key === '__type';
}

/** A top-level name that neither a write nor a method argument may contain. */
export function isNeverGiven(key: string): boolean {
  return SET_BY_THE_STORE.has(key) || isCredentialOrRight(key);
}

/**
 * The keys of method arguments that no declaration can permit: all of `isNeverGiven` at the top, credentials and row rights at any
 * depth. Nesting deeper than 32 levels counts as one of them.
 */
export function listRefusedArgumentKeys(args: Readonly<Record<string, unknown>>): readonly string[] {
  const found = new Set(Object.keys(args).filter(isNeverGiven));
  for (const value of Object.values(args)) collect(value, found, 1);
  return [...found];
}

function collect(value: unknown, found: Set<string>, depth: number): void {
  if (value === null || typeof value !== 'object') return;
  if (depth > MAX_ARGUMENT_DEPTH) {
    found.add(`(nested more than ${MAX_ARGUMENT_DEPTH} levels)`);
    return;
  }
  for (const [key, member] of Object.entries(value)) {
    if (isPlainObject(value) && isCredentialOrRight(key)) found.add(key);
    collect(member, found, depth + 1);
  }
}

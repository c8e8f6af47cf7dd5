import { compileCollation, type Collation } from '../bson/collation.js';
import { isDocument, type Document } from '../bson/document.js';
import { coerceInteger, numberKind, toDouble } from '../bson/number.js';
import { badValue, mongoError, typeMismatch } from '../errors.js';

/** Typed readers for command fields; each refuses a wrong type with 14 and an impossible value with 2 or 51024. */

const wrongType = (field: string, expected: string): Error =>
  typeMismatch(`BSON field '${field}' is the wrong type, expected type '${expected}'`);

/** The collection a command names. Errors: 73 when it is not a string or empty. */
export function collectionName(command: Document, field: string): string {
  const name = command[field];
  if (typeof name !== 'string') throw mongoError(73, `collection name has invalid type for '${field}'`);
  if (name === '')
    throw mongoError(73, `Invalid namespace specified: the collection name of '${field}' is empty`);
  return name;
}

export function optionalDocument(command: Document, field: string): Document | undefined {
  const value = command[field];
  if (value === undefined || value === null) return undefined;
  if (!isDocument(value)) throw wrongType(field, 'object');
  return value;
}

export const documentOr = (command: Document, field: string): Document =>
  optionalDocument(command, field) ?? {};

export function documentArray(command: Document, field: string): Document[] {
  const value = command[field];
  if (value === undefined) throw mongoError(40414, `BSON field '${field}' is missing but a required field`);
  if (!Array.isArray(value)) throw wrongType(field, 'array');
  return value.map((item) => {
    if (!isDocument(item)) throw wrongType(field, 'object');
    return item;
  });
}

export function optionalDocuments(command: Document, field: string): Document[] | undefined {
  return command[field] === undefined || command[field] === null ? undefined : documentArray(command, field);
}

/** What a member of a statement may be, by name. Null stands for none. */
const members: Readonly<Record<string, (value: unknown) => boolean>> = {
  bool: (value) => typeof value === 'boolean',
  flag: (value) => typeof value === 'boolean' || numberKind(value) !== undefined,
  string: (value) => typeof value === 'string',
  number: (value) => numberKind(value) !== undefined,
  object: isDocument,
  array: Array.isArray,
  'object or array': (value) => isDocument(value) || Array.isArray(value),
  'string or object': (value) => typeof value === 'string' || isDocument(value),
};

/** Errors: 14 for a member of another type than `types` says. */
export function checkTypes(place: Document, types: Readonly<Record<string, keyof typeof members>>): void {
  for (const [field, type] of Object.entries(types)) {
    const value = place[field];
    if (value !== undefined && value !== null && !members[type]?.(value)) throw wrongType(field, type);
  }
}

/** Errors: 40414. */
export function requireFields(place: Document, name: string, fields: readonly string[]): void {
  const missing = fields.find((field) => place[field] === undefined || place[field] === null);
  if (missing !== undefined)
    throw mongoError(40414, `BSON field '${name}.${missing}' is missing but a required field`);
}

/** A whole number of at least zero. Errors: 51024 when negative. */
export function optionalCount(command: Document, field: string): number | undefined {
  const count = optionalInteger(command, field);
  if (count === undefined) return undefined;
  if (count < 0) throw mongoError(51024, `BSON field '${field}' value must be >= 0, actual value '${count}'`);
  return count || 0;
}

export function optionalInteger(command: Document, field: string): number | undefined {
  return optionalNumber(command, field) === undefined ? undefined : coerceInteger(command[field]);
}

export function optionalNumber(command: Document, field: string): number | undefined {
  const value = command[field];
  if (value === undefined || value === null) return undefined;
  if (numberKind(value) === undefined) throw wrongType(field, 'number');
  return toDouble(value);
}

/** True, false, or a number taken as such. */
export function flag(command: Document, field: string, fallback = false): boolean {
  const value = command[field];
  if (value === undefined || value === null) return fallback;
  if (typeof value === 'boolean') return value;
  if (numberKind(value) !== undefined) return toDouble(value) !== 0;
  throw wrongType(field, 'bool');
}

export function optionalText(command: Document, field: string): string | undefined {
  const value = command[field];
  if (value === undefined) return undefined;
  if (typeof value !== 'string') throw wrongType(field, 'string');
  return value;
}

/** The collation of a command or statement, or the collection's own. */
export function readCollation(
  place: Document,
  collectionOptions: Document | undefined,
): Collation | undefined {
  const own = optionalDocument(place, 'collation');
  if (own && Object.keys(own).length > 0) return compileCollation(own);
  const inherited = collectionOptions?.['collation'];
  return isDocument(inherited) ? compileCollation(inherited) : undefined;
}

/** A hint, or undefined for none. */
export function readHint(place: Document): unknown {
  const hint = place['hint'];
  if (hint === undefined || hint === null || hint === '') return undefined;
  if (typeof hint === 'object' && Object.keys(hint).length === 0) return undefined;
  if (typeof hint !== 'string' && typeof hint !== 'object')
    throw badValue('hint must be a string or an object');
  return hint;
}

/** `db.collection` in two parts. Errors: 73. */
export function splitNamespace(text: unknown): { db: string; coll: string } {
  const dot = typeof text === 'string' ? text.indexOf('.') : -1;
  if (typeof text !== 'string' || dot <= 0 || dot === text.length - 1)
    throw mongoError(73, `Invalid namespace specified '${String(text)}'`);
  return { db: text.slice(0, dot), coll: text.slice(dot + 1) };
}

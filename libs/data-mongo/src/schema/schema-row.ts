import { setOwn } from '#core';
import type { Document } from 'mongodb';
import {
  type ClassLevelPermissions,
  type ClassSchema,
  type FieldSchema,
  type FieldType,
  type IndexSchema,
  isPlainObject,
} from '#policy';
import type { ClassStorage } from '../storage/class-storage.js';
import { ParseStorage, UNLISTED_COLUMNS } from '../storage/parse-storage.js';

const string: FieldSchema = { type: 'String' };
const number: FieldSchema = { type: 'Number' };
const object: FieldSchema = { type: 'Object' };

/** Columns every class has. */
export const BUILT_IN_COLUMNS: Readonly<Record<string, FieldSchema>> = {
  objectId: string,
  createdAt: { type: 'Date' },
  updatedAt: { type: 'Date' },
  ACL: { type: 'ACL' },
};

/** Columns that Parse adds to its own classes, without passwords, login data and tokens. */
export const SYSTEM_COLUMNS: Readonly<Record<string, Readonly<Record<string, FieldSchema>>>> = {
  _User: { username: string, email: string, emailVerified: { type: 'Boolean' } },
  _Role: {
    name: string,
    users: { type: 'Relation', targetClass: '_User' },
    roles: { type: 'Relation', targetClass: '_Role' },
  },
  _Session: {
    user: { type: 'Pointer', targetClass: '_User' },
    installationId: string,
    expiresAt: { type: 'Date' },
    createdWith: object,
  },
  _Installation: {
    installationId: string,
    deviceToken: string,
    channels: { type: 'Array' },
    deviceType: string,
    pushType: string,
    GCMSenderId: string,
    timeZone: string,
    localeIdentifier: string,
    badge: number,
    appVersion: string,
    appName: string,
    appIdentifier: string,
    parseVersion: string,
  },
  _Product: {
    productIdentifier: string,
    download: { type: 'File' },
    downloadName: string,
    icon: { type: 'File' },
    order: number,
    title: string,
    subtitle: string,
  },
  _Audience: { name: string, query: string, lastUsed: { type: 'Date' }, timesUsed: number },
};

const STORED_TYPES: Readonly<Record<string, FieldType>> = {
  string: 'String',
  number: 'Number',
  boolean: 'Boolean',
  date: 'Date',
  map: 'Object',
  object: 'Object',
  array: 'Array',
  geopoint: 'GeoPoint',
  file: 'File',
  bytes: 'Bytes',
  polygon: 'Polygon',
};

/** A column's type as `_SCHEMA` writes it: `string`, `*Author`, `relation<_User>`. */
export function toStoredType({ type, targetClass }: FieldSchema): string {
  if (type === 'Pointer') return `*${targetClass}`;
  if (type === 'Relation') return `relation<${targetClass}>`;
  return type.toLowerCase();
}

function typeFromStorage(stored: unknown): FieldSchema | null {
  if (typeof stored !== 'string') return null;
  if (stored.startsWith('*')) return { type: 'Pointer', targetClass: stored.slice(1) };
  const relation = /^relation<(.+)>$/.exec(stored);
  if (relation) return { type: 'Relation', targetClass: relation[1] as string };
  const type = STORED_TYPES[stored];
  return type ? { type } : null;
}

function readFields(row: Document): Map<string, FieldSchema> {
  const options: unknown = row['_metadata']?.fields_options;
  const fields = new Map<string, FieldSchema>([['objectId', BUILT_IN_COLUMNS['objectId'] as FieldSchema]]);
  for (const [name, field] of Object.entries(SYSTEM_COLUMNS[String(row['_id'])] ?? {}))
    fields.set(name, field);
  for (const [name, stored] of Object.entries(row)) {
    const type = name.startsWith('_') || UNLISTED_COLUMNS.has(name) ? null : typeFromStorage(stored);
    if (!type) continue;
    const more = isPlainObject(options) && isPlainObject(options[name]) ? options[name] : {};
    fields.set(name, {
      ...type,
      ...(typeof more['required'] === 'boolean' && { required: more['required'] }),
      ...(more['defaultValue'] !== undefined && { defaultValue: more['defaultValue'] }),
    });
  }
  for (const [name, field] of Object.entries(BUILT_IN_COLUMNS)) fields.set(name, field);
  return fields;
}

const OPERATIONS = ['find', 'count', 'get', 'create', 'update', 'delete', 'addField'] as const;

/** Parse treats an operation that stored permissions omit as denied. Without any permissions, all operations are open. */
function readPermissions(row: Document): ClassLevelPermissions | null {
  const stored: unknown = row['_metadata']?.class_permissions;
  if (!isPlainObject(stored)) return null;
  const closed = Object.fromEntries(OPERATIONS.map((operation) => [operation, {}]));
  return { ...closed, protectedFields: {}, ...stored };
}

export interface StoredIndex {
  readonly name: string;
  readonly key: Readonly<Record<string, unknown>>;
  readonly unique?: boolean;
  readonly sparse?: boolean;
  readonly partial?: boolean;
  /** It compares texts by a collation. */
  readonly collated?: boolean;
}

/** The indexes a schema row lists. */
export function readIndexes(row: Document): readonly StoredIndex[] {
  const stored: unknown = row['_metadata']?.indexes;
  if (!isPlainObject(stored)) return [];
  return Object.entries(stored)
    .filter((entry): entry is [string, Record<string, unknown>] => isPlainObject(entry[1]))
    .map(([name, key]) => ({ name, key, unique: isParseUnique(String(row['_id']), name) }));
}

/** Schema rows do not mark unique indexes; the indexes that Parse creates are known. */
function isParseUnique(className: string, index: string): boolean {
  if (index === '_id_') return true;
  if (className === '_User') return index === 'username_1' || index === 'email_1';
  return className === '_Role' && index === 'name_1';
}

export function toClassSchema(row: Document, indexes: readonly StoredIndex[]): ClassSchema {
  const className = String(row['_id']);
  const schema = {
    className,
    fields: readFields(row),
    indexes: [],
    classLevelPermissions: readPermissions(row),
  };
  return { ...schema, indexes: toIndexSchemas(new ParseStorage(className, schema), indexes) };
}

/** Keyed by the names of a class's fields. */
export function toIndexSchemas(
  storage: ClassStorage,
  indexes: readonly StoredIndex[],
): readonly IndexSchema[] {
  return indexes.map((index) => indexSchema(index, storage));
}

function indexSchema(index: StoredIndex, storage: ClassStorage): IndexSchema {
  const fields = Object.keys(index.key)
    .filter((column) => column !== '_fts' && column !== '_ftsx')
    .map((column) => storage.fieldPath(column));
  return {
    name: index.name,
    fields,
    unique: index.unique === true || index.name === '_id_',
    ...(index.sparse === true && { sparse: true }),
    ...(index.partial === true && { partial: true }),
    ...(index.collated === true && { collated: true }),
  };
}

/** The input of a schema row. Index keys are logical names. */
interface SchemaRowOptions {
  readonly className: string;
  readonly fields: ReadonlyMap<string, FieldSchema>;
  readonly classLevelPermissions: ClassLevelPermissions | null;
  readonly indexes: readonly StoredIndex[];
}

/** The `_SCHEMA` row of a class, as Parse Server writes it. */
export function schemaRow({ className, fields, classLevelPermissions, indexes }: SchemaRowOptions): Document {
  const row: Document = { _id: className, objectId: 'string', updatedAt: 'date', createdAt: 'date' };
  const options: Document = {};
  for (const [name, field] of fields) {
    if (name in BUILT_IN_COLUMNS) continue;
    setOwn(row, name, toStoredType(field));
    const { type: _type, targetClass: _target, ...more } = field;
    if (Object.keys(more).length > 0) setOwn(options, name, more);
  }
  row['_metadata'] = {
    ...(Object.keys(options).length > 0 && { fields_options: options }),
    ...(classLevelPermissions && { class_permissions: classLevelPermissions }),
    indexes: Object.fromEntries([['_id_', { _id: 1 }], ...indexes.map(({ name, key }) => [name, key])]),
  };
  return row;
}

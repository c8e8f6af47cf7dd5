import { ClassSchemas } from '#data';
import {
  type ClassLevelPermissions,
  type ClassSchema,
  FIELD_TYPES,
  type FieldSchema,
  type FieldType,
  type IndexSchema,
} from '#policy';
import { isPlainObject } from '../query/plain-value.js';

const TYPES: ReadonlySet<string> = new Set(FIELD_TYPES);

/** Credentials that a schema names and no catalogue does. */
const UNLISTED = new Set(['password', 'authData', 'sessionToken']);

/** Schemas do not say which indexes are unique; those that Parse Server makes are known. */
const UNIQUE: Readonly<Record<string, readonly string[]>> = {
  _User: ['username_1', 'email_1'],
  _Role: ['name_1'],
};

const STORED_NAMES: Readonly<Record<string, string>> = {
  _id: 'objectId',
  _created_at: 'createdAt',
  _updated_at: 'updatedAt',
};

/** Of each operation: permitted to nobody, unless it is said to whom. */
const CLOSED: ClassLevelPermissions = Object.fromEntries(
  ['find', 'count', 'get', 'create', 'update', 'delete', 'addField'].map((operation) => [operation, {}]),
);

/** The classes as Parse Server lists them; entries it could not have written are left out. */
export function schemasFromRest(listed: readonly unknown[]): ClassSchemas {
  return new ClassSchemas(listed.flatMap((entry) => (isPlainObject(entry) ? classSchema(entry) : [])));
}

function classSchema(entry: Readonly<Record<string, unknown>>): ClassSchema[] {
  const { className, fields, classLevelPermissions, indexes } = entry;
  if (typeof className !== 'string' || !isPlainObject(fields)) return [];
  return [
    {
      className,
      fields: new Map(Object.entries(fields).flatMap(([name, field]) => fieldSchema(name, field))),
      indexes: isPlainObject(indexes)
        ? Object.entries(indexes).flatMap(([name, key]) => indexSchema(className, name, key))
        : [],
      classLevelPermissions: isPlainObject(classLevelPermissions)
        ? { ...CLOSED, protectedFields: {}, ...classLevelPermissions }
        : null,
    },
  ];
}

function fieldSchema(name: string, field: unknown): [string, FieldSchema][] {
  if (UNLISTED.has(name) || name.startsWith('_') || !isPlainObject(field)) return [];
  const { type, targetClass, required, defaultValue } = field;
  if (typeof type !== 'string' || !TYPES.has(type)) return [];
  return [
    [
      name,
      {
        type: type as FieldType,
        ...(typeof targetClass === 'string' && { targetClass }),
        ...(typeof required === 'boolean' && { required }),
        ...(defaultValue !== undefined && { defaultValue }),
      },
    ],
  ];
}

function indexSchema(className: string, name: string, key: unknown): IndexSchema[] {
  if (!isPlainObject(key)) return [];
  const fields = Object.keys(key)
    .filter((column) => column !== '_fts' && column !== '_ftsx')
    .map((column) => STORED_NAMES[column] ?? column.replace(/^_p_/, ''));
  if (name === '_id_') return [{ name, fields, unique: true }];
  const known = UNIQUE[className]?.includes(name) ?? false;
  return [{ name, fields, unique: known, ...(known ? { sparse: true } : { uniquenessUnknown: true }) }];
}

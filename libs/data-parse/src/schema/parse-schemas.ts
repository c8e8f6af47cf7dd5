import { Injectable } from '@nestjs/common';
import { isJsonObject } from '#core';
import {
  ClassSchemas,
  type NewClass,
  NO_PERMISSIONS,
  type OperationContext,
  RenewedCatalogue,
  SchemaCatalogue,
  SchemaWriter,
  StoreError,
} from '#data';
import {
  type ClassLevelPermissions,
  type ClassSchema,
  FIELD_TYPES,
  type FieldSchema,
  type FieldType,
  type IndexSchema,
  type SchemaSnapshot,
} from '#policy';
import { MASTER_KEY, type ParseAnswer, ParseConnection } from '../connection/parse-connection.js';
import {
  CLASS_NOT_EMPTY,
  classPath,
  ParseServerError,
  parseServerError,
} from '../connection/parse-errors.js';

const TYPES: ReadonlySet<string> = new Set(FIELD_TYPES);

/** Credentials that a schema contains and no catalogue returns. */
const UNLISTED_COLUMNS = new Set(['password', 'authData', 'sessionToken']);

/** Schemas do not mark unique indexes; the indexes that Parse Server creates are known. */
const UNIQUE: Readonly<Record<string, readonly string[]>> = {
  _User: ['username_1', 'email_1'],
  _Role: ['name_1'],
};

const STORED_NAMES: Readonly<Record<string, string>> = {
  _id: 'objectId',
  _created_at: 'createdAt',
  _updated_at: 'updatedAt',
};

/** Each operation is denied unless it is granted. */
const CLOSED_PERMISSIONS: ClassLevelPermissions = Object.fromEntries(
  ['find', 'count', 'get', 'create', 'update', 'delete', 'addField'].map((operation) => [operation, {}]),
);

/** The classes as Parse Server lists them; invalid entries are left out. */
function schemasFromRest(listed: readonly unknown[]): ClassSchemas {
  return new ClassSchemas(listed.flatMap((entry) => (isJsonObject(entry) ? classSchema(entry) : [])));
}

function classSchema(entry: Readonly<Record<string, unknown>>): ClassSchema[] {
  const { className, fields, classLevelPermissions, indexes } = entry;
  if (typeof className !== 'string' || !isJsonObject(fields)) return [];
  return [
    {
      className,
      fields: new Map(Object.entries(fields).flatMap(([name, field]) => fieldSchema(name, field))),
      indexes: isJsonObject(indexes)
        ? Object.entries(indexes).flatMap(([name, key]) => indexSchema(className, name, key))
        : [],
      classLevelPermissions: isJsonObject(classLevelPermissions)
        ? { ...CLOSED_PERMISSIONS, protectedFields: {}, ...classLevelPermissions }
        : null,
    },
  ];
}

function fieldSchema(name: string, field: unknown): [string, FieldSchema][] {
  if (UNLISTED_COLUMNS.has(name) || name.startsWith('_') || !isJsonObject(field)) return [];
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
  if (!isJsonObject(key)) return [];
  const fields = Object.keys(key)
    .filter((column) => column !== '_fts' && column !== '_ftsx')
    .map((column) => STORED_NAMES[column] ?? column.replace(/^_p_/, ''));
  if (name === '_id_') return [{ name, fields, unique: true }];
  const known = UNIQUE[className]?.includes(name) ?? false;
  return [{ name, fields, unique: known, ...(known ? { sparse: true } : { uniquenessUnknown: true }) }];
}

const READ_LIMITS = { maxTimeMS: 10_000 };

/** Classes and permissions as Parse Server returns them to the master key. */
export class ParseSchemaCatalogue extends RenewedCatalogue {
  constructor(private readonly connection: ParseConnection) {
    super();
  }

  /** Parse Server returns the indexes with the class. */
  listIndexes({ indexes }: ClassSchema): Promise<readonly IndexSchema[]> {
    return Promise.resolve(indexes);
  }

  protected async load(): Promise<SchemaSnapshot> {
    const { results } = await this.connection.send(
      { credentials: MASTER_KEY, method: 'GET', path: '/schemas' },
      { ...READ_LIMITS, signal: new AbortController().signal },
    );
    if (!Array.isArray(results)) throw parseServerError('failed', 'no list of classes in the answer');
    return schemasFromRest(results);
  }
}

/**
 * Changes classes through Parse Server, whose schema cache would otherwise be out of date. Needs the master key. A change
 * that was sent is completed: its signal only prevents the start.
 */
@Injectable()
export class ParseSchemaWriter extends SchemaWriter {
  constructor(
    private readonly connection: ParseConnection,
    private readonly catalogue: SchemaCatalogue,
  ) {
    super();
  }

  async createClass({ className, fields }: NewClass, operation: OperationContext): Promise<void> {
    if (await this.exists(className)) throw new StoreError('duplicate', { store: 'Parse Server' });
    const body = { className, fields: Object.fromEntries(fields), classLevelPermissions: NO_PERMISSIONS };
    await this.send('POST', className, operation, body);
  }

  async deleteClass(
    className: string,
    operation: OperationContext,
  ): Promise<'deleted' | 'not_empty' | 'absent'> {
    if (!(await this.exists(className))) return 'absent';
    try {
      await this.send('DELETE', className, operation);
      return 'deleted';
    } catch (error) {
      if (error instanceof ParseServerError && error.parseCode === CLASS_NOT_EMPTY) return 'not_empty';
      throw error;
    }
  }

  /** Reads the class again without a cache: the answer decides about a change. */
  private async exists(className: string): Promise<boolean> {
    this.catalogue.invalidate();
    return (await this.catalogue.snapshot()).get(className) !== undefined;
  }

  private async send(
    method: 'POST' | 'DELETE',
    className: string,
    { signal, maxTimeMS }: OperationContext,
    body?: Readonly<Record<string, unknown>>,
  ): Promise<ParseAnswer> {
    if (signal.aborted) throw new StoreError('cancelled', { store: 'Parse Server', cause: signal.reason });
    const path = classPath(className, '/schemas');
    try {
      const answer = await this.connection.send(
        { credentials: MASTER_KEY, method, path, ...(body && { body }) },
        { maxTimeMS, signal: new AbortController().signal },
      );
      if (method !== 'DELETE' && answer['className'] !== className) {
        const cause = new Error('no class in the answer to its change');
        throw new StoreError('failed', { store: 'Parse Server', cause, outcome: 'unknown' });
      }
      return answer;
    } finally {
      this.catalogue.invalidate();
    }
  }
}

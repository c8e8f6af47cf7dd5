import { setOwn } from '#core';
import { type BSONSerializeOptions, type Document, ObjectId } from 'mongodb';
import type { ParseRow } from '#data';
import {
  AUTH_DATA_PREFIX,
  type ClassSchema,
  type FieldSchema,
  inferFieldType,
  type GovernedPipeline,
  INTERNAL_FIELDS,
  isSameType,
  typeName,
  isTyped,
} from '#policy';
import { UnstorableValue } from '../errors.js';
import { aclToQuery } from './acl-stages.js';
import {
  ClassStorage,
  type ColumnRef,
  idAsText,
  toInclusion,
  isInclusion,
  parsePointerString,
  type PipelineSource,
  refuseUntyped,
  countSelectingStages,
} from './class-storage.js';
import {
  aclToColumns,
  at,
  columnFromStorage,
  columnsToAcl,
  columnToStorage,
  toDate,
  isPointerColumn,
  convertNested,
  newObjectId,
  PARSE_VALUES,
  POINTER_PREFIX,
  pointerColumn,
  valueFromStorage,
} from './parse-values.js';

/** The collection in which Parse stores the pairs (`owningId`, `relatedId`) of a relation. */
export function joinCollection(className: string, field: string): string {
  return `_Join:${field}:${className}`;
}

/** Parse's internal columns under their stored names. They never leave the store, whatever a query projects or renames. */
export const INTERNAL_COLUMNS: readonly string[] = INTERNAL_FIELDS.filter((name) => name.startsWith('_'));

const INTERNAL = new Set(INTERNAL_COLUMNS);

export function isInternalColumn(name: string): boolean {
  return INTERNAL.has(name) || name.startsWith(AUTH_DATA_PREFIX);
}

const BUILT_IN_COLUMNS: ReadonlyMap<string, string> = new Map([
  ['objectId', '_id'],
  ['createdAt', '_created_at'],
  ['updatedAt', '_updated_at'],
  ['sessionToken', '_session_token'],
]);

const BUILT_IN_FIELDS: ReadonlyMap<string, FieldSchema> = new Map([
  ['objectId', { type: 'String' }],
  ['createdAt', { type: 'Date' }],
  ['updatedAt', { type: 'Date' }],
]);

/** Only `_Audience` stores two of its fields under different names. */
const AUDIENCE_COLUMNS: ReadonlyMap<string, string> = new Map([
  ['lastUsed', '_last_used'],
  ['timesUsed', 'times_used'],
]);

/** Only users have login data, in one column per provider, which no fixed list of names can cover. */
const HAS_AUTH_DATA = '_User';

const withoutAuthData = (row: string): Document => ({
  $arrayToObject: {
    $filter: {
      input: { $objectToArray: row },
      as: 'column',
      cond: { $ne: [{ $indexOfBytes: ['$$column.k', AUTH_DATA_PREFIX] }, 0] },
    },
  },
});

const UNSET_INTERNAL: Document = { $unset: [...INTERNAL_COLUMNS] };

const ALWAYS_READ = ['_id', '_created_at', '_updated_at'] as const;
const RIGHTS_COLUMNS = ['_acl', '_rperm', '_wperm'] as const;

/** Credentials that a schema row may contain and no catalogue returns. */
export const UNLISTED_COLUMNS: ReadonlySet<string> = new Set(['password', 'authData', 'sessionToken']);

/** Secrets are removed when rows are read; for Parse's own classes they are not requested at all. */
const WITHOUT_SECRETS: Document = Object.fromEntries(
  INTERNAL_COLUMNS.filter((column) => !(RIGHTS_COLUMNS as readonly string[]).includes(column)).map(
    (column) => [column, 0],
  ),
);

/** Columns with a field of their own that a row never has under it. */
const NEVER_IN_ROWS: ReadonlySet<string> = new Set(['_id', '_session_token']);

const SET_BY_THE_STORE = new Set(['objectId', 'createdAt', 'updatedAt']);

const FIELD_NAME = /^[A-Za-z][A-Za-z0-9_]*$/;

/** A class as Parse Server stores it. A class without a schema has only the built-in fields. */
export class ParseStorage extends ClassStorage {
  private readonly columns = new Map<string, string>();
  private readonly fieldsByColumn = new Map<string, string>();
  readonly relations = new Map<string, string>();
  readonly collection: string;
  readonly form = PARSE_VALUES;
  readonly bson: BSONSerializeOptions = {};
  readonly rightsColumns: readonly string[] = RIGHTS_COLUMNS;

  constructor(className: string, schema?: ClassSchema) {
    super(className, schema);
    this.collection = className;
    const own = className === '_Audience' ? [...BUILT_IN_COLUMNS, ...AUDIENCE_COLUMNS] : BUILT_IN_COLUMNS;
    for (const [field, column] of own) this.bind(field, column);
    for (const [field, { type, targetClass }] of schema?.fields ?? []) {
      if (type === 'Pointer') this.bind(field, pointerColumn(field));
      if (type === 'Relation') this.relations.set(field, targetClass ?? '');
    }
  }

  private bind(field: string, column: string): void {
    this.columns.set(field, column);
    this.fieldsByColumn.set(column, field);
  }

  override relationCollection(field: string): string {
    return joinCollection(this.className, field);
  }

  field(name: string): FieldSchema | undefined {
    return this.schema?.fields.get(name) ?? BUILT_IN_FIELDS.get(name);
  }

  column(field: string): string {
    return this.columns.get(field) ?? field;
  }

  /** A pointer column outside the schema is recognised by its prefix. */
  toField(column: string): string {
    const declared = this.fieldsByColumn.get(column);
    if (declared !== undefined) return declared;
    return isPointerColumn(column) ? column.slice(POINTER_PREFIX.length) : column;
  }

  resolve(path: string): ColumnRef {
    const nested = path.includes('.');
    const field = nested ? undefined : this.field(path);
    return {
      column: this.path(path),
      field,
      nested,
      undeclared: !nested && !field && !path.startsWith('_'),
      form: this.form,
    };
  }

  idToStorage(objectId: string): string {
    return objectId;
  }

  idFromStorage(id: unknown): string {
    return idText(id);
  }

  idOfText(text: Document): Document {
    return text;
  }

  textOfId(reference: string): unknown {
    return idAsText(reference);
  }

  projection(keys: readonly string[] | undefined): Document | undefined {
    if (!keys) return this.className.startsWith('_') ? WITHOUT_SECRETS : undefined;
    const paths = keys.flatMap((key) => (key === 'ACL' ? RIGHTS_COLUMNS : [this.readPath(key)]));
    return toInclusion(new Set<string>([...ALWAYS_READ, ...paths]));
  }

  /** Paths through a pointer name fields of another row; this projection reads only the pointer. */
  private readPath(key: string): string {
    const root = key.split('.', 1)[0] as string;
    return this.field(root)?.type === 'Pointer' ? this.column(root) : this.path(key);
  }

  /** The row that Parse Server would return. Parse's internal columns are removed. */
  toRow(document: Document, wanted?: ReadonlySet<string>): ParseRow {
    const row: ParseRow = {};
    if ('_id' in document) row['objectId'] = idText(document['_id']);
    for (const [column, value] of Object.entries(document)) {
      if (column === '_created_at') row['createdAt'] = isoText(value);
      else if (column === '_updated_at') row['updatedAt'] = isoText(value);
      else if (isPointerColumn(column)) {
        const pointer = parsePointerString(value);
        if (pointer) setOwn(row, this.toField(column), pointer);
      } else if (!NEVER_IN_ROWS.has(column)) {
        const name = this.toField(column);
        const field = this.field(name);
        if (field || !column.startsWith('_')) setOwn(row, name, columnFromStorage(value, field, 'typed'));
      }
    }
    const acl = columnsToAcl(document);
    if (acl) row['ACL'] = acl;
    for (const [field, className] of this.relations) {
      if (!wanted || wanted.has(field)) setOwn(row, field, { __type: 'Relation', className });
    }
    return row;
  }

  rightsToQuery(right: 'read' | 'write', principals: readonly string[]): Document {
    return aclToQuery(right, principals);
  }

  /** Internal columns are removed. After that no expression can reach a secret, even if it renames what it reads. */
  source(pipeline: GovernedPipeline): PipelineSource {
    const place = countSelectingStages(pipeline);
    const prefixed = this.className === HAS_AUTH_DATA && !isInclusion(pipeline[place]);
    const byPrefix = { $replaceWith: withoutAuthData('$$ROOT') };
    return { at: place, stages: prefixed ? [UNSET_INTERNAL, byPrefix] : [UNSET_INTERNAL], storage: this };
  }

  buildReducedInside(field: string): Document[] {
    const unset = { $unset: INTERNAL_COLUMNS.map((column) => `${field}.${column}`) };
    if (this.className !== HAS_AUTH_DATA) return [unset];
    return [
      unset,
      { $addFields: { [field]: { $map: { input: `$${field}`, as: 'row', in: withoutAuthData('$$row') } } } },
    ];
  }

  /** A column that the class lacks is added. */
  newColumns(fields: ParseRow): ReadonlyMap<string, FieldSchema> {
    const added = new Map<string, FieldSchema>();
    for (const [name, value] of Object.entries(fields)) {
      if (name === 'ACL') continue;
      if (SET_BY_THE_STORE.has(name)) throw new UnstorableValue(name, 'is set by the store');
      if (!FIELD_NAME.test(name) || UNLISTED_COLUMNS.has(name))
        throw new UnstorableValue(name, 'cannot be written');
      const written = inferFieldType(value);
      const column = this.schema?.fields.get(name);
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

  newDocument(values: ParseRow, objectId = newObjectId(), time: Date): Document {
    const stamp = time.toISOString();
    return this.toDocument(this.withOwnAcl({ objectId, ...values, createdAt: stamp, updatedAt: stamp }));
  }

  /** A user row without an ACL would be public; Parse restricts it to the user. */
  private withOwnAcl(row: ParseRow): ParseRow {
    if (this.className !== '_User' || row['ACL'] !== undefined) return row;
    return { ...row, ACL: { [String(row['objectId'])]: { read: true, write: true } } };
  }

  /** Converts a row in Parse JSON to its document. Relations are stored in join collections and have no column. */
  toDocument(row: Readonly<Record<string, unknown>>): Document {
    const document: Document = {};
    for (const [field, value] of Object.entries(row)) {
      if (value === undefined || (isTyped(value) && value.__type === 'Relation')) continue;
      if (field === 'ACL') {
        Object.assign(document, aclToColumns(value));
        continue;
      }
      const [column, stored] = this.fieldToStorage(field, value);
      setOwn(document, column, stored);
    }
    return document;
  }

  createStamp(time: Date): Document {
    return { _updated_at: time };
  }

  fieldToStorage(field: string, value: unknown): [string, unknown] {
    return at(field, () => {
      if (field === 'createdAt' || field === 'updatedAt')
        return [this.column(field), toDate(isTyped(value) ? value['iso'] : value)];
      const undeclaredPointer = isTyped(value) && value.__type === 'Pointer' && !this.field(field);
      return [undeclaredPointer ? pointerColumn(field) : this.column(field), columnToStorage(value)];
    });
  }

  amountToStorage(_field: string, amount: unknown): number {
    if (typeof amount !== 'number' || !Number.isFinite(amount))
      throw new UnstorableValue('amount', 'must be a number');
    return amount;
  }

  memberToStorage(_field: string, member: unknown): unknown {
    return convertNested(member);
  }

  rightsToStorage(acl: unknown): Document {
    return aclToColumns(acl);
  }
}

/** Ids are text in Parse, whatever type the database stores. */
function idText(id: unknown): string {
  return id instanceof ObjectId ? id.toHexString() : String(id);
}

/** A number counts milliseconds; null where it is no moment, as for a date that is none. */
const isoText = (value: unknown): unknown => {
  const converted = valueFromStorage(value, 'text');
  return typeof converted === 'number' ? valueFromStorage(new Date(converted), 'text') : converted;
};

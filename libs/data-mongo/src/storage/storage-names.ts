import {
  AUTH_DATA_PREFIX,
  type ClassSchema,
  type FieldSchema,
  INTERNAL_FIELDS,
  type SchemaSnapshot,
} from '#policy';

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

const POINTER_PREFIX = '_p_';

/** Field names of one class and the columns that store them. A class without a schema has only the built-in fields. */
export class StorageNames {
  private readonly columns = new Map<string, string>();
  private readonly fieldsByColumn = new Map<string, string>();
  /** Relation fields and their target classes: they have no column. */
  readonly relations = new Map<string, string>();

  constructor(
    readonly className: string,
    readonly schema?: ClassSchema,
  ) {
    const own = className === '_Audience' ? [...BUILT_IN_COLUMNS, ...AUDIENCE_COLUMNS] : BUILT_IN_COLUMNS;
    for (const [field, column] of own) this.bind(field, column);
    for (const [field, { type, targetClass }] of schema?.fields ?? []) {
      if (type === 'Pointer') this.bind(field, POINTER_PREFIX + field);
      if (type === 'Relation') this.relations.set(field, targetClass ?? '');
    }
  }

  private bind(field: string, column: string): void {
    this.columns.set(field, column);
    this.fieldsByColumn.set(column, field);
  }

  field(name: string): FieldSchema | undefined {
    return this.schema?.fields.get(name) ?? BUILT_IN_FIELDS.get(name);
  }

  /** The column of a top-level field; names that the schema does not contain are stored unchanged. */
  column(field: string): string {
    return this.columns.get(field) ?? field;
  }

  /** Only the root of a dotted path has a column. */
  path(path: string): string {
    const dot = path.indexOf('.');
    return dot < 0 ? this.column(path) : this.column(path.slice(0, dot)) + path.slice(dot);
  }

  /** The field that a column stores. A pointer column outside the schema is recognised by its prefix. */
  fieldOf(column: string): string {
    const declared = this.fieldsByColumn.get(column);
    if (declared !== undefined) return declared;
    return column.startsWith(POINTER_PREFIX) ? column.slice(POINTER_PREFIX.length) : column;
  }
}

export function pointerColumn(field: string): string {
  return POINTER_PREFIX + field;
}

export function isPointerColumn(column: string): boolean {
  return column.startsWith(POINTER_PREFIX);
}

/** The stored names of every class of one schema snapshot, computed once for each. */
export class StoredClasses {
  private static readonly bySnapshot = new WeakMap<SchemaSnapshot, StoredClasses>();
  private readonly classes = new Map<string, StorageNames>();

  private constructor(private readonly schemas: SchemaSnapshot) {}

  static of(schemas: SchemaSnapshot): StoredClasses {
    const known = StoredClasses.bySnapshot.get(schemas);
    if (known) return known;
    const made = new StoredClasses(schemas);
    StoredClasses.bySnapshot.set(schemas, made);
    return made;
  }

  names(className: string): StorageNames {
    const schema = this.schemas.get(className);
    const known = this.classes.get(className);
    if (known) return known;
    const names = new StorageNames(className, schema);
    // Only declared classes are cached: a caller may name any number of others.
    if (schema) this.classes.set(className, names);
    return names;
  }
}

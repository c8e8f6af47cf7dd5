/** Parse field types, as stored in `_SCHEMA` and returned by Parse Server. */
export const FIELD_TYPES = [
  'String',
  'Number',
  'Boolean',
  'Date',
  'Object',
  'Array',
  'GeoPoint',
  'File',
  'Pointer',
  'Relation',
  'Bytes',
  'Polygon',
  'ACL',
] as const;

export type FieldType = (typeof FIELD_TYPES)[number];

/** A field as the database knows it. */
export interface FieldSchema {
  /** As Parse names it. */
  readonly type: FieldType;
  /** Pointer and Relation only. */
  readonly targetClass?: string;
  /** A row without it is refused. Default false. */
  readonly required?: boolean;
  /** The value of a new row that does not set it. Default none. */
  readonly defaultValue?: unknown;
}

/** An index of a class. */
export interface IndexSchema {
  /** As the database names it. */
  readonly name: string;
  /** Logical field names, in order. */
  readonly fields: readonly string[];
  /** No two rows have the same values in its fields. */
  readonly unique: boolean;
  /** The store does not report whether it is unique; `unique` is false. */
  readonly uniquenessUnknown?: true;
  /** Rows without any of its fields are not in it. */
  readonly sparse?: true;
  /** Which rows are in it depends on more than its fields. */
  readonly partial?: true;
}

/** Class-level permissions as Parse stores them: operation → principal → true, plus protectedFields and pointer fields. */
export type ClassLevelPermissions = Readonly<Record<string, unknown>>;

/** A class as the database knows it, in logical (Parse) names. Includes objectId, createdAt, updatedAt and ACL. */
export interface ClassSchema {
  /** As Parse names it. */
  readonly className: string;
  /** By wire name. */
  readonly fields: ReadonlyMap<string, FieldSchema>;
  /** As listed in the class description, which may be incomplete: the store knows all of them. */
  readonly indexes: readonly IndexSchema[];
  /** Null: the class has none, and every caller may do everything. */
  readonly classLevelPermissions: ClassLevelPermissions | null;
}

/** All classes at one moment; immutable, so decisions may be cached against it. */
export interface SchemaSnapshot {
  /** Undefined: no such class. */
  get(className: string): ClassSchema | undefined;
  /** Sorted. */
  classNames(): readonly string[];
}

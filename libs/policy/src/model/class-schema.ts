import { isObjectId } from '#core';

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

/** How the documents of a class are stored: as Parse stores its rows, or as any other program does. */
export type StorageForm = 'parse' | 'plain';

/** Where the type of a column of a plain class is from. Agents write only to columns that are not inferred. */
export type ColumnOrigin = 'declared' | 'validator' | 'sample';

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
  /** Plain classes only. Of an Object: its members. Of an Array: the members of its entries. Default: not known. */
  readonly members?: ReadonlyMap<string, FieldSchema>;
  /** Plain classes only. Of an Array: its entries, where they are no documents. Default: not known. */
  readonly entries?: FieldSchema;
  /** Plain classes only. Default `declared`. */
  readonly origin?: ColumnOrigin;
  /** Plain classes only. Of a reference: the sample has ids in another form than those of the target, as texts beside ObjectIds. */
  readonly mixedIds?: true;
  /** Plain classes only. The values are DBRefs, code and the like: shown, and matched by no condition but a whole DBRef. */
  readonly opaque?: true;
  /** Of an inferred column: in how many documents of the sample each type was seen. */
  readonly seen?: Readonly<Partial<Record<FieldType | 'Null', number>>>;
}

/** The column that a path inside a column of a plain class leads to; places in a list are left out. */
export function memberField(
  field: FieldSchema | undefined,
  path: readonly string[],
): FieldSchema | undefined {
  let found = field;
  for (const name of path) if (!/^\d+$/.test(name)) found = found?.members?.get(name);
  return found;
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
  /** It compares texts by a collation: texts that differ may be the same to it. */
  readonly collated?: true;
}

/** Class-level permissions as Parse stores them: operation → principal → true, plus protectedFields and pointer fields. */
export type ClassLevelPermissions = Readonly<Record<string, unknown>>;

/**
 * A class as the database knows it, in logical (Parse) names. A Parse class includes objectId, createdAt, updatedAt and ACL;
 * a plain one has objectId, no ACL, and the time stamps that it declares.
 */
export interface ClassSchema {
  /** As Parse names it. */
  readonly className: string;
  /** Plain classes only: documents have ids of several types, of which the class has one. */
  readonly mixedIds?: true;
  /** By wire name. */
  readonly fields: ReadonlyMap<string, FieldSchema>;
  /** As listed in the class description, which may be incomplete: the store knows all of them. */
  readonly indexes: readonly IndexSchema[];
  /** Null: the class has none, and every caller may do everything. */
  readonly classLevelPermissions: ClassLevelPermissions | null;
  /** Rows of a plain class have no ACL and its class no permissions: the policy alone limits them. Default `parse`. */
  readonly storage?: StorageForm;
  /** Name of the database that holds the rows, as the configuration calls it. Default: that of the service. */
  readonly database?: string;
}

/** Longest id of a plain class, in bytes of UTF-8. */
const LONGEST_ID = 512;

/** Whether a text can be the id of a row: those of Parse are short and of few characters, other programs choose any text. */
export function isIdFor(schema: Pick<ClassSchema, 'storage'> | undefined, value: unknown): value is string {
  if (schema?.storage !== 'plain') return isObjectId(value);
  if (typeof value !== 'string' || value === '' || value.includes('\0')) return false;
  // The driver stores a lone surrogate as another character, and so would find another row.
  return Buffer.byteLength(value) <= LONGEST_ID && !/\p{Surrogate}/u.test(value);
}

/** The refusal of a text that is no id of a row. */
export function idForm(schema: Pick<ClassSchema, 'storage'> | undefined): string {
  return schema?.storage === 'plain'
    ? `object ids are texts of 1 to ${LONGEST_ID} bytes, without NUL`
    : 'object ids are letters, digits, _ and -, at most 32 characters';
}

/** All classes at one moment; immutable, so decisions may be cached against it. */
export interface SchemaSnapshot {
  /** Undefined: no such class. */
  get(className: string): ClassSchema | undefined;
  /** Sorted. */
  classNames(): readonly string[];
  /** Whether the database that holds the class could not be reached when the classes were read. Default: none is away. */
  isAway?(className: string): boolean;
}

import { setOwn } from '#core';
import type { BSONSerializeOptions, Document } from 'mongodb';
import type { ParseRow } from '#data';
import {
  type ClassSchema,
  type FieldSchema,
  type GovernedPipeline,
  isPlainObject,
  STORED_POINTER,
} from '#policy';
import { UnstorableValue } from '../errors.js';

/** The column that a path of a query refers to in the stored documents. */
export interface ColumnRef {
  /** Storage path. */
  readonly column: string;
  /** The type of the value, when the path is a column of known type. */
  readonly field?: FieldSchema | undefined;
  /** Inside an array or object column: values keep their nested form. */
  readonly nested: boolean;
  /** A top-level name of the source that its schema does not contain. */
  readonly undeclared: boolean;
  /** The form of the values. */
  readonly form: ValueForm;
}

/** Dates in answers: `{ __type: 'Date', iso }` or ISO text. */
export type DateForm = 'typed' | 'text';

/** How one storage form stores values, in whatever class. */
export interface ValueForm {
  /** Pointers store the bare id of their row, so that they equal the `_id` of their target. */
  readonly pointersAreIds: boolean;
  /** One operand of a query in the form in which its column stores it. @throws StoreError `invalid_query` */
  operandToStorage(value: unknown, ref: ColumnRef): unknown;
  /**
   * Every form in which documents may hold a value, that of its column first.
   * @param negated whether a match withholds rows. @throws StoreError `invalid_query`
   */
  listForms(value: unknown, ref: ColumnRef, negated: boolean): unknown[];
  /** The operands of a list operator, each in every form. @throws StoreError `invalid_query` */
  operandsToStorage(values: readonly unknown[], ref: ColumnRef, negated: boolean): unknown[];
  /** A typed value in an expression. @throws UnstorableValue */
  literalToStorage(value: unknown): unknown;
  /** A constant that an expression compares with a column. @throws StoreError `invalid_query` */
  convertCompared(value: unknown, ref?: ColumnRef): unknown;
  /** The ids that a text may be, of which documents may hold any where nothing says what a column has. */
  listIds(value: unknown, ref: ColumnRef): readonly unknown[];
  /** What a path inside an element of a list refers to. */
  toMember(list: ColumnRef, path: string): ColumnRef;
  /** The same reference for a comparison with pointers. */
  asPointerColumn(ref: ColumnRef): ColumnRef;
  /**
   * A stored value in an answer of a pipeline.
   * @param field its column, when the value is that of a column. @param keepKey may exclude keys of nested objects
   */
  resultFromStorage(
    value: unknown,
    field: FieldSchema | undefined,
    keepKey: (key: string) => boolean,
  ): unknown;
}

/** How the documents at the source of a pipeline are reduced to what its further stages may see. */
export interface PipelineSource {
  /** The number of leading stages that select rows and precede the reduction. */
  readonly at: number;
  readonly stages: readonly Document[];
  /** The names of the documents after it. */
  readonly storage: ClassStorage;
}

/** A change of rows, or of the columns of the class. */
export type StorageChange = 'create' | 'update' | 'delete' | 'alter';

/** An expression of a stored text. Null for any other value, of which one would fail the read of every row. */
export const whereText = (reference: string, expression: unknown): Document => ({
  $cond: [{ $eq: [{ $type: reference }, 'string'] }, expression, null],
});

/** An expression: a stored id as text; null where it has none. */
export const idAsText = (reference: string): Document => ({
  $convert: { input: reference, to: 'string', onError: null, onNull: null },
});

/** How one class is stored: the names of its columns, its rows and its ids. */
export abstract class ClassStorage {
  private readonly projections = new WeakMap<readonly string[], Document>();
  /** Name of the database that holds the rows; undefined: that of the service. */
  readonly database: string | undefined;

  constructor(
    readonly className: string,
    readonly schema?: ClassSchema,
  ) {
    this.database = schema?.database;
  }

  abstract readonly collection: string;
  abstract readonly form: ValueForm;
  /** Options for reading its documents. */
  abstract readonly bson: BSONSerializeOptions;
  /** Relation fields and their target classes: they have no column. */
  abstract readonly relations: ReadonlyMap<string, string>;
  /** The collection of the pairs of a relation; undefined: the class has no relations. */
  relationCollection(_field: string): string | undefined {
    return undefined;
  }

  /** The columns that store who may read and write a row. */
  abstract readonly rightsColumns: readonly string[];

  /** Whether the server reports changes of its documents. */
  get watchable(): boolean {
    return true;
  }

  /** @throws StoreError `createUnsupported` for a change that its collection does not permit */
  assertPermits(_change: StorageChange): void {}

  abstract field(name: string): FieldSchema | undefined;
  /** The column of a top-level field; names that the schema does not contain are stored unchanged. */
  abstract column(field: string): string;
  /** The field that a column stores; undefined: none. */
  abstract toField(column: string): string | undefined;
  /** What a path refers to in stored documents. */
  abstract resolve(path: string): ColumnRef;

  /** The path of fields that leads to a stored path. */
  fieldPath(path: string): string {
    const [root = '', ...inside] = path.split('.');
    return [this.toField(root) ?? root, ...inside].join('.');
  }

  /** Only the root of a dotted path has a column. */
  path(path: string): string {
    const dot = path.indexOf('.');
    return dot < 0 ? this.column(path) : this.column(path.slice(0, dot)) + path.slice(dot);
  }

  abstract idToStorage(objectId: string): unknown;
  /** The id of a new row that a text determines. @throws StoreError `createUnsupported` where rows cannot get ids here */
  idFor(text: string): string {
    return text;
  }

  abstract idFromStorage(id: unknown): string;
  /** An expression: the id of a row of this class, of the id as text. @throws StoreError `createUnsupported` */
  abstract idOfText(text: Document): unknown;
  /** An expression: the id of a row of this class, of a reference `Class$id`. @throws StoreError `createUnsupported` */
  idOfReference(reference: string): unknown {
    return this.idOfText(
      whereText(reference, { $arrayElemAt: [{ $split: [reference, { $literal: '$' }] }, 1] }),
    );
  }

  /** An expression: the id as text, of the id of a row of this class. @throws StoreError `createUnsupported` */
  abstract textOfId(reference: string): unknown;

  /** The columns that a read requests, ids and time stamps included; undefined: all. */
  abstract projection(keys: readonly string[] | undefined): Document | undefined;

  /** The same, kept for a list of keys that governed access keeps. */
  buildProjection(keys: readonly string[] | undefined): Document | undefined {
    const known = keys && this.projections.get(keys);
    if (known) return known;
    const projection = this.projection(keys);
    if (keys && projection) this.projections.set(keys, projection);
    return projection;
  }

  /**
   * Converts a document to a row.
   * @param wanted the requested fields; absent: all. Only relations depend on it, because they have no column
   */
  abstract toRow(document: Document, wanted?: ReadonlySet<string>): ParseRow;
  /** A filter for rows that give one of the principals a right. @throws StoreError `invalid_query` */
  abstract rightsToQuery(right: 'read' | 'write', principals: readonly string[]): Document;
  abstract source(pipeline: GovernedPipeline): PipelineSource;
  /** The same reduction for rows of this class inside a field, where no stage of their own can run. */
  abstract buildReducedInside(field: string, depth?: string): Document[];
  /** The column in which a graph search writes its depth, before the rows are reduced. */
  depthColumn(depth: string): string {
    return depth;
  }

  /**
   * Checks the fields of a write.
   * @returns columns that the class does not have yet and that the write creates
   * @throws UnstorableValue for names and values that this class cannot store
   */
  abstract newColumns(fields: ParseRow): ReadonlyMap<string, FieldSchema>;
  /** The document of a new row. @param values of each field. @throws UnstorableValue */
  abstract newDocument(values: ParseRow, objectId: string | undefined, at: Date): Document;
  /** The columns that an update sets to the time of the update. */
  abstract createStamp(at: Date): Document;
  /** The column and stored value of one field. @throws UnstorableValue */
  abstract fieldToStorage(field: string, value: unknown): [column: string, stored: unknown];
  /** A number that is added to a column. @throws UnstorableValue */
  abstract amountToStorage(field: string, amount: unknown): unknown;
  /** A value that is added to a list column or removed from it. @throws UnstorableValue */
  abstract memberToStorage(field: string, member: unknown): unknown;
  /** The columns of an ACL. @throws UnstorableValue */
  abstract rightsToStorage(acl: unknown): Document;
}

/** An inclusion of paths, in their order. */
export function toInclusion(paths: ReadonlySet<string>): Document {
  const projection: Document = {};
  for (const path of paths) if (!isInside(path, paths)) setOwn(projection, path, 1);
  return projection;
}

/** MongoDB refuses `a` beside `a.b`. */
function isInside(path: string, paths: ReadonlySet<string>): boolean {
  for (let dot = path.indexOf('.'); dot > 0; dot = path.indexOf('.', dot + 1)) {
    if (paths.has(path.slice(0, dot))) return true;
  }
  return false;
}

/** Stages that select and order rows but create none: the policy's predicate, `$text` and indexes need them first. */
const KEEPS_ITS_PLACE = new Set([
  '$match',
  '$sort',
  '$skip',
  '$limit',
  '$sample',
  '$search',
  '$searchMeta',
  '$vectorSearch',
]);

/** How many leading stages only select rows. */
export function countSelectingStages(pipeline: GovernedPipeline): number {
  const first = pipeline.findIndex((stage) => !KEEPS_ITS_PLACE.has(Object.keys(stage)[0] ?? ''));
  return first < 0 ? pipeline.length : first;
}

/** Whether a stage keeps columns that it names, and nothing else: a value that it computes could be the whole row. */
export function isInclusion(stage: Readonly<Record<string, unknown>> | undefined): boolean {
  const projection = stage?.['$project'];
  if (!isPlainObject(projection)) return false;
  const isKey = ([key]: readonly [string, unknown]) => key === '_id' || key === 'objectId';
  const keys = Object.entries(projection).filter(isKey);
  const named = Object.entries(projection).filter((entry) => !isKey(entry));
  return (
    keys.every(([, value]) => value === 1 || value === 0) &&
    named.length > 0 &&
    named.every(([key, value]) => value === 1 && !/^(?:_|ACL(?:\.|$))/.test(key))
  );
}

/** Null and `Delete` are valid for any column except a required one. @throws UnstorableValue */
export function refuseUntyped(name: string, value: unknown, column: FieldSchema | undefined): void {
  const clears = value === null || (isPlainObject(value) && value['__op'] === 'Delete');
  if (!clears) throw new UnstorableValue(name, 'is not a value that can be stored');
  if (column?.required) throw new UnstorableValue(name, 'is required');
}

/** Parse JSON of a pointer. The member order is the stored one, because MongoDB compares documents by it. */
interface Pointer {
  readonly __type: 'Pointer';
  readonly className: string;
  readonly objectId: string;
}

export function pointerTo(className: string, objectId: string): Pointer {
  return { __type: 'Pointer', className, objectId };
}

/** The stored form of a pointer column: `Class$id`. */
export function pointerString(className: string, objectId: string): string {
  return `${className}$${objectId}`;
}

export function isPointerString(value: unknown): value is string {
  return typeof value === 'string' && STORED_POINTER.test(value);
}

export function parsePointerString(value: unknown): Pointer | null {
  const match = typeof value === 'string' ? STORED_POINTER.exec(value) : null;
  return match ? pointerTo(match[1] as string, match[2] as string) : null;
}

export function isPointer(value: unknown): value is Pointer {
  return typeof value === 'object' && value !== null && (value as { __type?: unknown }).__type === 'Pointer';
}

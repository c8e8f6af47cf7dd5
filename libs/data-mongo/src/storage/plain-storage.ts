import { setOwn } from '#core';
import { type IdKind, isPlainObject, isTyped } from '#policy';
import { type BSONSerializeOptions, type Document, ObjectId, UUID } from 'mongodb';
import { createHash, randomUUID } from 'node:crypto';
import { type ParseRow, StoreError } from '#data';
import {
  type ClassSchema,
  type FieldSchema,
  inferFieldType,
  type GovernedPipeline,
  memberField,
  typeName,
} from '#policy';
import { UnstorableValue, untranslatable } from '../errors.js';
import {
  ClassStorage,
  type ColumnRef,
  idAsText,
  toInclusion,
  isInclusion,
  type PipelineSource,
  refuseUntyped,
  countSelectingStages,
  type StorageChange,
  whereText,
} from './class-storage.js';
import { at, toDate, newObjectId } from './parse-values.js';
import { unifyIds } from './mixed-references.js';
import { parseId, idText, findKind, withKind } from './plain-scalars.js';
import { toMember, numberToStorage, PLAIN_VALUES, plainToStorage, plainValue } from './plain-values.js';

/** Where and how a plain class is stored: what its schema, which callers see, does not say. */
export interface PlainLayout {
  readonly collection: string;
  readonly id: IdKind;
  /** Columns of fields that are stored under other names. */
  readonly columns: ReadonlyMap<string, string>;
  readonly timestamps: { readonly createdAt: string; readonly updatedAt: string } | null;
  /** Known columns that no field shows. */
  readonly hidden: readonly string[];
  /** Changes that the collection permits: a view permits none. */
  readonly changes: ReadonlySet<StorageChange>;
  /** Whether the server reports changes of its documents. */
  readonly watchable: boolean;
}

const LAYOUTS = new WeakMap<ClassSchema, PlainLayout>();

/** Remembers how a class of a snapshot is stored. */
export function layOut(schema: ClassSchema, layout: PlainLayout): ClassSchema {
  LAYOUTS.set(schema, layout);
  return schema;
}

/** Undefined: Parse stores the class. */
export function readLayout(schema: ClassSchema): PlainLayout | undefined {
  return LAYOUTS.get(schema);
}

const SET_BY_THE_STORE = new Set(['objectId', 'createdAt', 'updatedAt']);

const NO_RELATIONS: ReadonlyMap<string, string> = new Map();

/** No field has it, and no row shows it. */
const DEPTH = '__depth';

/** Names that mean something else in every class, and so never a column of that name. */
const RESERVED_NAMES = ['_id', 'objectId', 'ACL'];

/** A class in a collection that another program writes. */
export class PlainStorage extends ClassStorage {
  readonly form = PLAIN_VALUES;
  /** 64-bit numbers stay exact. */
  readonly bson: BSONSerializeOptions = { promoteLongs: false };
  readonly relations = NO_RELATIONS;
  readonly rightsColumns: readonly string[] = [];
  private readonly columns = new Map<string, string>();
  private readonly fieldsByColumn = new Map<string, string>();
  private readonly idField: FieldSchema;

  constructor(
    override readonly schema: ClassSchema,
    private readonly layout: PlainLayout,
  ) {
    super(schema.className, schema);
    this.idField = withKind({ type: 'String' }, layout.id, true);
    for (const [field, column] of [...layout.columns, ...Object.entries(layout.timestamps ?? {})]) {
      this.columns.set(field, column);
      this.fieldsByColumn.set(column, field);
    }
  }

  get collection(): string {
    return this.layout.collection;
  }

  override get watchable(): boolean {
    return this.layout.watchable;
  }

  override assertPermits(change: StorageChange): void {
    if (this.layout.changes.has(change)) return;
    throw createUnsupported(
      change === 'alter'
        ? `the columns of ${this.className} are those of its collection: an operator declares them in the configuration`
        : `rows of ${this.className} cannot be ${change}d here: their collection does not permit it`,
    );
  }

  field(name: string): FieldSchema | undefined {
    return name === 'objectId' || name === '_id' ? this.idField : this.schema.fields.get(name);
  }

  /** @throws StoreError `invalid_query` for a stored name that is not the name of the field */
  column(field: string): string {
    if (field === 'objectId' || field === '_id') return '_id';
    const column = this.columns.get(field);
    if (column !== undefined) return column;
    const isShown =
      this.schema.fields.has(field) || (!field.startsWith('_') && !this.fieldsByColumn.has(field));
    if (!isShown) throw untranslatable(`'${field}' is no field of ${this.className}`);
    return field;
  }

  toField(column: string): string | undefined {
    if (column === '_id') return 'objectId';
    const field = this.fieldsByColumn.get(column);
    if (field !== undefined) return field;
    const isTaken = this.columns.has(column) || RESERVED_NAMES.includes(column);
    return isTaken || (column.startsWith('_') && !this.schema.fields.has(column)) ? undefined : column;
  }

  resolve(path: string): ColumnRef {
    const [root = '', ...inside] = path.split('.');
    const field = memberField(this.field(root), inside);
    return {
      column: this.path(path),
      field,
      nested: inside.length > 0,
      undeclared: false,
      form: this.form,
    };
  }

  /** Text that is no id of this class matches no row. */
  idToStorage(objectId: string): unknown {
    return parseId(this.layout.id, objectId) ?? objectId;
  }

  idFromStorage(id: unknown): string {
    return idText(id);
  }

  idOfText(text: Document): unknown {
    switch (this.layout.id) {
      case 'string':
        return text;
      case 'objectId':
        return { $convert: { input: text, to: 'objectId', onError: null, onNull: null } };
      case 'number':
        return { $convert: { input: text, to: 'decimal', onError: null, onNull: null } };
      case 'uuid':
        throw createUnsupported('a join from a text to a UUID');
    }
  }

  override idOfReference(reference: string): unknown {
    if (this.layout.id !== 'string') return super.idOfReference(reference);
    // A text id may have the sign that separates it from the class.
    const sign = { $indexOfCP: [reference, { $literal: '$' }] };
    const text = { $substrCP: [reference, { $add: [sign, 1] }, { $strLenCP: reference }] };
    return whereText(reference, text);
  }

  textOfId(reference: string): unknown {
    if (this.layout.id === 'string') return reference;
    if (this.layout.id === 'uuid') throw createUnsupported('a join from a UUID to a text');
    return idAsText(reference);
  }

  override idFor(text: string): string {
    const digest = createHash('sha256').update(text).digest();
    switch (this.layout.id) {
      case 'string':
        return text;
      case 'objectId':
        return digest.toString('hex').slice(0, 24);
      case 'uuid':
        return toUuid(digest);
      case 'number':
        throw this.noNewId();
    }
  }

  private newId(): unknown {
    switch (this.layout.id) {
      case 'string':
        return newObjectId();
      case 'objectId':
        return new ObjectId();
      case 'uuid':
        return new UUID(randomUUID());
      case 'number':
        throw this.noNewId();
    }
  }

  private noNewId(): StoreError {
    return createUnsupported(
      `rows of ${this.className} have numbers as ids, which only the application assigns: create them there`,
    );
  }

  projection(keys: readonly string[] | undefined): Document | undefined {
    if (!keys) return undefined;
    const { createdAt, updatedAt } = this.layout.timestamps ?? {};
    const always = ['_id', createdAt, updatedAt].filter((column) => column !== undefined);
    const asked = keys.filter((key) => key !== 'ACL' && !this.isAbsent(key)).map((key) => this.readPath(key));
    return toInclusion(new Set([...always, ...asked]));
  }

  /** Callers always ask for time stamps, which this class may not have. */
  private isAbsent(key: string): boolean {
    return (
      SET_BY_THE_STORE.has(key) &&
      key !== 'objectId' &&
      !this.columns.has(key) &&
      !this.schema.fields.has(key)
    );
  }

  /** Paths through a reference name fields of another row; this projection reads only the reference. */
  private readPath(key: string): string {
    const root = key.split('.', 1)[0] as string;
    return this.field(root)?.type === 'Pointer' ? this.column(root) : this.path(key);
  }

  toRow(document: Document): ParseRow {
    const row: ParseRow = {};
    if ('_id' in document) row['objectId'] = idText(document['_id']);
    for (const [column, value] of Object.entries(document)) {
      const field = column === '_id' ? undefined : this.toField(column);
      if (field === undefined) continue;
      setOwn(row, field, this.isStamp(field) ? isoText(value) : plainValue(value, this.field(field)));
    }
    return row;
  }

  private isStamp(field: string): boolean {
    return (field === 'createdAt' || field === 'updatedAt') && this.layout.timestamps !== null;
  }

  rightsToQuery(): Document {
    throw createUnsupported(`rows of ${this.className} have no rights of their own`);
  }

  /** Expressions compare what is stored: they come behind the stage that gives references one form. */
  private countRawStages(pipeline: GovernedPipeline, isUnified: boolean): number {
    const selecting = countSelectingStages(pipeline);
    const compares = pipeline.findIndex((stage) => isUnified && namesKey(stage['$match'], '$expr'));
    return compares < 0 ? selecting : Math.min(selecting, compares);
  }

  /** Fields get their own names before any further stage, so that a stored name is never another way to a field. */
  source(pipeline: GovernedPipeline): PipelineSource {
    const { renamed, removed } = this.changesOfNames();
    const unified = this.unifiedColumns((field) => `$${field}`);
    const place = this.countRawStages(pipeline, unified.length > 0);
    return {
      at: place,
      stages: [
        ...(renamed.length > 0
          ? [{ $set: Object.fromEntries(renamed.map(([field, column]) => [field, `$${column}`])) }]
          : []),
        ...(removed.length > 0 ? [{ $unset: [...removed] }] : []),
        ...(unified.length > 0 ? [{ $set: Object.fromEntries(unified) }] : []),
        ...(namesItsColumns(pipeline.slice(place))
          ? []
          : [{ $replaceWith: this.listShownColumns('$$ROOT') }]),
      ],
      storage: this.named,
    };
  }

  /** Apart from every column: a depth may have the name of a field, and the name that one is stored under. */
  override depthColumn(): string {
    return DEPTH;
  }

  buildReducedInside(field: string, depth?: string): Document[] {
    const { renamed, removed } = this.changesOfNames();
    const others = renamed.filter(([name]) => name !== depth);
    if (depth !== undefined) others.push([depth, DEPTH]);
    const kept = this.listShownColumns('$$row', [...removed, ...others.map(([name]) => name)]);
    const unified = this.unifiedColumns((name) => `$$row.${this.column(name)}`);
    const named = others.map(([name, column]) => [name, `$$row.${column}`] as const);
    const given = [...named, ...unified];
    const row = given.length > 0 ? { $mergeObjects: [kept, Object.fromEntries(given)] } : kept;
    return [{ $addFields: { [field]: { $map: { input: `$${field}`, as: 'row', in: row } } } }];
  }

  /** The columns whose ids documents hold in several forms, with their values in one. */
  private unifiedColumns(place: (field: string) => string): [field: string, value: unknown][] {
    return [...this.schema.fields].flatMap(([name, field]): [string, unknown][] => {
      const value = unifyIds(place(name), field);
      return value === null ? [] : [[name, value]];
    });
  }

  /**
   * A row without the columns that no field shows: those given, and those known by name. A list of what is known of the
   * collection would miss the columns of documents that were not in its sample.
   */
  private listShownColumns(row: string, dropped: readonly string[] = []): Document {
    const shown = ['_id', ...[...this.schema.fields.keys()].filter((name) => name.startsWith('_'))];
    const isInternal = {
      $and: [
        { $eq: [{ $indexOfBytes: ['$$column.k', '_'] }, 0] },
        { $not: [{ $in: ['$$column.k', { $literal: shown }] }] },
      ],
    };
    const isDropped = { $in: ['$$column.k', { $literal: [...dropped, 'objectId', 'ACL'] }] };
    return {
      $arrayToObject: {
        $filter: {
          input: { $objectToArray: row },
          as: 'column',
          cond: { $not: [{ $or: [isInternal, isDropped] }] },
        },
      },
    };
  }

  private changesOfNames() {
    const renamed = [...this.columns].filter(([field, column]) => field !== column);
    const stored = renamed.map(([, column]) => column).filter((column) => !this.columns.has(column));
    const hidden = this.layout.hidden.filter((column) => !this.columns.has(column));
    return { renamed, removed: [...new Set([...stored, ...hidden])] };
  }

  /** The class behind its source, where every column has the name of its field. */
  private get named(): ClassStorage {
    return (this.namedStorage ??= new NamedStorage(this.schema, this.layout));
  }

  private namedStorage: ClassStorage | undefined;

  /** Only columns that the configuration or the validator of the collection declares are written. */
  newColumns(fields: ParseRow): ReadonlyMap<string, FieldSchema> {
    for (const [name, value] of Object.entries(fields)) this.assertFits(name, value);
    return new Map();
  }

  private assertFits(name: string, value: unknown): void {
    if (SET_BY_THE_STORE.has(name)) throw new UnstorableValue(name, 'is set by the store');
    const column = this.schema.fields.get(name);
    if (!column || column.origin === 'sample' || name === 'ACL')
      throw new UnstorableValue(name, 'is not declared: declare it among the properties of the class');
    const written = inferFieldType(value);
    if (!written) return refuseUntyped(name, value, column);
    const isDigits = column.type === 'Number' && written.type === 'String';
    const isTarget = written.type !== 'Pointer' || column.targetClass === written.targetClass;
    if (!isDigits && (column.type !== written.type || !isTarget))
      throw new UnstorableValue(name, `a ${typeName(written)} does not fit a ${typeName(column)}`);
  }

  newDocument(values: ParseRow, objectId: string | undefined, time: Date): Document {
    const id = objectId === undefined ? this.newId() : parseId(this.layout.id, objectId);
    if (id === undefined) throw new UnstorableValue('objectId', `is no id of ${this.className}`);
    const document: Document = { _id: id };
    for (const [field, value] of Object.entries(values)) {
      if (value === undefined) continue;
      const [column, stored] = this.fieldToStorage(field, value);
      setOwn(document, column, stored);
    }
    const { createdAt, updatedAt } = this.layout.timestamps ?? {};
    for (const column of [createdAt, updatedAt]) if (column !== undefined) setOwn(document, column, time);
    return document;
  }

  createStamp(time: Date): Document {
    const column = this.layout.timestamps?.updatedAt;
    return column === undefined ? {} : { [column]: time };
  }

  fieldToStorage(field: string, value: unknown): [string, unknown] {
    return at(field, () => [
      this.column(field),
      this.isStamp(field)
        ? toDate(isTyped(value) ? value['iso'] : value)
        : plainToStorage(value, this.field(field)),
    ]);
  }

  amountToStorage(field: string, amount: unknown): unknown {
    return at('amount', () => numberToStorage(amount, findKind(this.field(field))));
  }

  memberToStorage(field: string, member: unknown): unknown {
    return toMember(member, this.field(field));
  }

  rightsToStorage(): Document {
    throw new UnstorableValue('ACL', `rows of ${this.className} have none`);
  }
}

function namesKey(value: unknown, key: string): boolean {
  if (Array.isArray(value)) return value.some((entry) => namesKey(entry, key));
  return (
    isPlainObject(value) &&
    (Object.hasOwn(value, key) || Object.values(value).some((part) => namesKey(part, key)))
  );
}

/** Operators whose results hold nothing but what their operands name. */
const OF_OPERANDS = new Set([
  '$sum',
  '$avg',
  '$min',
  '$max',
  '$first',
  '$last',
  '$addToSet',
  '$push',
  '$count',
]);

/** A path from a column that is no internal one under any name. */
const COLUMN = /^\$(?!(?:ACL|objectId)(?:\.|$))[A-Za-z][\w.]*$/;

/**
 * Whether the first stage that does more than remove columns reads only columns that it names, so that its rows need no look at
 * every column.
 */
function namesItsColumns(stages: GovernedPipeline): boolean {
  const stage = stages.find((each) => !Object.hasOwn(each, '$unset'));
  if (isInclusion(stage)) return true;
  const name = Object.keys(stage ?? {}).join();
  return name === '$count' || (name === '$group' && readsColumns(stage?.[name]));
}

/** Whether an expression is known to read nothing but columns by their names: for any other the answer is no. */
function readsColumns(expression: unknown): boolean {
  if (typeof expression === 'string') return !expression.startsWith('$') || COLUMN.test(expression);
  if (typeof expression === 'number' || typeof expression === 'boolean' || expression === null) return true;
  if (!isPlainObject(expression)) return false;
  return Object.entries(expression).every(
    ([key, value]) => (!key.startsWith('$') || OF_OPERANDS.has(key)) && readsColumns(value),
  );
}

/** The same class where documents already have the names of its fields. */
class NamedStorage extends PlainStorage {
  constructor(schema: ClassSchema, layout: PlainLayout) {
    super(schema, { ...layout, columns: new Map(), timestamps: null, hidden: [] });
  }

  override column(field: string): string {
    return field === 'objectId' ? '_id' : field;
  }
}

function createUnsupported(advice: string): StoreError {
  return new StoreError('unsupported', { cause: new Error(advice), advice });
}

/** A UUID of version 4 from a digest. */
function toUuid(digest: Buffer): string {
  const bytes = Buffer.from(digest.subarray(0, 16));
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  return new UUID(bytes).toString();
}

function isoText(value: unknown): unknown {
  return value instanceof Date && !Number.isNaN(value.getTime())
    ? value.toISOString()
    : plainValue(value, undefined);
}

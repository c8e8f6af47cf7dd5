import { cutText } from '#core';
import { Binary, BSON, Decimal128, type Document, Long, ObjectId } from 'mongodb';
import { StoreError, type StoreErrorCode } from '#data';
import type { FieldType, IdKind } from '#policy';
import { SIMPLE_COLLATION } from '../connection/collation.js';
import type { MongoConnection } from '../connection/mongo-connection.js';
import { asStoreOperation } from '../errors.js';
import { MongoSchemaCatalogue } from '../schema/mongo-schema-catalogue.js';

/** Documents of a collection that are looked at. */
const SAMPLE_SIZE = 200;
/** Bytes of documents of a collection that are looked at. */
const SAMPLE_BYTES = 16 * 1024 * 1024;
/** Columns of a collection, and members of a column: more are keys of a map rather than columns. */
const MOST_COLUMNS = 100;
const MAX_DEPTH = 2;
/** Different values of a column that are kept to compare them with ids, and texts to look at. */
const KEPT_VALUES = 20;
const LONGEST_TEXT = 200;

const LIMITS = { maxTimeMS: 10_000, comment: 'parley survey' };

/** What a value is: a type of Parse, an id, or neither. */
export type SeenType = FieldType | 'Id' | 'Null' | 'Other';

/** A column of a collection, or a member of one. */
export interface SurveyedColumn {
  /** Stored name. */
  readonly name: string;
  /** In how many documents of the sample each type was seen. */
  readonly seen: ReadonlyMap<SeenType, number>;
  /** Of an Array: what its entries are. */
  readonly entries: ReadonlyMap<SeenType, number>;
  /** The type that the validator of the collection allows; null: it names none, or several. */
  readonly validated: SeenType | null;
  /** Of an Object, and of the objects in an Array. */
  readonly members: readonly SurveyedColumn[];
  /** Of an Array: the most entries that one had. */
  readonly longest: number;
  /** Some of its texts were shortened. */
  readonly hasLongTexts: boolean;
  /** Some of its texts, shortened. They are rows of the application: look at them, and never show them. */
  readonly texts: readonly string[];
}

export interface SurveyedCollection {
  readonly name: string;
  readonly kind: 'collection' | 'view' | 'timeseries';
  /** Of a view: the collections and views that it reads. */
  readonly reads: readonly string[];
  /** Of a view: the stored names that its pipeline mentions. */
  readonly mentions: ReadonlySet<string>;
  /** Documents in the sample. */
  readonly sampled: number;
  /** In how many documents of the sample `_id` is of each kind. */
  readonly ids: ReadonlyMap<IdKind | 'other', number>;
  /** Without `_id`. */
  readonly columns: readonly SurveyedColumn[];
  /** There are more columns than are listed. */
  readonly hasMore: boolean;
  /** Why its documents could not be read, such as a view that fails; null: they were. */
  readonly failure: StoreErrorCode | null;
}

/** A class of `_SCHEMA`. */
interface SurveyedClass {
  readonly name: string;
  readonly fields: ReadonlyMap<string, FieldType>;
}

type Values = Map<string, unknown>;

/** What a database holds, learnt from its catalogue, its validators and a bounded sample. It reads, and writes nothing. */
export class DatabaseSurvey {
  private constructor(
    private readonly connection: MongoConnection,
    readonly database: string,
    readonly collections: readonly SurveyedCollection[],
    /** Null: Parse never used this database. */
    readonly parseClasses: readonly SurveyedClass[] | null,
    /** Per collection and column, values that may be ids of other documents. */
    private readonly values: ReadonlyMap<string, ReadonlyMap<string, Values>>,
  ) {}

  /** @throws StoreError */
  static async of(connection: MongoConnection): Promise<DatabaseSurvey> {
    const listed = await asStoreOperation(undefined, () =>
      connection.db.listCollections({}, { nameOnly: false, ...LIMITS }).toArray(),
    );
    const names = new Set(listed.map(({ name }) => name));
    const parse = names.has('_SCHEMA') ? await readParseClasses(connection) : null;
    const ofParse = new Set(parse?.map(({ name }) => name));
    const values = new Map<string, Map<string, Values>>();
    const collections: SurveyedCollection[] = [];
    for (const info of listed.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const { name } = info;
      if (name.startsWith('system.') || (parse && (ofParse.has(name) || name.startsWith('_')))) continue;
      const sample = new Sample();
      sample.readValidator((info as { options?: Document }).options?.['validator']);
      await sample.read(connection, name);
      values.set(name, sample.idValues);
      collections.push(
        sample.collection(name, info.type ?? 'collection', (info as { options?: Document }).options),
      );
    }
    return new DatabaseSurvey(connection, connection.db.databaseName, collections, parse, values);
  }

  /** Whether a column holds values that documents of a collection could have as `_id`. */
  mayReference(from: SurveyedCollection, column: string, to: SurveyedCollection): boolean {
    const kinds = new Set([...(this.values.get(from.name)?.get(column)?.values() ?? [])].map(findIdKind));
    return kinds.size > 0 && [...kinds].every((kind) => kind !== null && to.ids.has(kind));
  }

  /** How many values of a column are the `_id` of a document, of how many that were asked for. @throws StoreError */
  async references(
    from: SurveyedCollection,
    column: string,
    to: SurveyedCollection,
  ): Promise<{ readonly asked: number; readonly found: number }> {
    const values = [...(this.values.get(from.name)?.get(column)?.values() ?? [])];
    const found = await asStoreOperation(undefined, () =>
      this.connection.db
        .collection(to.name)
        .find(
          { _id: { $in: values as ObjectId[] } },
          { projection: { _id: 1 }, ...LIMITS, ...SIMPLE_COLLATION },
        )
        .toArray(),
    );
    return { asked: values.length, found: found.length };
  }
}

async function readParseClasses(connection: MongoConnection): Promise<SurveyedClass[]> {
  const classes = await new MongoSchemaCatalogue(connection).snapshot();
  return classes.classNames().map((name) => {
    const fields = classes.get(name)?.fields ?? new Map<string, { type: FieldType }>();
    return { name, fields: new Map([...fields].map(([field, { type }]) => [field, type])) };
  });
}

/** The columns that the documents of one collection have. */
class Sample {
  /** Per column, different values that may be ids. */
  readonly idValues = new Map<string, Values>();
  private readonly ids = new Map<IdKind | 'other', number>();
  private readonly columns = new Columns();
  private count = 0;
  private failure: StoreErrorCode | null = null;

  readValidator(validator: unknown): void {
    const schema = isDocument(validator) ? validator['$jsonSchema'] : undefined;
    if (isDocument(schema)) this.columns.validate(schema, 0);
  }

  /** @throws StoreError `unavailable` */
  async read(connection: MongoConnection, name: string): Promise<void> {
    try {
      await this.readDocuments(connection, name);
    } catch (error) {
      if (!(error instanceof StoreError) || error.code === 'unavailable') throw error;
      this.failure = error.code;
    }
  }

  private async readDocuments(connection: MongoConnection, name: string): Promise<void> {
    await asStoreOperation(undefined, async () => {
      const documents = connection.db
        .collection(name)
        .aggregate([{ $sample: { size: SAMPLE_SIZE } }], { batchSize: 20, ...LIMITS });
      let bytes = 0;
      for await (const document of documents) {
        this.add(document);
        bytes += BSON.calculateObjectSize(document);
        if (bytes > SAMPLE_BYTES) break;
      }
    });
  }

  private add(document: Document): void {
    this.count += 1;
    count(this.ids, findIdKind(document['_id']) ?? 'other');
    this.columns.add(document, 0);
    for (const [name, value] of Object.entries(document)) {
      if (name === '_id') continue;
      for (const one of Array.isArray(value) ? value.slice(0, KEPT_VALUES) : [value]) this.keep(name, one);
    }
  }

  private keep(column: string, value: unknown): void {
    if (findIdKind(value) === null || (typeof value === 'string' && value.length > LONGEST_TEXT)) return;
    const kept = this.idValues.get(column) ?? new Map<string, unknown>();
    if (kept.size < KEPT_VALUES && this.idValues.size <= MOST_COLUMNS) {
      kept.set(`${findIdKind(value)} ${String(value)}`, value);
      this.idValues.set(column, kept);
    }
  }

  collection(name: string, type: string, options: Document | undefined): SurveyedCollection {
    const { listColumns: listed, hasMore } = this.columns;
    const pipeline: unknown = options?.['pipeline'];
    const viewOn: unknown = options?.['viewOn'];
    return {
      name,
      kind: type === 'view' || type === 'timeseries' ? type : 'collection',
      reads: typeof viewOn === 'string' ? [viewOn, ...listJoinedBy(pipeline)] : [],
      mentions: new Set(listMentionedIn(pipeline)),
      sampled: this.count,
      ids: this.ids,
      columns: listed(),
      hasMore,
      failure: this.failure,
    };
  }
}

interface Counted {
  readonly seen: Map<SeenType, number>;
  readonly entries: Map<SeenType, number>;
  readonly members: Columns;
  readonly texts: Set<string>;
  validated: SeenType | null;
  longest: number;
  hasLongTexts: boolean;
}

class Columns {
  hasMore = false;
  private readonly byName = new Map<string, Counted>();

  add(document: Document, depth: number): void {
    for (const [name, value] of Object.entries(document)) {
      if (name === '_id' && depth === 0) continue;
      const column = this.column(name);
      if (!column) continue;
      const type = findType(value);
      count(column.seen, type);
      if (typeof value === 'string') keepText(column, value);
      if (type === 'Object' && depth < MAX_DEPTH) column.members.add(value as Document, depth + 1);
      if (!Array.isArray(value)) continue;
      column.longest = Math.max(column.longest, value.length);
      for (const entry of value.slice(0, KEPT_VALUES)) {
        const kind = findType(entry);
        count(column.entries, kind);
        if (typeof entry === 'string') keepText(column, entry);
        if (kind === 'Object' && depth < MAX_DEPTH) column.members.add(entry as Document, depth + 1);
      }
    }
  }

  /** Adds what a `$jsonSchema` says. */
  validate(schema: Document, depth: number): void {
    const properties: unknown = schema['properties'];
    if (!isDocument(properties)) return;
    for (const [name, property] of Object.entries(properties)) {
      if ((name === '_id' && depth === 0) || !isDocument(property)) continue;
      const column = this.column(name);
      if (!column) continue;
      column.validated = readValidatedType(property);
      const inner: unknown = column.validated === 'Array' ? property['items'] : property;
      if (isDocument(inner) && depth < MAX_DEPTH) column.members.validate(inner, depth + 1);
    }
  }

  readonly listColumns = (): SurveyedColumn[] =>
    [...this.byName].map(([name, { members, texts, ...column }]) => ({
      name,
      ...column,
      members: members.listColumns(),
      texts: [...texts],
    }));

  private column(name: string): Counted | undefined {
    const known = this.byName.get(name);
    if (known) return known;
    if (this.byName.size >= MOST_COLUMNS) {
      this.hasMore = true;
      return undefined;
    }
    const column = {
      seen: new Map<SeenType, number>(),
      entries: new Map<SeenType, number>(),
      members: new Columns(),
      texts: new Set<string>(),
      validated: null,
      longest: 0,
      hasLongTexts: false,
    };
    this.byName.set(name, column);
    return column;
  }
}

function keepText(column: Pick<Counted, 'texts' | 'hasLongTexts'>, value: string): void {
  column.hasLongTexts ||= value.length > LONGEST_TEXT;
  if (column.texts.size < KEPT_VALUES) column.texts.add(cutText(value, LONGEST_TEXT));
}

function count<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

const isDocument = (value: unknown): value is Document =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;

const UUID_SUBTYPE = 4;

/** The kind of an id; null for what cannot be one. */
function findIdKind(value: unknown): IdKind | null {
  if (value instanceof ObjectId) return 'objectId';
  if (typeof value === 'string') return 'string';
  if (typeof value === 'number' || value instanceof Long || value instanceof Decimal128) return 'number';
  return value instanceof Binary && value.sub_type === UUID_SUBTYPE ? 'uuid' : null;
}

function findType(value: unknown): SeenType {
  if (value === null || value === undefined) return 'Null';
  if (typeof value === 'boolean') return 'Boolean';
  if (value instanceof Date) return 'Date';
  if (Array.isArray(value)) return 'Array';
  const id = findIdKind(value);
  if (id !== null) return id === 'string' ? 'String' : id === 'number' ? 'Number' : 'Id';
  if (value instanceof Binary) return 'Bytes';
  return isDocument(value) && !isGeoJson(value) ? 'Object' : 'Other';
}

/** A place, which classes have as a GeoPoint or Polygon of their own. */
const isGeoJson = ({ type, coordinates }: Document): boolean =>
  typeof type === 'string' && Array.isArray(coordinates);

const BSON_TYPES: Readonly<Record<string, SeenType>> = {
  string: 'String',
  bool: 'Boolean',
  boolean: 'Boolean',
  int: 'Number',
  long: 'Number',
  double: 'Number',
  decimal: 'Number',
  number: 'Number',
  date: 'Date',
  object: 'Object',
  array: 'Array',
  objectId: 'Id',
  binData: 'Bytes',
};

/** The one type that a schema allows beside null. */
function readValidatedType({ bsonType, type, enum: values }: Document): SeenType | null {
  const named: unknown = bsonType ?? type;
  const names = (Array.isArray(named) ? named : [named]).filter((name) => name !== 'null');
  const types = new Set(
    named === undefined && Array.isArray(values)
      ? values.filter((value) => value !== null).map(findType)
      : names.map((name) => BSON_TYPES[String(name)] ?? 'Other'),
  );
  const [only] = types;
  return types.size === 1 && only !== undefined && only !== 'Other' ? only : null;
}

function listJoinedBy(pipeline: unknown): string[] {
  if (Array.isArray(pipeline)) return pipeline.flatMap(listJoinedBy);
  if (!isDocument(pipeline)) return [];
  return Object.entries(pipeline).flatMap(([stage, argument]: [string, unknown]) => {
    const source = isDocument(argument) ? (argument['from'] ?? argument['coll']) : argument;
    const joins = stage === '$lookup' || stage === '$graphLookup' || stage === '$unionWith';
    return [...(joins && typeof source === 'string' ? [source] : []), ...listJoinedBy(argument)];
  });
}

/** Every part of every path and key in a pipeline. */
function listMentionedIn(value: unknown): string[] {
  if (typeof value === 'string') return value.split(/[$.]+/);
  if (Array.isArray(value)) return value.flatMap(listMentionedIn);
  if (!isDocument(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => [...key.split('.'), ...listMentionedIn(inner)]);
}

import { UUID } from 'bson';
import type { Document } from '../bson/document.js';
import type { ExtractedKeys } from '../bson/keys.js';
import { toDouble } from '../bson/number.js';
import { shellText } from '../bson/text.js';
import { badValue, mongoError } from '../errors.js';
import { createDraft, type Draft, type Namespace, StoredDocument } from './change.js';
import { CollectionIndex } from './collection-index.js';
import { indexExists, type IndexSpec } from './index-spec.js';
import { OrderedSet } from './ordered-set.js';
import type { SearchIndex } from '../search/search-index.js';

/** Where MongoDB keeps the definitions of views. */
export const VIEW_CATALOG = 'system.views';

/** All collections by database and name. */
export class Catalog {
  /** The open transactions that wrote a document, by its collection and `_id`. */
  readonly writers = new Map<string, object>();
  private readonly databases = new Map<string, Map<string, Collection>>();

  find(db: string, coll: string): Collection | undefined {
    return this.databases.get(db)?.get(coll);
  }

  /** `system.views`, which lists the views of a database that has any. It is made when it is read. */
  viewCatalog(db: string, coll = VIEW_CATALOG): Collection | undefined {
    if (coll !== VIEW_CATALOG) return undefined;
    const views = this.collections(db).filter(({ view }) => view);
    if (views.length === 0) return undefined;
    const listed = new Collection({ db, coll });
    for (const { fullName, options } of views) listed.insert(createDraft({ _id: fullName, ...options }));
    return listed;
  }

  databaseNames(): string[] {
    return [...this.databases.keys()].sort();
  }

  collections(db: string): Collection[] {
    return [...(this.databases.get(db)?.values() ?? [])];
  }

  *all(): Generator<Collection> {
    for (const collections of this.databases.values()) yield* collections.values();
  }

  /** Errors: 48 when it exists, 73 for an impossible name. */
  create(db: string, coll: string, options: Document = {}, uuid?: UUID): Collection {
    checkNamespace(db, coll);
    if (this.find(db, coll)) throw mongoError(48, `Collection ${db}.${coll} already exists.`);
    const collection = new Collection({ db, coll }, options, uuid);
    this.adopt(collection);
    return collection;
  }

  adopt(collection: Collection): void {
    const { db, coll } = collection.ns;
    let collections = this.databases.get(db);
    if (!collections) this.databases.set(db, (collections = new Map<string, Collection>()));
    collections.set(coll, collection);
  }

  drop(db: string, coll: string): void {
    const collections = this.databases.get(db);
    collections?.delete(coll);
    if (collections?.size === 0) this.databases.delete(db);
  }

  /** Errors: 73 for an impossible name. */
  rename(collection: Collection, db: string, coll: string): void {
    checkNamespace(db, coll);
    this.drop(collection.ns.db, collection.ns.coll);
    collection.ns = { db, coll };
    this.adopt(collection);
  }
}

const MAX_NAMESPACE_BYTES = 255;

/** Errors: 73. */
export function checkNamespace(db: string, coll: string): void {
  const badDb = db === '' || db.length > 63 || /[/\\. "$\0]/.test(db);
  const badColl = coll === '' || coll.startsWith('.') || coll.endsWith('.') || /[$\0]/.test(coll);
  if (badDb || badColl || Buffer.byteLength(`${db}.${coll}`) > MAX_NAMESPACE_BYTES)
    throw mongoError(73, `Invalid namespace specified '${db}.${coll}'`);
}

/** Most indexes of one collection, as in MongoDB. */
const MAX_INDEXES = 64;

/** It compares strings as the collection does. Measurements may share an `_id`: the oldest comes first, and expires first. */
function idIndex({ collation, timeseries }: Document): CollectionIndex {
  const id = timeseries
    ? { key: { _id: 1, [String((timeseries as Document)['timeField'])]: 1 }, name: '_id_time' }
    : { key: { _id: 1 }, name: '_id_' };
  return CollectionIndex.create({ v: 2, ...id, ...(collation ? { collation } : {}) });
}

/** A view: a pipeline over another collection or view of its database. */
export interface ViewDefinition {
  readonly viewOn: string;
  readonly pipeline: readonly Document[];
}

/** The documents and indexes of one collection. Every write either happens in all indexes or not at all. */
export class Collection {
  readonly uuid: UUID;
  indexes: CollectionIndex[];
  /** Search indexes by name; kept until the server ends, in no data file. */
  readonly searchIndexes = new Map<string, SearchIndex>();
  /** Grows with every change, so that a reader can tell whether anything happened meanwhile. */
  version = 0;
  /** Encoded size of all documents in bytes. */
  dataBytes = 0;
  private records = new OrderedSet<StoredDocument>((a, b) => a.recordId - b.recordId);
  private lastRecordId = 0;

  constructor(
    public ns: Namespace,
    /** What `create` and `collMod` stored with the collection. */
    public options: Document = {},
    uuid: UUID = new UUID(),
  ) {
    this.uuid = uuid;
    this.indexes = [idIndex(options)];
  }

  /** What a view shows; undefined for a collection that holds documents. */
  get view(): ViewDefinition | undefined {
    const { viewOn, pipeline } = this.options;
    return typeof viewOn === 'string' ? { viewOn, pipeline: pipeline as Document[] } : undefined;
  }

  get capped(): boolean {
    return this.options['capped'] === true;
  }

  /** The indexes that commands show: the `_id` of a measurement has none. */
  get listed(): CollectionIndex[] {
    return this.options['timeseries'] === undefined ? this.indexes : this.indexes.slice(1);
  }

  get fullName(): string {
    return `${this.ns.db}.${this.ns.coll}`;
  }

  get count(): number {
    return this.records.size;
  }

  /** Whether change streams may show this collection's documents before and after a change. */
  get keepsImages(): boolean {
    return (this.options['changeStreamPreAndPostImages'] as Document | undefined)?.['enabled'] === true;
  }

  record(recordId: number): StoredDocument | undefined {
    return this.records.find((stored) => stored.recordId - recordId);
  }

  byId(id: unknown): StoredDocument | undefined {
    const found = (this.indexes[0] as CollectionIndex).conflict([[id]]);
    return found && this.record(found.recordId);
  }

  /** The documents as they are now, in insertion order; later writes do not change the result. */
  snapshotRecords(): OrderedSet<StoredDocument> {
    return this.records.snapshot();
  }

  /** Errors: 11000 duplicate key, 171 parallel arrays, 2 for a document that a capped collection has no room for. */
  insert(draft: Draft): StoredDocument {
    if (this.capped && draft.raw.bytes.length > toDouble(this.options['size']))
      throw badValue('object to insert exceeds cappedMaxSize');
    const keys = this.indexes.map((index) => {
      const own = index.definition.listKeys(draft.document);
      if (own) this.refuseDuplicate(index, own);
      return own;
    });
    this.lastRecordId += 1;
    const stored = new StoredDocument(this.lastRecordId, draft.document, draft.raw);
    this.indexes.forEach((index, i) => index.add(keys[i], stored.recordId));
    this.put(stored, 0);
    this.dropOldest();
    return stored;
  }

  /** Stores the next version of `before`. Errors: 11000, 171. */
  replace(before: StoredDocument, draft: Draft): StoredDocument {
    const moves = this.indexes.flatMap((index) => {
      const from = index.definition.listKeys(before.document);
      const to = index.definition.listKeys(draft.document);
      if (index.sameKeys(from, to)) return [];
      if (to) this.refuseDuplicate(index, to, before.recordId);
      return [{ index, from, to }];
    });
    const stored = new StoredDocument(before.recordId, draft.document, draft.raw);
    for (const { index, from, to } of moves) {
      index.remove(from, before.recordId);
      index.add(to, before.recordId);
    }
    this.put(stored, before.raw.bytes.length);
    this.dropOldest();
    return stored;
  }

  remove(stored: StoredDocument): void {
    for (const index of this.indexes)
      index.remove(index.definition.listKeys(stored.document), stored.recordId);
    this.records.remove(stored);
    this.dataBytes -= stored.raw.bytes.length;
    this.version += 1;
  }

  /** Builds an index; false when it is already there. Errors: 67, 85, 86, 171, 11000. */
  addIndex(spec: IndexSpec): boolean {
    const specs = this.indexes.map((index) => index.spec);
    if (indexExists(specs, spec)) return false;
    if (this.indexes.length >= MAX_INDEXES) throw mongoError(67, `too many indexes for ${this.fullName}`);
    const index = CollectionIndex.create(spec);
    for (const stored of this.records.range()) {
      const keys = index.definition.listKeys(stored.document);
      if (keys) this.refuseDuplicate(index, keys, stored.recordId);
      index.add(keys, stored.recordId);
    }
    this.indexes = [...this.indexes, index];
    this.version += 1;
    return true;
  }

  dropIndex(name: string): void {
    this.indexes = this.indexes.filter((index) => index.spec.name !== name);
    this.version += 1;
  }

  /** Replaces an index's options (collMod). */
  changeIndex(spec: IndexSpec): void {
    this.indexes = this.indexes.map((index) =>
      index.spec.name === spec.name ? index.withSpec(spec) : index,
    );
    this.version += 1;
  }

  /** An independent copy of the present state; costs the number of indexes, not of documents. */
  fork(): Collection {
    const copy = new Collection(this.ns, this.options, this.uuid);
    copy.indexes = this.indexes.map((index) => index.fork());
    copy.records = this.records.snapshot();
    copy.lastRecordId = this.lastRecordId;
    copy.version = this.version;
    copy.dataBytes = this.dataBytes;
    return copy;
  }

  /** Takes over the state of a fork: undoes a group of writes that failed half-way. */
  restore(fork: Collection): void {
    this.indexes = fork.indexes;
    this.records = fork.records;
    this.lastRecordId = fork.lastRecordId;
    this.dataBytes = fork.dataBytes;
    this.version += 1;
  }

  private put(stored: StoredDocument, replacedBytes: number): void {
    this.records.insert(stored);
    this.dataBytes += stored.raw.bytes.length - replacedBytes;
    this.version += 1;
  }

  /** Keeps a capped collection within its limits. It is no change of its own: the same writes drop the same documents. */
  private dropOldest(): void {
    if (!this.capped) return;
    const size = toDouble(this.options['size']);
    const max = this.options['max'] === undefined ? 0 : toDouble(this.options['max']);
    while (this.count > 1 && (this.dataBytes > size || (max > 0 && this.count > max))) {
      const [oldest] = this.records.range();
      if (!oldest) return;
      this.remove(oldest);
    }
  }

  private refuseDuplicate(index: CollectionIndex, keys: ExtractedKeys, own?: number): void {
    if (!index.definition.unique) return;
    const found = index.conflict(keys.keys, own);
    if (!found) return;
    const keyValue: Document = Object.fromEntries(
      index.definition.fields.map((field, i) => [field, found.key[i] ?? null]),
    );
    // Parse Server and others read the index name and the key out of this text.
    throw mongoError(
      11000,
      `E11000 duplicate key error collection: ${this.fullName} index: ${index.spec.name} dup key: ${shellText(keyValue)}`,
      { keyPattern: index.spec.key, keyValue },
    );
  }
}

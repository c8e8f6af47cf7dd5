import { UUID } from 'bson';
import type { Document } from '../bson/document.js';
import { toDouble } from '../bson/number.js';
import { badValue, mongoError, type MongoError } from '../errors.js';
import type { SearchIndex } from '../search/search-index.js';
import type { Namespace } from './change.js';
import { CollectionIndex } from './collection-index.js';
import type { ExtractedKeys } from '../bson/index-keys.js';
import { indexExists, type IndexSpec } from './index-spec.js';
import { OrderedSet } from './ordered-set.js';
import { shellText } from '../bson/shell-text.js';
import { StoredDocument, type Draft } from './stored-document.js';

/** Most indexes of one collection, as in MongoDB. */
const MAX_INDEXES = 64;

/** The `_id` index compares strings as the collection does. */
const idIndex = ({ collation }: Document): CollectionIndex =>
  CollectionIndex.create({ v: 2, key: { _id: 1 }, name: '_id_', ...(collation ? { collation } : {}) });

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
    if (this.capped && draft.raw.bytes.length > toDouble(this.options['size'])) {
      throw badValue('object to insert exceeds cappedMaxSize');
    }
    const keys = this.indexes.map((index) => {
      const own = index.listKeys(draft.document);
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
      const from = index.listKeys(before.document);
      const to = index.listKeys(draft.document);
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
    for (const index of this.indexes) index.remove(index.listKeys(stored.document), stored.recordId);
    this.records.remove(stored);
    this.dataBytes -= stored.raw.bytes.length;
    this.version += 1;
  }

  /** Builds an index; false when it is already there. Errors: 67, 85, 86, 171, 11000. */
  addIndex(spec: IndexSpec): boolean {
    const specs = this.indexes.map((index) => index.spec);
    if (indexExists(specs, spec)) return false;
    if (this.indexes.length >= MAX_INDEXES) {
      throw mongoError(
        67,
        `add index fails, too many indexes for ${this.fullName} key:${shellText(spec.key)}`,
      );
    }
    const index = CollectionIndex.create(spec);
    for (const stored of this.records.range()) {
      const keys = index.listKeys(stored.document);
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
    if (found) throw this.duplicateKey(index, found.key);
  }

  /** Parse Server and others read the index name and the key out of this text. */
  private duplicateKey(index: CollectionIndex, key: readonly unknown[]): MongoError {
    const keyValue: Document = Object.fromEntries(
      index.definition.fields.map((field, i) => [field, key[i] ?? null]),
    );
    return mongoError(
      11000,
      `E11000 duplicate key error collection: ${this.fullName} index: ${index.spec.name} dup key: ${shellText(keyValue)}`,
      { keyPattern: index.spec.key, keyValue },
    );
  }
}

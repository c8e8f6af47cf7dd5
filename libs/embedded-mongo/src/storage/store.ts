import type { Document } from '../bson/document.js';
import { toDouble } from '../bson/number.js';
import { ChangeLog } from '../feed/change-log.js';
import { Catalog, type Collection } from './catalog.js';
import type { Change, ChangeOrigin, ChangeSink, Draft, Renewal, StoredDocument } from './change.js';
import type { CollectionIndex } from './collection-index.js';
import type { IndexSpec } from './index-spec.js';
import type { Journal } from './journal.js';

/** How many bytes of recent changes are kept for change streams. */
const LOG_BYTES = 32 * 1024 * 1024;

/** All stored data with its change log and, when a file is given, its journal. */
export class DocumentStore implements ChangeSink {
  readonly log = new ChangeLog(LOG_BYTES);
  readonly live: LiveWorkspace;

  constructor(
    readonly journal: Journal | undefined,
    readonly catalog: Catalog = new Catalog(),
  ) {
    this.live = new LiveWorkspace(catalog, this);
  }

  publish(changes: readonly Change[], origin?: ChangeOrigin): void {
    this.journal?.append(changes);
    this.log.append(changes, origin);
  }
}

/** What a statement reads and writes: the live data, or a transaction's own view of it. */
export interface Workspace {
  find(db: string, coll: string): Collection | undefined;
  /** The collection, created when it is missing. Errors: 73. */
  obtain(db: string, coll: string): Collection;
  create(db: string, coll: string, options: Document): Collection;
  /** False when the index is there. Errors: 67, 85, 86, 171, 11000; 263 in a transaction that did not make the collection. */
  addIndex(collection: Collection, spec: IndexSpec): boolean;
  /** Errors: 11000, 171; 112 in a transaction. */
  insert(collection: Collection, draft: Draft): StoredDocument;
  replace(collection: Collection, before: StoredDocument, draft: Draft, kind: Renewal): StoredDocument;
  remove(collection: Collection, stored: StoredDocument): void;
}

/** Reads and writes the live data; every write is published at once. */
export class LiveWorkspace implements Workspace {
  constructor(
    private readonly catalog: Catalog,
    private readonly sink: ChangeSink,
  ) {}

  find(db: string, coll: string): Collection | undefined {
    return this.catalog.find(db, coll) ?? this.catalog.viewCatalog(db, coll);
  }

  obtain(db: string, coll: string): Collection {
    return this.find(db, coll) ?? this.create(db, coll, {});
  }

  create(db: string, coll: string, options: Document): Collection {
    const collection = this.catalog.create(db, coll, options);
    this.sink.publish([{ kind: 'create', ns: collection.ns, uuid: collection.uuid, options }]);
    return collection;
  }

  addIndex(collection: Collection, spec: IndexSpec): boolean {
    if (!collection.addIndex(spec)) return false;
    this.sink.publish([{ kind: 'createIndexes', ns: collection.ns, uuid: collection.uuid, spec }]);
    return true;
  }

  insert(collection: Collection, draft: Draft): StoredDocument {
    const after = collection.insert(draft);
    this.sink.publish([{ kind: 'insert', ns: collection.ns, uuid: collection.uuid, after }]);
    return after;
  }

  replace(collection: Collection, before: StoredDocument, draft: Draft, kind: Renewal): StoredDocument {
    const after = collection.replace(before, draft);
    const { ns, uuid, keepsImages: images } = collection;
    this.sink.publish([{ kind, ns, uuid, before, after, images }]);
    return after;
  }

  remove(collection: Collection, stored: StoredDocument): void {
    collection.remove(stored);
    const { ns, uuid, keepsImages: images } = collection;
    this.sink.publish([{ kind: 'delete', ns, uuid, before: stored, images }]);
  }
}

/** Removes the documents whose TTL index says that their time is over. */
export function removeExpired(store: DocumentStore, now: number): void {
  for (const collection of Array.from(store.catalog.all())) {
    const { timeseries, expireAfterSeconds: kept } = collection.options;
    if (kept !== undefined)
      expireMeasurements(store, collection, timeseries as Document, now - toDouble(kept) * 1000);
    for (const index of collection.indexes) {
      const seconds = index.spec['expireAfterSeconds'];
      if (seconds !== undefined) expire(store, collection, index, now - toDouble(seconds) * 1000);
    }
  }
}

function expireMeasurements(
  store: DocumentStore,
  collection: Collection,
  { timeField }: Document,
  limit: number,
): void {
  for (const stored of collection.snapshotRecords().range()) {
    const time = stored.document[String(timeField)];
    if (time instanceof Date && time.getTime() < limit) store.live.remove(collection, stored);
  }
}

function expire(store: DocumentStore, collection: Collection, index: CollectionIndex, limit: number): void {
  const entries = index.snapshotEntries();
  const oldest = [new Date(-8.64e15)];
  const newest = [new Date(limit)];
  const [first, last] = (index.definition.directions[0] ?? 1) > 0 ? [oldest, newest] : [newest, oldest];
  const from = entries.rank((entry) => index.definition.compareKeys(entry.values, first));
  for (const entry of entries.range(from)) {
    if (index.definition.compareKeys(entry.values, last) > 0) break;
    const stored = collection.record(entry.recordId);
    if (stored) store.live.remove(collection, stored);
  }
}

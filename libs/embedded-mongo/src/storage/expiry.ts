import type { Collection } from './collection.js';
import type { CollectionIndex } from './collection-index.js';
import type { Document } from '../bson/document.js';
import { toDouble } from '../bson/number.js';
import type { DocumentStore } from './store.js';

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

import type { Document } from '../bson/document.js';
import type { Catalog } from './catalog.js';
import type { ChangeSink } from './change.js';
import type { Collection } from './collection.js';
import type { Draft, StoredDocument } from './stored-document.js';

/** What a statement reads and writes: the live data, or a transaction's own view of it. */
export interface Workspace {
  find(db: string, coll: string): Collection | undefined;
  /** The collection, created when it is missing. Errors: 73. */
  obtain(db: string, coll: string): Collection;
  create(db: string, coll: string, options: Document): Collection;
  /** Errors: 11000, 171; 112 in a transaction. */
  insert(collection: Collection, draft: Draft): StoredDocument;
  replace(
    collection: Collection,
    before: StoredDocument,
    draft: Draft,
    kind: 'update' | 'replace',
  ): StoredDocument;
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

  insert(collection: Collection, draft: Draft): StoredDocument {
    const after = collection.insert(draft);
    this.sink.publish([{ kind: 'insert', ns: collection.ns, uuid: collection.uuid, after }]);
    return after;
  }

  replace(
    collection: Collection,
    before: StoredDocument,
    draft: Draft,
    kind: 'update' | 'replace',
  ): StoredDocument {
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

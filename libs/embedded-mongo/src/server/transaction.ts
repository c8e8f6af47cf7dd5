import type { Document } from '../bson/document.js';
import { toKey } from '../bson/keys.js';
import { mongoError, MongoError } from '../errors.js';
import { type Catalog, checkNamespace, Collection } from '../storage/catalog.js';
import type { Change, ChangeOrigin, ChangeSink, Draft, Renewal, StoredDocument } from '../storage/change.js';
import type { IndexSpec } from '../storage/index-spec.js';
import type { Workspace } from '../storage/store.js';

/** The label by which drivers know that running the whole transaction again may help. */
export const TRANSIENT = 'TransientTransactionError';

/** One collection as the transaction sees it, beside the live one it came from. */
interface View {
  /** The collection as it was when the transaction began; undefined when the transaction creates it. */
  readonly origin: Collection | undefined;
  readonly snapshot: Collection | undefined;
  readonly working: Collection;
  /** Documents as the snapshot had them, by `_id` key; undefined for an insert. */
  readonly touched: Map<string, { id: unknown; was: StoredDocument | undefined }>;
}

/** A write of the transaction, in order, to be repeated on the live data at commit. */
type Write =
  | { readonly kind: 'create'; readonly view: View; readonly options: Document }
  | { readonly kind: 'createIndexes'; readonly view: View; readonly spec: IndexSpec }
  | { readonly kind: 'insert'; readonly view: View; readonly draft: Draft }
  | { readonly kind: Renewal; readonly view: View; readonly draft: Draft }
  | { readonly kind: 'delete'; readonly view: View; readonly id: unknown };

function writeConflict(): MongoError {
  const error = mongoError(112, 'Write conflict: please retry your operation or multi-document transaction.');
  error.labels = [TRANSIENT];
  return error;
}

/**
 * A multi-document transaction: reads see the data of its first statement plus its own writes, and nothing is visible
 * outside until `commit`, which fails with 112 when another writer changed a document it wrote.
 */
export class Transaction implements Workspace {
  state: 'open' | 'committed' | 'aborted' = 'open';
  readonly startedAt = Date.now();
  private readonly views = new Map<string, View>();
  private writes: Write[] = [];

  constructor(
    readonly number: string,
    private readonly catalog: Catalog,
  ) {
    // Every collection at this moment: a fork costs the number of indexes, whatever it holds.
    for (const collection of catalog.all()) {
      this.views.set(collection.fullName, {
        origin: collection,
        snapshot: collection.fork(),
        working: collection.fork(),
        touched: new Map(),
      });
    }
  }

  find(db: string, coll: string): Collection | undefined {
    return this.views.get(`${db}.${coll}`)?.working;
  }

  obtain(db: string, coll: string): Collection {
    return this.find(db, coll) ?? this.create(db, coll, {});
  }

  create(db: string, coll: string, options: Document): Collection {
    checkNamespace(db, coll);
    if (this.find(db, coll)) throw mongoError(48, `Collection ${db}.${coll} already exists.`);
    if (this.catalog.find(db, coll)) throw writeConflict();
    const working = new Collection({ db, coll }, options);
    const view: View = { origin: undefined, snapshot: undefined, working, touched: new Map() };
    this.views.set(working.fullName, view);
    this.writes.push({ kind: 'create', view, options });
    return working;
  }

  addIndex(collection: Collection, spec: IndexSpec): boolean {
    const view = this.openView(collection);
    if (!collection.addIndex(spec)) return false;
    if (view.origin ?? collection.count > 0)
      throw mongoError(263, `Cannot create new indexes on existing collection ${collection.fullName}`);
    this.writes.push({ kind: 'createIndexes', view, spec });
    return true;
  }

  insert(collection: Collection, draft: Draft): StoredDocument {
    const view = this.openView(collection);
    this.touch(view, draft.document['_id']);
    const stored = collection.insert(draft);
    this.writes.push({ kind: 'insert', view, draft });
    return stored;
  }

  replace(collection: Collection, before: StoredDocument, draft: Draft, kind: Renewal): StoredDocument {
    const view = this.openView(collection);
    this.touch(view, before.document['_id']);
    const stored = collection.replace(before, draft);
    this.writes.push({ kind, view, draft });
    return stored;
  }

  remove(collection: Collection, stored: StoredDocument): void {
    const view = this.openView(collection);
    this.touch(view, stored.document['_id']);
    collection.remove(stored);
    this.writes.push({ kind: 'delete', view, id: stored.document['_id'] });
  }

  /** Applies all writes to the live data as one group. Errors: 112 with the transient label; nothing is applied then. */
  commit(sink: ChangeSink, origin: ChangeOrigin): void {
    for (const view of this.views.values()) {
      if (view.touched.size > 0) this.refuseOutdated(view);
      for (const { id, was } of view.touched.values()) this.refuseChanged(view, id, was);
    }
    const changes: Change[] = [];
    const undo = new Map<Collection, Collection>();
    const created: Collection[] = [];
    try {
      for (const write of this.writes) changes.push(this.apply(write, undo, created));
    } catch (error) {
      for (const [live, before] of undo) live.restore(before);
      for (const collection of created) this.catalog.drop(collection.ns.db, collection.ns.coll);
      this.discard('aborted');
      // A unique key that somebody else took meanwhile: the retry sees it as a plain duplicate.
      throw error instanceof MongoError && error.code !== 11000 && error.code !== 48
        ? error
        : writeConflict();
    }
    if (changes.length > 0) sink.publish(changes, origin);
    this.discard('committed');
  }

  abort(): void {
    this.discard('aborted');
  }

  private discard(state: 'committed' | 'aborted'): void {
    this.state = state;
    for (const [place, writer] of this.catalog.writers)
      if (writer === this) this.catalog.writers.delete(place);
    this.views.clear();
    this.writes = [];
  }

  private apply(write: Write, undo: Map<Collection, Collection>, created: Collection[]): Change {
    const { ns, uuid } = write.view.working;
    if (write.kind === 'create') {
      created.push(this.catalog.create(ns.db, ns.coll, write.options, uuid));
      return { kind: 'create', ns, uuid, options: write.options };
    }
    const live = this.catalog.find(ns.db, ns.coll);
    if (!live) throw writeConflict();
    if (!undo.has(live)) undo.set(live, live.fork());
    if (write.kind === 'createIndexes') {
      live.addIndex(write.spec);
      return { kind: write.kind, ns, uuid, spec: write.spec };
    }
    if (write.kind === 'insert') return { kind: 'insert', ns, uuid, after: live.insert(write.draft) };
    const id = write.kind === 'delete' ? write.id : write.draft.document['_id'];
    const before = live.byId(id);
    if (!before) throw writeConflict();
    const images = live.keepsImages;
    if (write.kind === 'delete') {
      live.remove(before);
      return { kind: 'delete', ns, uuid, before, images };
    }
    return { kind: write.kind, ns, uuid, before, after: live.replace(before, write.draft), images };
  }

  private openView(collection: Collection): View {
    const view = this.views.get(collection.fullName);
    if (!view) throw writeConflict();
    return view;
  }

  private touch(view: View, id: unknown): void {
    const key = toKey(id);
    if (view.touched.has(key)) return;
    this.refuseOutdated(view);
    const place = `${String(view.working.uuid)} ${key}`;
    const writer = this.catalog.writers.get(place) ?? this;
    if (writer !== this) throw writeConflict();
    this.catalog.writers.set(place, this);
    const was = view.snapshot?.byId(id);
    this.refuseChanged(view, id, was);
    view.touched.set(key, { id, was });
  }

  private refuseOutdated(view: View): void {
    const { db, coll } = view.working.ns;
    if (this.catalog.find(db, coll) !== view.origin) throw writeConflict();
  }

  private refuseChanged(view: View, id: unknown, was: StoredDocument | undefined): void {
    if (view.origin?.byId(id) !== was) throw writeConflict();
  }
}

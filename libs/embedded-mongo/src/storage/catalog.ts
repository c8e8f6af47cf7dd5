import type { UUID } from 'bson';
import type { Document } from '../bson/document.js';
import { mongoError } from '../errors.js';
import { Collection } from './collection.js';
import { createDraft } from './stored-document.js';

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
  if (badDb || badColl || Buffer.byteLength(`${db}.${coll}`) > MAX_NAMESPACE_BYTES) {
    throw mongoError(73, `Invalid namespace specified '${db}.${coll}'`);
  }
}

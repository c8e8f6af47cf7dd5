import { Binary, UUID } from 'bson';
import { isDocument, type Document } from '../bson/document.js';
import { decodeDocument } from '../wire/decode.js';
import { readRawDocument, readRawDocuments } from '../wire/raw-fields.js';
import type { Catalog } from './catalog.js';
import type { Change } from './change.js';
import type { Collection } from './collection.js';
import type { IndexSpec } from './index-spec.js';
import { draftFromRaw, type Draft, type StoredDocument } from './stored-document.js';

/** A group of changes as one journal record. */
export function toRecord(changes: readonly Change[]): Document {
  return { c: changes.map(changeRecord) };
}

function changeRecord(change: Change): Document {
  if (change.kind === 'dropDatabase') return { o: change.kind, db: change.db };
  const base = { o: change.kind, db: change.ns.db, coll: change.ns.coll };
  switch (change.kind) {
    case 'insert':
    case 'update':
    case 'replace':
      return { ...base, d: change.after.raw };
    case 'delete':
      return { ...base, id: change.before.document['_id'] };
    case 'create':
      return { ...base, options: change.options, uuid: change.uuid };
    case 'modify':
      return { ...base, options: change.options };
    case 'drop':
      return base;
    case 'rename':
      return { ...base, toDb: change.to.db, toColl: change.to.coll };
    case 'createIndexes':
    case 'dropIndexes':
    case 'modifyIndex':
      return { ...base, spec: change.spec };
  }
}

/** The records that rebuild a catalog from nothing. */
export function* toRecords(catalog: Catalog): Generator<Document> {
  for (const collection of catalog.all()) {
    const { db, coll } = collection.ns;
    yield { c: [{ o: 'create', db, coll, options: collection.options, uuid: collection.uuid }] };
    for (const stored of collection.snapshotRecords().range()) {
      yield { c: [{ o: 'insert', db, coll, d: stored.raw }] };
    }
    for (const { spec } of collection.indexes.slice(1)) yield { c: [{ o: 'createIndexes', db, coll, spec }] };
  }
}

/** Applies one encoded journal record. Errors: an Error when the record does not fit the data before it. */
export function applyRecord(catalog: Catalog, record: Buffer): void {
  const changes = readRawDocuments(record, 'c');
  if (!changes) throw new Error('the data file holds a record without changes');
  for (const change of changes) applyChange(catalog, change);
}

function applyChange(catalog: Catalog, raw: Buffer): void {
  const change = decodeDocument(raw);
  const kind = String(change['o']) as Change['kind'];
  const db = String(change['db']);
  const coll = String(change['coll']);
  const options = isDocument(change['options']) ? change['options'] : {};
  if (kind === 'dropDatabase') return;
  if (kind === 'create') {
    const uuid = change['uuid'];
    catalog.create(db, coll, options, uuid instanceof Binary ? new UUID(uuid.value()) : undefined);
    return;
  }
  const collection = catalog.find(db, coll);
  if (!collection) throw new Error(`the data file changes ${db}.${coll} before creating it`);
  const spec = change['spec'] as IndexSpec;
  if (kind === 'insert') collection.insert(draftOfRecord(raw));
  else if (kind === 'update' || kind === 'replace') {
    const draft = draftOfRecord(raw);
    collection.replace(present(collection, draft.document['_id']), draft);
  } else if (kind === 'delete') collection.remove(present(collection, change['id']));
  else if (kind === 'modify') collection.options = options;
  else if (kind === 'drop') catalog.drop(db, coll);
  else if (kind === 'rename') catalog.rename(collection, String(change['toDb']), String(change['toColl']));
  else if (kind === 'createIndexes') collection.addIndex(spec);
  else if (kind === 'dropIndexes') collection.dropIndex(spec.name);
  else collection.changeIndex(spec);
}

function present(collection: Collection, id: unknown): StoredDocument {
  const stored = collection.byId(id);
  if (!stored)
    throw new Error(`the data file changes a document of ${collection.fullName} that is not there`);
  return stored;
}

/** The stored bytes themselves, so that a reload gives back exactly what was stored. */
function draftOfRecord(change: Buffer): Draft {
  const bytes = readRawDocument(change, 'd');
  if (!bytes) throw new Error('the data file holds a write without its document');
  return draftFromRaw(bytes);
}

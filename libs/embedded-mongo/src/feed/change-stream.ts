import { compareValues, identical } from '../bson/compare.js';
import { type Document, isDocument, setField } from '../bson/document.js';
import type { Collection } from '../storage/catalog.js';
import type { Change } from '../storage/change.js';
import { encodeDocument } from '../wire/encode.js';
import { type ChangeLog, type ChangeLogEntry, createToken, toEndKey } from './change-log.js';
import type { ImageMode, StreamOptions, StreamStart } from './stream-options.js';
import { fatal, historyLost } from './stream-options.js';

/** What a change event says about an update. */
interface UpdateDescription {
  readonly updatedFields: Document;
  readonly removedFields: string[];
  readonly truncatedArrays: { field: string; newSize: number }[];
  /** The names and positions of paths that could be read in another way as well. */
  readonly disambiguatedPaths: Document;
}

/** Field names and positions in arrays. */
type Path = readonly (string | number)[];

/** The difference of two versions of a document, by dotted path. */
export function updateDescription(before: Document, after: Document): UpdateDescription {
  const difference: UpdateDescription = {
    updatedFields: {},
    removedFields: [],
    truncatedArrays: [],
    disambiguatedPaths: {},
  };
  compareDocuments(before, after, [], difference);
  return difference;
}

function compareDocuments(before: Document, after: Document, at: Path, difference: UpdateDescription): void {
  for (const key of Object.keys(before)) {
    if (!Object.hasOwn(after, key)) difference.removedFields.push(printPath([...at, key], difference));
  }
  for (const key of Object.keys(after)) {
    const path = [...at, key];
    if (Object.hasOwn(before, key)) compareAt(before[key], after[key], path, difference);
    else setField(difference.updatedFields, printPath(path, difference), after[key]);
  }
}

function compareAt(before: unknown, after: unknown, path: Path, difference: UpdateDescription): void {
  if (identical(before, after)) return;
  if (isDocument(before) && isDocument(after)) {
    if (sameOrder(before, after)) return compareDocuments(before, after, path, difference);
  } else if (Array.isArray(before) && Array.isArray(after) && after.length > 0) {
    return compareArrays(before, after, path, difference);
  }
  setField(difference.updatedFields, printPath(path, difference), after);
}

/** Fields that only moved cannot be described by path, so such a document is reported whole. */
function sameOrder(before: Document, after: Document): boolean {
  const kept = Object.keys(before).filter((key) => Object.hasOwn(after, key));
  const order = Object.keys(after);
  return kept.every((key, i) => order[i] === key);
}

function compareArrays(before: unknown[], after: unknown[], at: Path, difference: UpdateDescription): void {
  for (const [i, item] of after.entries()) {
    const path = [...at, i];
    if (i < before.length) compareAt(before[i], item, path, difference);
    else setField(difference.updatedFields, printPath(path, difference), item);
  }
  if (after.length < before.length)
    difference.truncatedArrays.push({ field: printPath(at, difference), newSize: after.length });
}

function printPath(path: Path, { disambiguatedPaths }: UpdateDescription): string {
  const text = path.join('.');
  const ambiguous = path.some(
    (part, i) => typeof part === 'string' && (part.includes('.') || (i > 0 && /^\d+$/.test(part))),
  );
  if (ambiguous) setField(disambiguatedPaths, text, path);
  return text;
}

/** Finds a collection as it is now, for streams that look up the present document. */
type CollectionLookup = (db: string, coll: string) => Collection | undefined;

/** A logged change as the event a stream with these options shows. Errors: 47 when a required image is not kept. */
function changeEvent(entry: ChangeLogEntry, options: StreamOptions, lookup: CollectionLookup): Document {
  const { key, clusterTime, wallTime, change, origin } = entry;
  return {
    _id: createToken(key),
    ...operation(change, options.expanded),
    clusterTime,
    wallTime,
    ...('ns' in change && options.expanded ? { collectionUUID: change.uuid } : {}),
    ...images(change, options, lookup),
    ...(origin ? { lsid: origin.lsid, txnNumber: origin.txnNumber } : {}),
  };
}

/** Only expanded events tell apart the paths that could be read in two ways. */
function describeUpdate(
  { before, after }: Extract<Change, { before: unknown; after: unknown }>,
  expanded: boolean,
): Document {
  const { disambiguatedPaths, ...description } = updateDescription(before.document, after.document);
  return expanded ? { ...description, disambiguatedPaths } : description;
}

/** The documents of an event, as far as the stream asks for them and the collection keeps them. */
function images(change: Change, options: StreamOptions, lookup: CollectionLookup): Document {
  const images: Document = {};
  const { fullDocument, before } = options;
  if (change.kind === 'insert' || change.kind === 'replace') images['fullDocument'] = change.after.document;
  if (change.kind === 'update' && fullDocument !== 'default') {
    images['fullDocument'] =
      fullDocument === 'updateLookup'
        ? (lookup(change.ns.db, change.ns.coll)?.byId(change.before.document['_id'])?.document ?? null)
        : keepImage(change.images, change.after.document, fullDocument, 'post');
  }
  if (
    before !== 'off' &&
    (change.kind === 'update' || change.kind === 'replace' || change.kind === 'delete')
  ) {
    images['fullDocumentBeforeChange'] = keepImage(change.images, change.before.document, before, 'pre');
  }
  return images;
}

function keepImage(
  available: boolean,
  document: Document,
  mode: ImageMode,
  which: 'pre' | 'post',
): Document | null {
  if (available) return document;
  if (mode === 'whenAvailable') return null;
  throw fatal(47, `the ${which}-image of a change that the stream requires was not found`);
}

function operation(change: Change, expanded: boolean): Document {
  if (change.kind === 'dropDatabase') return { operationType: 'dropDatabase', ns: { db: change.db } };
  const { kind, ns } = change;
  const shown = (operationDescription: Document): Document => ({ ns, operationDescription });
  switch (kind) {
    case 'insert':
    case 'replace':
    case 'update':
    case 'delete': {
      const { _id } = (kind === 'delete' ? change.before : change.after).document;
      const update = kind === 'update' && { updateDescription: describeUpdate(change, expanded) };
      return { operationType: kind, ns, documentKey: { _id }, ...update };
    }
    case 'rename': {
      const { to, dropTarget } = change;
      return { operationType: kind, to, ...shown({ to, ...(dropTarget ? { dropTarget } : {}) }) };
    }
    case 'create':
    case 'modify':
      return { operationType: kind, ...shown(change.options) };
    case 'modifyIndex':
      return { operationType: 'modify', ...shown({ index: change.spec }) };
    case 'createIndexes':
    case 'dropIndexes':
      return { operationType: kind, ...shown({ indexes: [change.spec] }) };
    case 'drop':
      return { operationType: kind, ns };
  }
}

/** What a stream watches: everything, one database, or one collection. */
export interface StreamScope {
  readonly db: string | undefined;
  readonly coll: string | undefined;
}

/** Reads the change log from one place on and turns what concerns it into events. */
export class ChangeStream {
  ended = false;
  private token: Document;
  private position: number;

  constructor(
    private readonly log: ChangeLog,
    private readonly scope: StreamScope,
    private readonly options: StreamOptions,
    start: StreamStart,
    /** The stages after `$changeStream`. */
    private readonly transform: ((event: Document) => Iterable<Document>) | undefined,
    private readonly lookup: CollectionLookup,
  ) {
    this.position = start.position;
    this.token = start.token;
  }

  resumeToken(): Document {
    return this.token;
  }

  /** The next events, at most `limit`, encoded. Errors: 286 when the log went on without this stream, 47, 280. */
  pull(limit: number): Buffer[] {
    const found: Buffer[] = [];
    if (this.log.hasForgotten(this.position)) throw historyLost();
    for (
      let entry = this.log.at(this.position);
      entry && found.length < limit && !this.ended;
      entry = this.log.at(this.position)
    ) {
      this.position += 1;
      this.token = createToken(entry.key);
      if (!this.concerns(entry.change)) continue;
      found.push(...this.shapeEvent(changeEvent(entry, this.options, this.lookup)));
      if (!this.invalidates(entry.change)) continue;
      this.ended = true;
      this.token = createToken(entry.key, true);
      const { clusterTime, wallTime } = entry;
      found.push(encodeDocument({ _id: this.token, operationType: 'invalidate', clusterTime, wallTime }));
    }
    if (found.length === 0 && !this.log.at(this.position)) this.token = createToken(toEndKey(this.log.time));
    return found;
  }

  private concerns(change: Change): boolean {
    const { db, coll } = this.scope;
    const expanded = expandedOnly.has(change.kind) || ('view' in change && change.view === true);
    if (expanded && !this.options.expanded) return false;
    const ns = change.kind === 'dropDatabase' ? { db: change.db, coll: undefined } : change.ns;
    if (db === undefined) return !['admin', 'config', 'local'].includes(ns.db);
    if (ns.db !== db)
      return (
        change.kind === 'rename' && change.to.db === db && (coll === undefined || change.to.coll === coll)
      );
    if (coll === undefined) return true;
    return ns.coll === coll || (change.kind === 'rename' && change.to.coll === coll);
  }

  private invalidates(change: Change): boolean {
    const { db, coll } = this.scope;
    if (coll !== undefined) return change.kind === 'drop' || change.kind === 'rename';
    return db !== undefined && change.kind === 'dropDatabase';
  }

  private shapeEvent(event: Document): Buffer[] {
    if (!this.transform) return [encodeDocument(event)];
    const shaped: Buffer[] = [];
    for (const result of this.transform(event)) {
      if (compareValues(result['_id'], event['_id']) !== 0)
        throw fatal(280, 'the pipeline changed the _id of an event, which is its resume token');
      shaped.push(encodeDocument(result));
    }
    return shaped;
  }
}

const expandedOnly: ReadonlySet<Change['kind']> = new Set([
  'create',
  'modify',
  'modifyIndex',
  'createIndexes',
  'dropIndexes',
] as const);

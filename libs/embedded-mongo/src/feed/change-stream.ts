import { isDocument, type Document } from '../bson/document.js';
import { compareValues } from '../bson/compare.js';
import { mongoError, type MongoError } from '../errors.js';
import type { Change } from '../storage/change.js';
import type { Collection } from '../storage/collection.js';
import { updateDescription } from '../update/diff.js';
import { encodeDocument } from '../wire/encode.js';
import type { ChangeLog, LogEntry } from './change-log.js';
import { endOf, readToken, startOf, tokenOf } from './resume-token.js';
import { Timestamp } from 'bson';

/** What a stream watches: everything, one database, or one collection. */
export interface StreamScope {
  readonly db: string | undefined;
  readonly coll: string | undefined;
}

type ImageMode = 'whenAvailable' | 'required';

/** The options of `$changeStream` after checking. */
export interface StreamOptions {
  readonly fullDocument: 'default' | 'updateLookup' | ImageMode;
  readonly before: 'off' | ImageMode;
  readonly expanded: boolean;
}

/** Errors end the stream for good: a driver must not resume after them. */
function fatal(code: number, message: string): MongoError {
  const error = mongoError(code, message);
  error.labels = ['NonResumableChangeStreamError'];
  return error;
}

const historyLost = (): MongoError =>
  fatal(286, 'Resume of change stream was not possible, as the resume point may no longer be in the oplog.');

/** Where in the log a stream begins. Errors: 50811 for a foreign token, 286 when the place is no longer in the log. */
export function startPosition(log: ChangeLog, spec: Document): { position: number; token: Document } {
  const resume = spec['resumeAfter'] ?? spec['startAfter'];
  if (resume !== undefined) {
    const { key, invalidate } = readToken(resume);
    if (invalidate && spec['resumeAfter'] !== undefined) {
      throw mongoError(
        260,
        'Attempting to resume a change stream using resumeAfter is not allowed from an invalidate notification.',
      );
    }
    const position = log.positionAfter(key);
    if (position === undefined) throw historyLost();
    return { position, token: tokenOf(key) };
  }
  const time = spec['startAtOperationTime'];
  if (time instanceof Timestamp) {
    const position = log.positionFrom(startOf(time));
    if (position === undefined) throw historyLost();
    return { position, token: tokenOf(startOf(time)) };
  }
  return { position: log.end, token: tokenOf(endOf(log.time)) };
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
    start: { position: number; token: Document },
    /** The stages after `$changeStream`. */
    private readonly transform: ((event: Document) => Iterable<Document>) | undefined,
    private readonly lookup: (db: string, coll: string) => Collection | undefined,
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
      this.token = tokenOf(entry.key);
      if (!this.concerns(entry.change)) continue;
      found.push(...this.shaped(this.event(entry)));
      if (!this.invalidates(entry.change)) continue;
      this.ended = true;
      this.token = tokenOf(entry.key, true);
      const { clusterTime, wallTime } = entry;
      found.push(encodeDocument({ _id: this.token, operationType: 'invalidate', clusterTime, wallTime }));
    }
    if (found.length === 0 && !this.log.at(this.position)) this.token = tokenOf(endOf(this.log.time));
    return found;
  }

  private concerns(change: Change): boolean {
    const { db, coll } = this.scope;
    if (expandedOnly.has(change.kind) && !this.options.expanded) return false;
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

  private shaped(event: Document): Buffer[] {
    if (!this.transform) return [encodeDocument(event)];
    const shaped: Buffer[] = [];
    for (const result of this.transform(event)) {
      if (compareValues(result['_id'], event['_id']) !== 0) {
        throw fatal(
          280,
          'Encountered an event whose _id field, which contains the resume token, was modified by the pipeline. ' +
            'Modifying the _id field of an event makes it impossible to resume the stream from that point.',
        );
      }
      shaped.push(encodeDocument(result));
    }
    return shaped;
  }

  private event({ key, clusterTime, wallTime, change, origin }: LogEntry): Document {
    return {
      _id: tokenOf(key),
      ...operation(change),
      clusterTime,
      wallTime,
      ...('ns' in change && this.options.expanded ? { collectionUUID: change.uuid } : {}),
      ...this.images(change),
      ...(origin ? { lsid: origin.lsid, txnNumber: origin.txnNumber } : {}),
    };
  }

  /** The documents of an event, as far as the stream asks for them and the collection keeps them. */
  private images(change: Change): Document {
    const images: Document = {};
    const { fullDocument, before } = this.options;
    if (change.kind === 'insert' || change.kind === 'replace') images['fullDocument'] = change.after.document;
    if (change.kind === 'update' && fullDocument !== 'default') {
      images['fullDocument'] =
        fullDocument === 'updateLookup'
          ? (this.lookup(change.ns.db, change.ns.coll)?.byId(change.before.document['_id'])?.document ?? null)
          : kept(change.images, change.after.document, fullDocument, 'post');
    }
    if (
      before !== 'off' &&
      (change.kind === 'update' || change.kind === 'replace' || change.kind === 'delete')
    ) {
      images['fullDocumentBeforeChange'] = kept(change.images, change.before.document, before, 'pre');
    }
    return images;
  }
}

const expandedOnly: ReadonlySet<Change['kind']> = new Set([
  'create',
  'modify',
  'modifyIndex',
  'createIndexes',
  'dropIndexes',
] as const);

function kept(
  available: boolean,
  document: Document,
  mode: ImageMode,
  which: 'pre' | 'post',
): Document | null {
  if (available) return document;
  if (mode === 'whenAvailable') return null;
  throw fatal(
    47,
    `Change stream was configured to require a ${which}-image for all events, but the ${which}-image was not found`,
  );
}

function operation(change: Change): Document {
  if (change.kind === 'dropDatabase') return { operationType: 'dropDatabase', ns: { db: change.db } };
  const { ns } = change;
  switch (change.kind) {
    case 'insert':
      return { operationType: 'insert', ns, documentKey: { _id: change.after.document['_id'] } };
    case 'replace':
      return { operationType: 'replace', ns, documentKey: { _id: change.after.document['_id'] } };
    case 'update':
      return {
        operationType: 'update',
        ns,
        documentKey: { _id: change.after.document['_id'] },
        updateDescription: updateDescription(change.before.document, change.after.document),
      };
    case 'delete':
      return { operationType: 'delete', ns, documentKey: { _id: change.before.document['_id'] } };
    case 'rename':
      return {
        operationType: 'rename',
        ns,
        to: change.to,
        operationDescription: { to: change.to, ...(change.dropTarget ? { dropTarget: true } : {}) },
      };
    case 'create':
    case 'modify':
      return { operationType: change.kind, ns, operationDescription: change.options };
    case 'modifyIndex':
      return { operationType: 'modify', ns, operationDescription: { index: change.spec } };
    case 'createIndexes':
    case 'dropIndexes':
      return { operationType: change.kind, ns, operationDescription: { indexes: [change.spec] } };
    case 'drop':
      return { operationType: 'drop', ns };
  }
}

/** Checks the options of `$changeStream`. Errors: 2 for an unknown value, 9 for contradicting starts. */
export function streamOptions(spec: Document): StreamOptions {
  const { fullDocument = 'default', fullDocumentBeforeChange = 'off' } = spec;
  if (!['default', 'updateLookup', 'whenAvailable', 'required'].includes(String(fullDocument))) {
    throw mongoError(
      2,
      `Enumeration value '${String(fullDocument)}' for field '$changeStream.fullDocument' is not a valid value.`,
    );
  }
  if (!['off', 'whenAvailable', 'required'].includes(String(fullDocumentBeforeChange))) {
    throw mongoError(
      2,
      `Enumeration value '${String(fullDocumentBeforeChange)}' for field '$changeStream.fullDocumentBeforeChange' is not a valid value.`,
    );
  }
  const starts = ['resumeAfter', 'startAfter', 'startAtOperationTime'].filter(
    (name) => spec[name] !== undefined,
  );
  if (starts.length > 1)
    throw mongoError(40674, 'Only one type of resume option is allowed, but multiple were found.');
  if (starts.some((name) => name !== 'startAtOperationTime' && !isDocument(spec[name]))) {
    throw mongoError(14, `BSON field '$changeStream.${starts[0] ?? ''}' must be an object`);
  }
  return {
    fullDocument: fullDocument as StreamOptions['fullDocument'],
    before: fullDocumentBeforeChange as StreamOptions['before'],
    expanded: spec['showExpandedEvents'] === true,
  };
}

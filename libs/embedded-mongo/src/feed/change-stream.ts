import type { Document } from '../bson/document.js';
import { compareValues } from '../bson/compare.js';
import type { Change } from '../storage/change.js';
import { encodeDocument } from '../wire/encode.js';
import { changeEvent, type CollectionLookup } from './change-event.js';
import type { ChangeLog } from './change-log.js';
import { toEndKey, createToken } from './resume-token.js';
import { fatal, historyLost, type StreamOptions, type StreamStart } from './stream-options.js';

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
}

const expandedOnly: ReadonlySet<Change['kind']> = new Set([
  'create',
  'modify',
  'modifyIndex',
  'createIndexes',
  'dropIndexes',
] as const);

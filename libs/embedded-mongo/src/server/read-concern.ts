import { Timestamp } from 'bson';
import { isDocument, type Document } from '../bson/document.js';
import { mongoError, typeMismatch, refuseUnknown } from '../errors.js';
import type { DocumentStore } from '../storage/store.js';
import { Transaction } from './transaction.js';

/** How long a snapshot that was read can be read again, in milliseconds. */
const KEPT_MS = 5 * 60_000;

/** All data as it was at one time. */
export interface Snapshot {
  readonly time: Timestamp;
  readonly workspace: Transaction;
}

/** The snapshots that were read, so that a session reads the same one until its end. */
export class SnapshotTable {
  private readonly kept = new Map<bigint, Snapshot>();

  constructor(private readonly store: DocumentStore) {}

  /** The data of now, or of a time at which a snapshot was read. Errors: 246 for any other time. */
  obtain(time = this.store.log.time): Snapshot {
    const { catalog, log } = this.store;
    const key = time.toBigInt();
    let snapshot = this.kept.get(key);
    if (!snapshot) {
      if (key !== log.time.toBigInt())
        throw mongoError(246, 'Unable to read from a snapshot due to its time');
      this.kept.set(key, (snapshot = { time, workspace: new Transaction('', catalog) }));
    }
    return snapshot;
  }

  expire(now: number): void {
    for (const [key, { workspace }] of this.kept)
      if (now - workspace.startedAt > KEPT_MS) this.kept.delete(key);
  }
}

const levels: unknown[] = [undefined, null, 'local', 'available', 'majority', 'linearizable', 'snapshot'];
const members = ['level', 'afterClusterTime', 'atClusterTime', 'provenance'];
const readsSnapshots = ['find', 'aggregate', 'distinct'];
const readsConcerned = [...readsSnapshots, 'count', 'getMore', 'explain'];

/**
 * Checks a read concern and gives the snapshot that it asks for outside of transactions. Errors: 2 for an unknown level,
 * 14, 40415, 72 for a command that reads no snapshots, 123 for a standalone, 246.
 */
export function readSnapshot(
  command: Document,
  name: string,
  replSet: boolean,
  snapshots: SnapshotTable,
): Snapshot | undefined {
  const concern = command['readConcern'];
  if (concern === undefined || concern === null) return undefined;
  if (!isDocument(concern)) throw typeMismatch("BSON field 'readConcern' must be an object");
  refuseUnknown(concern, members, 'readConcern');
  const { level, atClusterTime: time } = concern;
  if (level !== undefined && level !== null && typeof level !== 'string')
    throw typeMismatch("BSON field 'readConcern.level' must be a string");
  if (!levels.includes(level)) {
    throw mongoError(2, `Enumeration value '${level}' for field 'readConcern.level' is not a valid value.`);
  }
  for (const at of ['afterClusterTime', 'atClusterTime']) {
    if (concern[at] !== undefined && !(concern[at] instanceof Timestamp))
      throw typeMismatch(`BSON field 'readConcern.${at}' must be a timestamp`);
  }
  if (!replSet && (level === 'snapshot' || level === 'linearizable'))
    throw mongoError(123, `node needs to be a replica set member to use read concern ${level}`);
  const starts = command['startTransaction'] === true;
  if (level && level !== 'local' && !starts && !readsConcerned.includes(name))
    throw mongoError(72, `the command ${name} does not support the read concern ${level}`);
  if (level !== 'snapshot') {
    if (time !== undefined) throw mongoError(72, 'readConcern.atClusterTime needs the level snapshot');
    return undefined;
  }
  if (starts) {
    if (time !== undefined) throw mongoError(246, 'a transaction reads the data of its start');
    return undefined;
  }
  // A cursor keeps the snapshot that it was opened on.
  if (name === 'getMore') return undefined;
  if (!readsSnapshots.includes(name)) throw mongoError(72, `the command ${name} reads no snapshots`);
  return snapshots.obtain(time as Timestamp | undefined);
}

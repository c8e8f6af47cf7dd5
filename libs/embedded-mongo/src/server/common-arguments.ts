import { Timestamp } from 'bson';
import { type Document, isDocument } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import {
  badValue,
  createParseError,
  mongoError,
  refuseUnknown,
  typeMismatch,
  requireOneOf,
} from '../errors.js';
import type { DocumentStore } from '../storage/store.js';
import { Transaction } from './transaction.js';

/** The commands of the stable API, version 1. */
const stable = new Set(
  (
    'abortTransaction aggregate authenticate bulkWrite collMod commitTransaction count create createIndexes delete drop ' +
    'dropDatabase dropIndexes endSessions explain find findAndModify getMore hello insert killCursors listCollections ' +
    'listDatabases listIndexes ping refreshSessions update'
  ).split(' '),
);
const unstableStages = '$collStats $currentOp $indexStats $listLocalSessions $listSearchIndexes'.split(' ');

/** Errors: 322 for another version than 1, 323 for what is not in it, 4886600 for a promise without a version. */
export function checkApiVersion(command: Document, name: string): void {
  const { apiVersion: version, apiStrict: strict, apiDeprecationErrors: deprecation } = command;
  if (version === undefined) {
    if (strict === undefined && deprecation === undefined) return;
    throw mongoError(4886600, "Provided 'apiStrict' or 'apiDeprecationErrors' without passing 'apiVersion'");
  }
  if (version !== '1') throw mongoError(322, `API version must be "1", not ${JSON.stringify(version)}`);
  if (strict !== true) return;
  const stages: unknown = name === 'aggregate' ? command['pipeline'] : [];
  const stage = (Array.isArray(stages) ? stages : [])
    .flatMap(Object.keys)
    .find((one) => unstableStages.includes(one));
  if (stage === undefined && stable.has(name)) return;
  const what = stage === undefined ? `the command ${name}` : `the stage ${stage}`;
  throw mongoError(323, `Provided apiStrict:true, but ${what} is not in API Version 1`);
}

const concernMembers = ['w', 'j', 'wtimeout', 'fsync', 'provenance', 'wOpTime', 'wElectionId'];

/** Errors: 14, 9 for a number of nodes or a time that cannot be, 2, 40415, 72 where there is nothing to acknowledge. */
export function checkWriteConcern(
  { writeConcern: concern, autocommit }: Document,
  takesConcern: boolean,
  ends: boolean,
): void {
  if (concern === undefined || concern === null) return;
  if (!isDocument(concern)) throw typeMismatch("BSON field 'writeConcern' must be an object");
  refuseUnknown(concern, concernMembers, 'writeConcern');
  const { w, j, fsync, wtimeout: timeout } = concern;
  if (w === null || w === '') throw badValue('w must be a number, "majority" or the name of a mode');
  const nodes = numberKind(w) === undefined ? NaN : toDouble(w);
  const tags = isDocument(w) ? Object.values(w) : [];
  const tagged = tags.length > 0 && tags.every((tag) => numberKind(tag) !== undefined);
  if (w !== undefined && typeof w !== 'string' && !tagged && !(nodes >= 0 && nodes <= 50))
    throw createParseError('w has to be a non-negative number and not greater than 50, or a string');
  for (const one of [j, fsync]) {
    if (one !== undefined && one !== null && typeof one !== 'boolean' && numberKind(one) === undefined)
      throw typeMismatch("BSON field 'writeConcern.j' must be a bool");
  }
  if (truthyFlag(j) && truthyFlag(fsync))
    throw createParseError('fsync and j options cannot be used together');
  if (numberKind(timeout) !== undefined && toDouble(timeout) > 2_147_483_647)
    throw createParseError('wtimeout must be less than 2147483648');
  if (!takesConcern) throw mongoError(72, 'the command does not support writeConcern');
  if (autocommit === false && !ends)
    throw mongoError(72, 'writeConcern is not allowed within a multi-statement transaction');
}

const truthyFlag = (value: unknown): boolean =>
  value === true || (numberKind(value) !== undefined && toDouble(value) !== 0);

/** When the command has to end, in epoch milliseconds; 0 for never. Errors: 14, 9 for a fraction, 2 beyond 32 bits. */
export function readDeadline({ maxTimeMS: limit }: Document, name: string): number {
  // A getMore's maxTimeMS is how long to wait for more, not how long it may take.
  if (limit === undefined || limit === null || name === 'getMore') return 0;
  if (numberKind(limit) === undefined) throw typeMismatch("BSON field 'maxTimeMS' must be a number");
  const ms = toDouble(limit);
  if (!Number.isInteger(ms)) throw createParseError(`maxTimeMS must be a whole number, not ${ms}`);
  if (!(ms >= 0 && ms <= 2_147_483_647)) throw badValue(`${ms} value for maxTimeMS is out of range`);
  return ms === 0 ? 0 : Date.now() + ms;
}

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
  requireOneOf(level, levels, 'readConcern.level');
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

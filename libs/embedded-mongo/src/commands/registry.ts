import type { CommandNeeds } from '../server/access.js';
import type { CommandHandler } from '../server/server-state.js';
import { bulkWrite } from './bulk-write.js';
import * as catalog from './catalog-commands.js';
import { getMore, killCursors } from './cursor-commands.js';
import * as diagnostics from './diagnostics.js';
import { explain } from './explain.js';
import { count, distinct, find } from './find.js';
import * as handshake from './handshake.js';
import * as indexes from './index-commands.js';
import { aggregate } from './pipeline-run.js';
import * as sessions from './session-commands.js';
import { findAndModify } from './update-statement.js';
import { insert, remove, update } from './write-commands.js';

/** A command as the server knows it. */
export interface CommandEntry {
  readonly run: CommandHandler;
  readonly needs: CommandNeeds;
  /** Fields the command understands beside those every command has; undefined takes any. */
  readonly fields?: ReadonlySet<string>;
  /** May run inside a transaction. */
  readonly transactional?: boolean;
  /** Takes a write concern, where it is none of those that write. */
  readonly concerned?: boolean;
  /** May be sent again with the same transaction number, and is then done only once. */
  readonly retryable?: boolean;
}

const fields = (names: string): ReadonlySet<string> => new Set(names.split(' '));

/** Fields that any command may have. */
export const commonFields = fields(
  '$db lsid txnNumber autocommit startTransaction $clusterTime $readPreference readConcern writeConcern comment ' +
    'maxTimeMS apiVersion apiStrict apiDeprecationErrors stmtId stmtIds',
);

const finding =
  'filter sort projection hint skip limit batchSize singleBatch noCursorTimeout collation let allowDiskUse ' +
  'allowPartialResults tailable awaitData min max returnKey showRecordId oplogReplay';
const creation =
  'validator validationLevel validationAction collation changeStreamPreAndPostImages viewOn pipeline timeseries capped ' +
  'size max clusteredIndex encryptedFields expireAfterSeconds autoIndexId idIndex storageEngine indexOptionDefaults';
const aggregation = 'pipeline cursor explain hint collation let allowDiskUse bypassDocumentValidation';
const writing = 'let ordered bypassDocumentValidation';
const modification = `query sort remove update new fields upsert collation arrayFilters hint ${writing}`;
const stepDown = 'force secondaryCatchUpPeriodSecs closeConnections';

const concerned = { concerned: true };
const transactional = { transactional: true };
const retryable = { transactional: true, retryable: true };
const ending = { transactional: true, concerned: true };

type Row = readonly [
  names: string,
  run: CommandHandler,
  needs: CommandNeeds,
  /** Left out where any field is taken. */
  fields?: string,
  more?: Pick<CommandEntry, 'transactional' | 'concerned' | 'retryable'>,
];

const rows: readonly Row[] = [
  ['hello ismaster isMaster', handshake.hello, 'nothing'],
  ['ping', handshake.ping, 'nothing'],
  ['buildInfo buildinfo', handshake.buildInfo, 'nothing'],
  ['connectionStatus', handshake.connectionStatus, 'nothing'],
  ['whatsmyuri', handshake.whatsMyUri, 'nothing'],
  ['saslStart', handshake.saslStart, 'nothing'],
  ['saslContinue', handshake.saslContinue, 'nothing'],
  ['authenticate', handshake.authenticate, 'nothing'],
  ['logout', handshake.logout, 'nothing'],
  ['replSetGetStatus', handshake.replSetGetStatus, 'monitor'],

  ['find', find, 'read', finding, transactional],
  ['getMore', getMore, 'login', 'collection batchSize term', transactional],
  ['killCursors', killCursors, 'login', 'cursors', transactional],
  ['count', count, 'read', 'query limit skip hint collation fields'],
  ['distinct', distinct, 'read', 'key query collation hint', transactional],
  ['aggregate', aggregate, 'read', aggregation, ending],
  ['explain', explain, 'read', 'verbosity'],

  ['insert', insert, 'write', `documents ${writing}`, retryable],
  ['update', update, 'write', `updates ${writing}`, retryable],
  ['delete', remove, 'write', `deletes ${writing}`, retryable],
  ['findAndModify findandmodify', findAndModify, 'write', modification, retryable],
  ['bulkWrite', bulkWrite, 'write', `ops nsInfo errorsOnly cursor ${writing}`, retryable],

  ['create', catalog.create, 'write', creation, transactional],
  ['drop', catalog.drop, 'write'],
  ['dropDatabase', catalog.dropDatabase, 'manage', undefined, concerned],
  ['renameCollection', catalog.renameCollection, 'write', 'to dropTarget'],
  ['collMod', catalog.collMod, 'write'],
  ['listCollections', catalog.listCollections, 'read', 'filter nameOnly authorizedCollections cursor'],
  ['listDatabases', catalog.listDatabases, 'login', 'filter nameOnly authorizedDatabases'],
  ['createIndexes', indexes.createIndexes, 'write', 'indexes commitQuorum', transactional],
  ['createSearchIndexes', indexes.createSearchIndexes, 'write', 'indexes'],
  ['updateSearchIndex', indexes.updateSearchIndex, 'write', 'name id definition'],
  ['dropSearchIndex', indexes.dropSearchIndex, 'write', 'name id'],
  ['listSearchIndexes', indexes.listSearchIndexesCommand, 'read', 'name id'],
  ['dropIndexes deleteIndexes', indexes.dropIndexes, 'write', 'index'],
  ['listIndexes', indexes.listIndexes, 'read', 'cursor includeBuildUUIDs includeIndexBuildInfo'],

  ['startSession', handshake.startSession, 'login'],
  ['endSessions', sessions.endSessions, 'login'],
  ['refreshSessions', sessions.refreshSessions, 'login'],
  ['killSessions killAllSessions', sessions.killSessions, 'root'],
  ['commitTransaction', sessions.commitTransaction, 'login', 'recoveryToken', ending],
  ['abortTransaction', sessions.abortTransaction, 'login', 'recoveryToken', ending],

  ['currentOp', diagnostics.currentOp, 'monitor'],
  ['killOp', diagnostics.killOp, 'root'],
  ['serverStatus', diagnostics.serverStatus, 'monitor'],
  ['collStats collstats', diagnostics.collStats, 'read'],
  ['dbStats dbstats', diagnostics.dbStats, 'read'],
  ['validate', diagnostics.validate, 'manage'],
  ['hostInfo', diagnostics.hostInfo, 'monitor'],
  ['getLog', diagnostics.getLog, 'monitor'],
  ['getCmdLineOpts', diagnostics.getCmdLineOpts, 'monitor'],
  ['getParameter', diagnostics.getParameter, 'monitor'],
  ['replSetStepDown', handshake.replSetStepDown, 'root', stepDown],
  ['configureFailPoint', sessions.configureFailPoint, 'root'],
];

/** Every command this server knows; any other is answered 59. */
export const commands: ReadonlyMap<string, CommandEntry> = new Map(
  rows.flatMap(([names, run, needs, known, more]) => {
    const entry = { run, needs, ...(known === undefined ? {} : { fields: fields(known) }), ...more };
    return names.split(' ').map((name) => [name, entry] as const);
  }),
);

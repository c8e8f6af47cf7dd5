import type { CommandNeeds } from '../server/access.js';
import type { CommandHandler } from '../server/server-state.js';
import { bulkWrite } from './bulk-write.js';
import {
  collMod,
  create,
  drop,
  dropDatabase,
  listCollections,
  listDatabases,
  renameCollection,
} from './catalog-commands.js';
import { getMore, killCursors } from './cursor-commands.js';
import {
  collStats,
  currentOp,
  dbStats,
  getCmdLineOpts,
  getLog,
  getParameter,
  hostInfo,
  killOp,
  serverStatus,
  validate,
} from './diagnostics.js';
import { explain } from './explain.js';
import { count, distinct, find } from './find.js';
import {
  authenticate,
  buildInfo,
  connectionStatus,
  hello,
  logout,
  ping,
  replSetGetStatus,
  replSetStepDown,
  saslContinue,
  saslStart,
  startSession,
  whatsMyUri,
} from './handshake.js';
import {
  createIndexes,
  createSearchIndexes,
  dropIndexes,
  dropSearchIndex,
  listSearchIndexesCommand,
  listIndexes,
  updateSearchIndex,
} from './index-commands.js';
import { aggregate } from './pipeline-run.js';
import {
  abortTransaction,
  commitTransaction,
  configureFailPoint,
  endSessions,
  killSessions,
  refreshSessions,
} from './session-commands.js';
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
  ['hello ismaster isMaster', hello, 'nothing'],
  ['ping', ping, 'nothing'],
  ['buildInfo buildinfo', buildInfo, 'nothing'],
  ['connectionStatus', connectionStatus, 'nothing'],
  ['whatsmyuri', whatsMyUri, 'nothing'],
  ['saslStart', saslStart, 'nothing'],
  ['saslContinue', saslContinue, 'nothing'],
  ['authenticate', authenticate, 'nothing'],
  ['logout', logout, 'nothing'],
  ['replSetGetStatus', replSetGetStatus, 'monitor'],

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

  ['create', create, 'write', creation, transactional],
  ['drop', drop, 'write'],
  ['dropDatabase', dropDatabase, 'manage', undefined, concerned],
  ['renameCollection', renameCollection, 'write', 'to dropTarget'],
  ['collMod', collMod, 'write'],
  ['listCollections', listCollections, 'read', 'filter nameOnly authorizedCollections cursor'],
  ['listDatabases', listDatabases, 'login', 'filter nameOnly authorizedDatabases'],
  ['createIndexes', createIndexes, 'write', 'indexes commitQuorum', transactional],
  ['createSearchIndexes', createSearchIndexes, 'write', 'indexes'],
  ['updateSearchIndex', updateSearchIndex, 'write', 'name id definition'],
  ['dropSearchIndex', dropSearchIndex, 'write', 'name id'],
  ['listSearchIndexes', listSearchIndexesCommand, 'read', 'name id'],
  ['dropIndexes deleteIndexes', dropIndexes, 'write', 'index'],
  ['listIndexes', listIndexes, 'read', 'cursor includeBuildUUIDs includeIndexBuildInfo'],

  ['startSession', startSession, 'login'],
  ['endSessions', endSessions, 'login'],
  ['refreshSessions', refreshSessions, 'login'],
  ['killSessions killAllSessions', killSessions, 'root'],
  ['commitTransaction', commitTransaction, 'login', 'recoveryToken', ending],
  ['abortTransaction', abortTransaction, 'login', 'recoveryToken', ending],

  ['currentOp', currentOp, 'monitor'],
  ['killOp', killOp, 'root'],
  ['serverStatus', serverStatus, 'monitor'],
  ['collStats collstats', collStats, 'read'],
  ['dbStats dbstats', dbStats, 'read'],
  ['validate', validate, 'manage'],
  ['hostInfo', hostInfo, 'monitor'],
  ['getLog', getLog, 'monitor'],
  ['getCmdLineOpts', getCmdLineOpts, 'monitor'],
  ['getParameter', getParameter, 'monitor'],
  ['replSetStepDown', replSetStepDown, 'root', stepDown],
  ['configureFailPoint', configureFailPoint, 'root'],
];

/** Every command this server knows; any other is answered 59. */
export const commands: ReadonlyMap<string, CommandEntry> = new Map(
  rows.flatMap(([names, run, needs, known, more]) => {
    const entry = { run, needs, ...(known === undefined ? {} : { fields: fields(known) }), ...more };
    return names.split(' ').map((name) => [name, entry] as const);
  }),
);

import type { CommandNeeds } from '../server/access.js';
import type { CommandHandler } from '../server/command.js';
import { aggregate } from './aggregate.js';
import { bulkWrite } from './bulk-write.js';
import { authenticate, connectionStatus, logout, saslContinue, saslStart } from './authentication.js';
import { collMod } from './coll-mod.js';
import {
  create,
  drop,
  dropDatabase,
  listCollections,
  listDatabases,
  renameCollection,
} from './catalog-commands.js';
import { count, distinct } from './count-distinct.js';
import { getMore, killCursors } from './cursor-commands.js';
import {
  currentOp,
  getCmdLineOpts,
  getLog,
  getParameter,
  hostInfo,
  killOp,
  serverStatus,
} from './diagnostics.js';
import { explain } from './explain.js';
import { findAndModify } from './find-and-modify.js';
import { find } from './find.js';
import { buildInfo, hello, ping, startSession, whatsMyUri } from './handshake.js';
import { createIndexes, dropIndexes, listIndexes } from './index-commands.js';
import { replSetGetStatus, replSetStepDown } from './replication.js';
import { createSearchIndexes, dropSearchIndex, updateSearchIndex } from './search-index-commands.js';
import {
  abortTransaction,
  commitTransaction,
  configureFailPoint,
  endSessions,
  killSessions,
  refreshSessions,
} from './session-commands.js';
import { collStats, dbStats, validate } from './statistics.js';
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

const read = (run: CommandHandler, names: string): CommandEntry => ({
  run,
  needs: 'read',
  fields: fields(names),
  transactional: true,
});

const write = (run: CommandHandler, names: string): CommandEntry => ({
  run,
  needs: 'write',
  fields: fields(`${names} let ordered bypassDocumentValidation`),
  transactional: true,
  retryable: true,
});

const end = (run: CommandHandler): CommandEntry => ({
  run,
  needs: 'login',
  fields: fields('recoveryToken'),
  transactional: true,
  concerned: true,
});

const modify = write(findAndModify, 'query sort remove update new fields upsert collation arrayFilters hint');

/** Fields that any command may have. */
export const commonFields = fields(
  '$db lsid txnNumber autocommit startTransaction $clusterTime $readPreference readConcern writeConcern comment ' +
    'maxTimeMS apiVersion apiStrict apiDeprecationErrors stmtId stmtIds',
);

const creation =
  'validator validationLevel validationAction collation changeStreamPreAndPostImages viewOn pipeline timeseries capped ' +
  'size max clusteredIndex encryptedFields expireAfterSeconds autoIndexId idIndex storageEngine indexOptionDefaults';

/** Every command this server knows; any other is answered 59. */
export const commands: ReadonlyMap<string, CommandEntry> = new Map<string, CommandEntry>([
  ['hello', { run: hello, needs: 'nothing' }],
  ['ismaster', { run: hello, needs: 'nothing' }],
  ['isMaster', { run: hello, needs: 'nothing' }],
  ['ping', { run: ping, needs: 'nothing' }],
  ['buildInfo', { run: buildInfo, needs: 'nothing' }],
  ['buildinfo', { run: buildInfo, needs: 'nothing' }],
  ['connectionStatus', { run: connectionStatus, needs: 'nothing' }],
  ['whatsmyuri', { run: whatsMyUri, needs: 'nothing' }],
  ['saslStart', { run: saslStart, needs: 'nothing' }],
  ['saslContinue', { run: saslContinue, needs: 'nothing' }],
  ['authenticate', { run: authenticate, needs: 'nothing' }],
  ['logout', { run: logout, needs: 'nothing' }],
  ['replSetGetStatus', { run: replSetGetStatus, needs: 'monitor' }],

  [
    'find',
    read(
      find,
      'filter sort projection hint skip limit batchSize singleBatch noCursorTimeout collation let allowDiskUse ' +
        'allowPartialResults tailable awaitData min max returnKey showRecordId oplogReplay',
    ),
  ],
  ['getMore', { ...read(getMore, 'collection batchSize term'), needs: 'login' }],
  ['killCursors', { ...read(killCursors, 'cursors'), needs: 'login' }],
  ['count', { run: count, needs: 'read', fields: fields('query limit skip hint collation fields') }],
  ['distinct', read(distinct, 'key query collation hint')],
  [
    'aggregate',
    {
      ...read(aggregate, 'pipeline cursor explain hint collation let allowDiskUse bypassDocumentValidation'),
      concerned: true,
    },
  ],
  ['explain', { run: explain, needs: 'read', fields: fields('verbosity') }],

  ['insert', write(insert, 'documents')],
  ['update', write(update, 'updates')],
  ['delete', write(remove, 'deletes')],
  ['findAndModify', modify],
  ['findandmodify', modify],
  ['bulkWrite', write(bulkWrite, 'ops nsInfo errorsOnly cursor')],

  ['create', { run: create, needs: 'write', transactional: true, fields: fields(creation) }],
  ['drop', { run: drop, needs: 'write' }],
  ['dropDatabase', { run: dropDatabase, needs: 'manage', concerned: true }],
  ['renameCollection', { run: renameCollection, needs: 'write', fields: fields('to dropTarget') }],
  ['collMod', { run: collMod, needs: 'write' }],
  [
    'listCollections',
    { run: listCollections, needs: 'read', fields: fields('filter nameOnly authorizedCollections cursor') },
  ],
  [
    'listDatabases',
    { run: listDatabases, needs: 'login', fields: fields('filter nameOnly authorizedDatabases') },
  ],
  ['createIndexes', { run: createIndexes, needs: 'write', fields: fields('indexes commitQuorum') }],
  ['createSearchIndexes', { run: createSearchIndexes, needs: 'write', fields: fields('indexes') }],
  ['updateSearchIndex', { run: updateSearchIndex, needs: 'write', fields: fields('name id definition') }],
  ['dropSearchIndex', { run: dropSearchIndex, needs: 'write', fields: fields('name id') }],
  ['dropIndexes', { run: dropIndexes, needs: 'write', fields: fields('index') }],
  ['deleteIndexes', { run: dropIndexes, needs: 'write', fields: fields('index') }],
  [
    'listIndexes',
    { run: listIndexes, needs: 'read', fields: fields('cursor includeBuildUUIDs includeIndexBuildInfo') },
  ],

  ['startSession', { run: startSession, needs: 'login' }],
  ['endSessions', { run: endSessions, needs: 'login' }],
  ['refreshSessions', { run: refreshSessions, needs: 'login' }],
  ['killSessions', { run: killSessions, needs: 'root' }],
  ['killAllSessions', { run: killSessions, needs: 'root' }],
  ['commitTransaction', end(commitTransaction)],
  ['abortTransaction', end(abortTransaction)],

  ['currentOp', { run: currentOp, needs: 'monitor' }],
  ['killOp', { run: killOp, needs: 'root' }],
  ['serverStatus', { run: serverStatus, needs: 'monitor' }],
  ['collStats', { run: collStats, needs: 'read' }],
  ['collstats', { run: collStats, needs: 'read' }],
  ['dbStats', { run: dbStats, needs: 'read' }],
  ['dbstats', { run: dbStats, needs: 'read' }],
  ['validate', { run: validate, needs: 'manage' }],
  ['hostInfo', { run: hostInfo, needs: 'monitor' }],
  ['getLog', { run: getLog, needs: 'monitor' }],
  ['getCmdLineOpts', { run: getCmdLineOpts, needs: 'monitor' }],
  ['getParameter', { run: getParameter, needs: 'monitor' }],
  [
    'replSetStepDown',
    {
      run: replSetStepDown,
      needs: 'root',
      fields: fields('force secondaryCatchUpPeriodSecs closeConnections'),
    },
  ],
  ['configureFailPoint', { run: configureFailPoint, needs: 'root' }],
]);

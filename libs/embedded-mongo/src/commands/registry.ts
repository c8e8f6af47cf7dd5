import type { CommandHandler } from '../server/command.js';
import { aggregate } from './aggregate.js';
import { bulkWrite } from './bulk-write.js';
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
import {
  buildInfo,
  connectionStatus,
  hello,
  ping,
  refuseLogin,
  replSetGetStatus,
  startSession,
  whatsMyUri,
} from './handshake.js';
import { createIndexes, dropIndexes, listIndexes } from './index-commands.js';
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
  /** Fields the command understands beside those every command has; undefined takes any. */
  readonly fields?: ReadonlySet<string>;
  /** May run inside a transaction. */
  readonly transactional?: boolean;
  /** May be sent again with the same transaction number, and is then done only once. */
  readonly retryable?: boolean;
}

const fields = (names: string): ReadonlySet<string> => new Set(names.split(' '));

const read = (run: CommandHandler, names: string): CommandEntry => ({
  run,
  fields: fields(names),
  transactional: true,
});

const write = (run: CommandHandler, names: string): CommandEntry => ({
  run,
  fields: fields(`${names} let ordered bypassDocumentValidation`),
  transactional: true,
  retryable: true,
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
  ['hello', { run: hello }],
  ['ismaster', { run: hello }],
  ['isMaster', { run: hello }],
  ['ping', { run: ping }],
  ['buildInfo', { run: buildInfo }],
  ['buildinfo', { run: buildInfo }],
  ['connectionStatus', { run: connectionStatus }],
  ['whatsmyuri', { run: whatsMyUri }],
  ['saslStart', { run: refuseLogin }],
  ['saslContinue', { run: refuseLogin }],
  ['authenticate', { run: refuseLogin }],
  ['replSetGetStatus', { run: replSetGetStatus }],

  [
    'find',
    read(
      find,
      'filter sort projection hint skip limit batchSize singleBatch noCursorTimeout collation let allowDiskUse ' +
        'allowPartialResults tailable awaitData min max returnKey showRecordId oplogReplay',
    ),
  ],
  ['getMore', read(getMore, 'collection batchSize term')],
  ['killCursors', read(killCursors, 'cursors')],
  ['count', { run: count, fields: fields('query limit skip hint collation fields') }],
  ['distinct', read(distinct, 'key query collation hint')],
  [
    'aggregate',
    read(aggregate, 'pipeline cursor explain hint collation let allowDiskUse bypassDocumentValidation'),
  ],
  ['explain', { run: explain, fields: fields('verbosity') }],

  ['insert', write(insert, 'documents')],
  ['update', write(update, 'updates')],
  ['delete', write(remove, 'deletes')],
  ['findAndModify', modify],
  ['findandmodify', modify],
  ['bulkWrite', write(bulkWrite, 'ops nsInfo errorsOnly cursor')],

  ['create', { run: create, transactional: true, fields: fields(creation) }],
  ['drop', { run: drop }],
  ['dropDatabase', { run: dropDatabase }],
  ['renameCollection', { run: renameCollection, fields: fields('to dropTarget') }],
  ['collMod', { run: collMod }],
  [
    'listCollections',
    { run: listCollections, fields: fields('filter nameOnly authorizedCollections cursor') },
  ],
  ['listDatabases', { run: listDatabases, fields: fields('filter nameOnly authorizedDatabases') }],
  ['createIndexes', { run: createIndexes, fields: fields('indexes commitQuorum') }],
  ['createSearchIndexes', { run: createSearchIndexes, fields: fields('indexes') }],
  ['updateSearchIndex', { run: updateSearchIndex, fields: fields('name id definition') }],
  ['dropSearchIndex', { run: dropSearchIndex, fields: fields('name id') }],
  ['dropIndexes', { run: dropIndexes, fields: fields('index') }],
  ['deleteIndexes', { run: dropIndexes, fields: fields('index') }],
  ['listIndexes', { run: listIndexes, fields: fields('cursor') }],

  ['startSession', { run: startSession }],
  ['endSessions', { run: endSessions }],
  ['refreshSessions', { run: refreshSessions }],
  ['killSessions', { run: killSessions }],
  ['killAllSessions', { run: killSessions }],
  ['commitTransaction', { run: commitTransaction, fields: fields('recoveryToken'), transactional: true }],
  ['abortTransaction', { run: abortTransaction, fields: fields('recoveryToken'), transactional: true }],

  ['currentOp', { run: currentOp }],
  ['killOp', { run: killOp }],
  ['serverStatus', { run: serverStatus }],
  ['collStats', { run: collStats }],
  ['collstats', { run: collStats }],
  ['dbStats', { run: dbStats }],
  ['dbstats', { run: dbStats }],
  ['validate', { run: validate }],
  ['hostInfo', { run: hostInfo }],
  ['getLog', { run: getLog }],
  ['getCmdLineOpts', { run: getCmdLineOpts }],
  ['getParameter', { run: getParameter }],
  ['configureFailPoint', { run: configureFailPoint }],
]);

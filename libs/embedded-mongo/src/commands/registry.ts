import type { CommandHandler } from '../server/command.js';
import { aggregate } from './aggregate.js';
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
import { count, distinct } from './count-distinct.js';
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
import {
  abortTransaction,
  commitTransaction,
  configureFailPoint,
  endSessions,
  killSessions,
  refreshSessions,
} from './session-commands.js';
import { insert, remove, update } from './write-commands.js';

/** Every command this server knows; any other is answered 59. */
export const handlers: ReadonlyMap<string, CommandHandler> = new Map<string, CommandHandler>([
  ['hello', hello],
  ['ismaster', hello],
  ['isMaster', hello],
  ['ping', ping],
  ['buildInfo', buildInfo],
  ['buildinfo', buildInfo],
  ['connectionStatus', connectionStatus],
  ['whatsmyuri', whatsMyUri],
  ['saslStart', refuseLogin],
  ['saslContinue', refuseLogin],
  ['authenticate', refuseLogin],
  ['replSetGetStatus', replSetGetStatus],

  ['find', find],
  ['getMore', getMore],
  ['killCursors', killCursors],
  ['count', count],
  ['distinct', distinct],
  ['aggregate', aggregate],
  ['explain', explain],

  ['insert', insert],
  ['update', update],
  ['delete', remove],
  ['findAndModify', findAndModify],
  ['findandmodify', findAndModify],
  ['bulkWrite', bulkWrite],

  ['create', create],
  ['drop', drop],
  ['dropDatabase', dropDatabase],
  ['renameCollection', renameCollection],
  ['collMod', collMod],
  ['listCollections', listCollections],
  ['listDatabases', listDatabases],
  ['createIndexes', createIndexes],
  ['dropIndexes', dropIndexes],
  ['deleteIndexes', dropIndexes],
  ['listIndexes', listIndexes],

  ['startSession', startSession],
  ['endSessions', endSessions],
  ['refreshSessions', refreshSessions],
  ['killSessions', killSessions],
  ['killAllSessions', killSessions],
  ['commitTransaction', commitTransaction],
  ['abortTransaction', abortTransaction],

  ['currentOp', currentOp],
  ['killOp', killOp],
  ['serverStatus', serverStatus],
  ['collStats', collStats],
  ['collstats', collStats],
  ['dbStats', dbStats],
  ['dbstats', dbStats],
  ['validate', validate],
  ['hostInfo', hostInfo],
  ['getLog', getLog],
  ['getCmdLineOpts', getCmdLineOpts],
  ['getParameter', getParameter],
  ['configureFailPoint', configureFailPoint],
]);

/** Commands that may run inside a transaction; any other is answered 263 there. */
export const transactional: ReadonlySet<string> = new Set([
  'find',
  'getMore',
  'killCursors',
  'distinct',
  'aggregate',
  'insert',
  'update',
  'delete',
  'findAndModify',
  'findandmodify',
  'bulkWrite',
  'create',
]);

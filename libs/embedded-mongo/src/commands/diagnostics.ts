import { Long } from 'bson';
import { type Document, isDocument } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { badValue, notImplemented } from '../errors.js';
import type { Operation } from '../server/operation.js';
import type { CommandHandler, ServerState } from '../server/server-state.js';
import type { Collection } from '../storage/catalog.js';
import { collectionName, flag, optionalInteger } from './arguments.js';
import { SERVER_VERSION } from './handshake.js';
import { requireCollection } from './index-commands.js';
import { plainFilter, refuseView } from './write-target.js';

/** The running operations, the newest last, as currentOp and `$currentOp` show them. */
export function currentOperations(server: ServerState): Document[] {
  return server.operations.list().map((operation) => describe(server, operation));
}

function describe(server: ServerState, operation: Operation): Document {
  const { info, startedAt } = operation;
  const millis = Date.now() - startedAt;
  const { lsid: _lsid, $clusterTime: _time, ...command } = info.command;
  const documents = ['documents', 'updates', 'deletes', 'ops'];
  const shown = Object.fromEntries(Object.entries(command).filter(([field]) => !documents.includes(field)));
  return {
    type: 'op',
    host: server.address,
    desc: `conn${info.connectionId}`,
    connectionId: info.connectionId,
    client: info.client,
    ...(info.appName === undefined ? {} : { appName: info.appName }),
    active: true,
    currentOpTime: new Date(),
    opid: operation.opid,
    ...(info.lsid ? { lsid: info.lsid } : {}),
    secs_running: Long.fromNumber(Math.floor(millis / 1000)),
    microsecs_running: Long.fromNumber(millis * 1000),
    op: opKind(info.name),
    ns: info.namespace,
    command: shown,
    killPending: operation.isStopped,
  };
}

const opKind = (name: string): string =>
  ({ find: 'query', getMore: 'getmore', insert: 'insert', update: 'update', delete: 'remove' })[name] ??
  'command';

export const currentOp: CommandHandler = (command, ctx) => {
  const { currentOp: _name, $db: _db, lsid: _lsid, $all: _all, $ownOps: _own, ...rest } = command;
  const filter = Object.fromEntries(
    Object.entries(rest).filter(
      ([field]) => !['$clusterTime', '$readPreference', 'comment', 'maxTimeMS'].includes(field),
    ),
  );
  const wanted = plainFilter(filter, ctx);
  return { inprog: currentOperations(ctx.server).filter((entry) => wanted.matches(entry)) };
};

export const killOp: CommandHandler = (command, ctx) => {
  const { op } = command;
  if (numberKind(op) === undefined) throw badValue('killOp needs the number of an operation as op');
  // As in MongoDB the answer does not say whether there was such an operation.
  ctx.server.operations.kill(toDouble(op));
  return { info: 'attempting to kill op' };
};

export const serverStatus: CommandHandler = (_command, ctx) => {
  const { server } = ctx;
  const memory = process.memoryUsage();
  const uptime = (Date.now() - server.startedAt.getTime()) / 1000;
  const readCounter = (name: string): number => server.counters.get(name) ?? 0;
  const known = ['insert', 'find', 'update', 'delete', 'getMore'];
  const others = [...server.counters].filter(([name]) => !known.includes(name));
  return {
    host: server.address,
    version: SERVER_VERSION,
    process: 'embedded',
    pid: Long.fromNumber(process.pid),
    uptime,
    uptimeMillis: Long.fromNumber(Math.round(uptime * 1000)),
    localTime: ctx.now,
    connections: {
      current: server.connections,
      available: server.maxConnections - server.connections,
      totalCreated: server.connectionsEver,
    },
    opcounters: {
      insert: readCounter('insert'),
      query: readCounter('find'),
      update: readCounter('update'),
      delete: readCounter('delete'),
      getmore: readCounter('getMore'),
      command: others.reduce((sum, [, times]) => sum + times, 0),
    },
    metrics: { cursor: { open: { total: Long.fromNumber(server.cursors.size) } } },
    logicalSessionRecordCache: { activeSessionsCount: server.sessions.size },
    mem: { bits: 64, resident: Math.round(memory.rss / 1048576), virtual: 0, supported: true },
    storageEngine: { name: 'embedded', persistent: server.store.journal !== undefined },
    ...(server.replSet
      ? {
          repl: {
            setName: server.replSet,
            isWritablePrimary: server.replicas.primary === ctx.client.member,
            hosts: [...server.replicas.addresses],
          },
        }
      : {}),
  };
};

export const hostInfo: CommandHandler = (_command, ctx) => ({
  system: { currentTime: ctx.now, hostname: 'localhost', cpuAddrSize: 64 },
  os: { type: process.platform, name: process.platform, version: '' },
  extra: {},
});

export const getLog: CommandHandler = (command) =>
  command['getLog'] === '*' ? { names: ['global', 'startupWarnings'] } : { totalLinesWritten: 0, log: [] };

export const getCmdLineOpts: CommandHandler = () => ({ argv: [], parsed: {} });

export const getParameter: CommandHandler = (command) => {
  const known: Document = {
    featureCompatibilityVersion: { version: '8.0' },
    requireApiVersion: false,
    enableTestCommands: true,
    authenticationMechanisms: [],
  };
  const asked = command['getParameter'];
  const all = asked === '*' || (isDocument(asked) && flag(asked, 'allParameters'));
  const found = Object.fromEntries(
    Object.entries(known).filter(([name]) => all || command[name] !== undefined),
  );
  if (Object.keys(found).length === 0) throw badValue('no option found to get');
  return found;
};

/**
 * Size and index figures of one collection; `scale` divides what counts bytes. Errors: 14, 2 for what cannot divide, 238 for
 * measurements, which have no buckets here.
 */
export function collectionStats(
  namespace: string,
  collection: Collection | undefined,
  spec: Document,
): Document {
  const scale = optionalInteger(spec, 'scale') ?? 1;
  if (!(scale >= 1)) throw badValue('the scale must be at least 1');
  if (collection?.options['timeseries'] !== undefined)
    throw notImplemented('the storage statistics of a time series');
  const scaleFactor = Math.min(scale, 2 ** 31 - 1);
  const bytes = collection?.dataBytes ?? 0;
  const size = Math.floor(bytes / scaleFactor);
  const n = collection?.count ?? 0;
  const indexes = collection?.indexes ?? [];
  return {
    ns: namespace,
    size,
    count: n,
    ...(n > 0 ? { avgObjSize: Math.round(bytes / n) } : {}),
    numOrphanDocs: 0,
    storageSize: size,
    freeStorageSize: 0,
    capped: collection?.capped === true,
    ...(collection?.capped
      ? {
          max: collection.options['max'] ?? 0,
          maxSize: Math.floor(toDouble(collection.options['size']) / scaleFactor),
        }
      : {}),
    nindexes: indexes.length,
    indexDetails: {},
    indexBuilds: [],
    totalIndexSize: 0,
    totalSize: size,
    // Keys share their values with the documents, so an index has no size of its own.
    indexSizes: Object.fromEntries(indexes.map(({ spec }) => [spec.name, 0])),
    scaleFactor,
  };
}

export const collStats: CommandHandler = (command, ctx) => {
  const name = collectionName(command, ctx.name);
  const collection = ctx.server.store.catalog.find(ctx.db, name);
  if (collection) refuseView(collection);
  return collectionStats(`${ctx.db}.${name}`, collection, command);
};

export const dbStats: CommandHandler = (_command, ctx) => {
  const everything = ctx.server.store.catalog.collections(ctx.db);
  const collections = everything.filter(({ view }) => !view);
  const total = (of: (collection: Collection) => number): number =>
    collections.reduce((sum, one) => sum + of(one), 0);
  const objects = total((one) => one.count);
  const dataSize = total((one) => one.dataBytes);
  return {
    db: ctx.db,
    collections: Long.fromNumber(collections.length),
    views: Long.fromNumber(everything.length - collections.length),
    objects: Long.fromNumber(objects),
    avgObjSize: objects > 0 ? dataSize / objects : 0,
    dataSize,
    storageSize: dataSize,
    indexes: Long.fromNumber(total((one) => one.indexes.length)),
    indexSize: 0,
    totalSize: dataSize,
    scaleFactor: Long.ONE,
    fsUsedSize: 0,
    fsTotalSize: 0,
  };
};

/** Checks that every index holds exactly the keys of the documents. */
export const validate: CommandHandler = (command, ctx) => {
  const collection = requireCollection(ctx, collectionName(command, 'validate'));
  const errors: string[] = [];
  const keysPerIndex: Document = {};
  for (const index of collection.indexes) {
    let keys = 0;
    for (const stored of collection.snapshotRecords().range()) {
      ctx.operation.tick();
      keys += index.definition.listKeys(stored.document)?.keys.length ?? 0;
    }
    keysPerIndex[index.spec.name] = index.size;
    if (keys !== index.size)
      errors.push(`index ${index.spec.name} holds ${index.size} keys instead of ${keys}`);
  }
  return {
    ns: collection.fullName,
    uuid: collection.uuid,
    nInvalidDocuments: 0,
    nNonCompliantDocuments: 0,
    nrecords: collection.count,
    nIndexes: collection.indexes.length,
    keysPerIndex,
    valid: errors.length === 0,
    warnings: [],
    errors,
    extraIndexEntries: [],
    missingIndexEntries: [],
    corruptRecords: [],
    repaired: false,
  };
};

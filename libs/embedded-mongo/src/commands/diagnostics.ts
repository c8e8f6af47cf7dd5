import { Long } from 'bson';
import { isDocument, type Document } from '../bson/document.js';
import { badValue } from '../errors.js';
import { numberKind, toDouble } from '../bson/number.js';
import { compileFilter } from '../query/filter.js';
import type { CommandHandler } from '../server/command.js';
import type { Operation } from '../server/operation.js';
import type { ServerState } from '../server/server-state.js';
import { flag } from './arguments.js';
import { SERVER_VERSION } from './handshake.js';
import { plainFilter } from './validation.js';

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
    storageEngine: { name: 'embedded', persistent: server.store.persistent },
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

import { Long, ObjectId, UUID } from 'bson';
import { isDocument, type Document } from '../bson/document.js';
import { mongoError } from '../errors.js';
import type { CommandContext, CommandHandler } from '../server/command.js';
import { SESSION_TIMEOUT_MINUTES } from '../server/sessions.js';
import { MAX_DOCUMENT_BYTES, MAX_MESSAGE_BYTES, MAX_WRITE_BATCH } from '../wire/limits.js';

/** The wire version of MongoDB 8.0: the newest commands this server knows, `bulkWrite` among them. */
const WIRE_VERSION = 25;

/** The version this server behaves like. */
export const SERVER_VERSION = '8.0.0';

const TERM = new ObjectId('7fffffff0000000000000001');

export const hello: CommandHandler = (command, ctx) => {
  const { client } = command;
  if (isDocument(client)) {
    ctx.client.metadata = client;
    const application = client['application'];
    if (isDocument(application)) ctx.client.appName = String(application['name']);
  }
  return {
    [ctx.name === 'hello' ? 'isWritablePrimary' : 'ismaster']: true,
    helloOk: true,
    ...(ctx.server.replSet ? replicaSet(ctx, ctx.server.replSet) : {}),
    maxBsonObjectSize: MAX_DOCUMENT_BYTES,
    maxMessageSizeBytes: MAX_MESSAGE_BYTES,
    maxWriteBatchSize: MAX_WRITE_BATCH,
    localTime: ctx.now,
    logicalSessionTimeoutMinutes: SESSION_TIMEOUT_MINUTES,
    connectionId: ctx.client.connectionId,
    minWireVersion: 0,
    maxWireVersion: WIRE_VERSION,
    readOnly: false,
  };
};

/** The server claims to be the only member of a replica set: clients then use transactions and change streams. */
function replicaSet(ctx: CommandContext, setName: string): Document {
  const { address, store } = ctx.server;
  const opTime = { ts: store.log.time, t: Long.ONE };
  return {
    setName,
    setVersion: 1,
    secondary: false,
    hosts: [address],
    primary: address,
    me: address,
    electionId: TERM,
    lastWrite: { opTime, lastWriteDate: ctx.now, majorityOpTime: opTime, majorityWriteDate: ctx.now },
  };
}

export const ping: CommandHandler = () => ({});

export const buildInfo: CommandHandler = () => ({
  version: SERVER_VERSION,
  versionArray: [8, 0, 0, 0],
  gitVersion: 'embedded',
  modules: ['embedded'],
  allocator: 'v8',
  javascriptEngine: 'none',
  sysInfo: 'deprecated',
  openssl: { running: 'none' },
  bits: 64,
  debug: false,
  maxBsonObjectSize: MAX_DOCUMENT_BYTES,
  storageEngines: ['embedded'],
});

export const connectionStatus: CommandHandler = () => ({
  authInfo: { authenticatedUsers: [], authenticatedUserRoles: [], authenticatedUserPrivileges: [] },
});

export const whatsMyUri: CommandHandler = (_command, ctx) => ({ you: ctx.client.address });

/** There are no users: whoever reaches the loopback socket may do everything, and no password is ever right. */
export const refuseLogin: CommandHandler = () => {
  throw mongoError(18, 'Authentication failed.');
};

export const replSetGetStatus: CommandHandler = (_command, ctx) => {
  const { replSet, address, startedAt } = ctx.server;
  if (!replSet) throw mongoError(76, 'not running with --replSet');
  return {
    set: replSet,
    date: ctx.now,
    myState: 1,
    term: Long.ONE,
    members: [
      {
        _id: 0,
        name: address,
        health: 1,
        state: 1,
        stateStr: 'PRIMARY',
        uptime: Math.floor((Date.now() - startedAt.getTime()) / 1000),
        self: true,
      },
    ],
  };
};

export const startSession: CommandHandler = () => ({
  id: { id: new UUID() },
  timeoutMinutes: SESSION_TIMEOUT_MINUTES,
});

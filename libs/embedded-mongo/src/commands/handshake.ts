import { Binary, Long, ObjectId, UUID } from 'bson';
import { type Document, isDocument } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { badValue, mongoError, typeMismatch } from '../errors.js';
import { type EmbeddedUser, listPrivileges } from '../server/access.js';
import type { CommandContext, CommandHandler } from '../server/server-state.js';
import { SESSION_TIMEOUT_MINUTES } from '../server/sessions.js';
import { MAX_DOCUMENT_BYTES, MAX_MESSAGE_BYTES, MAX_WRITE_BATCH } from '../wire/raw-bson.js';
import { flag } from './arguments.js';

const MECHANISM = 'SCRAM-SHA-256';

function readPayload(command: Document): string {
  const { payload } = command;
  if (payload instanceof Binary) return Buffer.from(payload.value()).toString('utf8');
  if (typeof payload === 'string') return Buffer.from(payload, 'base64').toString('utf8');
  throw typeMismatch("BSON field 'payload' must be binary data");
}

const binary = (text: string): Binary => new Binary(Buffer.from(text));

/** Begins a login. Errors: 18, also where the server has no users; 334 for another mechanism. */
export const saslStart: CommandHandler = (command, ctx) => {
  const { users } = ctx.server;
  if (!users) throw mongoError(18, 'Authentication failed.');
  const { mechanism } = command;
  if (mechanism !== MECHANISM)
    throw mongoError(334, `Received authentication for mechanism ${String(mechanism)} which is not enabled`);
  const conversation = users.begin(ctx.db, readPayload(command));
  const options = command['options'];
  const short = isDocument(options) && flag(options, 'skipEmptyExchange');
  ctx.client.login = { conversation, short };
  return { conversationId: 1, done: false, payload: binary(conversation.serverFirst) };
};

/** Errors: 17 without a begun login, 18 for a wrong password. */
export const saslContinue: CommandHandler = (command, ctx) => {
  const login = ctx.client.login;
  if (!login) throw mongoError(17, 'No SASL session state found');
  const { conversation, short } = login;
  if (conversation.proven) {
    // The empty exchange with which older clients end the conversation.
    ctx.client.login = undefined;
    ctx.client.user = conversation.user;
    return { conversationId: 1, done: true, payload: binary('') };
  }
  try {
    const payload = binary(conversation.finish(readPayload(command)));
    if (short) {
      ctx.client.login = undefined;
      ctx.client.user = conversation.user;
    }
    return { conversationId: 1, done: short, payload };
  } catch (error) {
    ctx.client.login = undefined;
    throw error;
  }
};

/** Neither X.509 nor another mechanism of this command exists here. */
export const authenticate: CommandHandler = () => {
  throw mongoError(18, 'Authentication failed.');
};

export const logout: CommandHandler = (_command, ctx) => {
  ctx.client.user = undefined;
  return {};
};

/** What hello answers to a client that wants to log in: the mechanisms, and the first answer of a login that came with it. */
function loginOffer(command: Document, ctx: CommandContext): Document {
  const { users } = ctx.server;
  const { saslSupportedMechs: asked, speculativeAuthenticate: early } = command;
  const offer: Document = {};
  if (typeof asked === 'string' && users) {
    const dot = asked.indexOf('.');
    if (users.has(asked.slice(0, dot), asked.slice(dot + 1))) offer['saslSupportedMechs'] = [MECHANISM];
  }
  if (isDocument(early) && users) {
    try {
      const db = typeof early['db'] === 'string' ? early['db'] : 'admin';
      offer['speculativeAuthenticate'] = saslStart(early, { ...ctx, db });
    } catch {
      // A login that fails early is left out: the client then begins one that says why.
    }
  }
  return offer;
}

const toName = ({ user, db = 'admin' }: EmbeddedUser): Document => ({ user, db });

export const connectionStatus: CommandHandler = (command, ctx) => {
  const { user } = ctx.client;
  return {
    authInfo: {
      authenticatedUsers: user ? [toName(user)] : [],
      authenticatedUserRoles: user ? user.roles.map(({ role, db }) => ({ role, db })) : [],
      ...(flag(command, 'showPrivileges')
        ? { authenticatedUserPrivileges: user ? listPrivileges(user) : [] }
        : {}),
    },
  };
};

/** What hello says of the set, from the view of the member that was asked. */
function memberStatus(ctx: CommandContext): Document {
  const { replicas, store } = ctx.server;
  const { name, addresses, primary, term } = replicas;
  if (name === undefined) return {};
  const opTime = { ts: store.log.time, t: Long.fromNumber(term) };
  const isPrimary = primary === ctx.client.member;
  return {
    setName: name,
    setVersion: 1,
    secondary: !isPrimary,
    hosts: [...addresses],
    ...(primary === undefined ? {} : { primary: replicas.findAddress(primary) }),
    me: replicas.findAddress(ctx.client.member),
    // Drivers take the primary of the newest election for the true one.
    ...(isPrimary ? { electionId: new ObjectId(`7fffffff${term.toString(16).padStart(16, '0')}`) } : {}),
    lastWrite: { opTime, lastWriteDate: ctx.now, majorityOpTime: opTime, majorityWriteDate: ctx.now },
  };
}

export const replSetGetStatus: CommandHandler = (_command, ctx) => {
  const { replicas, startedAt } = ctx.server;
  if (replicas.name === undefined) throw mongoError(76, 'not running with --replSet');
  const { primary, term } = replicas;
  const state = (member: number): number => (member === primary ? 1 : 2);
  return {
    set: replicas.name,
    date: ctx.now,
    myState: state(ctx.client.member),
    term: Long.fromNumber(term),
    members: replicas.addresses.map((name, member) => ({
      _id: member,
      name,
      health: 1,
      state: state(member),
      stateStr: member === primary ? 'PRIMARY' : 'SECONDARY',
      uptime: Math.floor((Date.now() - startedAt.getTime()) / 1000),
      ...(member === ctx.client.member ? { self: true } : {}),
    })),
  };
};

/**
 * Another member becomes the primary. `closeConnections` is an addition to MongoDB's command: the connections of the member are
 * cut, as servers before 4.2 do it and as a crash would.
 */
export const replSetStepDown: CommandHandler = (command, ctx) => {
  const { replSetStepDown: seconds } = command;
  if (numberKind(seconds) === undefined || !(toDouble(seconds) > 0))
    throw badValue('stepdown period must be a positive number of seconds');
  const { server, client } = ctx;
  if (server.replicas.size === 1 && !flag(command, 'force'))
    throw mongoError(262, 'No electable secondaries caught up: use {force: true}');
  server.stepDown(client.member, toDouble(seconds), flag(command, 'closeConnections'), client.connectionId);
  return {};
};

/** The wire version of MongoDB 8.0: the newest commands this server knows, `bulkWrite` among them. */
const WIRE_VERSION = 25;

/** The version this server behaves like. */
export const SERVER_VERSION = '8.0.0';

export const hello: CommandHandler = (command, ctx) => {
  const { client } = command;
  if (isDocument(client)) {
    ctx.client.metadata = client;
    const application = client['application'];
    if (isDocument(application)) ctx.client.appName = String(application['name']);
  }
  const isPrimary = ctx.server.replicas.primary === ctx.client.member;
  return {
    [ctx.name === 'hello' ? 'isWritablePrimary' : 'ismaster']: isPrimary,
    helloOk: true,
    ...memberStatus(ctx),
    ...loginOffer(command, ctx),
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

export const whatsMyUri: CommandHandler = (_command, ctx) => ({ you: ctx.client.address });

export const startSession: CommandHandler = () => ({
  id: { id: new UUID() },
  timeoutMinutes: SESSION_TIMEOUT_MINUTES,
});

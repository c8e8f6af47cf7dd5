import { UUID } from 'bson';
import { isDocument } from '../bson/document.js';
import type { CommandHandler } from '../server/command.js';
import { SESSION_TIMEOUT_MINUTES } from '../server/sessions.js';
import { MAX_DOCUMENT_BYTES, MAX_MESSAGE_BYTES, MAX_WRITE_BATCH } from '../wire/limits.js';
import { loginOffer } from './authentication.js';
import { memberStatus } from './replication.js';

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

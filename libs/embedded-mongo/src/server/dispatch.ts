import { setTimeout as delay } from 'node:timers/promises';
import { Binary, Double, Long } from 'bson';
import { type Document, firstKey, isDocument } from '../bson/document.js';
import { toDouble } from '../bson/number.js';
import { type CommandEntry, commands, commonFields } from '../commands/registry.js';
import { mongoError, MongoError, retryableCodes, typeMismatch } from '../errors.js';
import type { Workspace } from '../storage/store.js';
import type { Request } from '../wire/message.js';
import { authorize, type ClientInfo } from './access.js';
import type { Snapshot } from './common-arguments.js';
import { checkApiVersion, checkWriteConcern, readDeadline, readSnapshot } from './common-arguments.js';
import { failPointError } from './fail-point.js';
import type { Operation } from './operation.js';
import type { CommandContext, ServerState } from './server-state.js';
import type { ServerSession } from './sessions.js';
import { type Transaction, TRANSIENT } from './transaction.js';

/** The connection must be closed without an answer. */
export class Closed extends Error {}

/** Runs one request and gives its reply; errors become error replies. */
export async function dispatch(
  server: ServerState,
  client: ClientInfo,
  request: Request,
): Promise<Document | Closed> {
  const command = request.body;
  const name = firstKey(command) ?? '';
  server.count(name);
  let extra: Document = {};
  // Asked before an error closes the cursor.
  const watching = watches(server, command, name);
  try {
    const failPoints = server.failPoints[client.member];
    const failure = failPoints?.ofCommand(name, readNamespace(command, name), client);
    if (failure) {
      if (failure.blockMs > 0) await delay(failure.blockMs, undefined, { ref: false });
      if (failure.closeConnection) return new Closed();
      if (failure.error)
        throw failPointError(failure.error, findLabels(failure.error.code, command, name, false));
      if (failure.writeConcernError) {
        const code = toDouble(failure.writeConcernError['code']);
        const ended = command['autocommit'] !== false || isTransactionEnd(name);
        const labels = failure.labels ?? (ended ? findLabels(code, command, name, false) : undefined);
        extra = {
          writeConcernError: failure.writeConcernError,
          ...(labels ? { errorLabels: labels } : {}),
        };
      }
    }
    const reply = await run(server, client, request, name);
    await server.store.journal?.settle();
    return addClusterTime(server, { ...reply, ...extra, ok: new Double(1) });
  } catch (error) {
    if (error instanceof Closed) return error;
    return addClusterTime(server, errorReply(error, command, name, watching));
  }
}

async function run(
  server: ServerState,
  client: ClientInfo,
  request: Request,
  name: string,
): Promise<Document> {
  const command = request.body;
  const entry = commands.get(name);
  if (!entry) throw mongoError(59, `no such command: '${name}'`);
  checkFields(command, name, entry);
  checkApiVersion(command, name);
  checkWriteConcern(command, entry.concerned ?? entry.needs === 'write', isTransactionEnd(name));
  const db = command['$db'] ?? 'admin';
  if (typeof db !== 'string') throw typeMismatch("BSON field '$db' must be a string");
  const session = command['lsid'] === undefined ? undefined : server.sessions.obtain(command['lsid']);
  const operation = server.operations.start(
    {
      connectionId: client.connectionId,
      client: client.address,
      appName: client.appName,
      name,
      namespace: readNamespace(command, name),
      command,
      lsid: session?.lsid,
    },
    readDeadline(command, name),
  );
  try {
    if (server.users) authorize(client.user, command, name, entry.needs, db);
    checkMember(server, client, command, entry);
    const call: Call = { server, client, request, name, db, operation, session, entry };
    const snapshot = readSnapshot(command, name, server.replSet !== undefined, server.snapshots);
    if (snapshot)
      return addReadTime(await entry.run(command, createContext(call, snapshot.workspace)), snapshot);
    if (session === undefined || command['txnNumber'] === undefined)
      return await entry.run(command, createContext(call));
    if (!server.replSet)
      throw mongoError(20, 'Transaction numbers are only allowed on a replica set member or mongos');
    const number = readTxnNumber(command);
    if (command['autocommit'] === false) return await inTransaction(call, session, number);
    if (!entry.retryable)
      throw mongoError(50768, 'txnNumber may only be provided for transactions and retryable write commands');
    return await session.exclusive(() => {
      // The write may have waited for its turn while another member became the primary.
      checkMember(server, client, command, entry);
      return retryable(call, session, number);
    });
  } finally {
    server.operations.finish(operation);
  }
}

interface Call {
  readonly server: ServerState;
  readonly client: ClientInfo;
  readonly request: Request;
  readonly name: string;
  readonly db: string;
  readonly operation: Operation;
  readonly session: ServerSession | undefined;
  readonly entry: CommandEntry;
}

/** Adds `atClusterTime`: the session sends it with its next reads of the snapshot. */
function addReadTime(reply: Document, { time: atClusterTime }: Snapshot): Document {
  const { cursor } = reply;
  return isDocument(cursor)
    ? { ...reply, cursor: { ...cursor, atClusterTime } }
    : { ...reply, atClusterTime };
}

function createContext(
  call: Call,
  workspace: Workspace = call.server.store.live,
  transaction?: Transaction,
): CommandContext {
  const { request, entry: _, ...command } = call;
  const { replSet, store } = call.server;
  const clusterTime = replSet ? store.log.time : undefined;
  const moment = { now: new Date(), clusterTime, txnNumber: transaction?.number };
  const rawDocuments = (field: string): Buffer[] | undefined => request.rawDocuments(field);
  return { ...command, ...moment, workspace, transaction, rawDocuments };
}
/** A retryable write that was answered before gets the same answer, and is neither done nor made to fail again. */
async function retryable(call: Call, session: ServerSession, number: string): Promise<Document> {
  const known = session.findAnswered(number);
  if (known) return known;
  const write = call.server.failPoints[call.client.member]?.ofWrite();
  if (write?.code !== undefined) {
    if (write.closes) throw new Closed();
    throw mongoError(write.code, 'Failing write due to failpoint. The write must not be reflected.');
  }
  call.operation.startTurn();
  const reply = await call.entry.run(call.request.body, createContext(call));
  session.remember(number, reply);
  if (write?.closes) throw new Closed();
  return reply;
}

async function inTransaction(call: Call, session: ServerSession, number: string): Promise<Document> {
  const { name, server, request, entry, db } = call;
  const ends = isTransactionEnd(name);
  if (db === 'config' || db === 'local')
    throw mongoError(263, `Cannot run command against the '${db}' database in a transaction`);
  if (!entry.transactional) throw mongoError(263, `Cannot run '${name}' in a multi-document transaction.`);
  const starts = request.body['startTransaction'] === true;
  if (!starts && !ends) await session.awaitStart(number);
  return session.exclusive(async () => {
    call.operation.startTurn();
    if (ends) return entry.run(request.body, createContext(call));
    const transaction = starts ? session.begin(number, server.store.catalog) : session.current(number);
    try {
      return await entry.run(request.body, createContext(call, transaction, transaction));
    } catch (error) {
      // As in MongoDB, a failed statement ends its transaction.
      transaction.abort();
      throw error;
    }
  });
}

/** Errors: 40415 for a field that would be ignored. */
function checkFields(command: Document, name: string, entry: CommandEntry): void {
  for (const field of Object.keys(command)) {
    if (field === name || commonFields.has(field) || entry.fields?.has(field) !== false) continue;
    throw mongoError(40415, `BSON field '${name}.${field}' is an unknown field.`);
  }
}

function readTxnNumber(command: Document): string {
  const number = command['txnNumber'];
  if (number instanceof Long) return number.toString();
  if (typeof number === 'number') return String(number);
  throw typeMismatch("BSON field 'txnNumber' must be a long");
}

function readNamespace(command: Document, name: string): string {
  const db = typeof command['$db'] === 'string' ? command['$db'] : 'admin';
  const target = command[name === 'getMore' ? 'collection' : name];
  return typeof target === 'string' ? `${db}.${target}` : `${db}.$cmd`;
}

/** Errors: 10107 for what only a primary does, 13435 for a read that must not be of a secondary. */
function checkMember(
  { replicas }: ServerState,
  { member }: ClientInfo,
  command: Document,
  { needs, transactional }: CommandEntry,
): void {
  if (replicas.primary === member) return;
  const inTransaction = command['autocommit'] === false && transactional === true;
  if (needs === 'write' || needs === 'manage' || inTransaction) throw mongoError(10107, 'not primary');
  const preference = command['$readPreference'];
  const mode = isDocument(preference) ? preference['mode'] : 'primary';
  if (needs === 'read' && mode === 'primary') throw mongoError(13435, 'not primary and secondaryOk=false');
}

const isTransactionEnd = (name: string): boolean =>
  name === 'commitTransaction' || name === 'abortTransaction';

/** Errors after which the whole transaction may be run again, whatever command of it met them. */
const transientCodes: ReadonlySet<number> = new Set([24, 112, 246, 251, 267]);
/** Errors after which a change stream may go on, beside those that may be retried. */
const resumableCodes: ReadonlySet<number> = new Set([63, 133, 150, 234, 13388]);

/** Whether the command opens or reads a change stream. */
function watches(server: ServerState, command: Document, name: string): boolean {
  if (name === 'getMore') return server.cursors.isTailing(String(command['getMore']));
  const pipeline: unknown = command['pipeline'];
  if (name !== 'aggregate' || !Array.isArray(pipeline)) return false;
  return isDocument(pipeline[0]) && firstKey(pipeline[0]) === '$changeStream';
}

/** What drivers may retry after an error: the write, the whole transaction, the change stream. */
function findLabels(code: number, command: Document, name: string, watching: boolean): string[] | undefined {
  const inTransaction = command['autocommit'] === false;
  const retryable = retryableCodes.has(code);
  if (code === 112 || (inTransaction && transientCodes.has(code))) return [TRANSIENT];
  if (retryable && inTransaction && !isTransactionEnd(name)) return [TRANSIENT];
  if (retryable && command['txnNumber'] !== undefined) return ['RetryableWriteError'];
  return watching && (retryable || resumableCodes.has(code)) ? ['ResumableChangeStreamError'] : undefined;
}

function errorReply(error: unknown, command: Document, name: string, watching: boolean): Document {
  if (error instanceof MongoError) {
    const labels = error.labels ?? findLabels(error.code, command, name, watching);
    return {
      ok: 0,
      errmsg: error.message,
      code: error.code,
      codeName: error.codeName,
      ...error.extra,
      ...(labels?.length ? { errorLabels: labels } : {}),
    };
  }
  // The client learns nothing about the inside; the operator of the server does.
  const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.emitWarning(`the command ${name} failed unexpectedly`, { type: 'EmbeddedMongoFault', detail });
  return { ok: 0, errmsg: 'internal error', code: 1, codeName: 'InternalError' };
}

/** Nobody signs the time here. */
const signature = { hash: new Binary(new Uint8Array(20)), keyId: Long.ZERO };

function addClusterTime(server: ServerState, reply: Document): Document {
  if (!server.replSet) return reply;
  const clusterTime = server.store.log.time;
  return { ...reply, $clusterTime: { clusterTime, signature }, operationTime: clusterTime };
}

import { setTimeout as delay } from 'node:timers/promises';
import { Binary, Double, Long } from 'bson';
import { firstKey, isDocument, type Document } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { mongoError, MongoError, retryableCodes, typeMismatch } from '../errors.js';
import { commands, commonFields, type CommandEntry } from '../commands/registry.js';
import type { Request } from '../wire/message.js';
import { authorize } from './access.js';
import type { ClientInfo } from './client-info.js';
import type { CommandContext } from './command.js';
import { failPointError } from './fail-point.js';
import type { Operation } from './operation.js';
import type { ServerState } from './server-state.js';
import type { ServerSession } from './sessions.js';
import { TRANSIENT, type Transaction } from './transaction.js';

/** The connection must be closed without an answer. */
export const CLOSE = Symbol('close');

/** Runs one request and gives its reply; errors become error replies. */
export async function dispatch(
  server: ServerState,
  client: ClientInfo,
  request: Request,
): Promise<Document | typeof CLOSE> {
  const command = request.body;
  const name = firstKey(command) ?? '';
  server.count(name);
  let extra: Document = {};
  try {
    const failPoints = server.failPoints[client.member];
    const failure = failPoints?.ofCommand(name, readNamespace(command, name), client);
    if (failure) {
      if (failure.blockMs > 0) await delay(failure.blockMs, undefined, { ref: false });
      if (failure.closeConnection) return CLOSE;
      if (failure.error) throw failPointError(failure.error);
      if (failure.writeConcernError) {
        const code = toDouble(failure.writeConcernError['code']);
        const labels = failure.labels ?? findLabels(code, command, name, false);
        extra = {
          writeConcernError: failure.writeConcernError,
          ...(labels ? { errorLabels: labels } : {}),
        };
      }
    }
    const write = isRetryableWrite(command) ? failPoints?.ofWrite() : undefined;
    if (write?.code !== undefined) {
      if (write.closes) return CLOSE;
      throw mongoError(write.code, 'Failing write due to failpoint. The write must not be reflected.');
    }
    const reply = await run(server, client, request, name);
    if (server.store.persistent) await server.store.settle();
    if (write?.closes) return CLOSE;
    return addClusterTime(server, { ...reply, ...extra, ok: new Double(1) });
  } catch (error) {
    return addClusterTime(server, errorReply(error, command, name, watches(server, command, name)));
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
    if (session === undefined || command['txnNumber'] === undefined) {
      return await entry.run(command, createContext(call, undefined));
    }
    if (!server.replSet) {
      throw mongoError(20, 'Transaction numbers are only allowed on a replica set member or mongos');
    }
    const number = readTxnNumber(command);
    if (command['autocommit'] === false) return await inTransaction(call, session, number);
    if (!entry.retryable) {
      throw mongoError(50768, 'txnNumber may only be provided for transactions and retryable write commands');
    }
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

function createContext(call: Call, transaction: Transaction | undefined): CommandContext {
  const { server, client, name, db, operation, session, request } = call;
  return {
    server,
    client,
    name,
    db,
    operation,
    workspace: transaction ?? server.store.live,
    session,
    transaction,
    txnNumber: transaction?.number,
    now: new Date(),
    rawDocuments: (field) => request.rawDocuments(field),
  };
}

/** A retryable write that was answered before gets the same answer and is not done again. */
async function retryable(call: Call, session: ServerSession, number: string): Promise<Document> {
  const known = session.findAnswered(number);
  if (known) return known;
  call.operation.startTurn();
  const reply = await call.entry.run(call.request.body, createContext(call, undefined));
  session.remember(number, reply);
  return reply;
}

async function inTransaction(call: Call, session: ServerSession, number: string): Promise<Document> {
  const { name, server, request, entry } = call;
  const ends = name === 'commitTransaction' || name === 'abortTransaction';
  if (!entry.transactional) {
    throw mongoError(263, `Cannot run '${name}' in a multi-document transaction.`);
  }
  const starts = request.body['startTransaction'] === true;
  if (!starts && !ends) await session.awaitStart(number);
  return session.exclusive(async () => {
    call.operation.startTurn();
    if (ends) return entry.run(request.body, createContext(call, undefined));
    const transaction = starts ? session.begin(number, server.store.catalog) : session.current(number);
    try {
      return await entry.run(request.body, createContext(call, transaction));
    } catch (error) {
      // As in MongoDB, a failed statement ends its transaction.
      transaction.abort();
      throw error;
    }
  });
}

/** Errors: 40415 for a field that would be ignored, 246 for a read in the past, 2 for an unknown level. */
function checkFields(command: Document, name: string, entry: CommandEntry): void {
  for (const field of Object.keys(command)) {
    if (field === name || commonFields.has(field) || entry.fields?.has(field) !== false) continue;
    throw mongoError(40415, `BSON field '${name}.${field}' is an unknown field.`);
  }
  const concern = command['readConcern'];
  if (isDocument(concern)) checkReadConcern(concern, command['startTransaction'] === true);
}

const readLevels: unknown[] = [undefined, 'local', 'available', 'majority', 'linearizable', 'snapshot'];

/** Outside of transactions a snapshot would be followed by reads of later data, which nobody asked for. */
function checkReadConcern(concern: Document, inTransaction: boolean): void {
  const { level } = concern;
  if (!readLevels.includes(level))
    throw mongoError(
      2,
      `Enumeration value '${String(level)}' for field 'readConcern.level' is not a valid value.`,
    );
  if (concern['atClusterTime'] !== undefined || (level === 'snapshot' && !inTransaction))
    throw mongoError(246, 'Unable to read from a snapshot in the past');
}

function readDeadline(command: Document, name: string): number {
  const limit = command['maxTimeMS'];
  // A getMore's maxTimeMS is how long to wait for more, not how long it may take.
  if (limit === undefined || name === 'getMore') return 0;
  if (numberKind(limit) === undefined) throw typeMismatch("BSON field 'maxTimeMS' must be a number");
  const ms = toDouble(limit);
  if (!(ms >= 0 && ms <= 2_147_483_647)) throw mongoError(2, `${ms} value for maxTimeMS is out of range`);
  return ms === 0 ? 0 : Date.now() + ms;
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

const isRetryableWrite = (command: Document): boolean =>
  command['txnNumber'] !== undefined && command['autocommit'] === undefined;

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
  if (needs === 'read' && mode === 'primary') {
    throw mongoError(13435, 'not primary and secondaryOk=false');
  }
}

/** Whether the command opens or reads a change stream. */
function watches(server: ServerState, command: Document, name: string): boolean {
  if (name === 'getMore') return server.cursors.isTailing(String(command['getMore']));
  const pipeline: unknown = command['pipeline'];
  if (name !== 'aggregate' || !Array.isArray(pipeline)) return false;
  return isDocument(pipeline[0]) && firstKey(pipeline[0]) === '$changeStream';
}

/** What drivers may retry after an error: the write, the whole transaction, the change stream. */
function findLabels(code: number, command: Document, name: string, watching: boolean): string[] | undefined {
  const ends = name === 'commitTransaction' || name === 'abortTransaction';
  const inTransaction = command['autocommit'] === false;
  const retryable = retryableCodes.has(code);
  if (code === 112 || (retryable && inTransaction && !ends)) return [TRANSIENT];
  if (retryable && command['txnNumber'] !== undefined) return ['RetryableWriteError'];
  return retryable && watching ? ['ResumableChangeStreamError'] : undefined;
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
      ...(labels ? { errorLabels: labels } : {}),
    };
  }
  // The client learns nothing about the inside; the operator of the server does.
  const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.emitWarning(`the command ${name} failed unexpectedly`, { type: 'EmbeddedMongoFault', detail });
  return { ok: 0, errmsg: 'internal error', code: 1, codeName: 'InternalError' };
}

function addClusterTime(server: ServerState, reply: Document): Document {
  if (!server.replSet) return reply;
  const clusterTime = server.store.log.time;
  return {
    ...reply,
    $clusterTime: { clusterTime, signature: { hash: new Binary(new Uint8Array(20)), keyId: Long.ZERO } },
    operationTime: clusterTime,
  };
}

import { Long } from 'bson';
import { type Document, isDocument } from '../bson/document.js';
import { mongoError, typeMismatch } from '../errors.js';
import type { CommandContext, CommandHandler } from '../server/server-state.js';
import { sessionKey } from '../server/sessions.js';
import type { Transaction } from '../server/transaction.js';
import { checkTypes } from './arguments.js';
import { acknowledge } from './write-target.js';

function findTransaction(command: Document, ctx: CommandContext): Transaction | undefined {
  if (command['autocommit'] !== false || !ctx.session)
    throw mongoError(125, `${ctx.name} must be run within a transaction`);
  const transaction = ctx.session.transaction;
  const number = command['txnNumber'];
  return String(number) === transaction?.number ? transaction : undefined;
}

export const commitTransaction: CommandHandler = (command, ctx) => {
  const transaction = findTransaction(command, ctx);
  // A repeated commit is answered like the first one.
  if (transaction?.state === 'committed') return acknowledge(ctx, command, {});
  if (transaction?.state !== 'open') throw noSuchTransaction(command);
  const lsid = ctx.session?.lsid ?? {};
  transaction.commit(ctx.server.store, { lsid, txnNumber: Long.fromString(transaction.number) });
  closeCursors(ctx, transaction);
  return acknowledge(ctx, command, {});
};

export const abortTransaction: CommandHandler = (command, ctx) => {
  const transaction = findTransaction(command, ctx);
  if (transaction?.state === 'committed')
    throw mongoError(256, `Transaction with { txnNumber: ${transaction.number} } has been committed.`);
  if (transaction?.state !== 'open') throw noSuchTransaction(command);
  transaction.abort();
  closeCursors(ctx, transaction);
  return {};
};

const noSuchTransaction = (command: Document): Error =>
  mongoError(251, `Transaction with { txnNumber: ${String(command['txnNumber'])} } is not in progress.`);

function closeCursors(ctx: CommandContext, transaction: Transaction): void {
  const key = ctx.session?.key;
  ctx.server.cursors.closeWhere(
    (cursor) => cursor.sessionKey === key && cursor.txnNumber === transaction.number,
  );
}

function lsids(command: Document, ctx: CommandContext): unknown[] {
  const value = command[ctx.name];
  if (!Array.isArray(value)) throw typeMismatch(`BSON field '${ctx.name}' must be an array`);
  return value;
}

export const endSessions: CommandHandler = (command, ctx) => {
  for (const lsid of lsids(command, ctx)) {
    const key = ctx.server.sessions.end(lsid);
    ctx.server.cursors.closeWhere((cursor) => cursor.sessionKey === key);
  }
  return {};
};

export const refreshSessions: CommandHandler = (command, ctx) => {
  for (const lsid of lsids(command, ctx)) ctx.server.sessions.obtain(lsid);
  return {};
};

/** Ends what runs in the sessions: their operations, cursors and transactions. */
export const killSessions: CommandHandler = (command, ctx) => {
  const named = lsids(command, ctx).filter((one) => one !== null);
  // Instead of sessions, killAllSessions names users, and no session is any user's here.
  if (ctx.name === 'killAllSessions' && named.length > 0) {
    for (const user of named)
      checkTypes(isDocument(user) ? user : { user: {} }, { user: 'string', db: 'string' });
    return {};
  }
  const keys = new Set(named.map(sessionKey));
  const all = keys.size === 0;
  for (const operation of ctx.server.operations.list()) {
    const { lsid } = operation.info;
    if (operation === ctx.operation || !isDocument(lsid)) continue;
    if (all || keys.has(sessionKey(lsid))) operation.stop(mongoError(11601, 'operation was interrupted'));
  }
  ctx.server.sessions.abortTransactions(all ? undefined : keys);
  ctx.server.cursors.closeWhere(({ sessionKey: key }) => key !== undefined && (all || keys.has(key)));
  return {};
};

export const configureFailPoint: CommandHandler = (command, ctx) => {
  const { configureFailPoint: name, mode, data } = command;
  ctx.server.failPoints[ctx.client.member]?.configure(name, mode, data);
  return {};
};

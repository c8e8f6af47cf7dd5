import { isDocument, type Document } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { mongoError, MongoError } from '../errors.js';
import type { CommandContext } from '../server/command.js';
import { MAX_WRITE_BATCH } from '../wire/limits.js';

/** Errors that end the whole command, not just one statement: the time is up, somebody stopped it, or a conflict. */
const commandErrors = new Set([50, 112, 237, 279, 11601]);

/** Runs statements one by one and gives the errors of those that failed; stops at the first one when `compileOrder`. */
export async function runBatch<T>(
  ctx: CommandContext,
  statements: readonly T[],
  ordered: boolean,
  run: (statement: T, index: number) => void | Promise<void>,
): Promise<Document[]> {
  const errors: Document[] = [];
  for (const [index, statement] of statements.entries()) {
    try {
      ctx.operation.tick();
      await run(statement, index);
      if (ctx.operation.turnIsOver) await ctx.operation.breathe();
    } catch (error) {
      if (!(error instanceof MongoError) || commandErrors.has(error.code)) throw error;
      errors.push({ index, code: error.code, errmsg: error.message, ...error.extra });
      // A failed statement ends its transaction, so nothing after it can run.
      if (ctx.transaction) ctx.transaction.abort();
      if (ordered || ctx.transaction) break;
    }
  }
  return errors;
}

/** Errors: 16 for an empty or too large batch. */
export function checkBatchSize(statements: readonly unknown[]): void {
  if (statements.length >= 1 && statements.length <= MAX_WRITE_BATCH) return;
  throw mongoError(
    16,
    `Write batch sizes must be between 1 and ${MAX_WRITE_BATCH}. Got ${statements.length} operations.`,
  );
}

/** Completes a write's reply as its write concern asks for: waits for the disk, or says what cannot be had. */
export async function acknowledge(
  ctx: CommandContext,
  command: Document,
  reply: Document,
): Promise<Document> {
  const concern = command['writeConcern'];
  if (!isDocument(concern)) return reply;
  if (concern['j'] === true) await ctx.server.store.sync();
  const nodes = concern['w'];
  if (numberKind(nodes) === undefined || toDouble(nodes) <= 1) return reply;
  return {
    ...reply,
    writeConcernError: {
      code: 100,
      codeName: 'UnsatisfiableWriteConcern',
      errmsg: 'Not enough data-bearing nodes',
    },
  };
}

export const writeErrors = (errors: readonly Document[]): Document =>
  errors.length > 0 ? { writeErrors: errors } : {};

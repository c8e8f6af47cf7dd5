import { MongoWriteConcernError } from 'mongodb';
import { StoreError, type StoreErrorCode } from '#data';
import type { MongoConnection } from '../connection/mongo-connection.js';
import { storeErrorOf } from '../errors.js';

/** A write that ends so may have happened: its answer was lost, or the server had not finished with it. */
const AMBIGUOUS = new Set<StoreErrorCode>(['unavailable', 'timeout', 'cancelled']);

/** Milliseconds for a server that was away to say that it is back. */
const PROBE_MS = 3_000;

/** Connections on which an operation failed for want of a server, until one answered again. */
const suspected = new WeakSet<MongoConnection>();

/**
 * Runs the command that writes. A server that was away is asked first, so that what is not sent is known not to have happened.
 * @throws StoreError with `outcome: 'unknown'` when it was sent and nothing says what became of it
 */
export async function sentWrite<T>(connection: MongoConnection, command: () => Promise<T>): Promise<T> {
  if (suspected.has(connection)) {
    await connection.ping(PROBE_MS);
    suspected.delete(connection);
  }
  try {
    return await command();
  } catch (error) {
    const fault = storeErrorOf(error);
    if (fault.code === 'unavailable') suspected.add(connection);
    const unconfirmed = error instanceof MongoWriteConcernError;
    if (!unconfirmed && !AMBIGUOUS.has(fault.code)) throw fault;
    throw new StoreError(fault.code, { cause: fault.cause, outcome: 'unknown' });
  }
}

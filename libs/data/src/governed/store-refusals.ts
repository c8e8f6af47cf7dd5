import { cutText, describeError, type Refusal, refusals, Refused, Unauthorized } from '#core';
import type { Run } from '../metering/metered-stores.js';
import { type OperationContext, type Operations, StoreError } from '../record-store.js';

const withCause = (refusal: Refusal, cause: string | undefined): Refusal => ({
  ...refusal,
  ...(cause !== undefined && { cause }),
});

/** The column of a distance query in the caller's own constraint; columns in the operator's predicates are not named. */
function nearColumn(where: unknown): string | null {
  if (where === null || typeof where !== 'object') return null;
  for (const [key, value] of Object.entries(where)) {
    if (value === null || typeof value !== 'object') continue;
    if (!key.startsWith('$') && ('$near' in value || '$nearSphere' in value)) return key;
    const found = nearColumn(value);
    if (found !== null) return found;
  }
  return null;
}

function geoIndexMissing(where: unknown): Refusal {
  const column = nearColumn(where);
  return refusals.invalidQuery(
    `${column === null ? 'The column' : `'${cutText(column, 128)}'`} has no geo index, which $near and $nearSphere need: ask for a ` +
      '2dsphere index on it, or use {"$geoWithin":{"$centerSphere":[[longitude,latitude],radians]}}, which needs none',
  );
}

function toRefusal(error: StoreError, operation: OperationContext, where: unknown): Refusal {
  const cause = error.cause instanceof Error ? describeError(error.cause) : undefined;
  switch (error.code) {
    case 'timeout':
      return refusals.databaseTimedOut(operation.maxTimeMS, error.outcome !== 'unknown');
    case 'cancelled':
      return refusals.cancelled();
    case 'invalid_query':
      return {
        ...refusals.invalidQuery(
          error.advice ??
            `${capitalise(error.store)} refused the query: an operator or value does not fit its field`,
        ),
        ...(cause && { cause }),
      };
    case 'geo_index_missing':
      return withCause(geoIndexMissing(where), cause);
    case 'unknown_time_zone':
      return refusals.invalidArgument(
        'unknown time zone; write an Olson name such as Europe/Berlin, or an offset such as +02:00',
      );
    case 'unsupported':
      return {
        ...refusals.notImplemented(error.advice ?? 'This database does not support the requested operation'),
        ...(cause && { cause }),
      };
    case 'search_not_configured':
      return withCause(refusals.searchNotConfigured('Use query_class with a where instead'), cause);
    case 'search_index_missing':
      return withCause(
        refusals.invalidArgument('Atlas Search index not found for this class; use query_class instead'),
        cause,
      );
    case 'search_invalid':
      return withCause(
        refusals.invalidArgument('Atlas Search invalid parameters: the search process refused the search'),
        cause,
      );
    case 'duplicate':
      return refusals.parseError('A row with this unique value already exists', cause);
    case 'unavailable':
      return refusals.parseError(error.advice ?? `${error.store} does not answer`, cause);
    case 'denied':
      return { ...refusals.storeDenied(error.store), ...(cause && { cause }) };
    case 'rejected':
      return refusals.parseError(error.advice ?? 'code of the application refused this', cause);
    case 'too_large':
      return withCause(refusals.answerTooLarge(error.store), cause);
    case 'busy':
      return refusals.answersBusy();
    case 'session_ended':
    case 'failed':
      return refusals.parseError(error.advice ?? `${error.store} could not complete the operation`, cause);
  }
}

function capitalise(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/**
 * Runs one store operation; its errors become refusals whose private cause is only logged.
 * @param where the caller's own constraint, which a refusal may name
 */
export async function atStore<T>(
  operation: OperationContext,
  work: () => Promise<T>,
  where?: unknown,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof StoreError && error.code === 'session_ended')
      throw new Unauthorized('the session ended during the call');
    if (error instanceof StoreError)
      throw new Refused(withOutcome(error, toRefusal(error, operation, where)));
    throw error;
  }
}

/** The same operations, whose errors of the store are refusals. */
export function refusing<P extends Operations<P>>(context: OperationContext, run: Run<P>): Run<P> {
  return (operation, asked) => atStore(context, () => run(operation), asked);
}

function withOutcome({ outcome }: StoreError, refusal: Refusal): Refusal {
  return outcome === 'unknown' ? refusals.outcomeUnknown(refusal) : refusal;
}

/** As `atStore`, for a write: a value that the store cannot hold is an error of the arguments, not of a query. */
export async function atWriter<T>(operation: OperationContext, work: () => Promise<T>): Promise<T> {
  try {
    return await atStore(operation, work);
  } catch (error) {
    if (!(error instanceof Refused) || error.refusal.code !== 'invalid_query') throw error;
    const { cause } = error.refusal;
    throw new Refused({
      ...refusals.invalidArgument('a value does not fit its field, or what is stored there now', 'fields'),
      ...(cause !== undefined && { cause }),
    });
  }
}

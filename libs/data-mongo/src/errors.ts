import type { MongoServerError } from 'mongodb';
import { type Abortable, isAborted } from '#core';
import { ROW_REFUSED, StoreError, type StoreErrorCode } from '#data';

/** A value that Parse's storage form cannot hold. `path` names the place inside the row. */
export class UnstorableValue extends Error {
  override readonly name = 'UnstorableValue';
  constructor(
    readonly path: string,
    readonly problem: string,
  ) {
    super(path === '' ? problem : `${path}: ${problem}`);
  }

  /** The same error with the path prefixed by the enclosing level. */
  under(parent: string): UnstorableValue {
    return new UnstorableValue(this.path === '' ? parent : `${parent}.${this.path}`, this.problem);
  }
}

const TIMED_OUT = new Set([50, 262]);
const DUPLICATE_CODES = new Set([11000, 11001, 12582]);
const CANCELLED_CODES = new Set([11601, 11602, 237]);
/**
 * Search and other features that this deployment does not have, unknown commands and unknown stages. A caller cannot name a
 * stage of its own, so an unknown stage is one that this server lacks.
 */
const UNSUPPORTED_CODES = new Set([59, 72, 115, 238, 303, 31082, 40324, 40414, 6047401]);
/** A document, or the data that a stage collects, exceeded the server's size limit. */
const TOO_LARGE = new Set([146, 292, 4568, 5119, 10334, 16389, 17280, 31325, 40099, 4031700, 6327102]);
/** The server cannot serve requests at the moment: it is shutting down or stepping down, or there is no primary. */
const UNAVAILABLE_CODES = new Set([6, 7, 89, 91, 189, 9001, 10058, 10107, 11600, 13435, 13436]);
/** Authentication and authorization errors are the operator's to solve; the query does not cause them. */
const OPERATOR_ERRORS = new Set([8, 11, 13, 18, 20]);
const BAD_QUERY = new Set([2, 3, 4, 9, 14, 15, 16, 17, 27, 28, 52, 54, 56, 57, 159, 168, 241, 291]);

/** Each code above this number is raised at one place in the server's parsers and expressions. */
const FIRST_PARSER_CODE = 10_000;

const UNKNOWN_TIME_ZONE = 40_485;

/** The validator of a collection refused a document. */
const INVALID_DOCUMENT = 121;

/** The user of the connection lacks a right. */
const UNAUTHORIZED_CODE = 13;

/** The server's message for a distance query on a column without a geo index. */
const NO_GEO_INDEX = /unable to find index for \$?geoNear|requires a 2d or 2dsphere index/i;

function codeOfServerError(error: MongoServerError): StoreErrorCode {
  const code = typeof error.code === 'number' ? error.code : 0;
  if (NO_GEO_INDEX.test(error.message)) return 'geo_index_missing';
  if (TIMED_OUT.has(code)) return 'timeout';
  if (DUPLICATE_CODES.has(code)) return 'duplicate';
  if (CANCELLED_CODES.has(code)) return 'cancelled';
  if (code === UNKNOWN_TIME_ZONE) return 'unknown_time_zone';
  if (code === INVALID_DOCUMENT) return 'rejected';
  if (TOO_LARGE.has(code)) return 'too_large';
  if (UNSUPPORTED_CODES.has(code)) return 'unsupported';
  if (UNAVAILABLE_CODES.has(code)) return 'unavailable';
  if (OPERATOR_ERRORS.has(code)) return 'failed';
  return BAD_QUERY.has(code) || code >= FIRST_PARSER_CODE ? 'invalid_query' : 'failed';
}

/**
 * Whether the driver threw it as this class or one below it. Classes are known by name: the client of an application belongs
 * to another copy of the driver, whose classes are not ours.
 */
export function isDriverError(error: unknown, className: string): boolean {
  if (typeof error !== 'object' || error === null) return false;
  for (let type: unknown = Object.getPrototypeOf(error); type; type = Object.getPrototypeOf(type))
    if (Object.getOwnPropertyDescriptor(type, 'name')?.get?.call(error) === className) return true;
  return false;
}

export const isServerError = (error: unknown): error is MongoServerError =>
  isDriverError(error, 'MongoServerError');

const readName = (error: unknown): unknown => (error as { name?: unknown } | null)?.name;

/** Driver errors that mean no connection; several have no exported class. */
const NO_CONNECTION = new Set([
  'MongoWaitQueueTimeoutError',
  'MongoNotConnectedError',
  'MongoTopologyClosedError',
  'MongoClientClosedError',
  'MongoPoolClosedError',
]);

function isAbort(error: unknown, operation: Abortable | undefined): boolean {
  if (operation && isAborted(operation)) return true;
  return readName(error) === 'AbortError';
}

/** The name service has no answer for a `mongodb+srv://` address. */
function isLookupError(error: unknown): boolean {
  const syscall: unknown = (error as { syscall?: unknown } | null)?.syscall;
  return typeof syscall === 'string' && /^query|^getaddrinfo/.test(syscall);
}

function findCode(error: unknown, operation: Abortable | undefined): StoreErrorCode {
  if (error instanceof UnstorableValue) return 'invalid_query';
  if (isAbort(error, operation)) return 'cancelled';
  if (isDriverError(error, 'MongoServerSelectionError') || isDriverError(error, 'MongoNetworkError'))
    return 'unavailable';
  if (NO_CONNECTION.has(String(readName(error))) || isLookupError(error)) return 'unavailable';
  if (readName(error) === 'MongoOperationTimeoutError') return 'timeout';
  // A name or a pattern of the query: the driver does not send it.
  if (readName(error) === 'BSONError' && /null bytes/.test((error as Error).message)) return 'invalid_query';
  if (!isServerError(error)) return 'failed';
  const duplicate = isDriverError(error, 'MongoBulkWriteError') && DUPLICATE_CODES.has(Number(error.code));
  return duplicate ? 'duplicate' : codeOfServerError(error);
}

/** The caller cannot solve it, and learns that repeating the call does not help. */
const RIGHTS_ADVICE = 'the database does not permit this to the service: its operator has to grant the right';

/** The database refuses user or password of the connection. */
const LOGIN_REFUSED = new Set<unknown>([11, 18]);

const LOGIN_ADVICE = 'the database refuses the login of the service: its operator has to correct it';

const UNCONFIRMED_ADVICE =
  'too few members of the replica set confirmed this write, so that a fail-over may undo it';

/** The index that `$text` or a search needs is not there. */
const INDEX_NOT_FOUND = 27;

const TEXT_INDEX_ADVICE =
  "'$text' needs a text index, and this class has none: search one column by $regex instead";

const MIXED_PROJECTION =
  '$project names either what rows keep or, by 0, what they leave out: only _id may be left out beside what they keep';

/** What an agent should write instead, by the code of the server. Its messages may quote values of rows. */
const ADVICE_OF_CODES: ReadonlyMap<unknown, string> = new Map<unknown, string>([
  [241, 'a value of some row cannot be converted: use $convert with onError and onNull'],
  [16702, '$concat takes texts, and some row has another value: make a text of it with $toString'],
  [17124, '$size takes lists, and some row has none there: {"$size":{"$ifNull":["$FIELD",[]]}}'],
  [31253, MIXED_PROJECTION],
  [31254, MIXED_PROJECTION],
]);

const DIVIDED_BY_ZERO = /can't \$(?:divide|mod) by zero/;
const ZERO_ADVICE = 'a division by zero: leave such rows out, or give them another value with $cond';

/** `$add`, `$subtract`, `$multiply` and others of their kind met a value that is no number. */
const NO_NUMBER = /only supports numeric|can't \$subtract/;
const NUMBER_ADVICE =
  'some row has no number where the pipeline calculates: use $convert with onError and onNull';

function findAdvice(error: unknown): { readonly advice?: string } {
  if (isDriverError(error, 'MongoWriteConcernError')) return { advice: UNCONFIRMED_ADVICE };
  if (!isServerError(error)) return {};
  if (error.code === INVALID_DOCUMENT) return { advice: ROW_REFUSED };
  if (error.code === INDEX_NOT_FOUND) return { advice: TEXT_INDEX_ADVICE };
  if (LOGIN_REFUSED.has(error.code)) return { advice: LOGIN_ADVICE };
  if (error.code === UNAUTHORIZED_CODE) return { advice: RIGHTS_ADVICE };
  const advice = ADVICE_OF_CODES.get(error.code) ?? ofMessage(error.message);
  return advice === undefined ? {} : { advice };
}

function ofMessage(message: string): string | undefined {
  if (DIVIDED_BY_ZERO.test(message)) return ZERO_ADVICE;
  return NO_NUMBER.test(message) ? NUMBER_ADVICE : undefined;
}

/** Converts any error of an operation to a `StoreError`. The driver's error is its cause, for the log only. */
export function toStoreError(error: unknown, operation?: Abortable): StoreError {
  if (error instanceof StoreError) return error;
  return new StoreError(findCode(error, operation), { cause: error, ...findAdvice(error) });
}

/** Runs one operation and converts every error to a `StoreError`. */
export async function asStoreOperation<T>(
  operation: Abortable | undefined,
  work: () => Promise<T>,
): Promise<T> {
  try {
    if (operation && isAborted(operation)) operation.signal.throwIfAborted();
    return await work();
  } catch (error) {
    throw toStoreError(error, operation);
  }
}

/** The adapter cannot translate the query; the reason is for the log. */
export function untranslatable(reason: string): StoreError {
  return new StoreError('invalid_query', { cause: new Error(reason) });
}

/**
 * Codes that servers without a search process return for its stages. All servers support every other stage that is sent here.
 */
const NOT_CONFIGURED = new Set([31082, 40324, 6047401]);
/** The search process returns the code for unknown errors; only its message distinguishes them. */
const FROM_THE_SEARCH_PROCESS = 8;
const INDEX_WORDS = /index .*(not found|does not exist)|no such index/i;
const PARAMETER_WORDS =
  /is required|must (be|have|hold)|cannot be|unrecognized field|indexed (with|as)|one operator|no field path/i;

function findSearchCode(error: MongoServerError): StoreErrorCode | null {
  const code = Number(error.code);
  if (NOT_CONFIGURED.has(code)) return 'search_not_configured';
  if (code === INDEX_NOT_FOUND) return 'search_index_missing';
  if (code !== FROM_THE_SEARCH_PROCESS) return null;
  if (INDEX_WORDS.test(error.message)) return 'search_index_missing';
  return PARAMETER_WORDS.test(error.message) ? 'search_invalid' : null;
}

/** As `asStoreOperation`, with separate codes for errors of the search. */
export function asSearchOperation<T>(operation: Abortable | undefined, work: () => Promise<T>): Promise<T> {
  return asStoreOperation(operation, async () => {
    try {
      return await work();
    } catch (error) {
      const code = isServerError(error) ? findSearchCode(error) : null;
      throw code === null ? error : new StoreError(code, { cause: error });
    }
  });
}

import { cutText, isClassName, isObjectId } from '#core';
import { StoreError, type StoreErrorCode } from '#data';

/** The store error for each error code of Parse Server. A missing code is one of an application, or a server error. */
const CODES: ReadonlyMap<number, StoreErrorCode> = new Map<number, StoreErrorCode>([
  [100, 'unavailable'],
  [101, 'denied'],
  [102, 'invalid_query'],
  [103, 'invalid_query'],
  [104, 'invalid_query'],
  [105, 'invalid_query'],
  [106, 'invalid_query'],
  [107, 'invalid_query'],
  [108, 'unsupported'],
  [111, 'invalid_query'],
  [116, 'invalid_query'],
  [119, 'denied'],
  [121, 'invalid_query'],
  [124, 'timeout'],
  [137, 'duplicate'],
  [141, 'rejected'],
  [142, 'invalid_query'],
  [155, 'unavailable'],
  [202, 'duplicate'],
  [203, 'duplicate'],
  [206, 'denied'],
  [208, 'duplicate'],
  [209, 'session_ended'],
]);

/**
 * What Parse Server itself says under codes that Cloud Code may throw too, with any other text: tells its refusals
 * from those of triggers. Codes that are missing here mean the server whatever they say: a write may have happened.
 */
const OWN_TEXTS: ReadonlyMap<number, RegExp> = new Map([
  [101, /^(?:object not found|permission denied|user not found|invalid username)/i],
  [119, /permission denied|not allowed|aren't allowed|master ?key|unauthorized|invalid object id/i],
  [137, /^(?:a duplicate value|tried to ensure)/i],
  [142, /is required$/],
  [155, /^too many|\brate.?limit/i],
  [202, /^account already exists/i],
  [203, /^account already exists/i],
  [206, /^(?:cannot modify user|insufficient auth|permission denied)/i],
  [208, /^this auth is already/i],
  [209, /^(?:invalid session token|session token|permission denied)/i],
]);

/** The same of values that a write brings; in a query they have many more. */
const OWN_TEXTS_OF_VALUES =
  /^(?:schema mismatch|bad |invalid |id is |objectid |objects to |incrementing|could not add|failed to add|nested keys|this is not a valid|mongodb only|there can only|cannot (?:set|transform)|prohibited|you cannot use|class .* does not|.* is required\.$)/i;

/** Codes that Parse Server itself raises, never an application. */
const SERVER_ERRORS = new Set([-1, 1]);

const OBJECT_NOT_FOUND = 101;
export const INVALID_QUERY = 102;
export const CLASS_NOT_EMPTY = 255;

/** Whose text is made by an application, or may quote a value. */
const QUOTING: ReadonlySet<StoreErrorCode> = new Set<StoreErrorCode>([
  'duplicate',
  'invalid_query',
  'rejected',
]);

/** What was sent: decides what a code can mean. */
export interface SentRequest {
  readonly isWrite: boolean;
  readonly hasSession: boolean;
  /** Of the answer. */
  readonly status: number;
}

/** Parse Server refused the request. Its text is for the log only, and not even for that where it may contain values. */
export class ParseServerError extends StoreError {
  /** Errors of a pipeline are marked only by their text. */
  readonly isOfTimeZone: boolean;
  /** The row does not exist for the caller. */
  readonly isOfRow: boolean;

  constructor(
    readonly parseCode: number,
    text: string,
    sent: SentRequest,
  ) {
    const code = isOwnRefusal(parseCode, text, sent) ? storeCode(parseCode) : 'rejected';
    const told = QUOTING.has(code) ? '' : `: ${cutText(text, 500)}`;
    super(code, {
      store: 'Parse Server',
      cause: new Error(`Parse Server answered ${parseCode}${told}`),
    });
    this.isOfRow = parseCode === OBJECT_NOT_FOUND && code !== 'rejected';
    this.isOfTimeZone = parseCode === INVALID_QUERY && /time ?zone/i.test(text);
  }
}

/** Parse Server itself gives its states with another status: a trigger that throws one of their codes is answered with 400. */
const CODES_OF_STATES: ReadonlySet<number> = new Set([100, 124]);

/** Whether Parse Server refuses, and no trigger of the application. */
function isOwnRefusal(
  parseCode: number,
  text: string,
  { isWrite, hasSession, status }: SentRequest,
): boolean {
  if (CODES_OF_STATES.has(parseCode) && status === 400) return false;
  if (parseCode === 209 && !hasSession) return false;
  if (isWrite && CODES.get(parseCode) === 'invalid_query' && parseCode !== 142)
    return OWN_TEXTS_OF_VALUES.test(text);
  return OWN_TEXTS.get(parseCode)?.test(text) ?? true;
}

function storeCode(parseCode: number): StoreErrorCode {
  if (SERVER_ERRORS.has(parseCode)) return 'failed';
  return CODES.get(parseCode) ?? 'rejected';
}

export function parseServerError(code: StoreErrorCode, reason: string): StoreError {
  return new StoreError(code, { store: 'Parse Server', cause: new Error(reason) });
}

/** The adapter cannot express the request in REST; the reason is for the log. */
export function inexpressible(reason: string): StoreError {
  return parseServerError('unsupported', reason);
}

export function unstorable(reason: string): StoreError {
  return parseServerError('invalid_query', reason);
}

/** The URL path of a class. A name that could change the path is refused. @throws StoreError `invalid_query` */
export function classPath(className: string, base = '/classes'): string {
  if (!isClassName(className)) throw unstorable('not a class name');
  return `${base}/${className}`;
}

/** @throws StoreError `invalid_query` */
export function rowPath(className: string, objectId: string): string {
  if (!isObjectId(objectId)) throw unstorable('not an object id');
  return `${classPath(className)}/${objectId}`;
}

import { isClassName, isObjectId } from '#core';
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

/** Codes that Parse Server itself raises, never an application. */
const SERVER_ERRORS = new Set([-1, 1]);

export const OBJECT_NOT_FOUND = 101;
export const INVALID_QUERY = 102;
export const CLASS_NOT_EMPTY = 255;

/** Whose text is made by an application, or may quote a value. */
const QUOTING: ReadonlySet<StoreErrorCode> = new Set<StoreErrorCode>([
  'duplicate',
  'invalid_query',
  'rejected',
]);

/** Parse Server refused the request. Its text is for the log only, and not even for that where it may contain values. */
export class ParseServerError extends StoreError {
  /** Errors of a pipeline are marked only by their text. */
  readonly isOfTimeZone: boolean;

  constructor(
    readonly parseCode: number,
    text: string,
  ) {
    const code = storeCode(parseCode);
    const told = QUOTING.has(code) ? '' : `: ${text.slice(0, 500)}`;
    super(code, {
      store: 'Parse Server',
      cause: new Error(`Parse Server answered ${parseCode}${told}`),
    });
    this.isOfTimeZone = parseCode === INVALID_QUERY && /time ?zone/i.test(text);
  }
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

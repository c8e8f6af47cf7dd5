import type { Refusal, RefusedJson } from '#core';
import { MODERN_VERSIONS, RPC } from '#dispatcher';
import { type ErrorFrame, errorReply, ExactId, reply, type Reply } from '../message.js';

/**
 * Every refusal of the transports, over HTTP and over stdio. A test compares the table in docs/reference/refusals.md with
 * these, and permits no other file of this library to add one.
 */

type Headers = Reply['headers'];

const refusal = (status: number, code: number, message: string, id?: unknown, headers?: Headers): Reply =>
  errorReply(status, { code, message }, id, headers);
const retryIn = (seconds: number): Headers => ({ 'Retry-After': String(seconds) });

// Address, host and page
export const NOT_FOUND = refusal(404, RPC.methodNotFound, 'Not Found');
export const HOST_NOT_ALLOWED = refusal(403, RPC.parseError, 'Host not allowed');
export const MALFORMED_HOST = refusal(400, RPC.invalidRequest, 'Invalid Request: Host is not host[:port]');
export const TWO_HOSTS = refusal(400, RPC.invalidRequest, 'Invalid Request: two Host headers');
export const ORIGIN_NOT_ALLOWED = refusal(403, RPC.parseError, 'Origin not allowed');
export const CUSTOM_HEADER_MISSING = refusal(
  403,
  RPC.parseError,
  'Required custom header missing or invalid',
);

/** Node keeps as many headers where a server says nothing else, and drops further ones without an error. */
export const MAX_HEADERS = 1_000;

/** Nothing is decided by the headers that are left. */
export const TOO_MANY_HEADERS = refusal(
  431,
  RPC.invalidRequest,
  `Request Header Fields Too Large: send fewer than ${MAX_HEADERS} headers`,
);

// Verb
/** Every method that is supported here. GET is refused where it does not accept events. */
const ALLOW = { Allow: 'GET, POST, DELETE' };
export const METHOD_NOT_ALLOWED = refusal(
  405,
  RPC.invalidRequest,
  'Method Not Allowed: send messages by POST; GET and DELETE are for sessions',
  null,
  ALLOW,
);

// Body
export const LENGTH_REQUIRED = refusal(
  411,
  RPC.parseError,
  'Length Required: Content-Length header is required and Transfer-Encoding: chunked is not accepted (server.requireContentLength: false accepts it)',
);
export const UNSUPPORTED_MEDIA_TYPE = refusal(
  415,
  RPC.parseError,
  'Unsupported Media Type: Content-Type must be application/json',
);
export const UNSUPPORTED_ENCODING = refusal(
  415,
  RPC.parseError,
  'Unsupported Media Type: Content-Encoding must be identity',
  null,
  { 'Accept-Encoding': 'identity' },
);
export const JSON_REFUSED = refusal(
  406,
  RPC.invalidRequest,
  'Not Acceptable: answers are JSON or events, and Accept must not give application/json the weight 0',
);
export const BODY_TIMED_OUT = refusal(
  408,
  RPC.parseError,
  'Request Timeout: body was not received in time',
  null,
  { Connection: 'close' },
);
const NOT_JSON = refusal(400, RPC.parseError, 'Parse error: invalid JSON');
const REPEATED_MEMBER = refusal(400, RPC.parseError, 'Parse error: an object has a member twice');
/** More of them than are told apart; a single one is refused where it is used. */
const INEXACT_NUMBERS = refusal(
  400,
  RPC.parseError,
  'Parse error: many numbers that no JSON number holds exactly; write them as texts',
);
export const unreadableBody = (fault: RefusedJson['fault']): Reply => {
  if (fault === 'repeated') return REPEATED_MEMBER;
  return fault === 'number' ? INEXACT_NUMBERS : NOT_JSON;
};
/** Also several messages where the revision has no batches, or more than there may be. */
export const NOT_A_MESSAGE = refusal(400, RPC.invalidRequest, 'Invalid Request');

/** @param what `body` over HTTP, `message` over a pipe */
export const payloadTooLarge = (what: 'body' | 'message', limit: number): Reply =>
  refusal(413, RPC.parseError, `Payload Too Large: ${what} exceeds ${limit} bytes`);

// Version and envelope
export const malformedMessage = (id: unknown): Reply =>
  refusal(
    400,
    RPC.invalidRequest,
    'Invalid Request',
    typeof id === 'string' || typeof id === 'number' || id instanceof ExactId ? id : null,
  );
export const malformedEnvelope = (key: string, id: unknown): Reply =>
  refusal(400, RPC.invalidParams, `Invalid params: _meta["${key}"] is missing or malformed`, id);
export const unsupportedVersion = (requested: string, id: unknown): Reply =>
  errorReply(
    400,
    {
      code: RPC.unsupportedVersion,
      message: 'Unsupported protocol version',
      data: { supported: MODERN_VERSIONS, requested },
    },
    id,
  );
export const unsupportedLegacyVersion = (requested: string, id: unknown): Reply =>
  refusal(400, RPC.invalidRequest, `Unsupported MCP-Protocol-Version: ${requested}`, id);
/** A refusal of the kernel, unchanged. */
export const refusedByKernel = (status: number, error: ErrorFrame, id: unknown): Reply =>
  errorReply(status, error, id);

// Caller
export const unauthenticated = (id: unknown = null, headers?: Headers): Reply =>
  refusal(401, RPC.unauthorized, 'Unauthorized', id, headers);
export const scopeMissing = (id: unknown = null, headers?: Headers): Reply =>
  refusal(403, RPC.unauthorized, 'Insufficient scope', id, headers);
/** A known caller whose agent may not act, in the words of the refusal. */
export const callerRefused = ({ message }: Pick<Refusal, 'message'>, id: unknown): Reply =>
  refusal(403, RPC.unauthorized, message, id);
/** The authenticator is unavailable: every request is refused. */
export const AUTHENTICATION_UNAVAILABLE = refusal(
  503,
  RPC.busy,
  'authentication unavailable',
  null,
  retryIn(5),
);

/** @param retryAfter seconds; 0: it is not known */
export const tooManyRequests = (retryAfter: number, id: unknown = null): Reply =>
  refusal(429, RPC.busy, 'Too Many Requests', id, retryAfter > 0 ? retryIn(retryAfter) : undefined);

// Session and stream
export const sessionNotFound = (id: unknown): Reply =>
  refusal(404, RPC.unauthorized, 'Session not found', id);
export const sessionRequired = (id: unknown = null): Reply =>
  refusal(400, RPC.invalidRequest, 'Missing Mcp-Session-Id', id);
export const INVALID_SESSION = refusal(400, RPC.invalidRequest, 'Invalid Mcp-Session-Id');
export const NO_SESSION = refusal(400, RPC.invalidRequest, 'Missing or invalid Mcp-Session-Id');
export const FOREIGN_SESSION = refusal(
  403,
  RPC.invalidRequest,
  'Mcp-Session-Id is owned by another principal',
);
export const UNKNOWN_EVENT = refusal(400, RPC.invalidRequest, 'Unknown Last-Event-ID');
export const notAcceptable = (id: unknown): Reply =>
  refusal(
    406,
    RPC.invalidRequest,
    'Not Acceptable: the answer is a stream, which Accept: text/event-stream has to allow',
    id,
  );

// Capacity
export const CLOSING = refusal(503, RPC.busy, 'server busy', null, { Connection: 'close' });
/** Too many streams are open. */
export const serverBusy = (id: unknown): Reply => refusal(503, RPC.busy, 'server busy', id);
/** One principal has its share of the streams of a kind open. */
export const streamShareTaken = (share: number, id: unknown): Reply =>
  refusal(
    503,
    RPC.busy,
    `server busy: this caller has ${share} of these streams open; end one`,
    id,
    retryIn(1),
  );
/** Too many bodies are held. */
export const NO_ROOM = refusal(503, RPC.busy, 'server busy', null, retryIn(1));
/** The bodies of one principal fill its share. */
export const bodyShareTaken = (id: unknown): Reply =>
  refusal(
    503,
    RPC.busy,
    'server busy: the requests of this caller that are not answered yet hold too many bytes; wait for an answer',
    id,
    retryIn(1),
  );
/** Too many requests wait on one connection. */
export const connectionBusy = (id: unknown): Reply =>
  refusal(503, RPC.busy, 'server busy: too many requests wait on this connection', id, retryIn(1));
/** The shared state of the replicas cannot be reached: operations that need it are refused. */
export const stateUnavailable = (id: unknown): Reply => refusal(503, RPC.busy, 'server busy', id, retryIn(5));

// Batches
const INSTEAD = 'send fewer messages in one batch, or ask for less in each';
export const batchMessageNotRun = (id: unknown): Reply =>
  refusal(200, RPC.busy, `Not run: the answers to this batch reached its limit of 8 MiB; ${INSTEAD}`, id);
export const batchAnswerLeftOut = (id: unknown): Reply =>
  refusal(
    200,
    RPC.busy,
    `Done, but its answer goes beyond the 8 MiB of the answers to one batch; ${INSTEAD}`,
    id,
  );
export const batchScopeMissing = (id: unknown): Reply =>
  refusal(403, RPC.unauthorized, 'Insufficient scope', id);
export const batchNeedsScopes = (id: unknown): Reply =>
  refusal(403, RPC.unauthorized, 'Not run: another message needs more scopes', id);

// Internal errors
export const internalError = (id: unknown = null, status = 500): Reply =>
  refusal(status, RPC.internalError, 'Internal error', id);

// Routes beside MCP, without JSON-RPC
const plain = (status: number, error: string, headers?: Headers): Reply =>
  reply(status, JSON.stringify({ error }), headers);

/** The same for ids that never existed, that belong to another caller, and that have expired. */
export const FILE_NOT_FOUND = plain(404, 'Not Found', { 'Cache-Control': 'no-store' });
export const FILE_METHOD_NOT_ALLOWED = plain(405, 'Method Not Allowed', { Allow: 'GET, DELETE' });
export const FILE_BUSY = plain(503, 'server busy', retryIn(1));
/** One principal receives its share of the files. */
export const fileShareTaken = (share: number): Reply =>
  plain(503, `server busy: this caller receives ${share} files; wait for one`, retryIn(1));
export const FILE_FAILED = plain(500, 'Internal error');
const FILE_NOT_PERMITTED = 'Not permitted';
/** A refusal of a file's own gates; `null`: an opaque one. */
export const fileRefused = (
  status: number,
  shown: { readonly error: string; readonly error_code: string } | null,
  headers?: Headers,
): Reply => reply(status, JSON.stringify(shown ?? { error: FILE_NOT_PERMITTED }), headers);
export const ROUTE_BUSY = plain(503, 'server busy: too many requests wait on this connection', retryIn(1));

/** Refusals of routes without JSON-RPC, of the checks before authentication too. */
export const ROUTE_WORDS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  403: 'Host or Origin not allowed',
  404: 'Not Found',
  405: 'Method Not Allowed',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal error',
  503: 'server busy',
};

/** Of callers of these routes, and of the documents for callers without a token. */
export const CALLER_WORDS = {
  unauthenticated: [401, 'Unauthorized: invalid or missing API key'],
  scopeMissing: [403, 'Insufficient scope'],
  notNow: [503, 'authentication unavailable'],
  noIssuerNow: [503, 'authorization server unavailable'],
  noStateNow: [503, 'shared state cannot be reached at the moment'],
} as const;

/** Of a known caller whose agent may not act. */
export const toCallerWords = ({ message }: Pick<Refusal, 'message'>) => [403, message] as const;

export const BODY_WORDS = {
  notJson: [415, 'Content-Type must be application/json'],
  notObject: [400, 'body must be a JSON object'],
  tooDeep: [400, 'body nested too deeply'],
  tooLarge: [413, 'body too large'],
} as const;

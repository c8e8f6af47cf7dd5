import { type RateLimiter, isJsonObject, member } from '#core';
import { remoteNetwork } from '#auth';
import {
  CLIENT_CAPABILITIES_KEY,
  decodeHeaderValue,
  headerMismatch,
  isLegacyVersion,
  isServedModernVersion,
  readCapabilities,
  methodNotFound,
  namesModernEra,
  PROTOCOL_VERSION_KEY,
  type ProtocolError,
} from '#dispatcher';
import {
  readClaimedVersion,
  parseBody,
  readBatch,
  readMessage,
  NO_MESSAGE,
  type CheckedMessage,
  type Reply,
} from '../message.js';
import { onceClosed } from './client-memory.js';
import {
  type HttpExchange,
  headerText,
  mayLackHeaders,
  namesTwoHosts,
  NO_BODY,
  readBody,
  refusesAll,
  type RequestCheck,
} from './http-exchange.js';
import {
  BODY_TIMED_OUT,
  CLOSING,
  CUSTOM_HEADER_MISSING,
  HOST_NOT_ALLOWED,
  JSON_REFUSED,
  LENGTH_REQUIRED,
  MALFORMED_HOST,
  malformedEnvelope,
  malformedMessage,
  METHOD_NOT_ALLOWED,
  NO_ROOM,
  NOT_A_MESSAGE,
  NOT_FOUND,
  ORIGIN_NOT_ALLOWED,
  payloadTooLarge,
  refusedByKernel,
  TOO_MANY_HEADERS,
  tooManyRequests,
  TWO_HOSTS,
  unreadableBody,
  UNSUPPORTED_ENCODING,
  UNSUPPORTED_MEDIA_TYPE,
  unsupportedLegacyVersion,
  unsupportedVersion,
} from './refusals.js';

/**
 * The checks of what arrives: address, method, host and page, body and message. None of them needs to know the caller.
 * `mcp-edge.ts` holds their order.
 */

/** `Retry-After`, in seconds, where requests cannot be counted. */
export const LIMITER_FAILED_RETRY = 5;

/** Only the exact path, with or without one trailing slash, is MCP. */
export const path: RequestCheck = {
  name: 'path',
  check: ({ path: requested, edge: { settings } }) =>
    requested === settings.path || requested === `${settings.path}/` ? null : NOT_FOUND,
};

/** Before any other check: each of them decides by headers that are there, or are not. */
export const wholeHeaders: RequestCheck = {
  name: 'whole-headers',
  check: ({ request }) => (mayLackHeaders(request) ? TOO_MANY_HEADERS : null),
};

export const host: RequestCheck = {
  name: 'host',
  check: ({ headers, request, edge }) => {
    // It is not known here which of two values a proxy in front used.
    if (namesTwoHosts(request)) return TWO_HOSTS;
    const verdict = edge.settings.hosts.judge(headers.host);
    if (verdict === 'permitted') return null;
    if (verdict === 'malformed') return MALFORMED_HOST;
    edge.onHostRefused(headers.host);
    return HOST_NOT_ALLOWED;
  },
};

export const accepting: RequestCheck = {
  name: 'accepting',
  check: ({ edge }) => (edge.accepting ? null : CLOSING),
};

/** A limiter that fails counts as exhausted. */
async function spend(limiter: RateLimiter, address: string): Promise<Reply | null> {
  try {
    const verdict = await limiter.check(address);
    if (!verdict) return null;
    return tooManyRequests(Math.ceil(verdict.retryAfter));
  } catch {
    return tooManyRequests(LIMITER_FAILED_RETRY);
  }
}

/** Runs before any check that requires authentication. */
export const preAuthLimit: RequestCheck = {
  name: 'pre-auth-limit',
  check: ({
    request,
    edge: {
      settings: { preAuthRateLimiter: limiter },
    },
  }) => (limiter ? spend(limiter, remoteNetwork(request.socket.remoteAddress)) : null),
};

/** A check of the requests of one HTTP method; a request of another method passes. */
export function forMethod(name: string, method: string, check: RequestCheck['check']): RequestCheck {
  return { name, check: (exchange) => (exchange.verb === method ? check(exchange) : null) };
}

export const postOnly: RequestCheck = {
  name: 'verb',
  check: ({ verb }) => (verb === 'POST' ? null : METHOD_NOT_ALLOWED),
};

const JSON_TYPE = 'application/json';

/** A body without a declared length cannot be refused before it is read. */
export const lengthRequired: RequestCheck = {
  name: 'length-required',
  check: ({ headers, edge: { settings } }) => {
    if (!settings.requireContentLength) return null;
    const declared = headers['content-length'] !== undefined && headers['transfer-encoding'] === undefined;
    return declared ? null : LENGTH_REQUIRED;
  },
};

export const declaredLength: RequestCheck = {
  name: 'declared-length',
  check: ({ headers, edge: { settings } }) =>
    Number(headers['content-length'] ?? 0) > settings.maxBodySize
      ? payloadTooLarge('body', settings.maxBodySize)
      : null,
};

export const mediaType: RequestCheck = {
  name: 'media-type',
  check: ({ headers }) => {
    const { 'content-encoding': encoding, 'content-type': type = '' } = headers;
    if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity') return UNSUPPORTED_ENCODING;
    if (type === JSON_TYPE) return null;
    const semicolon = type.indexOf(';');
    const bare = semicolon < 0 ? type : type.slice(0, semicolon);
    return bare.trim().toLowerCase() === JSON_TYPE ? null : UNSUPPORTED_MEDIA_TYPE;
  },
};

/** What `Accept` may name for a JSON body, the most exact range first. */
const JSON_RANGES = [JSON_TYPE, 'application/*', '*/*'];

/** A client that names nothing, or another type alone, gets JSON: not all of them say what they read. */
export const accept: RequestCheck = {
  name: 'accept',
  check: ({ headers: { accept: ranges } }) =>
    ranges !== undefined && refusesAll(ranges, JSON_RANGES) ? JSON_REFUSED : null,
};

export const origin: RequestCheck = {
  name: 'origin',
  check: ({ headers, edge }) => {
    if (edge.settings.origins.permits(headers.origin)) return null;
    edge.onOriginRefused(headers.origin);
    return ORIGIN_NOT_ALLOWED;
  },
};

/** A header that no web form can set and that makes a browser send a preflight request. */
export const customHeader: RequestCheck = {
  name: 'custom-header',
  check: ({ headers, edge: { settings } }) => {
    const wanted = settings.customHeader;
    if (!wanted) return null;
    const sent = headers[wanted.name];
    const fits = typeof sent === 'string' && sent !== '' && (wanted.value === null || sent === wanted.value);
    return fits ? null : CUSTOM_HEADER_MISSING;
  },
};

export const body: RequestCheck = {
  name: 'body',
  check: async (exchange) => {
    const { settings, pendingBodies } = exchange.edge;
    const { maxBodySize, bodyTimeout } = settings;
    const held = pendingBodies.begin(remoteNetwork(exchange.request.socket.remoteAddress));
    exchange.heldBody = held;
    onceClosed(exchange.request, exchange.response, () => held.release());
    const reading = await readBody(exchange, maxBodySize, bodyTimeout, (bytes) => held.grow(bytes));
    exchange.onGone = null;
    if (reading.outcome === 'no-room') return NO_ROOM;
    if (reading.outcome === 'too-large') return payloadTooLarge('body', maxBodySize);
    if (reading.outcome === 'too-slow') return BODY_TIMED_OUT;
    if (reading.outcome === 'gone') return 'gone';
    exchange.body = reading.body;
    return null;
  },
};

export const json: RequestCheck = {
  name: 'json',
  check: (exchange) => {
    const reading = parseBody(exchange.body);
    if (!reading.ok) return unreadableBody(reading.fault);
    exchange.body = NO_BODY;
    exchange.parsed = reading.value;
    return null;
  },
};

/** Without a session there is no revision that has batches: authentication is not needed to refuse it. */
function mayHoldBatch({ headers }: HttpExchange): boolean {
  return headerText(headers, 'mcp-session-id') !== undefined;
}

/**
 * A request, a notification, the reply to a request to the client, or, where the session may have a revision with batches,
 * several of them.
 */
export const messageShape: RequestCheck = {
  name: 'message-shape',
  check: (exchange) => {
    const { settings } = exchange.edge;
    const { parsed } = exchange;
    if (Array.isArray(parsed)) {
      const batch = mayHoldBatch(exchange) ? readBatch(parsed, settings.maxBatchSize) : null;
      if (!batch) return NOT_A_MESSAGE;
      exchange.batch = batch;
      return null;
    }
    const message = readMessage(parsed);
    if (!message) return NOT_A_MESSAGE;
    exchange.message = message;
    return null;
  },
};

export const VERSION_HEADER = 'mcp-protocol-version';

/** The body takes precedence; the header counts only where the body names no version. */
export const era: RequestCheck = {
  name: 'era',
  check: (exchange) => {
    const { message } = exchange;
    const header = headerText(exchange.headers, VERSION_HEADER);
    // `initialize` is the handshake itself: there its header is only checked for a contradiction.
    const isNamed =
      namesModernEra(header) && (message.method !== 'initialize' || isServedModernVersion(header));
    const isModern = !message.isResponse && (readClaimedVersion(message) !== undefined || isNamed);
    exchange.era = isModern ? 'modern' : 'legacy';
    return null;
  },
};

/** The param that `Mcp-Name` mirrors, by method. */
const NAMED_PARAM: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
};

function refuse({ message }: CheckedMessage, error: ProtocolError): Reply {
  const { code, message: text, data, status } = error;
  return refusedByKernel(status, { code, message: text, ...(data !== undefined && { data }) }, message.id);
}

/** Stateless revisions use only the id. */
function isNotification({ message }: CheckedMessage): boolean {
  return message.id === undefined;
}

/** A check that needs no HTTP request: it applies on every transport. */
export interface MessageCheck {
  readonly name: string;
  readonly check: (checked: CheckedMessage) => Reply | null;
}

/** A check of the stateless era; legacy messages pass. */
function modernCheck(name: string, check: MessageCheck['check']): MessageCheck {
  return {
    name,
    check: (exchange) => (exchange.era === 'modern' ? check(exchange) : null),
  };
}

/** JSON-RPC 2.0, with ids to the letter in the stateless era. Messages of a batch are checked when they are read. */
export const jsonRpc: MessageCheck = {
  name: 'json-rpc',
  check: ({ message, era: spoken }) => {
    const { jsonrpc, id } = message;
    if (message === NO_MESSAGE) return null;
    const validId =
      spoken === 'legacy' || id === undefined || typeof id === 'string' || Number.isSafeInteger(id);
    return jsonrpc === '2.0' && validId ? null : malformedMessage(id);
  },
};

/** Every request carries its version and the capabilities of its client. */
export const envelope = modernCheck('envelope', (exchange) => {
  const { message } = exchange;
  const meta = member(message.params, '_meta');
  const version = readClaimedVersion(message);
  const refuseMissing = (key: string) => malformedEnvelope(key, message.id);
  if (isNotification(exchange)) {
    if (version !== undefined && typeof version !== 'string') return refuseMissing(PROTOCOL_VERSION_KEY);
    exchange.version = version ?? headerText(exchange.headers, VERSION_HEADER) ?? '';
    return null;
  }
  if (typeof version !== 'string') return refuseMissing(PROTOCOL_VERSION_KEY);
  const capabilities = member(meta, CLIENT_CAPABILITIES_KEY);
  if (!isJsonObject(capabilities)) return refuseMissing(CLIENT_CAPABILITIES_KEY);
  exchange.version = version;
  exchange.clientCapabilities = readCapabilities(capabilities);
  return null;
});

export const versionHeader = modernCheck('version-header', (exchange) => {
  const header = headerText(exchange.headers, VERSION_HEADER);
  if (header === exchange.version || (header === undefined && isNotification(exchange))) return null;
  return refuse(exchange, headerMismatch('MCP-Protocol-Version'));
});

export const methodHeader = modernCheck('method-header', (exchange) => {
  const header = headerText(exchange.headers, 'mcp-method');
  if (header === exchange.message.method || (header === undefined && isNotification(exchange))) return null;
  return refuse(exchange, headerMismatch('Mcp-Method'));
});

export const nameHeader = modernCheck('name-header', (exchange) => {
  const { method, params } = exchange.message;
  const param = Object.hasOwn(NAMED_PARAM, method) ? NAMED_PARAM[method] : undefined;
  const named = param === undefined ? undefined : member(params, param);
  if (typeof named !== 'string' || isNotification(exchange)) return null;
  const header = exchange.headers['mcp-name'];
  if (typeof header === 'string' && decodeHeaderValue(header) === named) return null;
  return refuse(exchange, headerMismatch('Mcp-Name'));
});

export const servedVersion = modernCheck('served-version', (exchange) => {
  const requested = exchange.version;
  if (isServedModernVersion(requested)) return null;
  return unsupportedVersion(requested, exchange.message.id);
});

export const servedMethod = modernCheck('served-method', (exchange) => {
  const { method } = exchange.message;
  const { kernel } = exchange.edge;
  if (isNotification(exchange) || kernel.serves(method, 'modern', exchange.version)) return null;
  return refuse(exchange, methodNotFound(method));
});

/** Messages that need no negotiated version, beside replies. */
const WITHOUT_VERSION: ReadonlySet<string> = new Set(['initialize', 'notifications/cancelled']);

export const legacyVersion: RequestCheck = {
  name: 'legacy-version',
  check: (exchange) => {
    const { message } = exchange;
    if (exchange.era !== 'legacy' || message.isResponse || WITHOUT_VERSION.has(message.method)) return null;
    const requested = headerText(exchange.headers, VERSION_HEADER);
    if (requested === undefined || isLegacyVersion(requested)) return null;
    return unsupportedLegacyVersion(requested, message.id);
  },
};

import type { RateLimiter } from '#core';
import { oneLine } from '#audit';
import { remoteNetwork } from '#auth';
import { namesTwoHosts, type RequestCheck } from './http-exchange.js';
import {
  CLOSING,
  CUSTOM_HEADER_MISSING,
  HOST_NOT_ALLOWED,
  LENGTH_REQUIRED,
  MALFORMED_HOST,
  NOT_FOUND,
  ORIGIN_NOT_ALLOWED,
  payloadTooLarge,
  tooManyRequests,
  TWO_HOSTS,
  UNSUPPORTED_MEDIA_TYPE,
} from './refusals.js';
import { reply, type Reply } from './reply.js';

const HEALTHY = reply(200, '{"status":"ok"}');
/** `Retry-After`, in seconds, where requests cannot be counted. */
const UNCOUNTABLE = 5;

/** Only the exact path, with or without one trailing slash, is MCP. */
export const path: RequestCheck = {
  name: 'path',
  check: ({ path: asked, verb, edge: { settings } }) => {
    const served = asked === settings.path || asked === `${settings.path}/`;
    return served || (verb === 'GET' && asked === settings.healthPath) ? null : NOT_FOUND;
  },
};

export const host: RequestCheck = {
  name: 'host',
  check: ({ headers, request, edge: { settings } }) => {
    // It is not known here which of two values a proxy in front used.
    if (namesTwoHosts(request)) return TWO_HOSTS;
    const verdict = settings.hosts.judge(headers.host);
    if (verdict === 'permitted') return null;
    return verdict === 'malformed' ? MALFORMED_HOST : HOST_NOT_ALLOWED;
  },
};

/** Reports to a load balancer that the process answers, and nothing else. */
export const health: RequestCheck = {
  name: 'health',
  check: ({ path: asked, verb, edge: { settings } }) =>
    verb === 'GET' && asked === settings.healthPath ? HEALTHY : null,
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
    return tooManyRequests(UNCOUNTABLE);
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
    const type = headers['content-type'] ?? '';
    if (type === JSON_TYPE) return null;
    const semicolon = type.indexOf(';');
    const bare = semicolon < 0 ? type : type.slice(0, semicolon);
    return bare.trim().toLowerCase() === JSON_TYPE ? null : UNSUPPORTED_MEDIA_TYPE;
  },
};

export const origin: RequestCheck = {
  name: 'origin',
  check: ({ headers, edge: { settings, log } }) => {
    if (settings.origins.permits(headers.origin)) return null;
    log.warn(`[McpEdge] Origin refused: ${oneLine(JSON.stringify(headers.origin))}`);
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

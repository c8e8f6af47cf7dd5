import type { RateLimiter } from '#agent';
import { RPC } from '#dispatcher';
import { remoteNetwork } from '#auth';
import { errorReply, reply, type Reply } from '../reply.js';
import { namesTwoHosts } from '../request-headers.js';
import type { Rung } from './rung.js';

const NOT_FOUND = errorReply(404, { code: RPC.methodNotFound, message: 'Not Found' });
const HOST_NOT_ALLOWED = errorReply(403, { code: RPC.parseError, message: 'Host not allowed' });
const MALFORMED_HOST = errorReply(400, {
  code: RPC.invalidRequest,
  message: 'Invalid Request: Host is not host[:port]',
});
const TWO_HOSTS = errorReply(400, { code: RPC.invalidRequest, message: 'Invalid Request: two Host headers' });
const HEALTHY = reply(200, '{"status":"ok"}');
const CLOSING = errorReply(503, { code: RPC.busy, message: 'server busy' }, null, { Connection: 'close' });

const TOO_MANY = { code: RPC.busy, message: 'Too Many Requests' };
/** The requests cannot be counted. */
const UNCOUNTABLE = errorReply(429, TOO_MANY, null, { 'Retry-After': '5' });

/** Only the exact path, with or without one trailing slash, is MCP. */
export const path: Rung = {
  name: 'path',
  check: ({ path: asked, verb }, { settings }) => {
    const served = asked === settings.path || asked === `${settings.path}/`;
    return served || (verb === 'GET' && asked === settings.healthPath) ? null : NOT_FOUND;
  },
};

export const host: Rung = {
  name: 'host',
  check: ({ headers, request }, { settings }) => {
    // Which of two a proxy in front went by is not known here.
    if (namesTwoHosts(request)) return TWO_HOSTS;
    const verdict = settings.hosts.judge(headers.host);
    if (verdict === 'permitted') return null;
    return verdict === 'malformed' ? MALFORMED_HOST : HOST_NOT_ALLOWED;
  },
};

/** Tells a load balancer that the process answers, and nothing else. */
export const health: Rung = {
  name: 'health',
  check: ({ path: asked, verb }, { settings }) =>
    verb === 'GET' && asked === settings.healthPath ? HEALTHY : null,
};

export const accepting: Rung = {
  name: 'accepting',
  check: (_, edge) => (edge.accepting ? null : CLOSING),
};

/** A limiter that fails counts as exhausted. */
async function spend(limiter: RateLimiter, address: string): Promise<Reply | null> {
  try {
    const verdict = await limiter.check(address);
    if (!verdict) return null;
    const wait = Math.ceil(verdict.retryAfter);
    return errorReply(429, TOO_MANY, null, wait > 0 ? { 'Retry-After': String(wait) } : undefined);
  } catch {
    return UNCOUNTABLE;
  }
}

/** Before anything that costs an authentication. */
export const preAuthLimit: Rung = {
  name: 'pre-auth-limit',
  check: ({ request }, { settings: { preAuthRateLimiter: limiter } }) =>
    limiter ? spend(limiter, remoteNetwork(request.socket.remoteAddress)) : null,
};

import type { RateLimiter } from '#agent';
import { remoteNetwork } from '#auth';
import {
  CLOSING,
  HOST_NOT_ALLOWED,
  MALFORMED_HOST,
  NOT_FOUND,
  tooManyRequests,
  TWO_HOSTS,
} from '../http/refusals.js';
import { reply, type Reply } from '../reply.js';
import { namesTwoHosts } from '../request-headers.js';
import type { Rung } from './rung.js';

const HEALTHY = reply(200, '{"status":"ok"}');
/** Seconds that a caller is told to wait where requests cannot be counted. */
const UNCOUNTABLE = 5;

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
    return tooManyRequests(Math.ceil(verdict.retryAfter));
  } catch {
    return tooManyRequests(UNCOUNTABLE);
  }
}

/** Before anything that costs an authentication. */
export const preAuthLimit: Rung = {
  name: 'pre-auth-limit',
  check: ({ request }, { settings: { preAuthRateLimiter: limiter } }) =>
    limiter ? spend(limiter, remoteNetwork(request.socket.remoteAddress)) : null,
};

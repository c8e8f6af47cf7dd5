import type { RateVerdict } from '#agent';
import { SharedStateUnavailable } from '#cluster';
import { faultLine, member } from '#dispatcher';
import type { Message } from '../message.js';
import { tooManyRequests } from '../http/refusals.js';
import type { EdgeParts, Rung } from './rung.js';

/** Seconds that a caller is told to wait where the limiter itself failed. */
const UNCOUNTED = 5;

/** `ping` asks whether we are there, and a call of a tool is counted by its agent's own limit. */
function isCounted({ method, params }: Message): boolean {
  if (method === 'ping') return false;
  return method !== 'tools/call' || typeof member(params, 'name') !== 'string';
}

/** @throws SharedStateUnavailable. A limiter that fails in any other way counts as exhausted. */
export async function spendRequest(
  { settings, log }: Pick<EdgeParts, 'settings' | 'log'>,
  principal: string,
): Promise<number | null> {
  let verdict: RateVerdict | null | undefined;
  try {
    verdict = await settings.requestLimiter?.check(principal);
  } catch (fault) {
    if (fault instanceof SharedStateUnavailable) throw fault;
    log.warn(faultLine('[McpEdge] the limiter of requests failed:', fault));
    return UNCOUNTED;
  }
  return verdict ? Math.max(1, Math.ceil(verdict.retryAfter)) : null;
}

/** What a principal may ask for besides calls of tools: opening sessions, lists, streams, cancellations. */
export const requestLimit: Rung = {
  name: 'request-limit',
  check: async ({ agent, batch, message, verb }, edge) => {
    if (!agent || !edge.settings.requestLimiter) return null;
    const messages = verb === 'POST' ? (batch ?? [message]).filter(isCounted).length : 1;
    for (let at = 0; at < messages; at += 1) {
      const wait = await spendRequest(edge, agent.principal);
      if (wait !== null) return tooManyRequests(wait, message.id);
    }
    return null;
  },
};

import { admittedAs } from '#agent';
import { faultLine, member } from '#dispatcher';
import type { Exchange } from '../exchange.js';
import type { Message } from '../message.js';
import { ACCEPTED } from '../reply.js';
import type { EdgeParts, Rung } from './rung.js';

/**
 * Takes what is sent without waiting for an answer: replies to requests of ours, and cancellations. Whether anything
 * was waiting is told to nobody.
 * @returns whether the message was one of these
 */
export function takeSilently(message: Message, exchange: Exchange, { wire, log }: EdgeParts): boolean {
  const { agent, correlationId, session } = exchange;
  const owner = agent?.principal ?? '';
  if (message.isResponse) {
    if (agent && session && correlationId !== undefined)
      wire.asks
        .deliver({ owner: admittedAs(agent), session: correlationId }, message)
        .catch((fault: unknown) => log.warn(faultLine('[McpEdge] a reply was lost:', fault)));
    return true;
  }
  if (message.method !== 'notifications/cancelled') return false;
  const requestId = member(message.params, 'requestId');
  if (correlationId !== undefined && requestId !== undefined && requestId !== null)
    wire.cancel({ owner, session: correlationId, requestId }, 'notifications_cancelled');
  return true;
}

/** Messages that are taken without an answer; cancellation always is, so that it tells nobody what is running. */
export const acknowledge: Rung = {
  name: 'acknowledge',
  check: (exchange, edge) => {
    const { era, message } = exchange;
    if (era === 'modern') return message.isResponse || message.id === undefined ? ACCEPTED : null;
    return takeSilently(message, exchange, edge) ? ACCEPTED : null;
  },
};

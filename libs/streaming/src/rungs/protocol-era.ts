import {
  type Era,
  isLegacyVersion,
  isServedModernVersion,
  member,
  namesModernEra,
  PROTOCOL_VERSION_KEY,
} from '#dispatcher';
import type { Exchange } from '../exchange.js';
import type { Message } from '../message.js';
import { unsupportedLegacyVersion } from '../http/refusals.js';
import { headerText } from '../request-headers.js';
import type { Rung } from './rung.js';

export const VERSION_HEADER = 'mcp-protocol-version';

/** What the body says of its own protocol version; `undefined` when it says nothing. */
export function claimedVersion({ params }: Message): unknown {
  return member(member(params, '_meta'), PROTOCOL_VERSION_KEY);
}

/** The body decides; the header is asked only where the body is silent. */
function eraOf(message: Message, header: string | undefined): Era {
  if (message.isResponse) return 'legacy';
  if (claimedVersion(message) !== undefined) return 'modern';
  if (!namesModernEra(header)) return 'legacy';
  // `initialize` is the handshake itself: there its header is only checked against a contradiction.
  return message.method === 'initialize' && !isServedModernVersion(header) ? 'legacy' : 'modern';
}

export const era: Rung = {
  name: 'era',
  check: (exchange) => {
    exchange.era = eraOf(exchange.message, headerText(exchange.headers, VERSION_HEADER));
    return null;
  },
};

/** Messages that may precede, or do without, a negotiated version. */
function needsNoVersion({ message }: Exchange): boolean {
  return (
    message.isResponse || message.method === 'initialize' || message.method === 'notifications/cancelled'
  );
}

export const legacyVersion: Rung = {
  name: 'legacy-version',
  check: (exchange) => {
    if (exchange.era !== 'legacy' || needsNoVersion(exchange)) return null;
    const asked = headerText(exchange.headers, VERSION_HEADER);
    if (asked === undefined || isLegacyVersion(asked)) return null;
    return unsupportedLegacyVersion(asked, exchange.message.id);
  },
};

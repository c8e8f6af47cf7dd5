import { ROUTE_WORDS } from './http/refusals.js';

/** Why a request beside MCP is not served: an HTTP status, its words and headers. All of it is told to whoever asks. */
export class NotServed extends Error {
  override readonly name = 'NotServed';
  constructor(
    readonly status: number,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

/** In the words of routes that speak no JSON-RPC. */
export function notServed(status: number, headers: Readonly<Record<string, string>> = {}): NotServed {
  return new NotServed(status, ROUTE_WORDS[status] ?? String(ROUTE_WORDS[400]), headers);
}

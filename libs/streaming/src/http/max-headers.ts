import type { IncomingMessage } from 'node:http';

/** Node keeps as many headers where a server says nothing else, and drops further ones without an error. */
export const MAX_HEADERS = 1_000;

/** What Node keeps at a socket of an HTTP server; its types do not list these. */
interface ServedSocket {
  readonly parser?: { readonly maxHeaderPairs?: number } | null;
  readonly server?: { readonly maxHeadersCount?: number | null };
}

/**
 * Whether a request may have had more headers than are seen here. Those of a proxy often come last: without them a request from
 * another machine looks like one from this machine.
 */
export function mayLackHeaders({ rawHeaders, socket }: IncomingMessage): boolean {
  const seen = rawHeaders.length / 2;
  return seen >= MAX_HEADERS || seen >= headersKept(socket as ServedSocket);
}

/** How many headers the server of a connection keeps. The parser has the number from when the connection was opened. */
function headersKept({ parser, server }: ServedSocket): number {
  const kept = parser?.maxHeaderPairs === undefined ? server?.maxHeadersCount : parser.maxHeaderPairs / 2;
  if (typeof kept !== 'number') return MAX_HEADERS;
  return kept <= 0 ? Infinity : kept;
}

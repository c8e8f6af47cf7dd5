import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { NO_CONTENT } from '../message.js';
import type { EdgeSettings } from './edge-dependencies.js';
import type { HttpExchange, RequestCheck } from './http-exchange.js';

/** What pages may read of an answer besides its body. */
const EXPOSED_HEADERS =
  'Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After, Content-Disposition, X-Request-Id';

/** What pages may send: the headers of every revision of MCP, of every credential, and of traces. */
const SENT: readonly string[] = [
  'Accept',
  'Authorization',
  'Content-Type',
  'Last-Event-ID',
  'traceparent',
  'tracestate',
  'Mcp-Method',
  'Mcp-Name',
  'MCP-Protocol-Version',
  'Mcp-Session-Id',
  'X-MCP-API-Key',
  'X-Parse-Session-Token',
  'X-Request-Id',
];
/** The headers that mirror parameters of a tool (2026-07-28), which nobody can list. */
const PARAM_HEADER = /^mcp-param-[\w.-]{1,128}$/i;
/** Seconds for which a browser need not ask again. */
const MAX_AGE = '600';

/**
 * Lets pages of the listed origins read an answer. Where origins are listed, every answer depends on the page that asks; where none
 * is, no page may read any. Cookies and certificates of a browser are never asked for.
 */
export function openToPage(
  { origin }: IncomingHttpHeaders,
  response: ServerResponse,
  { origins }: EdgeSettings,
): void {
  if (!origins.isList) return;
  response.appendHeader('Vary', 'Origin');
  // An application in front may have answered for pages of its own.
  response.removeHeader('Access-Control-Allow-Credentials');
  if (origin === undefined || !origins.lists(origin)) return;
  response.setHeader('Access-Control-Allow-Origin', origin);
  response.setHeader('Access-Control-Expose-Headers', EXPOSED_HEADERS);
}

/** Whether a browser asks what a page of a listed origin may send. Another origin is logged: its page asks nothing else. */
export function permitsPreflight({ verb, headers, edge }: HttpExchange): boolean {
  const { origin } = headers;
  const method = headers['access-control-request-method'];
  if (verb !== 'OPTIONS' || method === undefined || origin === undefined) return false;
  if (edge.settings.origins.lists(origin)) return true;
  edge.onOriginRefused(origin);
  return false;
}

/** Answers preflights before credentials, which browsers do not send with them. @param methods of the route */
export function preflightFor(methods: string): RequestCheck {
  return {
    name: 'preflight',
    check: (exchange) => {
      if (!permitsPreflight(exchange)) return null;
      const { headers, edge } = exchange;
      const { customHeader } = edge.settings;
      const asked = (headers['access-control-request-headers'] ?? '').split(',').map((name) => name.trim());
      const sent = [...SENT, ...(customHeader ? [customHeader.name] : []), ...asked.filter(isMirrored)];
      return {
        ...NO_CONTENT,
        headers: {
          'Access-Control-Allow-Methods': methods,
          'Access-Control-Allow-Headers': sent.join(', '),
          'Access-Control-Max-Age': MAX_AGE,
          // A page of the internet that asks a service in a private network.
          ...(headers['access-control-request-private-network'] === 'true' && {
            'Access-Control-Allow-Private-Network': 'true',
          }),
        },
      };
    },
  };
}

const isMirrored = (name: string) => PARAM_HEADER.test(name);

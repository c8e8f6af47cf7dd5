import type { IncomingHttpHeaders } from 'node:http';

/** The part of a request that authentication reads. Headers with `_` in their names have been removed. */
export interface CredentialSource {
  /** As Node.js parses them, names in lower case. */
  readonly headers: Readonly<IncomingHttpHeaders>;
  /** Address of the peer, which may be a proxy. */
  readonly remoteAddress: string | undefined;
  /** HTTP method. */
  readonly method: string;
}

/** The part of a request that identifies the caller. */
export type Credentials = Pick<CredentialSource, 'headers' | 'remoteAddress'>;

export function headerOf(credentials: Pick<Credentials, 'headers'>, name: string): string | undefined {
  const value = credentials.headers[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The token of the `Authorization` header. */
export function bearerToken(credentials: Pick<Credentials, 'headers'>): string | undefined {
  return /^Bearer +(\S+)$/i.exec(headerOf(credentials, 'authorization') ?? '')?.[1];
}

/** The API key: `X-MCP-API-Key`, else the bearer token. */
export function presentedKey(credentials: Credentials): string | undefined {
  return headerOf(credentials, 'x-mcp-api-key') ?? bearerToken(credentials);
}

/** The session token in the header of Parse clients. */
export function presentedSession(credentials: Credentials): string | undefined {
  return headerOf(credentials, 'x-parse-session-token');
}

const CREDENTIAL_HEADERS: readonly string[] = ['x-mcp-api-key', 'authorization', 'x-parse-session-token'];
/** Any of these headers shows that the peer forwards the request of another client. */
// prettier-ignore
const FORWARDING_HEADERS = [
  'forwarded', 'via', 'x-real-ip', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-port',
];

/**
 * The headers of a request that hold credentials; each is checked on its own.
 * @param others additional credential headers, in lower case
 */
export function shownCredentials(
  credentials: Pick<Credentials, 'headers'>,
  others: readonly string[] = [],
): string[] {
  return [...CREDENTIAL_HEADERS, ...others].filter((name) => headerOf(credentials, name) !== undefined);
}

/** @param others additional credential headers, in lower case */
export function presentsCredential(
  credentials: Pick<Credentials, 'headers'>,
  others: readonly string[] = [],
): boolean {
  return shownCredentials(credentials, others).length > 0;
}

/**
 * The same request with one of its credentials alone.
 * @param others additional credential headers, in lower case
 */
export function showingOnly(
  credentials: Credentials,
  shown: string,
  others: readonly string[] = [],
): Credentials {
  const left = new Set([...CREDENTIAL_HEADERS, ...others].filter((name) => name !== shown));
  const headers = Object.fromEntries(Object.entries(credentials.headers).filter(([name]) => !left.has(name)));
  return { ...credentials, headers };
}

/** Headers of clients, browsers and proxies that are never credentials. */
const ORDINARY = new Set([
  ...FORWARDING_HEADERS,
  ...'accept cache-control connection content-length content-type date dnt expect host if-match if-modified-since if-none-match'.split(
    ' ',
  ),
  ...'keep-alive last-event-id origin pragma priority range referer te traceparent tracestate baggage transfer-encoding'.split(
    ' ',
  ),
  ...'upgrade upgrade-insecure-requests user-agent x-correlation-id x-request-id'.split(' '),
]);
const ORDINARY_FAMILIES = /^(?:accept|content|sec|mcp|access-control|x-forwarded)-/;

/** Whether a request may show a credential, where the credential headers are not configured. */
export function mayPresentCredential({ headers }: Pick<Credentials, 'headers'>): boolean {
  return Object.keys(headers).some((name) => !ORDINARY.has(name) && !ORDINARY_FAMILIES.test(name));
}

/** Whether the peer is a loopback address and not a proxy that forwards another client's request. */
export function isDirectLoopback(credentials: Credentials): boolean {
  const address = credentials.remoteAddress?.replace(/^::ffff:/i, '') ?? '';
  const loopback = address === '::1' || /^127(\.\d{1,3}){3}$/.test(address);
  return loopback && FORWARDING_HEADERS.every((name) => credentials.headers[name] === undefined);
}

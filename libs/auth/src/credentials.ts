import type { CredentialSource } from './authenticator.js';

/** The part of a request that says who is calling. */
export type Credentials = Pick<CredentialSource, 'headers' | 'remoteAddress'>;

export function headerOf(credentials: Pick<Credentials, 'headers'>, name: string): string | undefined {
  const value = credentials.headers[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The token of the `Authorization` header. */
export function bearerToken(credentials: Pick<Credentials, 'headers'>): string | undefined {
  return /^Bearer +(\S+)$/i.exec(headerOf(credentials, 'authorization') ?? '')?.[1];
}

/** The API key as sent: `X-MCP-API-Key`, else the bearer token. */
export function presentedKey(credentials: Credentials): string | undefined {
  return headerOf(credentials, 'x-mcp-api-key') ?? bearerToken(credentials);
}

/** The session token as Parse clients send it. */
export function presentedSession(credentials: Credentials): string | undefined {
  return headerOf(credentials, 'x-parse-session-token');
}

const CREDENTIAL_HEADERS = ['x-mcp-api-key', 'authorization', 'x-parse-session-token'];
/** Any of them says that somebody else asks through the peer. */
// prettier-ignore
const FORWARDING_HEADERS = [
  'forwarded', 'via', 'x-real-ip', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-port',
];

/** @param others headers that are credentials here */
export function presentsCredential(credentials: Credentials, others: readonly string[] = []): boolean {
  return [...CREDENTIAL_HEADERS, ...others].some((name) => headerOf(credentials, name) !== undefined);
}

/** Directly from this machine: a loopback peer that is not a proxy speaking for somebody else. */
export function isDirectLoopback(credentials: Credentials): boolean {
  const address = credentials.remoteAddress?.replace(/^::ffff:/i, '') ?? '';
  const loopback = address === '::1' || /^127(\.\d{1,3}){3}$/.test(address);
  return loopback && FORWARDING_HEADERS.every((name) => credentials.headers[name] === undefined);
}

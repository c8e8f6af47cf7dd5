import { BlockList, isIP, isIPv6 } from 'node:net';
import type { IncomingHttpHeaders } from 'node:http';

/** The part of a request that authentication reads. Headers with `_` in their names have been removed. */
export interface CredentialSource {
  /** As Node.js parses them, names in lower case. */
  readonly headers: Readonly<IncomingHttpHeaders>;
  /** Address of the peer, which may be a proxy. */
  readonly remoteAddress: string | undefined;
  /** HTTP method. */
  readonly method: string;
  /** `X-Request-Id`, as the answer carries it; for records. Default: none. */
  readonly requestId?: string;
}

/** The part of a request that identifies the caller. */
export type Credentials = Pick<CredentialSource, 'headers' | 'remoteAddress'>;

export function readHeader(credentials: Pick<Credentials, 'headers'>, name: string): string | undefined {
  const value = credentials.headers[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The token of the `Authorization` header. */
export function bearerToken(credentials: Pick<Credentials, 'headers'>): string | undefined {
  return /^Bearer +(\S+)$/i.exec(readHeader(credentials, 'authorization') ?? '')?.[1];
}

/** The API key: `X-MCP-API-Key`, else the bearer token. */
export function readKeyHeader(credentials: Credentials): string | undefined {
  return readHeader(credentials, 'x-mcp-api-key') ?? bearerToken(credentials);
}

/** The session token in the header of Parse clients. */
export function readSessionHeader(credentials: Credentials): string | undefined {
  return readHeader(credentials, 'x-parse-session-token');
}

const CREDENTIAL_HEADERS: readonly string[] = ['x-mcp-api-key', 'authorization', 'x-parse-session-token'];
/** Any of these headers shows that the peer forwards the request of another client, and so does each of their families. */
// prettier-ignore
const FORWARDING_HEADERS = new Set([
  'forwarded', 'via', 'cdn-loop', 'x-real-ip', 'x-client-ip', 'x-cluster-client-ip', 'true-client-ip', 'fastly-client-ip',
  'x-original-forwarded-for', 'x-original-host', 'x-arr-log-id',
]);
const FORWARDING_FAMILIES = /^(?:x-forwarded|x-envoy|x-appengine|x-azure|cf|fly)-/;

/**
 * The headers of a request that hold credentials; each is checked on its own.
 * @param others additional credential headers, in lower case
 */
export function listShownCredentials(
  credentials: Pick<Credentials, 'headers'>,
  others: readonly string[] = [],
): string[] {
  return [...CREDENTIAL_HEADERS, ...others].filter((name) => readHeader(credentials, name) !== undefined);
}

/**
 * The same request with one of its credentials alone.
 * @param others additional credential headers, in lower case
 */
export function keepOneCredential(
  credentials: Credentials,
  shown: string,
  others: readonly string[] = [],
): Credentials {
  const left = new Set([...CREDENTIAL_HEADERS, ...others].filter((name) => name !== shown));
  const headers = Object.fromEntries(Object.entries(credentials.headers).filter(([name]) => !left.has(name)));
  return { ...credentials, headers };
}

/** Headers of clients, browsers and proxies that are never credentials. */
const ORDINARY_HEADERS = new Set([
  ...'accept cache-control connection content-length content-type date dnt expect host if-match if-modified-since if-none-match'.split(
    ' ',
  ),
  ...'keep-alive last-event-id origin pragma priority range referer te traceparent tracestate baggage transfer-encoding'.split(
    ' ',
  ),
  ...'upgrade upgrade-insecure-requests user-agent x-correlation-id x-request-id'.split(' '),
]);
const ORDINARY_FAMILIES = /^(?:accept|content|sec|mcp|access-control)-/;

/** Whether a request may show a credential, where the credential headers are not configured. */
export function mayPresentCredential({ headers }: Pick<Credentials, 'headers'>): boolean {
  return Object.keys(headers).some(
    (name) => !ORDINARY_HEADERS.has(name) && !ORDINARY_FAMILIES.test(name) && !isForwarding(name),
  );
}

/** `Host` of a request to this machine, as a client on it writes it. */
const OWN_HOST = /^(?:(?:[a-z0-9-]{1,63}\.){0,4}localhost\.?|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;

const isForwarding = (name: string) => FORWARDING_HEADERS.has(name) || FORWARDING_FAMILIES.test(name);

/**
 * Whether a program on this machine asked this machine for itself: the peer and the host that it asks are loopback ones. A proxy
 * may add no header of its own, so the absence of one does not suffice; one that does forwards the request of another client.
 */
export function isDirectLoopback({ headers, remoteAddress }: Credentials): boolean {
  const address = remoteAddress?.replace(/^::ffff:/i, '') ?? '';
  const isLoopback = address === '::1' || /^127(\.\d{1,3}){3}$/.test(address);
  return isLoopback && OWN_HOST.test(headers.host ?? '') && !Object.keys(headers).some(isForwarding);
}

/** The credentials of a program that asks Parley in its own process, without a network. */
export function createInnerCredentials(headers: Credentials['headers'] = {}): CredentialSource {
  return { headers: { ...headers, host: 'localhost' }, remoteAddress: '127.0.0.1', method: 'POST' };
}

/**
 * The network that a remote address belongs to: an IPv4 address itself; the first 64 bits of an IPv6 address, because
 * a subscriber usually has all addresses of a /64.
 */
export function remoteNetwork(address: string | undefined): string {
  if (address === undefined) return '';
  const zone = address.indexOf('%');
  const plain = zone < 0 ? address : address.slice(0, zone);
  // Asked first: Node's test of an IPv6 address is a long pattern.
  if (!plain.includes(':')) return plain;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(plain)?.[1];
  if (mapped !== undefined) return mapped;
  return isIPv6(plain) ? `${firstGroups(plain).join(':')}::/64` : plain;
}

/** The first four groups of an IPv6 address, without leading zeros. */
function firstGroups(address: string): string[] {
  const [head = '', tail] = address.split('::');
  const written = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  // An embedded IPv4 address stands for two groups.
  const length = (groups: string[]) => groups.length + groups.filter((group) => group.includes('.')).length;
  const zeros = tail === undefined ? 0 : 8 - length(written) - length(after);
  const groups = [...written, ...Array<string>(Math.max(zeros, 0)).fill('0'), ...after];
  return groups.slice(0, 4).map((group) => group.toLowerCase().replace(/^0+(?=.)/, ''));
}

/** A list of addresses and networks (`10.0.0.0/8`, `fd00::/8`, `127.0.0.1`). */
export class TrustedNetworks {
  private readonly list = new BlockList();

  /** @throws TypeError naming the invalid entry */
  constructor(entries: readonly string[]) {
    for (const entry of entries) this.add(entry);
  }

  has(address: string | undefined): boolean {
    const plain = address?.split('%')[0]?.replace(/^::ffff:(?=\d+\.)/i, '') ?? '';
    const family = isIP(plain);
    return family !== 0 && this.list.check(plain, family === 4 ? 'ipv4' : 'ipv6');
  }

  private add(entry: string): void {
    const [address = '', bits, ...rest] = entry.split('/');
    const family = isIP(address);
    const most = family === 4 ? 32 : 128;
    const length = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : -1;
    if (family === 0 || rest.length > 0 || length < 0 || length > most)
      throw new TypeError(`'${entry}' is neither an address nor a network`);
    this.list.addSubnet(address, length, family === 4 ? 'ipv4' : 'ipv6');
  }
}

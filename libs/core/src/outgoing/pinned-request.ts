import { lookup } from 'node:dns/promises';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { Readable } from 'node:stream';
import { callbackify } from 'node:util';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';

/** Resolves a host name to its addresses. */
export type ResolveHost = (host: string) => Promise<readonly string[]>;

/**
 * The addresses that a request may connect to. `public`: public ones. `elsewhere`: all but those of this machine and its link.
 * `any`: all. With the first two, a name of this machine, such as `localhost`, may resolve to this machine alone.
 */
export type AddressRule = 'public' | 'elsewhere' | 'any';

/** The options of one outgoing request. */
export interface PinnedRequest {
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
  readonly rule: AddressRule;
  /** Default: the resolver of the system. */
  readonly resolve?: ResolveHost | undefined;
}

/** At least one address of the host is not permitted. */
export class ForbiddenAddress extends Error {
  readonly code = 'EADDRFORBIDDEN';

  constructor(
    /** As written in the URL. */
    readonly host: string,
  ) {
    super(`${host} leads to an address that is not permitted`);
    this.name = 'ForbiddenAddress';
  }
}

const resolveBySystem: ResolveHost = async (host) =>
  (await lookup(host, { all: true })).map(({ address }) => address);

/**
 * Sends one HTTP request to a checked address: the host name is resolved once, every address is checked, and the connection uses
 * one of them. TLS and `Host` keep the name. Redirects are returned and not followed.
 * @throws TypeError with the network error as its cause, as `fetch` does; the reason of the signal
 */
export async function sendPinned(url: string, options: PinnedRequest): Promise<Response> {
  const { signal, body, method = 'GET', headers = {} } = options;
  signal.throwIfAborted();
  const parsed = new URL(url);
  const send = parsed.protocol === 'https:' ? httpsRequest : httpRequest;
  const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) };
  try {
    return await new Promise<Response>((resolve, reject) => {
      const literal = parsed.hostname.replace(/^\[|\]$/g, '');
      if (isIP(literal) !== 0 && !permits(parsed.hostname, options.rule)(literal))
        throw new ForbiddenAddress(parsed.hostname);
      const request = send(
        parsed,
        {
          method,
          headers: { 'Accept-Encoding': 'gzip, deflate, br', ...headers, ...length },
          lookup: createCheckedLookup(options),
          // A new connection: a pooled one was checked earlier.
          agent: false,
          signal,
        },
        (message) => resolve(toResponse(message)),
      );
      request.on('error', reject);
      request.end(body);
    });
  } catch (cause) {
    signal.throwIfAborted();
    throw new TypeError('the request failed', { cause });
  }
}

function permits(hostname: string, rule: AddressRule): (address: string) => boolean {
  if (rule === 'any') return () => true;
  if (namesThisMachine(hostname)) return (address) => isThisMachine(address);
  return rule === 'public' ? (address) => !isInsideAddress(address) : (address) => !isLocalAddress(address);
}

const isThisMachine = (address: string): boolean =>
  namesThisMachine(address.replace(/^::ffff:(?=\d+\.)/i, ''));

/**
 * A lookup for connections that something else opens: it looks a name up once, checks every answer against the rule and
 * connects to one of these answers. An address in place of a name is not looked up, and therefore not checked.
 */
export function createCheckedLookup({
  rule,
  resolve = resolveBySystem,
}: Pick<PinnedRequest, 'rule' | 'resolve'>): LookupFunction {
  const checked = callbackify(async (hostname: string) => {
    const addresses = await resolve(hostname);
    if (addresses.length === 0) throw notFound(hostname);
    if (!addresses.every(permits(hostname, rule))) throw new ForbiddenAddress(hostname);
    return addresses.map((address) => ({ address, family: isIP(address) }));
  });
  return (hostname, { all }, callback) =>
    checked(hostname, (error, found) => {
      const [first] = found ?? [];
      if (error || !first) callback(error, '');
      else if (all) callback(null, found);
      else callback(null, first.address, first.family);
    });
}

function notFound(hostname: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${hostname} has no address`), { code: 'ENOTFOUND' });
}

const BODYLESS = new Set([204, 205, 304]);
const DECODERS: Readonly<Record<string, () => NodeJS.ReadWriteStream>> = {
  gzip: createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

function toResponse(message: IncomingMessage): Response {
  const { statusCode = 502 } = message;
  const headers = new Headers();
  for (const [name, value] of Object.entries(message.headers))
    for (const one of Array.isArray(value) ? value : [value ?? '']) headers.append(name, one);
  if (BODYLESS.has(statusCode)) {
    message.resume();
    return new Response(null, { status: statusCode, headers });
  }
  const body = Readable.toWeb(decodeBody(message)) as ReadableStream<Uint8Array>;
  // `Response` rejects a status outside of this range.
  return new Response(body, { status: statusCode >= 200 && statusCode <= 599 ? statusCode : 502, headers });
}

function decodeBody(message: IncomingMessage): Readable {
  const decoder = DECODERS[message.headers['content-encoding'] ?? '']?.();
  if (!decoder) return message;
  message.on('error', (error) => (decoder as unknown as Readable).destroy(error));
  (decoder as unknown as Readable).on('close', () => message.destroy());
  return message.pipe(decoder) as unknown as Readable;
}

/**
 * Reads the body of an answer.
 * @param most bytes
 * @throws what `refuse` makes, for a longer body, of which no more is read
 */
export async function readBoundedText(
  { body }: Response,
  most: number,
  refuse: () => Error,
): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength;
    // Leaving the loop cancels the rest of the body.
    if (size > most) throw refuse();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Address ranges that are not public: loopback, private, link-local, multicast and reserved ones. */
const INSIDE_ADDRESSES = new BlockList();
const RANGES: readonly (readonly [string, number, 'ipv4' | 'ipv6'])[] = [
  ['0.0.0.0', 8, 'ipv4'],
  ['10.0.0.0', 8, 'ipv4'],
  ['100.64.0.0', 10, 'ipv4'],
  ['127.0.0.0', 8, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  ['172.16.0.0', 12, 'ipv4'],
  ['192.0.0.0', 24, 'ipv4'],
  ['192.168.0.0', 16, 'ipv4'],
  ['198.18.0.0', 15, 'ipv4'],
  ['224.0.0.0', 3, 'ipv4'],
  ['::', 127, 'ipv6'],
  ['64:ff9b::', 96, 'ipv6'],
  ['2002::', 16, 'ipv6'],
  ['fc00::', 7, 'ipv6'],
  ['fe80::', 10, 'ipv6'],
  ['ff00::', 8, 'ipv6'],
];
for (const [network, bits, family] of RANGES) INSIDE_ADDRESSES.addSubnet(network, bits, family);

/** Whether an IP address is not public: loopback, private, link-local or reserved. Text that is no address counts as one. */
export function isInsideAddress(address: string): boolean {
  const bare = address.replace(/^\[|\]$/g, '').replace(/%.*$/, '');
  const version = isIP(bare);
  if (version === 0) return true;
  // `BlockList` checks a mapped IPv4 address as the IPv4 one.
  return INSIDE_ADDRESSES.check(bare, version === 4 ? 'ipv4' : 'ipv6');
}

/** Addresses of this machine and of its link. */
const LOCAL_ADDRESSES = new BlockList();
const LOCAL_RANGES: typeof RANGES = [
  ['0.0.0.0', 8, 'ipv4'],
  ['127.0.0.0', 8, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  ['224.0.0.0', 3, 'ipv4'],
  ['::', 127, 'ipv6'],
  ['fe80::', 10, 'ipv6'],
  ['ff00::', 8, 'ipv6'],
];
for (const [network, bits, family] of LOCAL_RANGES) LOCAL_ADDRESSES.addSubnet(network, bits, family);

/** Whether an IP address is of this machine or its link. Text that is no address counts as one. */
function isLocalAddress(address: string): boolean {
  const bare = address.replace(/^\[|\]$/g, '').replace(/%.*$/, '');
  const version = isIP(bare);
  return version === 0 || LOCAL_ADDRESSES.check(bare, version === 4 ? 'ipv4' : 'ipv6');
}

/** Whether a host name means this machine without a lookup. */
function namesThisMachine(hostname: string): boolean {
  const bare = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  return (
    bare === 'localhost' || bare.endsWith('.localhost') || bare === '::1' || /^127(\.\d{1,3}){3}$/.test(bare)
  );
}

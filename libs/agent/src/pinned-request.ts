import { lookup } from 'node:dns/promises';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { Readable } from 'node:stream';
import { callbackify } from 'node:util';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { isInsideAddress, isLocalAddress, namesThisMachine } from './address-ranges.js';

/** The addresses of a host name. */
export type ResolveHost = (host: string) => Promise<readonly string[]>;

/**
 * Where a name may lead. `public`: nowhere inside a network. `elsewhere`: not to this machine or its link. `any`: anywhere. Of
 * the first two, a name of this machine, such as `localhost`, leads to this machine alone.
 */
export type AddressRule = 'public' | 'elsewhere' | 'any';

export interface PinnedRequest {
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
  readonly rule: AddressRule;
  /** Default: as the system resolves names. */
  readonly resolve?: ResolveHost | undefined;
}

/** A name leads, with one of its addresses at least, where it may not. */
export class ForbiddenAddress extends Error {
  readonly code = 'EADDRFORBIDDEN';

  constructor(
    /** As in the URL. */
    readonly host: string,
  ) {
    super(`${host} leads to an address that is not permitted`);
    this.name = 'ForbiddenAddress';
  }
}

export const resolveBySystem: ResolveHost = async (host) =>
  (await lookup(host, { all: true })).map(({ address }) => address);

/**
 * Sends one HTTP request to an address that was checked: the name is looked up once, every answer is checked, and the connection
 * goes to one of these answers. TLS and `Host` keep the name. A redirect is an answer like any other and is not followed.
 * @throws TypeError with the fault of the network as its cause, as `fetch` does; the reason of the signal
 */
export async function pinnedRequest(url: string, options: PinnedRequest): Promise<Response> {
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
          lookup: checkedLookup(parsed.hostname, options),
          // A connection of its own: one that was kept was checked for another moment.
          agent: false,
          signal,
        },
        (answer) => resolve(responseOf(answer)),
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

function checkedLookup(
  hostname: string,
  { rule, resolve = resolveBySystem }: Pick<PinnedRequest, 'rule' | 'resolve'>,
): LookupFunction {
  const checked = callbackify(async () => {
    const addresses = await resolve(hostname);
    if (addresses.length === 0) throw notFound(hostname);
    if (!addresses.every(permits(hostname, rule))) throw new ForbiddenAddress(hostname);
    return addresses.map((address) => ({ address, family: isIP(address) }));
  });
  return (_host, { all }, callback) =>
    checked((error, found) => {
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

function responseOf(answer: IncomingMessage): Response {
  const { statusCode = 502 } = answer;
  const headers = new Headers();
  for (const [name, value] of Object.entries(answer.headers))
    for (const one of Array.isArray(value) ? value : [value ?? '']) headers.append(name, one);
  if (BODYLESS.has(statusCode)) {
    answer.resume();
    return new Response(null, { status: statusCode, headers });
  }
  const body = Readable.toWeb(decoded(answer)) as ReadableStream<Uint8Array>;
  // What is no status of HTTP is no answer.
  return new Response(body, { status: statusCode >= 200 && statusCode <= 599 ? statusCode : 502, headers });
}

function decoded(answer: IncomingMessage): Readable {
  const decoder = DECODERS[answer.headers['content-encoding'] ?? '']?.();
  if (!decoder) return answer;
  answer.on('error', (error) => (decoder as unknown as Readable).destroy(error));
  (decoder as unknown as Readable).on('close', () => answer.destroy());
  return answer.pipe(decoder) as unknown as Readable;
}

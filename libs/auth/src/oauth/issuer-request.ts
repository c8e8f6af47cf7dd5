import { readBoundedText, sendPinned, readJson, type ResolveHost } from '#core';
import { AuthenticationUnavailable } from '../errors.js';

/** Maximum bytes of a response of an authorization server. */
const MAX_BYTES = 262_144;
/** Milliseconds for the whole request. */
const REQUEST_TIMEOUT = 5_000;

const isLoopback = (hostname: string) =>
  hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname);

/** Responses of this URL are trusted, so it must use TLS; plain HTTP is accepted for this machine only. */
export function isTrustworthyUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password, hash } = new URL(text);
  if (username !== '' || password !== '' || hash !== '') return false;
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
}

/** Whether the URL leads to this machine, in any notation. */
export function isLoopbackUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const hostname = new URL(text).hostname.replace(/\.$/, '');
  const mapped = /^\[::ffff:([0-9a-f]{1,4}):[0-9a-f]{1,4}\]$/.exec(hostname)?.[1];
  return (
    isLoopback(hostname) ||
    hostname.endsWith('.localhost') ||
    hostname === '0.0.0.0' ||
    hostname === '[::]' ||
    // 127.0.0.0/8 and 0.0.0.0 in IPv6 notation.
    (mapped !== undefined && (mapped === '0' || Number.parseInt(mapped, 16) >> 8 === 127))
  );
}

export interface JsonRequest {
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Default: as the system resolves names. */
  readonly resolve?: ResolveHost | undefined;
}

export interface JsonResponse {
  readonly status: number;
  /** Null when the response is not a JSON object, has a member twice or a number that a double does not hold. */
  readonly value: Readonly<Record<string, unknown>> | null;
}

/**
 * Requests a JSON object from an authorization server, bounded in time and size. Redirects are not followed.
 * @throws AuthenticationUnavailable when there is no answer within the bounds
 */
export async function requestJson(url: string, request: JsonRequest = {}): Promise<JsonResponse> {
  if (!isTrustworthyUrl(url))
    throw new AuthenticationUnavailable('an address that is neither https nor loopback');
  const { host } = new URL(url);
  const limit = AbortSignal.timeout(REQUEST_TIMEOUT);
  try {
    const response = await sendPinned(url, {
      ...request,
      headers: { Accept: 'application/json', ...request.headers },
      rule: 'elsewhere',
      signal: limit,
    });
    if (response.status >= 300 && response.status < 400) {
      await response.body?.cancel();
      throw new AuthenticationUnavailable(`no answer from ${host} (it redirects)`);
    }
    const tooLarge = () => new AuthenticationUnavailable(`too large an answer from ${host}`);
    const text = await readBoundedText(response, MAX_BYTES, tooLarge);
    return { status: response.status, value: parseObject(text) };
  } catch (error) {
    if (error instanceof AuthenticationUnavailable) throw error;
    if (limit.aborted) throw new AuthenticationUnavailable(`no answer from ${host} (TimeoutError)`);
    const { name, cause } = error as Error;
    const code = (cause as { code?: unknown } | undefined)?.code;
    throw new AuthenticationUnavailable(`no answer from ${host} (${typeof code === 'string' ? code : name})`);
  }
}

function parseObject(text: string): JsonResponse['value'] {
  const reading = readJson(text);
  const value = reading.ok ? reading.value : null;
  return value !== null && typeof value === 'object' && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}

import { ForbiddenAddress, readBoundedText, sendPinned, type ResolveHost, member } from '#core';

/**
 * Whether an operator allows an endpoint: the scheme, host and port are equal, and the allowed path is a prefix of the
 * endpoint's path by whole segments. Text that is not a URL matches nothing.
 * @param allowed null: any
 */
export function isAllowedEndpoint(endpoint: string, allowed: readonly string[] | null): boolean {
  if (allowed === null) return true;
  const url = parseUrl(endpoint);
  return url !== null && allowed.some((entry) => covers(parseUrl(entry), url));
}

/** Unencrypted text may only be sent within the machine. */
export function isSafeTransport(endpoint: string): boolean {
  const url = parseUrl(endpoint);
  if (!url || url.username !== '' || url.password !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.has(url.hostname));
}

const LOOPBACK = new Set(['127.0.0.1', 'localhost', '[::1]']);

function covers(allowed: URL | null, url: URL): boolean {
  if (!allowed || allowed.origin !== url.origin || allowed.origin === 'null') return false;
  const prefix = allowed.pathname.replace(/\/+$/, '');
  return url.pathname === prefix || url.pathname.startsWith(`${prefix}/`);
}

function parseUrl(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null;
}

export interface Embedding {
  /** As many finite numbers as `dimensions` requires. */
  readonly vector: readonly number[];
  /** The tokens of the text, as the provider bills them. */
  readonly tokens: number;
}

/** The reason why a text could not be embedded; for the log only, without the text or a credential. */
export class EmbeddingError extends Error {
  override readonly name = 'EmbeddingError';
}

/** Converts text to a vector. */
export abstract class EmbeddingProvider {
  /** Key in caches: one model at one endpoint. */
  abstract readonly model: string;
  abstract readonly dimensions: number;
  /** @throws EmbeddingError; the reason of `signal` when it aborted */
  abstract embed(text: string, signal: AbortSignal): Promise<Embedding>;
}

/** Estimated tokens of a text before the provider is called: a quarter of its characters. */
export function estimateTokens(text: string): number {
  return Math.ceil(text.length / 4);
}

export interface OpenAiEmbeddingOptions {
  /** Base of the API, such as `https://api.openai.com/v1`; `/embeddings` is added unless it is there. */
  readonly endpoint: string;
  readonly model: string;
  /** Sent as a bearer token; null for endpoints that need none. */
  readonly apiKey: string | null;
  /** The dimensions that every vector must have; any other answer is an error. */
  readonly dimensions: number;
  /** Sends `dimensions` with the request; not every model accepts that. Default false. */
  readonly requestDimensions?: boolean;
  /** Seconds. Default 10. */
  readonly timeout?: number;
  /** The operator lists the endpoint as allowed, so it may be in any network. Default: it is public, or on this machine. */
  readonly listed?: boolean;
  /** Default: the resolver of the system. */
  readonly resolve?: ResolveHost;
}

/** Maximum bytes of one number of a vector on the wire, and of the text around the vector. */
const BYTES_PER_NUMBER = 64;
const ENVELOPE_BYTES = 65_536;

/**
 * A client of the OpenAI embeddings API. It sends one request per text to the configured address: redirects are errors, and
 * so is an answer that is too slow, too large or no vector of the right dimension.
 */
export class OpenAiEmbeddings extends EmbeddingProvider {
  readonly #apiKey: string | null;
  readonly model: string;
  readonly dimensions: number;
  private readonly url: string;
  private readonly timeout: number;

  constructor(private readonly options: OpenAiEmbeddingOptions) {
    super();
    const { endpoint, apiKey, timeout = 10, ...others } = options;
    this.#apiKey = apiKey;
    this.options = { ...others, endpoint, apiKey: null };
    this.model = options.model;
    this.dimensions = options.dimensions;
    this.timeout = timeout;
    const base = endpoint.replace(/\/+$/, '');
    this.url = base.endsWith('/embeddings') ? base : `${base}/embeddings`;
  }

  async embed(text: string, signal: AbortSignal): Promise<Embedding> {
    signal.throwIfAborted();
    const limit = AbortSignal.timeout(this.timeout * 1000);
    try {
      const response = await sendPinned(this.url, {
        method: 'POST',
        rule: this.options.listed ? 'any' : 'public',
        resolve: this.options.resolve,
        headers: {
          'Content-Type': 'application/json',
          Accept: 'application/json',
          ...(this.#apiKey !== null && { Authorization: `Bearer ${this.#apiKey}` }),
        },
        body: JSON.stringify(this.request(text)),
        signal: AbortSignal.any([signal, limit]),
      });
      if (response.status >= 300 && response.status < 400) {
        await response.body?.cancel();
        throw new EmbeddingError('the endpoint could not be asked: it redirects');
      }
      if (!response.ok) {
        await response.body?.cancel();
        throw new EmbeddingError(`the endpoint answered ${response.status}`);
      }
      const most = this.dimensions * BYTES_PER_NUMBER + ENVELOPE_BYTES;
      const tooLarge = () => new EmbeddingError(`the answer is larger than ${most} bytes`);
      return this.read(await readBoundedText(response, most, tooLarge), text);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (error instanceof EmbeddingError) throw error;
      if (limit.aborted) throw new EmbeddingError(`the endpoint did not answer within ${this.timeout} s`);
      throw new EmbeddingError(`the endpoint could not be asked: ${networkCode(error)}`);
    }
  }

  private request(text: string): object {
    const { model, dimensions, options } = this;
    return { model, input: text, encoding_format: 'float', ...(options.requestDimensions && { dimensions }) };
  }

  private read(body: string, text: string): Embedding {
    const answer = parseJson(body);
    const data = member(answer, 'data');
    const vector = Array.isArray(data) && data.length === 1 ? member(data[0], 'embedding') : undefined;
    if (!Array.isArray(vector)) throw new EmbeddingError('the answer holds no vector');
    if (vector.length !== this.dimensions)
      throw new EmbeddingError(
        `the answer has ${vector.length} dimensions, ${this.dimensions} are configured`,
      );
    if (!vector.every((entry): entry is number => typeof entry === 'number' && Number.isFinite(entry)))
      throw new EmbeddingError('the answer holds a vector that is not of finite numbers');
    return { vector, tokens: readBilledTokens(member(answer, 'usage')) ?? estimateTokens(text) };
  }
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw new EmbeddingError('the answer is not JSON');
  }
}

function readBilledTokens(usage: unknown): number | undefined {
  const total = member(usage, 'total_tokens') ?? member(usage, 'prompt_tokens');
  return typeof total === 'number' && Number.isSafeInteger(total) && total >= 0 ? total : undefined;
}

/** Only the code of the error: network error messages can contain addresses and headers. */
function networkCode(error: unknown): string {
  const cause = member(error, 'cause');
  const code = member(cause, 'code') ?? member(error, 'code');
  if (cause instanceof ForbiddenAddress)
    return 'it is inside a private network; name it in llm.allowedEndpoints to permit it';
  return typeof code === 'string' ? code : 'network fault';
}

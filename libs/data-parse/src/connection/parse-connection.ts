import type { Identity } from '#core';
import {
  ANSWER_MEMORY,
  type AnswerInFlight,
  type AnswerLeft,
  answerLeft,
  MAX_ANSWER_BYTES,
  type OperationContext,
  StoreError,
} from '#data';
import { readBoundedAnswer, readBoundedJson } from './bounded-answer.js';
import { ParseServerError, parseServerError } from './parse-errors.js';

/**
 * The rights of a request to Parse Server: those of the master key, or those of a session and explicitly not of the master
 * key.
 */
export type ParseCredentials =
  { readonly kind: 'master' } | { readonly kind: 'session'; readonly token: string };

export const MASTER_KEY: ParseCredentials = Object.freeze({ kind: 'master' });

/** Characters that a header value may contain; none of them ends a header. */
const TOKEN = /^[\x21-\x7e]{1,512}$/;

/** @throws StoreError `session_ended` for text that cannot be a token */
export function sessionCredentials(token: string): ParseCredentials {
  if (!TOKEN.test(token)) throw new StoreError('session_ended', { store: 'Parse Server' });
  return Object.defineProperty({ kind: 'session' as const, token }, 'token', { enumerable: false });
}

/**
 * @throws Error for an assumed user or role: it has no session, so no request can carry its rights. A caller that reaches
 * this with one is defective.
 */
export function toCredentials(identity: Identity): ParseCredentials {
  switch (identity.kind) {
    case 'master':
      return MASTER_KEY;
    case 'sessionToken':
      return sessionCredentials(identity.token);
    case 'aclUser':
    case 'aclRole':
      throw new Error(`REST surface cannot honor ${identity.kind}: it knows sessions and the master key`);
  }
}

export interface ParseConnectionOptions {
  /** Where Parse Server is mounted, such as `https://api.example.com/parse`. */
  readonly serverUrl: string;
  readonly appId: string;
  /** Null: requests with the master key are not possible. */
  readonly masterKey: string | null;
  /** For servers that require a key from every client. Default none. */
  readonly restApiKey?: string | null;
  /** Bytes of one answer. Default 32 MiB. */
  readonly maxAnswerBytes?: number;
}

interface ParseRequest {
  readonly credentials: ParseCredentials;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Built from constants and from checked names only. */
  readonly path: string;
  /** Parameters of a GET; a value that is not text is sent as JSON. */
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: Readonly<Record<string, unknown>>;
  /**
   * The request changes nothing, and its answer may be large: bytes to reserve before it arrives. Default of a GET 64 KiB.
   */
  readonly expected?: number;
}

export type ParseAnswer = Readonly<Record<string, unknown>>;

/** Longer parameters are sent in the body of a POST: proxies truncate long URLs and log them. */
const MAX_URL = 1500;

/** Bytes that are reserved for an answer before it arrives, when the request does not set them. */
const EXPECTED_BYTES = 64 * 1024;

/**
 * Requests to one application of one Parse Server. Each ends with its deadline or its signal, whichever comes first;
 * redirects are not followed, and no error contains a key or token.
 */
export class ParseConnection {
  /** Rows of the longest answer so far: the `maxLimit` of the server, which it does not tell, is no smaller. */
  longestPage = 1;
  private readonly base: string;
  private readonly maxAnswer: number;

  constructor(private readonly options: ParseConnectionOptions) {
    this.base = options.serverUrl.replace(/\/+$/, '');
    this.maxAnswer = options.maxAnswerBytes ?? MAX_ANSWER_BYTES;
  }

  get hasMasterKey(): boolean {
    return this.options.masterKey !== null;
  }

  /**
   * @param left the bytes that the answer may still have. Default: the limit of any answer
   * @throws StoreError
   */
  async send(
    request: ParseRequest,
    operation: Omit<OperationContext, 'comment'>,
    left: AnswerLeft = answerLeft(),
  ): Promise<ParseAnswer> {
    if (operation.signal.aborted) throw createCancelled(operation.signal);
    const expected = request.expected ?? (request.method === 'GET' ? EXPECTED_BYTES : undefined);
    // A write that was sent is not aborted for lack of memory: its answer is one row.
    if (expected === undefined) return this.write(request, operation);
    const answer = await ANSWER_MEMORY.begin({
      principal: operation.principal,
      maxTimeMS: operation.maxTimeMS,
      operation,
      expected,
      store: 'Parse Server',
    });
    const own = { bytes: Math.min(left.bytes, this.maxAnswer) };
    try {
      return await this.exchange(request, operation, (response) => this.largeBody(response, answer, own));
    } finally {
      left.bytes -= answer.bytes;
      answer.end();
    }
  }

  /** A write that is not known to have failed may have been applied. @throws StoreError */
  private async write(
    request: ParseRequest,
    operation: Omit<OperationContext, 'comment'>,
  ): Promise<ParseAnswer> {
    try {
      return await this.exchange(request, operation, (response) => this.body(response));
    } catch (error) {
      throw error instanceof StoreError && mayHaveHappened(error)
        ? new StoreError(error.code, { store: error.store, cause: error.cause, outcome: 'unknown' })
        : error;
    }
  }

  private async exchange(
    request: ParseRequest,
    operation: Omit<OperationContext, 'comment'>,
    body: (response: Response) => Promise<unknown>,
  ): Promise<ParseAnswer> {
    const deadline = AbortSignal.timeout(operation.maxTimeMS);
    const signal = AbortSignal.any([operation.signal, deadline]);
    const { url, init } = this.prepareRequest(request);
    try {
      const response = await fetch(url, { ...init, signal, redirect: 'manual' });
      return readAnswer(response, await body(response), request);
    } catch (error) {
      if (operation.signal.aborted) throw createCancelled(operation.signal);
      if (deadline.aborted) throw parseServerError('timeout', 'no complete answer in time');
      if (error instanceof StoreError) throw error;
      throw parseServerError('unavailable', networkReason(error));
    }
  }

  /** Requests the server's own health. @throws StoreError when it is not healthy or unreachable */
  async ping(timeoutMs: number): Promise<void> {
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      const response = await fetch(`${this.base}/health`, { signal, redirect: 'manual' });
      const answer = await readBoundedJson(response, 4096);
      if (response.status === 200 && (answer as ParseAnswer | null)?.['status'] === 'ok') return;
      throw parseServerError('unavailable', `health answered ${response.status}`);
    } catch (error) {
      if (error instanceof StoreError) throw error;
      throw parseServerError('unavailable', networkReason(error));
    }
  }

  private async body(response: Response): Promise<unknown> {
    await refuseRedirect(response);
    return readBoundedJson(response, this.maxAnswer);
  }

  private async largeBody(response: Response, answer: AnswerInFlight, left: AnswerLeft): Promise<unknown> {
    await refuseRedirect(response);
    return readBoundedAnswer(response, answer, left);
  }

  private prepareRequest({ credentials, method, path, query, body }: ParseRequest): PreparedRequest {
    const headers = this.headers(credentials);
    const url = this.base + path;
    if (method !== 'GET') return withBody(url, method, headers, body);
    const search = new URLSearchParams(
      Object.entries(query ?? {}).map(([name, value]): [string, string] => [name, asText(value)]),
    ).toString();
    if (url.length + search.length <= MAX_URL) {
      return { url: search === '' ? url : `${url}?${search}`, init: { method, headers } };
    }
    return withBody(url, 'POST', headers, { ...query, _method: 'GET' });
  }

  private headers(credentials: ParseCredentials): Record<string, string> {
    const { appId, masterKey, restApiKey } = this.options;
    const headers: Record<string, string> = { 'X-Parse-Application-Id': appId };
    if (credentials.kind === 'session') {
      if (restApiKey) headers['X-Parse-REST-API-Key'] = restApiKey;
      headers['X-Parse-Session-Token'] = credentials.token;
      return headers;
    }
    if (masterKey === null) throw parseServerError('denied', 'no master key is configured');
    headers['X-Parse-Master-Key'] = masterKey;
    return headers;
  }
}

interface PreparedRequest {
  readonly url: string;
  readonly init: RequestInit;
}

function withBody(
  url: string,
  method: string,
  headers: Record<string, string>,
  body: Readonly<Record<string, unknown>> | undefined,
): PreparedRequest {
  if (body === undefined) return { url, init: { method, headers } };
  return {
    url,
    init: { method, headers: { ...headers, 'Content-Type': 'application/json' }, body: JSON.stringify(body) },
  };
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

async function refuseRedirect({ status, body }: Response): Promise<void> {
  if (status < 300 || status >= 400) return;
  await body?.cancel();
  throw parseServerError('failed', `redirected with ${status}; redirects are not followed`);
}

function readAnswer(response: Response, body: unknown, request: ParseRequest): ParseAnswer {
  const isObject = body !== null && typeof body === 'object' && !Array.isArray(body);
  if (!isObject) throw parseServerError('failed', `the answer (status ${response.status}) is no object`);
  const answer = body as ParseAnswer;
  if (response.ok) return answer;
  const { code, error } = answer;
  const text = typeof error === 'string' ? error : '';
  if (typeof code === 'number')
    throw new ParseServerError(code, text, {
      isWrite: request.method !== 'GET' && request.expected === undefined,
      hasSession: request.credentials.kind === 'session',
      status: response.status,
    });
  if (response.status >= 500) throw parseServerError('unavailable', `status ${response.status}: ${text}`);
  // An answer without a code was rejected before routing: the application id or key is wrong.
  throw parseServerError('failed', `status ${response.status}: ${text}`);
}

function createCancelled(signal: AbortSignal): StoreError {
  return new StoreError('cancelled', { store: 'Parse Server', cause: signal.reason });
}

/** Socket errors that occur before data was sent. */
const NOT_SENT =
  /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|CERT|ERR_TLS/;

/** Parse Server answered with an error of its own or of its database. */
const SERVER_ERRORS = new Set([-1, 1, 100, 124]);

function mayHaveHappened(error: StoreError): boolean {
  if (error instanceof ParseServerError)
    return error.code !== 'rejected' && SERVER_ERRORS.has(error.parseCode);
  if (!['timeout', 'unavailable', 'failed', 'too_large', 'cancelled'].includes(error.code)) return false;
  const { cause } = error;
  const reason = cause instanceof Error ? cause.message : '';
  // The request was rejected or redirected before it had an effect.
  return !NOT_SENT.test(reason) && !/^(status 4\d\d|redirected)/.test(reason);
}

/** The code of the socket's error, such as ECONNREFUSED; never the request, whose headers contain credentials. */
function networkReason(error: unknown): string {
  const { cause, name } = error as { cause?: { code?: unknown }; name?: unknown };
  const reason = [cause?.code, name].find((one) => typeof one === 'string');
  return `no connection (${reason ?? 'unknown'})`;
}

/** What an operator should check about the configured Parse Server. */
export interface ParseServerFacts {
  /** The server's own health report; null: it cannot be reached. */
  readonly health: string | null;
  /** Whether the server accepts the application id, and the REST API key if one is given. */
  readonly acceptsApplication: boolean;
  /** Whether the server accepts the master key from this machine; null: none is given. */
  readonly acceptsMasterKey: boolean | null;
  /** The server reports it only for requests with the master key. */
  readonly version: string | null;
}

type Server = Pick<ParseConnectionOptions, 'serverUrl' | 'appId' | 'masterKey' | 'restApiKey'>;

/** Maximum bytes of an answer about the server. */
const MAX_INFO_BYTES = 262_144;

/** Reads server information with three requests that read no row. Redirects are not followed. Never rejects. */
export async function inspectParseServer(server: Server, timeoutMs: number): Promise<ParseServerFacts> {
  const get = (path: string, headers: Record<string, string>) =>
    requestFacts(server, path, headers, timeoutMs);
  const health = await get('/health', {});
  const unknown = { health: null, acceptsApplication: false, acceptsMasterKey: null, version: null };
  if (health.status === null) return unknown;
  const application = await get('/config', restHeaders(server));
  const { masterKey } = server;
  const info = masterKey === null ? null : await get('/serverInfo', masterHeaders(server, masterKey));
  const version = info?.body['parseServerVersion'];
  return {
    health: typeof health.body['status'] === 'string' ? health.body['status'] : `status ${health.status}`,
    acceptsApplication: application.status === 200,
    acceptsMasterKey: info === null ? null : info.status === 200,
    version: typeof version === 'string' ? version : null,
  };
}

const restHeaders = ({ appId, restApiKey }: Server): Record<string, string> => ({
  'X-Parse-Application-Id': appId,
  ...(restApiKey ? { 'X-Parse-REST-API-Key': restApiKey } : {}),
});

const masterHeaders = ({ appId }: Server, masterKey: string): Record<string, string> => ({
  'X-Parse-Application-Id': appId,
  'X-Parse-Master-Key': masterKey,
});

interface HttpAnswer {
  /** Null: no answer. */
  readonly status: number | null;
  readonly body: Readonly<Record<string, unknown>>;
}

async function requestFacts(
  { serverUrl }: Server,
  path: string,
  headers: Record<string, string>,
  timeoutMs: number,
): Promise<HttpAnswer> {
  try {
    const response = await fetch(serverUrl.replace(/\/+$/, '') + path, {
      headers,
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    });
    const body = await readBoundedJson(response, MAX_INFO_BYTES).catch(() => null);
    const isObject = body !== null && typeof body === 'object' && !Array.isArray(body);
    return { status: response.status, body: isObject ? (body as Record<string, unknown>) : {} };
  } catch {
    return { status: null, body: {} };
  }
}

import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { type Agent, type Era, isCorrelationId, type JsonObject } from '#core';
import type { Session } from '#state';
import { FALLBACK_VERSION } from '#dispatcher';
import type { RequestTelemetry } from '#telemetry';
import { forgetParams, type Message, NO_MESSAGE, type Reply } from '../message.js';
import { EventStream } from '../sse/event-stream.js';
import { type HeldBody, onceClosed } from './client-memory.js';
import type { EdgeDependencies } from './edge-dependencies.js';
import { MAX_HEADERS } from './refusals.js';

/**
 * The headers of a request without those whose original name has an underscore: gateways that fold `X_Key` and
 * `X-Key` together would let a caller overwrite what a trusted proxy set. Node shows only the first of several `Authorization`
 * headers; here they are one text, which is no valid credential. A request in HTTP/1.0 counts as forwarded: proxies ask so by
 * default, some without a word of themselves, and programs of this machine speak 1.1.
 */
export function readTrustedHeaders(request: IncomingMessage): IncomingHttpHeaders {
  const { rawHeaders, headers } = request;
  let underscored = false;
  let authorizations = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.includes('_')) underscored = true;
    if (name.length === AUTHORIZATION.length && name.toLowerCase() === AUTHORIZATION) authorizations += 1;
  }
  const named = underscored ? withoutUnderscores(headers) : headers;
  const trusted = request.httpVersion === '1.0' ? { via: '1.0 unknown', ...named } : named;
  return authorizations < 2 ? trusted : { ...trusted, [AUTHORIZATION]: readAll(rawHeaders, AUTHORIZATION) };
}

const AUTHORIZATION = 'authorization';

function readAll(rawHeaders: readonly string[], wanted: string): string {
  const values = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === wanted);
  return values.join(', ');
}

function withoutUnderscores(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !name.includes('_')));
}

/** A header as one trimmed text; `undefined` when it is absent, blank or repeated as a list. */
export function headerText(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  return text === '' ? undefined : text;
}

/** The header that names a request, of the request and of its answer. */
const REQUEST_ID_HEADER = 'X-Request-Id';

/**
 * Names a request by the id that its sender gave it, and makes one where it gave none or one with other characters. Every answer
 * carries the id, so it is set before anything can answer.
 * @returns the id, the same for each call
 */
export function nameRequest({ headers }: IncomingMessage, response: ServerResponse): string {
  const named = response.getHeader(REQUEST_ID_HEADER);
  if (typeof named === 'string') return named;
  const given = headers['x-request-id'];
  const id = isCorrelationId(given) ? given : randomUUID();
  if (!response.headersSent) response.setHeader(REQUEST_ID_HEADER, id);
  return id;
}

const ABSOLUTE = /^https?:\/\/([^/?#]+)/i;

/**
 * Gives a request whose target is a whole address, as proxies write it (RFC 9112, 3.2.2), the path of that address as its target.
 * Where the address and `Host` name two hosts, nothing is changed.
 */
export function shortenTarget(request: IncomingMessage): void {
  const { url = '', headers } = request;
  const [whole, host] = (url.startsWith('/') ? null : ABSOLUTE.exec(url)) ?? [];
  if (whole === undefined || host?.toLowerCase() !== headers.host?.toLowerCase()) return;
  const rest = url.slice(whole.length);
  request.url = rest.startsWith('/') ? rest : `/${rest}`;
}

/** Whether `Host` was sent more than once; parsed headers show only the first. */
export function namesTwoHosts({ rawHeaders }: IncomingMessage): boolean {
  let seen = false;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length !== 4 || name.toLowerCase() !== 'host') continue;
    if (seen) return true;
    seen = true;
  }
  return false;
}

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
  // The parser has the number from when the connection was opened.
  const { parser, server } = socket as ServedSocket;
  const kept = parser?.maxHeaderPairs === undefined ? server?.maxHeadersCount : parser.maxHeaderPairs / 2;
  return seen >= MAX_HEADERS || (typeof kept === 'number' && kept > 0 && seen >= kept);
}

/** Also what a body becomes once it is parsed: a call may run long, and its bytes are no longer needed. */
export const NO_BODY = Buffer.alloc(0);
const NO_CAPABILITIES: JsonObject = Object.freeze({});
const EVENTS = 'text/event-stream';

/** Whether the first of these ranges that `Accept` names has the weight 0: the client takes everything but that. */
export function refusesAll(accept: string, ranges: readonly string[]): boolean {
  // Without a parameter there is no weight.
  if (!accept.includes('=')) return false;
  const named = accept
    .toLowerCase()
    .split(',')
    .map((part) => part.split(';').map((text) => text.trim()));
  for (const range of ranges) {
    const found = named.find(([type]) => type === range);
    if (found) return found.some((text) => /^q=0(?:\.0*)?$/.test(text));
  }
  return false;
}

/** The path of a request target, without its query. */
export function readPath(url: string): string {
  const query = url.indexOf('?');
  return query < 0 ? url : url.slice(0, query);
}

const MOUNT_PATHS = new WeakMap<IncomingMessage, string>();

/** Makes a request one of routes that are mounted at a path of an application: its URL begins behind this path. */
export function mountAt(request: IncomingMessage, path: string): void {
  MOUNT_PATHS.set(request, path);
  request.url = (request.url ?? '').slice(path.length);
}

/** The path at which the routes of a request are mounted; empty at the root. */
export const readMountPath = (request: IncomingMessage): string => MOUNT_PATHS.get(request) ?? '';

/** The state of one request during the checks, which fill it from top to bottom. */
export class HttpExchange {
  readonly verb: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** `X-Request-Id` of the request and of its answer. */
  readonly requestId: string;

  body: Buffer = NO_BODY;
  parsed: unknown = undefined;
  message: Message = NO_MESSAGE;
  /** Of a body with several messages; `message` is none of them then. */
  batch: readonly Message[] | null = null;

  era: Era = 'legacy';
  version: string = FALLBACK_VERSION;
  clientCapabilities: JsonObject = NO_CAPABILITIES;

  /** Null until the authenticator has identified the caller. */
  agent: Agent | null = null;
  /** The session id as sent: it grants nothing unless `session` is set. */
  correlationId: string | undefined = undefined;
  /** The caller's own live session. */
  session: Session | null = null;

  /** The refusals in its answer that say when to come back. One that has some waits (`keepRefusalPace`). */
  refusalsUntilLater = 0;
  /** Null where no body was read. */
  heldBody: HeldBody | null = null;

  /** Null where nothing is measured. */
  observed: RequestTelemetry | null = null;

  /** Called when the client disconnects before it was answered. */
  onGone: (() => void) | null = null;
  /** Whether the client disconnected. */
  isGone = false;

  constructor(
    readonly request: IncomingMessage,
    readonly response: ServerResponse,
    /** The edge that received the request. */
    readonly edge: EdgeDependencies,
  ) {
    this.verb = request.method ?? '';
    this.path = readPath(request.url ?? '');
    this.headers = readTrustedHeaders(request);
    this.requestId = nameRequest(request, response);
    onceClosed(request, response, () => {
      if (response.writableFinished) return;
      this.isGone = true;
      this.onGone?.();
    });
  }

  /**
   * Waits for the turn of an answer that refuses a caller until later. What the caller sent is forgotten: nothing reads it any more, and
   * it does not count against the bodies of others.
   */
  async keepRefusalPace(): Promise<void> {
    const { agent, edge, refusalsUntilLater: refusals } = this;
    if (!agent) return;
    this.refusalsUntilLater = 0;
    this.parsed = undefined;
    for (const message of this.batch ?? [this.message]) forgetParams(message);
    this.heldBody?.release();
    await edge.refusalPace.wait(agent.principal, refusals, this);
  }

  /** Answers with one body, in one write: the response is corked until its end. The rest of the request is discarded. */
  send({ status, body, tail, headers }: Reply): void {
    const { request, response } = this;
    if (response.headersSent || response.destroyed) return;
    const fields = ['Content-Type', 'application/json'];
    if (status !== 204) {
      fields.push('Content-Length', String(Buffer.byteLength(body) + (tail?.length ?? 0)));
    }
    for (const name in headers) fields.push(name, headers[name] as string);
    response.writeHead(status, fields);
    if (tail) {
      response.cork();
      response.write(body);
      response.end(tail);
    } else {
      response.end(body);
    }
    discardBody(request);
  }

  /** The answer as a stream of events; nothing is sent yet. */
  eventStream(): EventStream {
    const { settings, unread } = this.edge;
    return new EventStream(this.response, settings.maxStreamBuffer, unread);
  }

  /** Whether the client reads server-sent events, and is sent any. */
  get takesEvents(): boolean {
    const { accept } = this.headers;
    if (accept === undefined || !this.edge.settings.streaming) return false;
    const asked = accept.includes(EVENTS) ? accept : accept.toLowerCase();
    return asked.includes(EVENTS) && !refusesAll(asked, [EVENTS]);
  }
}

/**
 * The received part of a body, in one piece. Chunks are copied: a client that sends a byte at a time would make an object of each, of
 * hundreds of times its size.
 */
export class ReceivedBody {
  private held: Buffer = NO_BODY;
  private length = 0;

  /** @param most bytes of the whole body, as far as that is known: no more are held */
  constructor(private readonly most = Infinity) {}

  /** Bytes. */
  get size(): number {
    return this.length;
  }

  /** Bytes of memory that are held once the chunk is added, besides those that are held now. */
  measureGrowth(chunk: Buffer): number {
    return this.findCapacity(chunk) - this.held.length;
  }

  add(chunk: Buffer): void {
    if (this.length === 0) {
      // Most bodies arrive at once.
      this.held = chunk;
    } else {
      const capacity = this.findCapacity(chunk);
      if (capacity > this.held.length) {
        // Not of the pool of Node, which would be held as a whole.
        const larger = Buffer.allocUnsafeSlow(capacity);
        this.held.copy(larger, 0, 0, this.length);
        this.held = larger;
      }
      chunk.copy(this.held, this.length);
    }
    this.length += chunk.length;
  }

  private findCapacity(chunk: Buffer): number {
    const size = this.length + chunk.length;
    if (size <= this.held.length) return this.held.length;
    return Math.max(size, Math.min(2 * this.length, this.most));
  }

  /** The whole body. */
  toBuffer(): Buffer {
    return this.held.subarray(0, this.length);
  }

  forget(): void {
    this.held = NO_BODY;
    this.length = 0;
  }
}

type BodyReading =
  | { readonly outcome: 'read'; readonly body: Buffer }
  | { readonly outcome: 'too-large' }
  | { readonly outcome: 'too-slow' }
  | { readonly outcome: 'no-room' }
  | { readonly outcome: 'gone' };

/**
 * Reads the body of at most `limit` bytes within `timeout` milliseconds. Discards it as soon as it cannot succeed.
 * @param takes called before bytes are held: false refuses them
 */
export function readBody(
  exchange: HttpExchange,
  limit: number,
  timeout: number,
  takes: (bytes: number) => boolean,
): Promise<BodyReading> {
  const { request } = exchange;
  // Assigned outside of the promise: listeners of the request that hold the exchange, which holds them, make V8 keep thousands
  // of answered requests until its next full collection (docs/contributing/cost-of-a-call.md, "Garbage").
  let onGone: () => void = () => undefined;
  const reading = new Promise<BodyReading>((resolve) => {
    const declared = Number(request.headers['content-length']) || limit;
    const received = new ReceivedBody(Math.min(declared, limit));
    let size = 0;
    // Later calls are harmless: a promise settles once.
    const settle = (reading: BodyReading) => {
      clearTimeout(timer);
      resolve(reading);
    };
    const timer = setTimeout(() => settle({ outcome: 'too-slow' }), timeout);
    onGone = () => settle({ outcome: 'gone' });
    if (request.destroyed) return settle({ outcome: 'gone' });
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size > limit) settle({ outcome: 'too-large' });
      else if (takes(received.measureGrowth(chunk))) received.add(chunk);
      else {
        // The received bytes are useless without the rest.
        received.forget();
        settle({ outcome: 'no-room' });
      }
    };
    request.on('data', onData);
    request.once('end', () => {
      // A request lives until it is answered, and what its listeners refer to lives as long.
      request.off('data', onData);
      settle({ outcome: 'read', body: received.toBuffer() });
    });
  });
  exchange.onGone = onGone;
  return reading;
}

/** Bytes and milliseconds spent on the rest of a refused body, so that the client can read the refusal. */
const DISCARD_BYTES = 16_777_216;
const DISCARD_TIME = 5_000;

/** Reads and discards the rest of a refused body; closes the connection when that exceeds the limits. */
function discardBody(request: IncomingMessage): void {
  if (request.complete || request.destroyed) return;
  let discarded = 0;
  const timer = setTimeout(() => request.destroy(), DISCARD_TIME);
  timer.unref();
  request
    .on('data', (chunk: Buffer) => {
      discarded += chunk.length;
      if (discarded > DISCARD_BYTES) request.destroy();
    })
    .once('close', () => clearTimeout(timer))
    .once('error', () => clearTimeout(timer));
  request.resume();
}

/**
 * Answers a request that stops here, or returns `null` to let it pass. `'gone'`: the client has disconnected. `'streamed'`:
 * the answer is sent, or was sent, separately.
 */
export type CheckVerdict = Reply | 'gone' | 'streamed' | null;

export interface RequestCheck {
  readonly name: string;
  readonly check: (exchange: HttpExchange) => CheckVerdict | Promise<CheckVerdict>;
}

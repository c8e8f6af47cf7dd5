import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonObject } from '#core';
import { oneLine, wellFormed } from '#audit';
import {
  LanguageModel,
  LanguageModelError,
  type ModelRequest,
  type ModelTurn,
  type TurnWatch,
} from './language-model.js';
import type { ModelEndpoint } from './model-endpoint.js';
import { EventJson, parseObject } from './model-json.js';

/** Maximum delay in seconds. A request is not repeated when the server asks for more. */
const MAX_DELAY = 60;
const FIRST_DELAY = 0.5;

/**
 * Seconds until a request is repeated: the delay that the server asks for, else exponential with jitter.
 * @returns null when the server asks for a longer delay than the maximum
 */
function retryDelay(attempt: number, asked: number | undefined): number | null {
  if (asked !== undefined) return asked > MAX_DELAY ? null : asked;
  return Math.min(MAX_DELAY, FIRST_DELAY * 2 ** attempt * (0.5 + Math.random()));
}

interface ServerSentEvent {
  /** Empty when the event has no name. */
  readonly event: string;
  readonly data: string;
}

/** Maximum characters of one event. */
const MAX_EVENT = 1_048_576;

/** Parses an event stream from chunks of any size. */
export class EventReader {
  private line = '';
  private event = '';
  private data: string[] = [];
  private held = 0;
  private endedInReturn = false;

  /** @throws LanguageModelError when an event is too large */
  take(text: string): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    // The second half of a line end that was split between chunks.
    const rest = this.endedInReturn && text.startsWith('\n') ? text.slice(1) : text;
    if (text !== '') this.endedInReturn = text.endsWith('\r');
    const lines = rest.split(/\r\n|\r|\n/);
    const last = lines.pop() ?? '';
    for (const line of lines) {
      const event = this.endLine(this.line + line);
      this.line = '';
      if (event) events.push(event);
    }
    this.line += last;
    if (this.line.length + this.held > MAX_EVENT)
      throw new LanguageModelError(
        'too-large',
        `the model sent an event of more than ${MAX_EVENT} characters`,
      );
    return events;
  }

  private endLine(line: string): ServerSentEvent | null {
    if (line === '') return this.dispatch();
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') this.event = value;
    if (field === 'data') {
      this.data.push(value);
      this.held += value.length + 1;
    }
    return null;
  }

  private dispatch(): ServerSentEvent | null {
    const { event, data } = this;
    this.event = '';
    this.data = [];
    this.held = 0;
    return data.length === 0 ? null : { event, data: data.join('\n') };
  }
}

export interface ModelClientOptions {
  /** Name in error messages: `LLM call`. */
  readonly label: string;
  /** Path below the endpoint. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The credential in the headers; it is removed from quoted error pages. */
  readonly secret: string;
  /** Seconds without data after which the request fails. */
  readonly timeout: number;
  /** Maximum seconds of one answer. */
  readonly maxDuration: number;
  /** Repetitions after 429, 5xx and overload, as long as no part of the answer has been received. */
  readonly retries: number;
  /** Maximum bytes of one answer. */
  readonly maxBytes: number;
}

/** A successful response, to be read once as a stream or as text. */
interface ModelResponse {
  readonly isStream: boolean;
  events(): AsyncIterable<ServerSentEvent>;
  text(): Promise<string>;
}

const MAX_QUOTED = 2_000;
/** Maximum bytes of an error page that are read. */
const MAX_ERROR_PAGE = 16_384;

/** Posts JSON requests to one endpoint and reads the answers, bounded in time and size. */
export class ModelClient {
  readonly #options: ModelClientOptions;

  constructor(
    private readonly endpoint: ModelEndpoint,
    options: ModelClientOptions,
  ) {
    this.#options = options;
  }

  get label(): string {
    return this.#options.label;
  }

  withoutSecrets(text: string): string {
    const { secret } = this.#options;
    return secret.length < 8 ? text : text.replaceAll(secret, '[key]');
  }

  /**
   * @param heard whether a part of the answer was passed on: such a request is not repeated
   * @throws LanguageModelError; the reason of the signal
   */
  async send<T>(
    body: object,
    { signal, onRetry }: TurnWatch,
    read: (answer: ModelResponse) => Promise<T>,
    received: () => boolean,
  ): Promise<T> {
    const { retries } = this.#options;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.attempt(JSON.stringify(body), signal, read);
      } catch (error) {
        if (!(error instanceof LanguageModelError) || !error.transient || received() || attempt >= retries)
          throw error;
        const seconds = retryDelay(attempt, error.retryAfter);
        if (seconds === null) throw error;
        onRetry?.(seconds, error.message);
        await sleep(seconds * 1000, undefined, { signal }).catch(() => signal.throwIfAborted());
      }
    }
  }

  private async attempt<T>(
    body: string,
    signal: AbortSignal,
    read: (answer: ModelResponse) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    const { label, path, headers, maxDuration, timeout } = this.#options;
    const idle = new IdleTimeout(timeout);
    const limit = AbortSignal.timeout(maxDuration * 1000);
    try {
      // Redirects are not followed: they would send the conversation and the key to another endpoint.
      const response = await this.endpoint.request(path, {
        method: 'POST',
        headers: {
          ...headers,
          'Content-Type': 'application/json',
          Accept: 'text/event-stream, application/json',
        },
        body,
        signal: AbortSignal.any([signal, limit, idle.signal]),
      });
      idle.restart();
      if (!response.ok) throw await this.refusal(response, idle);
      return await read(this.answer(response, idle));
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      // An error of the server may quote the key.
      if (error instanceof LanguageModelError) throw error.reword(this.withoutSecrets(error.message));
      if (idle.signal.aborted)
        throw new LanguageModelError('timeout', `${label} failed: nothing came for ${timeout} s`);
      if (limit.aborted)
        throw new LanguageModelError(
          'timeout',
          `${label} failed: no end of the answer after ${maxDuration} s`,
        );
      throw new LanguageModelError('unreachable', `${label} failed: ${networkCode(error)}`);
    } finally {
      idle.end();
    }
  }

  private answer(response: Response, idle: IdleTimeout): ModelResponse {
    const chunks = () => this.chunks(response, idle, this.#options.maxBytes);
    return {
      isStream: (response.headers.get('content-type') ?? '').includes('text/event-stream'),
      events: () => readEvents(chunks()),
      text: () => joinChunks(chunks()),
    };
  }

  private async *chunks(response: Response, idle: IdleTimeout, most: number): AsyncGenerator<string> {
    const decoder = new TextDecoder();
    let bytes = 0;
    if (!response.body) return;
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      idle.restart();
      bytes += chunk.byteLength;
      if (bytes > most)
        throw new LanguageModelError('too-large', `the model answered with more than ${most} bytes`);
      yield decoder.decode(chunk, { stream: true });
    }
    yield decoder.decode();
  }

  private async refusal(response: Response, idle: IdleTimeout): Promise<LanguageModelError> {
    const { label } = this.#options;
    const { status } = response;
    if (status >= 300 && status < 400) {
      await response.body?.cancel();
      return new LanguageModelError(
        'redirected',
        `${label} failed: HTTP ${status}, a redirect, which is not followed`,
        {
          status,
        },
      );
    }
    let page = '';
    try {
      for await (const part of this.chunks(response, idle, MAX_ERROR_PAGE)) page += part;
    } catch (error) {
      if (!(error instanceof LanguageModelError)) throw error;
    }
    const quoted = Array.from(oneLine(wellFormed(this.withoutSecrets(page))))
      .slice(0, MAX_QUOTED)
      .join('');
    return new LanguageModelError('http', `${label} failed: HTTP ${status} ${quoted}`.trimEnd(), {
      status,
      transient: status === 429 || status >= 500,
      ...readRetryAfter(response),
    });
  }
}

async function* readEvents(chunks: AsyncIterable<string>): AsyncGenerator<ServerSentEvent> {
  const reader = new EventReader();
  for await (const chunk of chunks) yield* reader.take(chunk);
  // Completes the last event of servers that omit the final blank line.
  yield* reader.take('\n\n');
}

async function joinChunks(chunks: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const chunk of chunks) text += chunk;
  return text;
}

function readRetryAfter({ headers }: Response): { retryAfter?: number } {
  const header = headers.get('retry-after');
  if (header === null) return {};
  const seconds = /^\d+(\.\d+)?$/.test(header) ? Number(header) : (Date.parse(header) - Date.now()) / 1000;
  return Number.isFinite(seconds) ? { retryAfter: Math.max(0, seconds) } : {};
}

/** Aborts after a time without activity. */
class IdleTimeout {
  private readonly controller = new AbortController();
  private timer: NodeJS.Timeout;

  constructor(private readonly seconds: number) {
    this.timer = this.start();
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  restart(): void {
    this.timer.refresh();
  }

  end(): void {
    clearTimeout(this.timer);
  }

  private start(): NodeJS.Timeout {
    return setTimeout(() => this.controller.abort(), this.seconds * 1000);
  }
}

/** The code of a network error; the message is omitted because it may contain addresses. */
function networkCode(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  return typeof code === 'string' ? code : 'the connection broke';
}

/** Collects an answer of a provider, complete or from the events of a stream. */
export interface AnswerCollector {
  /** The payload, not JSON, that ends the stream. */
  readonly ending?: string;
  /** @returns whether the answer is complete @throws LanguageModelError for an error that the server reports */
  take(event: JsonObject): boolean;
  /** Reads an answer that was not streamed. @throws LanguageModelError */
  takeWhole(answer: JsonObject): ModelTurn;
  /** @param complete whether the stream ended properly @throws LanguageModelError when it broke off */
  finishTurn(complete: boolean): ModelTurn;
}

/**
 * Base of models behind an HTTP API: a turn is one request, which is not repeated once a part of the answer was
 * received.
 */
export abstract class HttpModel extends LanguageModel {
  constructor(private readonly client: ModelClient) {
    super();
  }

  protected abstract buildRequest(request: ModelRequest): JsonObject;
  protected abstract answer(onText: (text: string) => void): AnswerCollector;

  withoutSecrets(text: string): string {
    return this.client.withoutSecrets(text);
  }

  turn(request: ModelRequest, watch: TurnWatch): Promise<ModelTurn> {
    let received = false;
    const onText = (text: string) => {
      received = true;
      watch.onText?.(text);
    };
    const read = (answer: ModelResponse) => this.read(answer, this.answer(onText));
    return this.client.send(this.buildRequest(request), watch, read, () => received);
  }

  private async read(answer: ModelResponse, collector: AnswerCollector): Promise<ModelTurn> {
    if (!answer.isStream) return collector.takeWhole(parseObject(await answer.text(), this.client.label));
    const json = new EventJson();
    for await (const { data } of answer.events()) {
      if (data === collector.ending) return collector.finishTurn(true);
      const event = json.read(data);
      if (event && collector.take(event)) return collector.finishTurn(true);
    }
    return collector.finishTurn(false);
  }
}

import { setTimeout as sleep } from 'node:timers/promises';
import { oneLine, wellFormed } from '#audit';
import type { JsonObject } from '#dispatcher';
import {
  LanguageModel,
  LanguageModelError,
  type ModelRequest,
  type ModelTurn,
  type TurnWatch,
} from './language-model.js';
import type { ModelEndpoint } from './model-endpoint.js';
import { EventJson, objectOf } from './model-json.js';

/** Seconds that are waited for a server that names them; one that asks for more is not asked again. */
const MOST = 60;
const FIRST = 0.5;

/**
 * Seconds until a request is repeated: what the server asked for, else twice as long each time, spread so that many clients
 * do not come back at once.
 * @returns null when the server wants to be left alone for longer than anybody waits
 */
function retryDelay(attempt: number, asked: number | undefined, random = Math.random): number | null {
  if (asked !== undefined) return asked > MOST ? null : asked;
  return Math.min(MOST, FIRST * 2 ** attempt * (0.5 + random()));
}

interface ServerSentEvent {
  /** Empty: none was named. */
  readonly event: string;
  readonly data: string;
}

/** Characters of one event. */
const MAX_EVENT = 1_048_576;

/** Takes an event stream apart, however its bytes were cut. */
export class EventReader {
  private line = '';
  private event = '';
  private data: string[] = [];
  private held = 0;
  private endedInReturn = false;

  /** @throws LanguageModelError when one event is larger than what is read */
  take(text: string): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    // The second half of a line end that was cut in two.
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

export interface WireOptions {
  /** How errors call it: `LLM call`. */
  readonly label: string;
  /** Below the endpoint. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The credential in them; taken out of whatever an error quotes. */
  readonly secret: string;
  /** Seconds without a byte. */
  readonly timeout: number;
  /** Seconds that one answer may take altogether. */
  readonly maxDuration: number;
  /** Repetitions after 429, 5xx and overload, as long as nothing of an answer was heard. */
  readonly retries: number;
  /** Bytes of one answer. */
  readonly maxBytes: number;
}

/** An answer with a good status, read once and in one of two ways. */
interface WireAnswer {
  readonly isStream: boolean;
  events(): AsyncIterable<ServerSentEvent>;
  text(): Promise<string>;
}

const MAX_QUOTED = 2_000;
/** Bytes of an error page that are looked at. */
const MAX_ERROR_PAGE = 16_384;

/** Sends one JSON request to one place and reads what comes back, bounded in time and size. */
export class ModelWire {
  readonly #options: WireOptions;

  constructor(
    private readonly endpoint: ModelEndpoint,
    options: WireOptions,
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
   * @param heard whether something of the answer was passed on already: such a request is not repeated
   * @throws LanguageModelError; the reason of the signal
   */
  async send<T>(
    body: object,
    { signal, onRetry }: TurnWatch,
    read: (answer: WireAnswer) => Promise<T>,
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
    read: (answer: WireAnswer) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    const { label, path, headers, maxDuration, timeout } = this.#options;
    const idle = new IdleTimeout(timeout);
    const limit = AbortSignal.timeout(maxDuration * 1000);
    try {
      // A redirect is not followed: it would carry the conversation, and the key with it, to a place that nobody allowed.
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
      // A server knows the key, and may say it wherever it reports an error.
      if (error instanceof LanguageModelError) throw error.reworded(this.withoutSecrets(error.message));
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

  private answer(response: Response, idle: IdleTimeout): WireAnswer {
    const chunks = () => this.chunks(response, idle, this.#options.maxBytes);
    return {
      isStream: (response.headers.get('content-type') ?? '').includes('text/event-stream'),
      events: () => eventsOf(chunks()),
      text: () => joined(chunks()),
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
      ...retryAfterOf(response),
    });
  }
}

async function* eventsOf(chunks: AsyncIterable<string>): AsyncGenerator<ServerSentEvent> {
  const reader = new EventReader();
  for await (const chunk of chunks) yield* reader.take(chunk);
  // Servers that leave out the last blank line.
  yield* reader.take('\n\n');
}

async function joined(chunks: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const chunk of chunks) text += chunk;
  return text;
}

function retryAfterOf({ headers }: Response): { retryAfter?: number } {
  const header = headers.get('retry-after');
  if (header === null) return {};
  const seconds = /^\d+(\.\d+)?$/.test(header) ? Number(header) : (Date.parse(header) - Date.now()) / 1000;
  return Number.isFinite(seconds) ? { retryAfter: Math.max(0, seconds) } : {};
}

/** Aborts when nothing happens for a while. */
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

/** The code of a network fault: its message may quote addresses, its code does not. */
function networkCode(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  return typeof code === 'string' ? code : 'the connection broke';
}

/** Gathers one answer of a provider's wire, whole or from the events of a stream. */
export interface GatheredAnswer {
  /** A payload that is no JSON and ends the stream. */
  readonly ending?: string;
  /** @returns whether the answer is over @throws LanguageModelError for an error that the server reports */
  take(event: JsonObject): boolean;
  /** An answer that was not streamed. @throws LanguageModelError */
  takeWhole(answer: JsonObject): ModelTurn;
  /** @param complete whether the stream said that it is over @throws LanguageModelError when it broke off */
  finished(complete: boolean): ModelTurn;
}

/** What models behind a wire have in common: a turn is one request, and what was heard of its answer is not asked for again. */
export abstract class WiredModel extends LanguageModel {
  constructor(private readonly wire: ModelWire) {
    super();
  }

  protected abstract requestOf(request: ModelRequest): JsonObject;
  protected abstract answer(onText: (text: string) => void): GatheredAnswer;

  withoutSecrets(text: string): string {
    return this.wire.withoutSecrets(text);
  }

  turn(request: ModelRequest, watch: TurnWatch): Promise<ModelTurn> {
    let received = false;
    const onText = (text: string) => {
      received = true;
      watch.onText?.(text);
    };
    const read = (answer: WireAnswer) => this.read(answer, this.answer(onText));
    return this.wire.send(this.requestOf(request), watch, read, () => received);
  }

  private async read(answer: WireAnswer, gathered: GatheredAnswer): Promise<ModelTurn> {
    if (!answer.isStream) return gathered.takeWhole(objectOf(await answer.text(), this.wire.label));
    const json = new EventJson();
    for await (const { data } of answer.events()) {
      if (data === gathered.ending) return gathered.finished(true);
      const event = json.read(data);
      if (event && gathered.take(event)) return gathered.finished(true);
    }
    return gathered.finished(false);
  }
}

import { cutText } from '#core';
import type { MadeCall } from '../model/made-call.js';
import type { ProgressUpdate } from '#core';
import { oneLine, terminalText } from '#audit';
import type { ModelMessage, TokenCount } from '../model/language-model.js';

/** US dollars per million tokens. */
interface Price {
  /** Per million input tokens. */
  readonly input: number;
  /** Per million output tokens. */
  readonly output: number;
}

/** Prices by model name. */
export type Prices = Readonly<Record<string, Price>>;

/** List prices; configured prices override them. */
export const LIST_PRICES: Prices = Object.freeze({
  'gpt-4o-mini': { input: 0.15, output: 0.6 },
  'gpt-4o': { input: 2.5, output: 10 },
  'gpt-4.1-mini': { input: 0.4, output: 1.6 },
  'gpt-4.1': { input: 2, output: 8 },
  'claude-haiku-4-5': { input: 1, output: 5 },
  'claude-sonnet-4-5': { input: 3, output: 15 },
  'claude-opus-4-5': { input: 15, output: 75 },
});

const TOKENS_PER_PRICE = 1_000_000;

/** Tokens and their cost. Immutable. */
export class Usage {
  /** No tokens. */
  static readonly NONE = new Usage(0, 0, 0);

  constructor(
    /** Input tokens. */
    readonly prompt: number,
    /** Output tokens. */
    readonly completion: number,
    /** US dollars; 0 when the price of the model is unknown. */
    readonly costUsd: number,
  ) {}

  /** Computes the cost of tokens of a model. */
  static of({ prompt, completion }: TokenCount, model: string, prices: Prices): Usage {
    const price = Object.hasOwn(prices, model) ? prices[model] : undefined;
    const cost = price ? (prompt * price.input + completion * price.output) / TOKENS_PER_PRICE : 0;
    return new Usage(prompt, completion, cost);
  }

  /** Input and output tokens. */
  get total(): number {
    return this.prompt + this.completion;
  }

  /** The sum of both. */
  plus(other: Usage): Usage {
    return new Usage(
      this.prompt + other.prompt,
      this.completion + other.completion,
      this.costUsd + other.costUsd,
    );
  }

  /** One line of text. @param decimals of the dollars. Default 6 */
  toString(decimals = 6): string {
    const { prompt, completion, total, costUsd } = this;
    return `${prompt} in + ${completion} out = ${total} tokens   $${costUsd.toFixed(decimals)}`;
  }
}

/** Callbacks during an answer. Errors of a callback are passed to `warn` and have no other effect. */
export interface ConversationListener {
  /** A part of the answer was received. */
  readonly onText?: (text: string) => void;
  /** The model requests a call. */
  readonly onToolCall?: (call: Pick<MadeCall, 'name' | 'arguments'>) => void;
  /** A running call reports progress. */
  readonly onProgress?: (name: string, update: ProgressUpdate) => void;
  /** A call has ended. */
  readonly onToolResult?: (call: MadeCall) => void;
  /** A request to the model will be repeated. */
  readonly onRetry?: (seconds: number, why: string) => void;
  /** The model has finished a turn. Usage is null where its server reports none. */
  readonly onModelTurn?: (text: string, usage: Usage | null) => void;
  /** The question failed. */
  readonly onError?: (error: unknown) => void;
}

/** Options and callbacks of a question that goes on. */
export interface ReplyOptions extends ConversationListener {
  /** Cancels the question. Default: it cannot be cancelled. */
  readonly signal?: AbortSignal;
}

/** Wraps all callbacks so that their errors are caught. */
export function safely(
  listener: ConversationListener,
  warn: (line: string) => void,
): Required<ConversationListener> {
  const call =
    <A extends unknown[]>(listen: ((...args: A) => void) | undefined) =>
    (...args: A) => {
      try {
        listen?.(...args);
      } catch (error) {
        warn(`a listener of the conversation failed: ${error instanceof Error ? error.name : 'unknown'}`);
      }
    };
  return {
    onText: call(listener.onText),
    onToolCall: call(listener.onToolCall),
    onProgress: call(listener.onProgress),
    onToolResult: call(listener.onToolResult),
    onRetry: call(listener.onRetry),
    onModelTurn: call(listener.onModelTurn),
    onError: call(listener.onError),
  };
}

/**
 * `answered`: the model finished. `empty`: it finished in silence, and the text is of an earlier turn. `max-iterations`: it requested calls
 * in the last permitted turn. Others as in `StopReason`.
 */
export type AnswerEnd = 'answered' | 'empty' | 'max-iterations' | 'cut-off' | 'withheld';

interface AnswerParts {
  readonly text: string;
  readonly end: AnswerEnd;
  readonly toolCalls: readonly MadeCall[];
  readonly transcript: readonly ModelMessage[];
  readonly usage: Usage;
}

const ENDS: Readonly<Record<AnswerEnd, string | null>> = {
  answered: null,
  empty: 'The model ended without an answer',
  'max-iterations': 'Max iterations reached',
  'cut-off': 'The answer was cut off, as when a model runs out of tokens',
  withheld: 'The provider withheld the answer',
};

const MAX_ARGUMENTS = 200;

/** The answer to a question. `text` is what the model wrote; `toString` is safe for a terminal. */
export class Answer {
  /** What the model wrote. */
  readonly text: string;
  /** Why the answer ended. */
  readonly end: AnswerEnd;
  /** In the order of the requests. */
  readonly toolCalls: readonly MadeCall[];
  /** All messages of this question, for debugging. */
  readonly transcript: readonly ModelMessage[];
  /** Of this question alone. */
  readonly usage: Usage;
  readonly #reply: (question: string, options?: ReplyOptions) => Promise<Answer>;

  constructor(
    { text, end, toolCalls, transcript, usage }: AnswerParts,
    reply: (question: string, options?: ReplyOptions) => Promise<Answer>,
  ) {
    this.text = text;
    this.end = end;
    this.toolCalls = toolCalls;
    this.transcript = transcript;
    this.usage = usage;
    this.#reply = reply;
  }

  /** Why the answer is incomplete; null when it is complete. */
  get error(): string | null {
    return ENDS[this.end];
  }

  /** Asks another question in the same conversation. */
  reply(question: string, options?: ReplyOptions): Promise<Answer> {
    return this.#reply(question, options);
  }

  /** Text, calls and usage, escaped for a terminal. */
  toString(): string {
    const calls = this.toolCalls.map((call, index) => callLine(call, index + 1));
    const error = this.error === null ? [] : [`[${this.error}]`];
    return [...calls, terminalText(this.text), ...error, this.usage.toString()].join('\n');
  }
}

/** A call on one line, escaped for a terminal. */
export function callLine(
  { name, arguments: args }: Pick<MadeCall, 'name' | 'arguments'>,
  number: number,
): string {
  const written = args === null ? 'not JSON' : JSON.stringify(args);
  return `  ${number}. ${oneLine(`${name}(${written.length > MAX_ARGUMENTS ? `${cutText(written, MAX_ARGUMENTS)}…` : written})`)}`;
}

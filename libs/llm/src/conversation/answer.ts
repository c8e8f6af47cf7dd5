import type { ProgressUpdate } from '#agent';
import { oneLine, terminalText } from '#audit';
import type { JsonObject } from '#dispatcher';
import type { ModelMessage, TokenCount } from '../model/language-model.js';

/** US dollars per million tokens. */
export interface Price {
  /** Of a million tokens that are sent. */
  readonly input: number;
  /** Of a million tokens that are answered. */
  readonly output: number;
}

/** By the names of models. */
export type Prices = Readonly<Record<string, Price>>;

/** List prices; what is configured is laid over them. */
export const LIST_PRICES: Prices = Object.freeze({
  'gpt-4o-mini': { input: 0.15, output: 0.6 },
  'gpt-4o': { input: 2.5, output: 10 },
  'gpt-4.1-mini': { input: 0.4, output: 1.6 },
  'gpt-4.1': { input: 2, output: 8 },
  'claude-haiku-4-5': { input: 1, output: 5 },
  'claude-sonnet-4-5': { input: 3, output: 15 },
  'claude-opus-4-5': { input: 15, output: 75 },
});

const MILLION = 1_000_000;

/** Tokens and what they cost. Immutable; adds up. */
export class Usage {
  /** No tokens. */
  static readonly NONE = new Usage(0, 0, 0);

  constructor(
    /** Tokens of the questions. */
    readonly prompt: number,
    /** Tokens of the answers. */
    readonly completion: number,
    /** US dollars; 0 where the price of the model is not known. */
    readonly costUsd: number,
  ) {}

  /** What tokens of a model cost. */
  static of({ prompt, completion }: TokenCount, model: string, prices: Prices): Usage {
    const price = Object.hasOwn(prices, model) ? prices[model] : undefined;
    const cost = price ? (prompt * price.input + completion * price.output) / MILLION : 0;
    return new Usage(prompt, completion, cost);
  }

  /** Tokens of questions and answers. */
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

  /** On one line. @param decimals of the dollars. Default 6 */
  toString(decimals = 6): string {
    const { prompt, completion, total, costUsd } = this;
    return `${prompt} in + ${completion} out = ${total} tokens   $${costUsd.toFixed(decimals)}`;
  }
}

/** A call that a model asked for and what came of it. */
export interface MadeCall {
  /** Name of the tool. */
  readonly name: string;
  /** Null: what the model wrote was no JSON object, and nothing was called. */
  readonly arguments: JsonObject | null;
  /** As the model was given it, without the marker. */
  readonly result: string;
  /** Whether the call was refused or failed. */
  readonly failed: boolean;
}

/** Hears how an answer comes about. What a listener throws goes to `warn` and changes nothing. */
export interface ConversationListener {
  /** A part of the answer, as it arrives. */
  readonly onText?: (text: string) => void;
  /** The model asks for a call. */
  readonly onToolCall?: (call: Pick<MadeCall, 'name' | 'arguments'>) => void;
  /** A running call reports how far it is. */
  readonly onProgress?: (name: string, update: ProgressUpdate) => void;
  /** A call has ended. */
  readonly onToolResult?: (call: MadeCall) => void;
  /** A request to the model is repeated. */
  readonly onRetry?: (seconds: number, why: string) => void;
  /** The model has answered; once per turn. */
  readonly onModelTurn?: (text: string) => void;
  /** The question failed. */
  readonly onError?: (error: unknown) => void;
}

/** The listener, made safe to call. */
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

/** `answered`: the model was done. `max-iterations`: it still wanted to call tools. The others as in `StopReason`. */
export type AnswerEnd = 'answered' | 'max-iterations' | 'cut-off' | 'withheld';

interface AnswerParts {
  readonly text: string;
  readonly end: AnswerEnd;
  readonly toolCalls: readonly MadeCall[];
  readonly transcript: readonly ModelMessage[];
  readonly usage: Usage;
}

const ENDS: Readonly<Record<AnswerEnd, string | null>> = {
  answered: null,
  'max-iterations': 'Max iterations reached',
  'cut-off': 'The answer was cut off: the model ran out of tokens',
  withheld: 'The provider withheld the answer',
};

const MAX_ARGUMENTS = 200;

/** What came of a question. `text` is exactly what the model wrote; the printed form is safe for a terminal. */
export class Answer {
  /** What the model wrote. */
  readonly text: string;
  /** Why it ended. */
  readonly end: AnswerEnd;
  /** In the order they were asked for. */
  readonly toolCalls: readonly MadeCall[];
  /** Everything that was said for this question, for debugging. */
  readonly transcript: readonly ModelMessage[];
  /** Of this question alone. */
  readonly usage: Usage;
  readonly #reply: (question: string) => Promise<Answer>;

  constructor(
    { text, end, toolCalls, transcript, usage }: AnswerParts,
    reply: (question: string) => Promise<Answer>,
  ) {
    this.text = text;
    this.end = end;
    this.toolCalls = toolCalls;
    this.transcript = transcript;
    this.usage = usage;
    this.#reply = reply;
  }

  /** Why there is no proper answer; null when there is one. */
  get error(): string | null {
    return ENDS[this.end];
  }

  /** Goes on with the same conversation. */
  reply(question: string): Promise<Answer> {
    return this.#reply(question);
  }

  /** Text, calls and usage, safe for a terminal. */
  toString(): string {
    const calls = this.toolCalls.map((call, index) => callLine(call, index + 1));
    const error = this.error === null ? [] : [`[${this.error}]`];
    return [...calls, terminalText(this.text), ...error, this.usage.toString()].join('\n');
  }
}

/** A call on one line of a terminal. */
export function callLine(
  { name, arguments: args }: Pick<MadeCall, 'name' | 'arguments'>,
  number: number,
): string {
  const written = args === null ? 'not JSON' : JSON.stringify(args);
  return `  ${number}. ${oneLine(`${name}(${written.length > MAX_ARGUMENTS ? `${written.slice(0, MAX_ARGUMENTS)}…` : written})`)}`;
}

import type { TokenCount } from '../model/language-model.js';

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

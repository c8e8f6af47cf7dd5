import { terminalText, oneLine } from '#audit';
import type { ModelMessage } from '../model/language-model.js';
import type { MadeCall } from './listener.js';
import type { Usage } from './usage.js';

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
  const told = args === null ? 'not JSON' : JSON.stringify(args);
  return `  ${number}. ${oneLine(`${name}(${told.length > MAX_ARGUMENTS ? `${told.slice(0, MAX_ARGUMENTS)}…` : told})`)}`;
}

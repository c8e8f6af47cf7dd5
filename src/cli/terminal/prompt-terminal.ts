import type { REPLServer } from 'node:repl';
import { AnswerReader } from './answer-reader.js';
import type { Entered } from './entered.js';
import { type Paint, painterFor } from './paint.js';
import type { AskingTerminal } from './person-at-terminal.js';

/** The terminal of a JavaScript prompt: an answer is a line that the prompt does not evaluate. */
export class PromptTerminal implements AskingTerminal {
  readonly isPerson = true;
  readonly paint: Paint;
  private answers: AnswerReader | null = null;

  constructor(
    private readonly input: NodeJS.ReadStream,
    private readonly output: NodeJS.WriteStream,
  ) {
    this.paint = painterFor(output);
  }

  /** From when the prompt reads the input on. */
  attach(prompt: REPLServer): void {
    this.answers = new AnswerReader(prompt, this.input, this.output);
  }

  line(text = ''): void {
    this.output.write(`${text}\n`);
  }

  async answer(prompt: string, signal: AbortSignal): Promise<Entered> {
    return this.answers?.read(prompt, signal) ?? { kind: 'end' };
  }
}

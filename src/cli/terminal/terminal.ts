import { createInterface, type Interface } from 'node:readline';
import { oneLine } from '#audit';
import { AnswerReader } from './answer-reader.js';
import type { Entered } from './entered.js';
import { movesCursor, type Paint, painterFor } from './paint.js';
import type { AskingTerminal } from './person-at-terminal.js';

interface TerminalStreams {
  readonly input?: NodeJS.ReadStream;
  readonly output?: NodeJS.WriteStream;
}

const CLEAR_LINE = '\r\u001b[2K';

/** Lines in, text out, and one line at the bottom that comes and goes. Works with a pipe as with a person. */
export class Terminal implements AskingTerminal {
  readonly paint: Paint;
  /** A person sits here: what pipes send counts for no decision. */
  readonly isPerson: boolean;
  private readonly lines: string[] = [];
  private readonly reader: Interface;
  private readonly answers: AnswerReader | null;
  private readonly output: NodeJS.WriteStream;
  private readonly movesCursor: boolean;
  private waiting: ((entered: Entered) => void) | null = null;
  private interrupt: (() => void) | null = null;
  private ended = false;
  private hasStatus = false;

  constructor({ input = process.stdin, output = process.stdout }: TerminalStreams = {}) {
    this.output = output;
    this.isPerson = input.isTTY === true && output.isTTY === true;
    this.paint = painterFor(output);
    this.movesCursor = this.isPerson && movesCursor(output);
    this.reader = createInterface({ input, output, terminal: this.isPerson, historySize: 200 });
    this.answers = this.isPerson ? new AnswerReader(this.reader, input, output) : null;
    this.reader.on('line', (line) => this.take({ kind: 'line', text: line }));
    this.reader.once('close', () => {
      this.ended = true;
      this.take({ kind: 'end' });
    });
    this.reader.on('SIGINT', this.onInterrupt);
    process.on('SIGINT', this.onInterrupt);
  }

  /** The next line; those that were entered before it was asked for come first. */
  next(prompt: string): Promise<Entered> {
    const line = this.lines.shift();
    if (line !== undefined) return Promise.resolve({ kind: 'line', text: line });
    return this.fresh(prompt);
  }

  async answer(prompt: string, signal: AbortSignal): Promise<Entered> {
    this.clearStatus();
    return this.answers?.read(prompt, signal) ?? { kind: 'end' };
  }

  /** While this is set Ctrl-C does this and nothing else. */
  onCtrlC(interrupt: (() => void) | null): void {
    this.interrupt = interrupt;
  }

  write(text: string): void {
    this.clearStatus();
    this.output.write(text);
  }

  line(text = ''): void {
    this.write(`${text}\n`);
  }

  /** What goes on at this moment; gone with the next text. Not shown where lines cannot be taken back. */
  status(text: string): void {
    if (!this.movesCursor) return;
    this.clearStatus();
    const width = Math.max(10, (this.output.columns || 80) - 1);
    const shown = Array.from(oneLine(text)).slice(0, width).join('');
    this.output.write(this.paint('dim', shown));
    this.hasStatus = true;
  }

  close(): void {
    process.off('SIGINT', this.onInterrupt);
    this.reader.close();
  }

  private fresh(prompt: string): Promise<Entered> {
    if (this.ended) return Promise.resolve({ kind: 'end' });
    this.clearStatus();
    if (this.isPerson) {
      this.reader.setPrompt(prompt);
      this.reader.prompt();
    }
    return new Promise((resolve) => (this.waiting = resolve));
  }

  private take(entered: Entered): void {
    const { waiting } = this;
    this.waiting = null;
    if (waiting) waiting(entered);
    else if (entered.kind === 'line') this.lines.push(entered.text);
  }

  private readonly onInterrupt = (): void => {
    if (this.interrupt) return this.interrupt();
    // What was typed so far is dropped with it.
    if (this.isPerson) this.reader.write(null, { ctrl: true, name: 'u' });
    this.output.write('\n');
    this.take({ kind: 'interrupted' });
  };

  private clearStatus(): void {
    if (this.hasStatus) this.output.write(CLEAR_LINE);
    this.hasStatus = false;
  }
}

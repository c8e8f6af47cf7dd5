import { createInterface, type Interface } from 'node:readline';
import type { REPLServer } from 'node:repl';
import { setTimeout as pause } from 'node:timers/promises';
import { oneLine, terminalText } from '#audit';
import type { AskingTerminal } from './person-at-terminal.js';

type Style = 'bold' | 'dim' | 'red' | 'yellow';

const CODES: Readonly<Record<Style, number>> = { bold: 1, dim: 2, red: 31, yellow: 33 };

/** Text in a style, or as it is. */
export type Paint = (style: Style, text: string) => string;

interface ColourStream {
  readonly isTTY?: boolean;
}

/** Colours only where somebody looks, and not against their will (NO_COLOR). */
function painterFor(stream: ColourStream, env: NodeJS.ProcessEnv = process.env): Paint {
  const colours = movesCursor(stream, env) && !env['NO_COLOR'];
  return (style, text) => (colours ? `\u001b[${CODES[style]}m${text}\u001b[0m` : text);
}

/** Whether lines can be taken back. */
function movesCursor(stream: ColourStream, env: NodeJS.ProcessEnv = process.env): boolean {
  return stream.isTTY === true && env['TERM'] !== 'dumb';
}

/** `interrupted`: Ctrl-C while nothing else could be interrupted, or the wait was aborted. */
export type Entered =
  | { readonly kind: 'line'; readonly text: string }
  | { readonly kind: 'interrupted' }
  | { readonly kind: 'end' };

const HIGH_HALF = /[\ud800-\udbff]$/;

/** Text that arrives in pieces, made safe for a terminal; a character that was cut in two waits for its other half. */
export class TextStream {
  private half = '';
  /** Nothing was written yet, or a line end last. */
  atLineStart = true;

  constructor(private readonly write: (text: string) => void) {}

  take(piece: string): void {
    const text = this.half + piece;
    this.half = HIGH_HALF.exec(text)?.[0] ?? '';
    const whole = text.slice(0, text.length - this.half.length);
    if (whole === '') return;
    this.atLineStart = whole.endsWith('\n');
    this.write(terminalText(whole));
  }

  /** Ends the line that was begun. */
  end(): void {
    this.half = '';
    if (!this.atLineStart) this.write('\n');
    this.atLineStart = true;
  }
}

interface Key {
  readonly name?: string;
}

/** Milliseconds without a key after which nothing is on its way any more, and how often that is waited for at most. */
const QUIET = 40;
const MAX_WAITS = 25;

/** Switches the terminal's marks around pasted text on and off. */
const MARK_PASTES = '\u001b[?2004h';
const MARK_NO_PASTES = '\u001b[?2004l';

/**
 * Answers of a person, each to a question that was seen before it was typed: a line that was begun or pasted ahead is dropped,
 * and one with anything pasted in it is none.
 */
class AnswerReader {
  private keys = 0;
  private pasting = false;
  /** Of the line that is being typed. */
  private holdsPaste = false;
  /** Of the line that was entered last. */
  private wasPasted = false;
  private ended = false;

  /** @param input must be a terminal's, read by `reader` already */
  constructor(
    private readonly reader: Interface,
    input: NodeJS.ReadStream,
    private readonly output: NodeJS.WriteStream,
  ) {
    input.prependListener('keypress', this.watch);
    if (movesCursor(output)) output.write(MARK_PASTES);
    reader.once('close', () => {
      this.ended = true;
      input.off('keypress', this.watch);
      if (movesCursor(output)) output.write(MARK_NO_PASTES);
    });
  }

  /** @param signal ends the wait: nothing that is entered later is an answer */
  async read(prompt: string, signal: AbortSignal): Promise<Entered> {
    await this.quiet();
    for (;;) {
      if (signal.aborted) return { kind: 'interrupted' };
      if (this.ended) return { kind: 'end' };
      this.dropLine();
      const entered = await this.ask(prompt, signal);
      if (entered.kind !== 'line' || !this.wasPasted) return entered;
      this.output.write('[what is pasted is no answer]\n');
    }
  }

  private async quiet(): Promise<void> {
    for (let waits = 0; waits < MAX_WAITS; waits += 1) {
      const before = this.keys;
      await pause(QUIET);
      if (this.keys === before && !this.pasting) return;
    }
  }

  private dropLine(): void {
    if (this.reader.line !== '') {
      // From wherever the cursor was moved to.
      this.reader.write(null, { ctrl: true, name: 'e' });
      this.reader.write(null, { ctrl: true, name: 'u' });
    }
    this.holdsPaste = this.pasting;
  }

  private ask(prompt: string, signal: AbortSignal): Promise<Entered> {
    return new Promise((resolve) => {
      const settle = (entered: Entered) => {
        this.reader.off('close', onClose);
        signal.removeEventListener('abort', onAbort);
        resolve(entered);
      };
      const onClose = () => settle({ kind: 'end' });
      const onAbort = () => settle({ kind: 'interrupted' });
      this.reader.once('close', onClose);
      signal.addEventListener('abort', onAbort, { once: true });
      this.reader.question(prompt, { signal }, (text) => settle({ kind: 'line', text }));
    });
  }

  /** Hears of keys before the reader does. */
  private readonly watch = (_: unknown, key?: Key): void => {
    this.keys += 1;
    const name = key?.name;
    if (name === 'paste-start') this.pasting = this.holdsPaste = true;
    else if (name === 'paste-end') this.pasting = false;
    else if (name === 'return' || name === 'enter') {
      this.wasPasted = this.holdsPaste;
      this.holdsPaste = this.pasting;
    }
  };
}

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

  /** A status line, removed with the next text. Not shown where lines cannot be removed. */
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

import { createInterface, type Interface } from 'node:readline';
import type { REPLServer } from 'node:repl';
import { setTimeout as pause } from 'node:timers/promises';
import { oneLine, terminalText } from '#audit';

type Style = 'bold' | 'dim' | 'red' | 'yellow';

const CODES: Readonly<Record<Style, number>> = { bold: 1, dim: 2, red: 31, yellow: 33 };

/** Text with or without a style. */
export type Paint = (style: Style, text: string) => string;

interface ColourStream {
  readonly isTTY?: boolean;
}

/** Colours only on a terminal, and not with NO_COLOR. */
function painterFor(stream: ColourStream): Paint {
  const colours = movesCursor(stream) && !process.env['NO_COLOR'];
  return (style, text) => (colours ? `\u001b[${CODES[style]}m${text}\u001b[0m` : text);
}

/** Whether lines can be erased. */
function movesCursor(stream: ColourStream): boolean {
  return stream.isTTY === true && process.env['TERM'] !== 'dumb';
}

/** `interrupted`: Ctrl-C without other work to interrupt, or an aborted wait. */
export type Entered =
  | { readonly kind: 'line'; readonly text: string }
  | { readonly kind: 'interrupted' }
  | { readonly kind: 'end' };

/** A terminal that can prompt a user. */
export interface AskingTerminal {
  /** Whether a user is at the terminal: piped input never counts as a decision. */
  readonly isPerson: boolean;
  readonly paint: Paint;
  line(text?: string): void;
  /** A line that was typed after the prompt was shown. */
  answer(prompt: string, signal: AbortSignal): Promise<Entered>;
}

const HIGH_HALF = /[\ud800-\udbff]$/;

/** Text in chunks, made safe for a terminal; an incomplete character waits for its other half. */
export class TextStream {
  private half = '';
  /** Nothing was written yet, or a line end was last. */
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

  /** Ends the current line. */
  end(): void {
    this.half = '';
    if (!this.atLineStart) this.write('\n');
    this.atLineStart = true;
  }
}

interface Key {
  readonly name?: string;
}

/** Milliseconds without a key after which no input is pending, and the maximum number of waits. */
const QUIET_TIME = 40;
const MAX_WAITS = 25;

/** Enables and disables the terminal's marks around pasted text. */
const MARK_PASTES = '\u001b[?2004h';
const MARK_NO_PASTES = '\u001b[?2004l';

/**
 * Answers of a user, each typed after its prompt was shown: input that was typed or pasted before is dropped, and a
 * line with pasted text is refused.
 */
class AnswerReader {
  private keys = 0;
  private pasting = false;
  /** Whether the line being typed contains pasted text. */
  private holdsPaste = false;
  /** Whether the last line contained pasted text. */
  private wasPasted = false;
  private ended = false;

  /** @param input a terminal that `reader` already reads */
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

  /** @param signal ends the wait: later input is no answer */
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
      await pause(QUIET_TIME);
      if (this.keys === before && !this.pasting) return;
    }
  }

  private dropLine(): void {
    if (this.reader.line !== '') {
      // From any cursor position.
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

  /** Receives keys before the reader does. */
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

/** Reads lines, writes text, and shows one removable line at the bottom. Works with a pipe and with a terminal. */
export class Terminal implements AskingTerminal {
  readonly paint: Paint;
  /** Whether a user is at the terminal: piped input never counts as a decision. */
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

  /** The next line; lines that were entered earlier come first. */
  next(prompt: string): Promise<Entered> {
    const line = this.lines.shift();
    if (line !== undefined) return Promise.resolve({ kind: 'line', text: line });
    return this.fresh(prompt);
  }

  async answer(prompt: string, signal: AbortSignal): Promise<Entered> {
    this.clearStatus();
    return this.answers?.read(prompt, signal) ?? { kind: 'end' };
  }

  /** While this is set, Ctrl-C calls only this function. */
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
    // Drops the text that was typed so far.
    if (this.isPerson) this.reader.write(null, { ctrl: true, name: 'u' });
    this.output.write('\n');
    this.take({ kind: 'interrupted' });
  };

  private clearStatus(): void {
    if (this.hasStatus) this.output.write(CLEAR_LINE);
    this.hasStatus = false;
  }
}

/** The terminal of a JavaScript prompt: the prompt does not evaluate an answer. */
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

  /** Call it when the prompt starts to read the input. */
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

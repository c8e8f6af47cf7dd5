import type { Interface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import type { Entered } from './entered.js';
import { movesCursor } from './paint.js';

interface Key {
  readonly name?: string;
}

/** Milliseconds without a key after which nothing is on its way any more, and how often that is waited for at most. */
const QUIET = 40;
const MAX_WAITS = 25;

/** Asks the terminal to say where pasted text begins and ends, and to say so no longer. */
const MARK_PASTES = '\u001b[?2004h';
const MARK_NO_PASTES = '\u001b[?2004l';

/**
 * Answers of a person, each to a question that was seen before it was typed: a line that was begun or pasted ahead is dropped,
 * and one with anything pasted in it is none.
 */
export class AnswerReader {
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

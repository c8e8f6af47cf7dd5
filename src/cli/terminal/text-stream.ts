import { terminalText } from '#audit';

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

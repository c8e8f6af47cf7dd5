import type { Writable } from 'node:stream';

/** The result for a line. */
export type Line = { readonly bytes: Buffer } | 'too-long';

const NEWLINE = 0x0a;

/** Splits a stream of bytes into lines, and never buffers more than the limit of a line. */
export class LineReader {
  private parts: Buffer[] = [];
  private size = 0;
  private skipping = false;

  /** @param limit bytes of one line */
  constructor(private readonly limit: number) {}

  /** The lines that are complete with this chunk; blank ones are left out. */
  *take(chunk: Buffer): Iterable<Line> {
    let from = 0;
    for (;;) {
      const at = chunk.indexOf(NEWLINE, from);
      if (at < 0) break;
      const line = this.complete(chunk.subarray(from, at));
      if (line) yield line;
      from = at + 1;
    }
    this.keep(chunk.subarray(from));
  }

  private complete(end: Buffer): Line | null {
    this.keep(end);
    const { parts, skipping } = this;
    this.parts = [];
    this.size = 0;
    this.skipping = false;
    if (skipping) return 'too-long';
    const bytes = Buffer.concat(parts);
    return bytes.toString('latin1').trim() === '' ? null : { bytes };
  }

  private keep(part: Buffer): void {
    this.size += part.length;
    if (this.size > this.limit) {
      this.skipping = true;
      this.parts = [];
    } else if (!this.skipping && part.length > 0) this.parts.push(part);
  }
}

/**
 * Writes one message per line. For a slow reader, messages other than answers are dropped, and its own requests are delayed.
 */
export class LineWriter {
  /** @param maxBuffered bytes that may wait for the reader before messages beside answers are dropped */
  constructor(
    private readonly output: Writable,
    private readonly maxBuffered: number,
  ) {}

  /** An answer: always written. */
  answer(json: string): void {
    if (this.output.writable) this.output.write(`${json}\n`);
  }

  /** @returns false when it was dropped */
  publish(json: string): boolean {
    if (!this.output.writable || this.output.writableLength > this.maxBuffered) return false;
    this.output.write(`${json}\n`);
    return true;
  }

  get isBehind(): boolean {
    return this.output.writableNeedDrain;
  }

  /** Resolves when the reader has caught up or disconnected. */
  caughtUp(): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.output.off('drain', done).off('close', done).off('error', done);
        resolve();
      };
      this.output.on('drain', done).on('close', done).on('error', done);
    });
  }
}

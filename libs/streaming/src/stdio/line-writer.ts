import type { Writable } from 'node:stream';

/** Writes messages, one to a line. A reader that does not keep up loses what is not an answer, and holds back its own requests. */
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
  tell(json: string): boolean {
    if (!this.output.writable || this.output.writableLength > this.maxBuffered) return false;
    this.output.write(`${json}\n`);
    return true;
  }

  get isBehind(): boolean {
    return this.output.writableNeedDrain;
  }

  /** Resolves when the reader has caught up, or is gone. */
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

const NOTHING = Buffer.alloc(0);

/**
 * The received part of a body, in one piece. Chunks are copied: a client that sends a byte at a time would make an object of each, of
 * hundreds of times its size.
 */
export class ReceivedBody {
  private held: Buffer = NOTHING;
  private length = 0;

  /** Bytes. */
  get size(): number {
    return this.length;
  }

  add(chunk: Buffer): void {
    const size = this.length + chunk.length;
    if (this.length === 0) {
      // Most bodies arrive at once.
      this.held = chunk;
    } else {
      if (size > this.held.length) {
        const larger = Buffer.allocUnsafe(Math.max(size, 2 * this.length));
        this.held.copy(larger, 0, 0, this.length);
        this.held = larger;
      }
      chunk.copy(this.held, this.length);
    }
    this.length = size;
  }

  /** The whole body. */
  toBuffer(): Buffer {
    return this.held.subarray(0, this.length);
  }

  forget(): void {
    this.held = NOTHING;
    this.length = 0;
  }
}

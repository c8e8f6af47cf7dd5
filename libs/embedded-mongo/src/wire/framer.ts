import { MAX_MESSAGE_BYTES } from './limits.js';

const HEADER_BYTES = 16;

/** Cuts a byte stream into whole wire messages, however the network split or merged them. */
export class Framer {
  private chunks: Buffer[] = [];
  private held = 0;

  /** Adds bytes and returns the messages now complete. Throws a RangeError when a length is impossible. */
  push(chunk: Buffer): Buffer[] {
    this.chunks.push(chunk);
    this.held += chunk.length;
    const messages: Buffer[] = [];
    while (this.held >= HEADER_BYTES) {
      const size = this.nextSize();
      if (size < HEADER_BYTES || size > MAX_MESSAGE_BYTES) throw new RangeError(`bad message length ${size}`);
      if (this.held < size) break;
      const joined = this.readJoined();
      messages.push(joined.subarray(0, size));
      this.chunks = size === joined.length ? [] : [joined.subarray(size)];
      this.held -= size;
    }
    return messages;
  }

  private nextSize(): number {
    const first = this.chunks[0];
    return (first !== undefined && first.length >= 4 ? first : this.readJoined()).readInt32LE(0);
  }

  private readJoined(): Buffer {
    const only = this.chunks.length === 1 ? this.chunks[0] : undefined;
    const joined = only ?? Buffer.concat(this.chunks);
    this.chunks = [joined];
    return joined;
  }
}

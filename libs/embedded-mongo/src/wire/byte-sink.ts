import { mongoError } from '../errors.js';

/** No message is longer (48 MB), so what grows past this is a value that holds itself many times over. */
const MOST_BYTES = 64 * 1024 * 1024;

/** A growing byte buffer with little-endian writers. Errors: 10334 past 64 MiB. */
export class ByteSink {
  private bytes = Buffer.allocUnsafe(1024);
  length = 0;

  /** The written part; valid until the next write. */
  view(): Buffer {
    return this.bytes.subarray(0, this.length);
  }

  /** A copy of the written part from `start` on. */
  copy(start = 0): Buffer {
    return Buffer.from(this.bytes.subarray(start, this.length));
  }

  reset(): void {
    this.length = 0;
    // One huge reply must not pin its buffer for ever.
    if (this.bytes.length > 4 * 1024 * 1024) this.bytes = Buffer.allocUnsafe(1024);
  }

  byte(value: number): void {
    this.room(1);
    this.bytes[this.length++] = value;
  }

  int32(value: number): void {
    this.room(4);
    this.length = this.bytes.writeInt32LE(value, this.length);
  }

  uint32(value: number): void {
    this.room(4);
    this.length = this.bytes.writeUInt32LE(value, this.length);
  }

  int64(value: bigint): void {
    this.room(8);
    this.length = this.bytes.writeBigInt64LE(value, this.length);
  }

  double(value: number): void {
    this.room(8);
    this.length = this.bytes.writeDoubleLE(value, this.length);
  }

  raw(value: Uint8Array): void {
    this.room(value.length);
    this.bytes.set(value, this.length);
    this.length += value.length;
  }

  cstring(value: string): void {
    this.utf8(value);
    this.byte(0);
  }

  /** A BSON string: length, text, zero. */
  string(value: string): void {
    const at = this.length;
    this.int32(0);
    this.utf8(value);
    this.byte(0);
    this.bytes.writeInt32LE(this.length - at - 4, at);
  }

  /** Reserves a length field; `endLength` fills it with the distance. */
  startLength(): number {
    const at = this.length;
    this.int32(0);
    return at;
  }

  endLength(at: number): void {
    this.bytes.writeInt32LE(this.length - at, at);
  }

  private utf8(value: string): void {
    this.room(value.length * 3);
    this.length += this.bytes.write(value, this.length, 'utf8');
  }

  private room(extra: number): void {
    const needed = this.length + extra;
    if (needed <= this.bytes.length) return;
    if (needed > MOST_BYTES) throw mongoError(10334, 'the result is larger than any message');
    const larger = Buffer.allocUnsafe(Math.max(needed, this.bytes.length * 2));
    this.bytes.copy(larger, 0, 0, this.length);
    this.bytes = larger;
  }
}

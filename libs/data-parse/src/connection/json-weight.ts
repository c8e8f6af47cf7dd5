import { MIN_VALUE_BYTES } from '#data';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const BRACKET = 0x5b;
const BRACE = 0x7b;

/** Bytes that JSON counts for while it arrives: its own, and `MIN_VALUE_BYTES` for every value. Makes no objects. */
export class JsonWeight {
  private inText = false;
  private escaped = false;

  /** @returns what this part adds */
  add(chunk: Uint8Array): number {
    let values = 0;
    for (const byte of chunk) {
      if (this.inText) {
        if (this.escaped) this.escaped = false;
        else if (byte === BACKSLASH) this.escaped = true;
        else if (byte === QUOTE) this.inText = false;
      } else if (byte === QUOTE) this.inText = true;
      else if (byte === COMMA || byte === BRACKET || byte === BRACE) values += 1;
    }
    return chunk.byteLength + values * MIN_VALUE_BYTES;
  }
}

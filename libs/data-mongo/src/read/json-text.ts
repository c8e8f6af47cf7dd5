import { isUtf8 } from 'node:buffer';
import { BSON_TYPE, int32At, valueSize } from '../storage/documents.js';

/** What a byte of a text needs in JSON. */
const PLAIN_BYTE = 0;
const ESCAPED_BYTE = 1;
const BEYOND_ASCII = 2;
const DOLLAR_BYTE = 3;

const KIND = new Uint8Array(256);
KIND.fill(ESCAPED_BYTE, 0, 0x20);
KIND.fill(BEYOND_ASCII, 0x80);
KIND[0x22] = ESCAPED_BYTE;
KIND[0x5c] = ESCAPED_BYTE;
KIND[0x24] = DOLLAR_BYTE;

/** Texts up to this size are copied byte by byte, which is faster for few bytes. */
const SHORT_LENGTH = 48;

const HEX_DIGITS = Buffer.from('0123456789abcdef');

/** Bytes of buffers that are kept between answers. */
const MIN_BUFFER_BYTES = 64 * 1024;
const MAX_BUFFER_BYTES = 1024 * 1024;

/** Room for a number, a time, a bracket, and what separates them. */
export const SCALAR_ROOM = 64;

const OPEN = 0x5b;
const CLOSE = 0x5d;
const COMMA = 0x2c;
const QUOTE = 0x22;

const DOUBLE = new Float64Array(1);
const DOUBLE_BYTES = new Uint8Array(DOUBLE.buffer);

/**
 * JSON without spaces, written value by value. Texts and values make their own room; callers reserve it for everything else.
 */
export class JsonText {
  private bytes = Buffer.allocUnsafeSlow(MIN_BUFFER_BYTES);
  private at = 0;
  private member = 0;

  begin(): void {
    if (this.bytes.length > MAX_BUFFER_BYTES) this.bytes = Buffer.allocUnsafeSlow(MIN_BUFFER_BYTES);
    this.at = 0;
  }

  end(): Buffer {
    return Buffer.from(this.bytes.subarray(0, this.at));
  }

  /** Begins a member that `drop` can remove again. */
  beginMember(): void {
    this.member = this.at;
  }

  /** Removes what was written since `beginMember`. */
  dropMember(): void {
    this.at = this.member;
  }

  /** Makes room for so many bytes. */
  reserve(bytes: number): void {
    if (this.at + bytes <= this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.bytes.length * 2, this.at + bytes));
    larger.set(this.bytes.subarray(0, this.at));
    this.bytes = larger;
  }

  /** A piece that is the same in many rows. */
  writeFixed(piece: Uint8Array): void {
    this.plain(piece, 0, piece.length);
  }

  /** A stored value other than a list or an object. @returns false for one that needs an object: nothing was written */
  scalar(bytes: Buffer, type: number, at: number, size: number): boolean {
    switch (type) {
      case BSON_TYPE.text:
        return this.text(bytes, at + 4, at + size - 1);
      case BSON_TYPE.int32:
        return this.ascii(String(int32At(bytes, at)));
      case BSON_TYPE.double: {
        for (let index = 0; index < 8; index += 1) DOUBLE_BYTES[index] = bytes[at + index] as number;
        const number = DOUBLE[0] as number;
        return this.ascii(Number.isFinite(number) ? String(number) : `"${number}"`);
      }
      case BSON_TYPE.int64: {
        const number = int64At(bytes, at);
        return Number.isSafeInteger(number) && this.ascii(String(number));
      }
      case BSON_TYPE.boolean:
        return this.ascii(bytes[at] === 1 ? 'true' : 'false');
      case BSON_TYPE.null:
        return this.ascii('null');
      case BSON_TYPE.date:
        return this.date(int64At(bytes, at));
      default:
        return false;
    }
  }

  /**
   * A list of such values. Makes its own room.
   * @param longs whether 64-bit numbers may be among them. @returns false for any other list: nothing was written
   */
  list(bytes: Buffer, start: number, longs: boolean): boolean {
    const end = start + int32At(bytes, start) - 1;
    const before = this.at;
    this.reserve(SCALAR_ROOM);
    this.bytes[this.at++] = OPEN;
    let at = start + 4;
    let members = 0;
    while (at < end) {
      const type = bytes[at] as number;
      at += 1;
      while (bytes[at] !== 0) at += 1;
      at += 1;
      const size = valueSize(bytes, type, at);
      this.reserve(SCALAR_ROOM);
      if (members > 0) this.bytes[this.at++] = COMMA;
      if ((!longs && type === BSON_TYPE.int64) || !this.scalar(bytes, type, at, size)) {
        this.at = before;
        return false;
      }
      members += 1;
      at += size;
    }
    this.reserve(SCALAR_ROOM);
    this.bytes[this.at++] = CLOSE;
    return true;
  }

  /** ASCII that needs no escape. */
  private ascii(text: string): true {
    const { bytes } = this;
    let { at } = this;
    for (let index = 0; index < text.length; index += 1) bytes[at++] = text.charCodeAt(index);
    this.at = at;
    return true;
  }

  /** Bytes as hexadecimal digits. */
  hex(source: Uint8Array, from: number, end: number): void {
    const { bytes } = this;
    let { at } = this;
    for (let index = from; index < end; index += 1) {
      const byte = source[index] as number;
      bytes[at++] = HEX_DIGITS[byte >> 4] as number;
      bytes[at++] = HEX_DIGITS[byte & 15] as number;
    }
    this.at = at;
  }

  /** Bytes that need no escape. */
  plain(source: Uint8Array, from: number, end: number): void {
    const { bytes, at } = this;
    const length = end - from;
    if (length > SHORT_LENGTH) bytes.set(source.subarray(from, end), at);
    else for (let index = 0; index < length; index += 1) bytes[at + index] = source[from + index] as number;
    this.at = at + length;
  }

  /** A text in UTF-8. Makes its own room. @returns false for one that contains `$` or is not UTF-8: nothing was written */
  private text(bytes: Buffer, from: number, end: number): boolean {
    let seen = PLAIN_BYTE;
    for (let index = from; index < end; index += 1) seen |= 1 << (KIND[bytes[index] as number] as number);
    if ((seen & (1 << DOLLAR_BYTE)) !== 0) return false;
    if ((seen & (1 << BEYOND_ASCII)) !== 0 && !isUtf8(bytes.subarray(from, end))) return false;
    if ((seen & (1 << ESCAPED_BYTE)) !== 0) {
      this.value(JSON.stringify(bytes.toString('utf8', from, end)));
      return true;
    }
    this.reserve(end - from + 8);
    this.writeQuoted(bytes, from, end);
    return true;
  }

  /** Bytes that need no escape, as a string. */
  private writeQuoted(source: Uint8Array, from: number, end: number): void {
    this.bytes[this.at++] = QUOTE;
    this.plain(source, from, end);
    this.bytes[this.at++] = QUOTE;
  }

  /** Any JSON. Makes its own room. */
  value(json: string): void {
    this.reserve(json.length * 3);
    this.at += this.bytes.write(json, this.at, 'utf8');
  }

  /** A time as ISO text. @returns false for one outside the years 0 to 9999: nothing was written */
  private date(time: number): boolean {
    const day = Math.floor(time / DAY_MS);
    if (!(day >= FIRST_DAY && day <= LAST_DAY)) return false;
    if (day !== dayWritten) {
      writeDay(day);
      dayWritten = day;
    }
    writeTime(time - day * DAY_MS);
    this.writeQuoted(ISO, 0, ISO.length);
    return true;
  }
}

/** Exact for safe whole numbers. */
function int64At(bytes: Uint8Array, at: number): number {
  return (int32At(bytes, at) >>> 0) + int32At(bytes, at + 4) * 0x1_0000_0000;
}

const DAY_MS = 86_400_000;
/** The days of 0000-01-01 and 9999-12-31, counted from 1970. */
const FIRST_DAY = -719_528;
const LAST_DAY = 2_932_896;

/** The text of the last time. Times of neighbouring rows are often of one day. */
const ISO = Buffer.from('1970-01-01T00:00:00.000Z');
let dayWritten = 0;

function writeTwo(at: number, value: number): void {
  const tens = (value / 10) | 0;
  ISO[at] = 0x30 + tens;
  ISO[at + 1] = 0x30 + value - tens * 10;
}

/** A day as a date of the Gregorian calendar, in whole numbers (H. Hinnant, `civil_from_days`). */
function writeDay(day: number): void {
  const shifted = day - FIRST_DAY - 60;
  const era = Math.floor(shifted / 146_097);
  const ofEra = shifted - era * 146_097;
  const yearOfEra =
    ((ofEra - ((ofEra / 1460) | 0) + ((ofEra / 36_524) | 0) - ((ofEra / 146_096) | 0)) / 365) | 0;
  const ofYear = ofEra - (365 * yearOfEra + ((yearOfEra / 4) | 0) - ((yearOfEra / 100) | 0));
  // Months are counted from March.
  const fromMarch = ((5 * ofYear + 2) / 153) | 0;
  const month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  const century = (year / 100) | 0;
  writeTwo(0, century);
  writeTwo(2, year - century * 100);
  writeTwo(5, month);
  writeTwo(8, ofYear - (((153 * fromMarch + 2) / 5) | 0) + 1);
}

function writeTime(ofDay: number): void {
  const seconds = (ofDay / 1000) | 0;
  const milliseconds = ofDay - seconds * 1000;
  const minutes = (seconds / 60) | 0;
  const hours = (minutes / 60) | 0;
  writeTwo(11, hours);
  writeTwo(14, minutes - hours * 60);
  writeTwo(17, seconds - minutes * 60);
  const hundreds = (milliseconds / 100) | 0;
  ISO[20] = 0x30 + hundreds;
  writeTwo(21, milliseconds - hundreds * 100);
}

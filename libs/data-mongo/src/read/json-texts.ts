import { isUtf8 } from 'node:buffer';
import { BSON_TYPE, int32At, valueSize } from '../storage/documents.js';

/** What a byte of a text needs in JSON. */
const PLAIN = 0;
const ESCAPED = 1;
const BEYOND_ASCII = 2;
const DOLLAR = 3;

const KIND = new Uint8Array(256);
KIND.fill(ESCAPED, 0, 0x20);
KIND.fill(BEYOND_ASCII, 0x80);
KIND[0x22] = ESCAPED;
KIND[0x5c] = ESCAPED;
KIND[0x24] = DOLLAR;

/** Texts up to this size are copied byte by byte, which is faster for few bytes. */
const SHORT = 48;

const HEX_DIGITS = Buffer.from('0123456789abcdef');

/** Bytes of buffers that are kept between answers. */
const SMALL = 64 * 1024;
const LARGE = 1024 * 1024;

/** The inside of a JSON string that contains a text. */
const insideString = (text: string): string => JSON.stringify(text).slice(1, -1);

/** A piece of both texts that is the same in many rows. */
export interface FixedPiece {
  readonly pretty: Uint8Array;
  /** Characters of `pretty` that are escaped by a backslash before them. */
  readonly escapes: number;
  readonly compact: Uint8Array;
}

/** @param pretty as it is printed outside a string */
export function fixedPiece(pretty: string, compact: string): FixedPiece {
  const inside = insideString(pretty);
  return {
    pretty: Buffer.from(inside),
    escapes: inside.length - pretty.length,
    compact: Buffer.from(compact),
  };
}

/** Room for a number, a time, a bracket, and what separates them. */
export const ROOM = 64;

/** What a member of a row, and of a list in it, begins with in the pretty text. */
export const MEMBER = '\n      ';
const IN_LIST = `${MEMBER}  `;

const LIST = {
  open: fixedPiece('[', '['),
  first: fixedPiece(IN_LIST, ''),
  next: fixedPiece(`,${IN_LIST}`, ','),
  close: fixedPiece(`${MEMBER}]`, ']'),
  closeEmpty: fixedPiece(']', ']'),
};

const DOUBLE = new Float64Array(1);
const DOUBLE_BYTES = new Uint8Array(DOUBLE.buffer);

/**
 * The same JSON twice, written value by value: pretty-printed as the inside of a JSON string, and without spaces. Texts
 * and values make their own room; callers reserve it for everything else.
 */
export class JsonTexts {
  private pretty = Buffer.allocUnsafeSlow(SMALL);
  private compact = Buffer.allocUnsafeSlow(SMALL);
  private prettyAt = 0;
  private compactAt = 0;
  private escapes = 0;
  private memberPretty = 0;
  private memberCompact = 0;
  private memberEscapes = 0;

  begin(): void {
    if (this.pretty.length > LARGE) this.pretty = Buffer.allocUnsafeSlow(SMALL);
    if (this.compact.length > LARGE) this.compact = Buffer.allocUnsafeSlow(SMALL);
    this.prettyAt = this.compactAt = this.escapes = 0;
  }

  end(): { readonly pretty: Buffer; readonly prettyBytes: number; readonly compact: Buffer } {
    const { prettyAt, compactAt } = this;
    const bytes = Buffer.allocUnsafe(prettyAt + compactAt);
    this.pretty.copy(bytes, 0, 0, prettyAt);
    this.compact.copy(bytes, prettyAt, 0, compactAt);
    return {
      pretty: bytes.subarray(0, prettyAt),
      prettyBytes: prettyAt - this.escapes,
      compact: bytes.subarray(prettyAt),
    };
  }

  /** Begins a member that `drop` can remove again. */
  beginMember(): void {
    this.memberPretty = this.prettyAt;
    this.memberCompact = this.compactAt;
    this.memberEscapes = this.escapes;
  }

  /** Removes what was written since `beginMember`. */
  dropMember(): void {
    this.prettyAt = this.memberPretty;
    this.compactAt = this.memberCompact;
    this.escapes = this.memberEscapes;
  }

  /** Makes room for so many bytes in each text. */
  reserve(bytes: number): void {
    if (this.prettyAt + bytes > this.pretty.length) this.pretty = larger(this.pretty, this.prettyAt, bytes);
    if (this.compactAt + bytes > this.compact.length)
      this.compact = larger(this.compact, this.compactAt, bytes);
  }

  fixed({ pretty, escapes, compact }: FixedPiece): void {
    this.prettyAt = copied(pretty, this.pretty, this.prettyAt);
    this.compactAt = copied(compact, this.compact, this.compactAt);
    this.escapes += escapes;
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
        return this.ascii(Number.isFinite(number) ? String(number) : 'null');
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
    const { prettyAt, compactAt, escapes } = this;
    this.reserve(ROOM);
    this.fixed(LIST.open);
    let at = start + 4;
    let members = 0;
    while (at < end) {
      const type = bytes[at] as number;
      at += 1;
      while (bytes[at] !== 0) at += 1;
      at += 1;
      const size = valueSize(bytes, type, at);
      this.reserve(ROOM);
      this.fixed(members === 0 ? LIST.first : LIST.next);
      if ((!longs && type === BSON_TYPE.int64) || !this.scalar(bytes, type, at, size)) {
        this.prettyAt = prettyAt;
        this.compactAt = compactAt;
        this.escapes = escapes;
        return false;
      }
      members += 1;
      at += size;
    }
    this.reserve(ROOM);
    this.fixed(members > 0 ? LIST.close : LIST.closeEmpty);
    return true;
  }

  /** ASCII that needs no escape. */
  private ascii(text: string): true {
    const { pretty, compact } = this;
    let { prettyAt, compactAt } = this;
    for (let index = 0; index < text.length; index += 1) {
      const code = text.charCodeAt(index);
      pretty[prettyAt++] = code;
      compact[compactAt++] = code;
    }
    this.prettyAt = prettyAt;
    this.compactAt = compactAt;
    return true;
  }

  /** Bytes as hexadecimal digits. */
  hex(bytes: Uint8Array, from: number, end: number): void {
    const { pretty, compact } = this;
    let { prettyAt, compactAt } = this;
    for (let index = from; index < end; index += 1) {
      const byte = bytes[index] as number;
      pretty[prettyAt++] = compact[compactAt++] = HEX_DIGITS[byte >> 4] as number;
      pretty[prettyAt++] = compact[compactAt++] = HEX_DIGITS[byte & 15] as number;
    }
    this.prettyAt = prettyAt;
    this.compactAt = compactAt;
  }

  /** Bytes that need no escape. */
  plain(bytes: Uint8Array, from: number, end: number): void {
    const { pretty, compact } = this;
    let { prettyAt, compactAt } = this;
    for (let index = from; index < end; index += 1) {
      pretty[prettyAt++] = compact[compactAt++] = bytes[index] as number;
    }
    this.prettyAt = prettyAt;
    this.compactAt = compactAt;
  }

  /** A text in UTF-8. Makes its own room. @returns false for one that contains `$` or is not UTF-8: nothing was written */
  private text(bytes: Buffer, from: number, end: number): boolean {
    let seen = PLAIN;
    for (let index = from; index < end; index += 1) seen |= 1 << (KIND[bytes[index] as number] as number);
    if ((seen & (1 << DOLLAR)) !== 0) return false;
    if ((seen & (1 << BEYOND_ASCII)) !== 0 && !isUtf8(bytes.subarray(from, end))) return false;
    if ((seen & (1 << ESCAPED)) !== 0) {
      this.value(JSON.stringify(bytes.toString('utf8', from, end)));
      return true;
    }
    this.reserve(end - from + 8);
    this.quote();
    if (end - from <= SHORT) {
      this.plain(bytes, from, end);
    } else {
      bytes.copy(this.pretty, this.prettyAt, from, end);
      bytes.copy(this.compact, this.compactAt, from, end);
      this.prettyAt += end - from;
      this.compactAt += end - from;
    }
    this.quote();
    return true;
  }

  /** A quotation mark, which is escaped in the pretty text. */
  private quote(): void {
    this.pretty[this.prettyAt] = 0x5c;
    this.pretty[this.prettyAt + 1] = 0x22;
    this.compact[this.compactAt] = 0x22;
    this.prettyAt += 2;
    this.compactAt += 1;
    this.escapes += 1;
  }

  /** Any JSON. Makes its own room. @param pretty default: the same */
  value(compact: string, pretty = compact): void {
    const inside = insideString(pretty);
    this.reserve(Math.max(inside.length, compact.length) * 3);
    this.prettyAt += this.pretty.write(inside, this.prettyAt, 'utf8');
    this.compactAt += this.compact.write(compact, this.compactAt, 'utf8');
    this.escapes += inside.length - pretty.length;
  }

  /** A time as ISO text. @returns false for one outside the years 0 to 9999: nothing was written */
  private date(time: number): boolean {
    const day = Math.floor(time / DAY);
    if (!(day >= FIRST_DAY && day <= LAST_DAY)) return false;
    if (day !== dayWritten) {
      writeDay(day);
      dayWritten = day;
    }
    writeTime(time - day * DAY);
    this.quote();
    this.plain(ISO, 0, ISO.length);
    this.quote();
    return true;
  }
}

/** Exact for safe whole numbers. */
function int64At(bytes: Uint8Array, at: number): number {
  return (int32At(bytes, at) >>> 0) + int32At(bytes, at + 4) * 0x1_0000_0000;
}

function larger(buffer: Uint8Array, used: number, bytes: number): Buffer<ArrayBuffer> {
  const made = Buffer.allocUnsafeSlow(Math.max(buffer.length * 2, used + bytes));
  made.set(buffer.subarray(0, used));
  return made;
}

function copied(source: Uint8Array, target: Uint8Array, at: number): number {
  const { length } = source;
  if (length > SHORT) target.set(source, at);
  else for (let index = 0; index < length; index += 1) target[at + index] = source[index] as number;
  return at + length;
}

const DAY = 86_400_000;
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

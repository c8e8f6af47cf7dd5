import {
  Binary,
  BSONRegExp,
  BSONType as T,
  Code,
  DBRef,
  Decimal128,
  Double,
  Long,
  MaxKey,
  MinKey,
  ObjectId,
  Timestamp,
} from 'bson';
import { type Document, setField } from '../bson/document.js';
import { createDate } from '../bson/times.js';
import { mongoError, type MongoError, notImplemented } from '../errors.js';
import { MAX_COMMAND_DEPTH } from './raw-bson.js';

/**
 * Decodes one document and keeps every number type apart: int32 is a JS number, an integral double inside the
 * int32 range is `Double`, any other double a JS number, int64 always `Long`.
 * Throws 22 (InvalidBSON) for malformed bytes, 15 (Overflow) past `maxDepth` and for dates beyond JavaScript's, 238 for two
 * members of one name.
 */
export function decodeDocument(bytes: Buffer, maxDepth = MAX_COMMAND_DEPTH): Document {
  const reader = new Reader(bytes, maxDepth);
  const document = reader.document(1);
  if (reader.at !== bytes.length) throw invalid('bytes after the end of the document');
  return document;
}

const invalid = (why: string): MongoError => mongoError(22, `invalid BSON: ${why}`);

const ASCII_LIMIT = 0x80;

class Reader {
  at = 0;
  private end: number;

  constructor(
    private readonly bytes: Buffer,
    private readonly maxDepth: number,
  ) {
    this.end = bytes.length;
  }

  document(depth: number): Document {
    const outer = this.enter(depth);
    const document: Document = {};
    for (let type = this.byte(); type !== 0; type = this.byte()) {
      const name = this.cstring();
      if (Object.hasOwn(document, name)) throw notImplemented(`a document with two members ${name}`);
      setField(document, name, this.value(type, depth));
    }
    this.leave(outer);
    return document;
  }

  private array(depth: number): unknown[] {
    const outer = this.enter(depth);
    const items: unknown[] = [];
    for (let type = this.byte(); type !== 0; type = this.byte()) {
      while (this.byte() !== 0);
      items.push(this.value(type, depth));
    }
    this.leave(outer);
    return items;
  }

  private enter(depth: number): number {
    if (depth > this.maxDepth) throw mongoError(15, `document is nested deeper than ${this.maxDepth} levels`);
    const start = this.at;
    const size = this.int32();
    if (size < 5 || start + size > this.end) throw invalid('a length points outside its document');
    const outer = this.end;
    this.end = start + size;
    return outer;
  }

  private leave(outer: number): void {
    if (this.at !== this.end) throw invalid('a length does not match its content');
    this.end = outer;
  }

  private value(type: number, depth: number): unknown {
    switch (type) {
      case T.double:
        return this.double();
      case T.string:
      case T.symbol:
        return this.string();
      case T.object:
        return this.document(depth + 1);
      case T.array:
        return this.array(depth + 1);
      case T.binData:
        return this.binary();
      case T.undefined:
      case T.null:
        return null;
      case T.objectId:
        return new ObjectId(Buffer.from(this.take(12)));
      case T.bool:
        return this.byte() !== 0;
      case T.date:
        return createDate(Number(this.take(8).readBigInt64LE(0)));
      case T.regex:
        return new BSONRegExp(this.cstring(), Array.from(this.cstring()).sort().join(''));
      case T.dbPointer:
        return new DBRef(this.string(), new ObjectId(Buffer.from(this.take(12))));
      case T.javascript:
        return new Code(this.string());
      case T.javascriptWithScope:
        return this.codeWithScope(depth);
      case T.int:
        return this.int32();
      case T.timestamp: {
        const raw = this.take(8);
        return new Timestamp({ i: raw.readUInt32LE(0), t: raw.readUInt32LE(4) });
      }
      case T.long: {
        const raw = this.take(8);
        return new Long(raw.readInt32LE(0), raw.readInt32LE(4));
      }
      case T.decimal:
        return new Decimal128(Uint8Array.from(this.take(16)));
      case T.minKey & 0xff:
        return new MinKey();
      case T.maxKey:
        return new MaxKey();
      default:
        throw invalid(`unknown element type ${type}`);
    }
  }

  private double(): number | Double {
    const value = this.take(8).readDoubleLE(0);
    return (value | 0) === value && !Object.is(value, -0) ? new Double(value) : value;
  }

  private binary(): Binary {
    const size = this.int32();
    const subtype = this.byte();
    if (size < 0) throw invalid('negative binary length');
    const data = this.take(size);
    // The old generic subtype repeats its length inside the data.
    return new Binary(
      Uint8Array.from(subtype === Binary.SUBTYPE_BYTE_ARRAY ? data.subarray(4) : data),
      subtype,
    );
  }

  private codeWithScope(depth: number): Code {
    this.int32();
    const code = this.string();
    return new Code(code, this.document(depth + 1));
  }

  private string(): string {
    const size = this.int32();
    if (size < 1) throw invalid('bad string length');
    const raw = this.take(size);
    if (raw[size - 1] !== 0) throw invalid('string without its end');
    return raw.toString('utf8', 0, size - 1);
  }

  private cstring(): string {
    const start = this.at;
    let ascii = true;
    let byte = this.byte();
    while (byte !== 0) {
      if (byte >= ASCII_LIMIT) ascii = false;
      byte = this.byte();
    }
    return this.bytes.toString(ascii ? 'latin1' : 'utf8', start, this.at - 1);
  }

  private byte(): number {
    if (this.at >= this.end) throw invalid('unexpected end');
    return this.bytes[this.at++] as number;
  }

  private int32(): number {
    const at = this.at;
    if (at + 4 > this.end) throw invalid('unexpected end');
    this.at = at + 4;
    return this.bytes.readInt32LE(at);
  }

  private take(size: number): Buffer {
    const start = this.at;
    if (start + size > this.end) throw invalid('unexpected end');
    this.at = start + size;
    return this.bytes.subarray(start, this.at);
  }
}

import type {
  Binary,
  BSONRegExp,
  BSONSymbol,
  Code,
  DBRef,
  Decimal128,
  Double,
  Int32,
  Long,
  ObjectId,
  Timestamp,
} from 'bson';
import { bsonTag, type Document } from '../bson/document.js';
import { mongoError } from '../errors.js';
import { ElementType as T, MAX_COMMAND_DEPTH, RawBson, rawFields } from './raw-bson.js';

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

const sink = new ByteSink();

/** Encodes one document. `undefined` fields are left out. Throws 15 (Overflow) past `maxDepth` levels. */
export function encodeDocument(document: Document, maxDepth = MAX_COMMAND_DEPTH): Buffer {
  sink.reset();
  writeDocument(sink, document, 1, maxDepth);
  return sink.copy();
}

/** Encodes a document into `target`, for replies that carry stored documents verbatim. */
export function encodeInto(target: ByteSink, document: Document): void {
  writeDocument(target, document, 1, MAX_COMMAND_DEPTH);
}

/**
 * Encodes the next version of a stored document and copies the bytes of every top-level field that did not change,
 * so that types the decoded view cannot tell apart survive an update of another field.
 */
export function encodeChanged(
  rawBefore: Buffer,
  before: Document,
  after: Document,
  maxDepth: number,
): Buffer {
  const kept = new Map<string, Buffer>();
  for (const field of rawFields(rawBefore)) {
    if (Object.is(before[field.name], after[field.name])) {
      kept.set(field.name, rawBefore.subarray(field.start, field.end));
    }
  }
  sink.reset();
  const start = sink.startLength();
  for (const name of Object.keys(after)) {
    const bytes = kept.get(name);
    if (bytes === undefined) writeField(sink, name, after[name], 1, maxDepth);
    else sink.raw(bytes);
  }
  sink.byte(0);
  sink.endLength(start);
  return sink.copy();
}

function writeDocument(out: ByteSink, document: Document | RawBson, depth: number, maxDepth: number): void {
  if (document instanceof RawBson) return out.raw(document.bytes);
  if (depth > maxDepth) throw mongoError(15, `document is nested deeper than ${maxDepth} levels`);
  const start = out.startLength();
  for (const name of Object.keys(document)) writeField(out, name, document[name], depth, maxDepth);
  out.byte(0);
  out.endLength(start);
}

function writeArray(out: ByteSink, items: readonly unknown[], depth: number, maxDepth: number): void {
  if (depth > maxDepth) throw mongoError(15, `document is nested deeper than ${maxDepth} levels`);
  const start = out.startLength();
  for (let i = 0; i < items.length; i += 1) writeField(out, String(i), items[i] ?? null, depth, maxDepth);
  out.byte(0);
  out.endLength(start);
}

function head(out: ByteSink, type: number, name: string): void {
  out.byte(type);
  if (name.includes('\0')) throw mongoError(2, 'a field name must not contain a null byte');
  out.cstring(name);
}

function writeField(out: ByteSink, name: string, value: unknown, depth: number, maxDepth: number): void {
  switch (typeof value) {
    case 'undefined':
    case 'function':
    case 'symbol':
      return;
    case 'number':
      return writeNumber(out, name, value);
    case 'string':
      head(out, T.string, name);
      return out.string(value);
    case 'boolean':
      head(out, T.boolean, name);
      return out.byte(value ? 1 : 0);
    case 'bigint':
      head(out, T.int64, name);
      return out.int64(BigInt.asIntN(64, value));
    case 'object':
      return writeObject(out, name, value, depth, maxDepth);
  }
}

function writeNumber(out: ByteSink, name: string, value: number): void {
  if ((value | 0) === value && !Object.is(value, -0)) {
    head(out, T.int32, name);
    out.int32(value);
  } else {
    head(out, T.double, name);
    out.double(value);
  }
}

function writeObject(
  out: ByteSink,
  name: string,
  value: object | null,
  depth: number,
  maxDepth: number,
): void {
  if (value === null) return head(out, T.null, name);
  if (Array.isArray(value)) {
    head(out, T.array, name);
    return writeArray(out, value, depth + 1, maxDepth);
  }
  if (value instanceof Date) {
    head(out, T.date, name);
    return out.int64(BigInt(value.getTime()));
  }
  const tag = bsonTag(value);
  if (tag !== undefined) return writeBsonValue(out, name, tag, value, depth, maxDepth);
  if (value instanceof Uint8Array) return writeBinary(out, name, value, 0);
  head(out, T.document, name);
  writeDocument(out, value as Document, depth + 1, maxDepth);
}

function writeBinary(out: ByteSink, name: string, data: Uint8Array, subtype: number): void {
  head(out, T.binary, name);
  const repeatsLength = subtype === 2;
  out.int32(data.length + (repeatsLength ? 4 : 0));
  out.byte(subtype);
  if (repeatsLength) out.int32(data.length);
  out.raw(data);
}

function writeBsonValue(
  out: ByteSink,
  name: string,
  type: string,
  value: object,
  depth: number,
  maxDepth: number,
): void {
  switch (type) {
    case 'ObjectId':
      head(out, T.objectId, name);
      return out.raw((value as ObjectId).id);
    case 'Long':
      head(out, T.int64, name);
      out.int32((value as Long).low);
      return out.int32((value as Long).high);
    case 'Double':
      head(out, T.double, name);
      return out.double((value as Double).value);
    case 'Int32':
      head(out, T.int32, name);
      return out.int32((value as Int32).value);
    case 'Decimal128':
      head(out, T.decimal, name);
      return out.raw((value as Decimal128).bytes);
    case 'Timestamp': {
      const stamp = value as Timestamp;
      head(out, T.timestamp, name);
      out.uint32(stamp.i);
      return out.uint32(stamp.t);
    }
    case 'Binary': {
      const binary = value as Binary;
      return writeBinary(out, name, binary.value(), binary.sub_type);
    }
    case 'BSONRegExp': {
      const regex = value as BSONRegExp;
      head(out, T.regex, name);
      out.cstring(regex.pattern);
      return out.cstring(regex.options);
    }
    case 'BSONSymbol':
      head(out, T.symbol, name);
      return out.string((value as BSONSymbol).value);
    case 'MinKey':
      return head(out, T.minKey, name);
    case 'MaxKey':
      return head(out, T.maxKey, name);
    case 'Code':
      return writeCode(out, name, value as Code, depth, maxDepth);
    case 'DBRef': {
      const ref = value as DBRef;
      head(out, T.document, name);
      return writeDocument(
        out,
        { $ref: ref.collection, $id: ref.oid, $db: ref.db, ...ref.fields },
        depth + 1,
        maxDepth,
      );
    }
    default:
      throw mongoError(2, `cannot encode a value of type ${type}`);
  }
}

function writeCode(out: ByteSink, name: string, value: Code, depth: number, maxDepth: number): void {
  if (value.scope === null || value.scope === undefined) {
    head(out, T.code, name);
    return out.string(value.code);
  }
  head(out, T.codeWithScope, name);
  const start = out.startLength();
  out.string(value.code);
  writeDocument(out, value.scope as Document, depth + 1, maxDepth);
  out.endLength(start);
}

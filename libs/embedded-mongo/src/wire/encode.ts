import type * as bson from 'bson';
import { BSONType as T } from 'bson';
import { bsonTag, type Document } from '../bson/document.js';
import { mongoError } from '../errors.js';
import { MAX_COMMAND_DEPTH, RawBson, rawFields } from './raw-bson.js';

/** No message is longer (48 MB), so what grows past this is a value that holds itself many times over. */
const MOST_BYTES = 64 * 1024 * 1024;

/** A growing byte buffer with little-endian writers. Errors: 10334 past 64 MiB. */
export class ByteSink {
  private bytes = Buffer.allocUnsafe(1024);
  length = 0;

  /** A copy of the written part. */
  copy(): Buffer {
    return Buffer.from(this.bytes.subarray(0, this.length));
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
  new Encoder(sink, maxDepth).document(document);
  return sink.copy();
}

/** Encodes a document into `target`, for replies that carry stored documents verbatim. */
export function encodeInto(target: ByteSink, document: Document): void {
  new Encoder(target, MAX_COMMAND_DEPTH).document(document);
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
  const fields = new Map(rawFields(rawBefore).map((field) => [field.name, field]));
  const encoder = new Encoder(sink, maxDepth);
  sink.reset();
  const start = sink.startLength();
  // Unchanged neighbours are copied in one stretch.
  let [from, to] = [0, 0];
  for (const name of Object.keys(after)) {
    const kept = Object.is(before[name], after[name]) ? fields.get(name) : undefined;
    if (kept?.start !== to) {
      sink.raw(rawBefore.subarray(from, to));
      from = kept?.start ?? to;
    }
    if (kept) to = kept.end;
    else encoder.field(name, after[name], 1);
  }
  sink.raw(rawBefore.subarray(from, to));
  sink.byte(0);
  sink.endLength(start);
  return sink.copy();
}

class Encoder {
  constructor(
    private readonly out: ByteSink,
    private readonly maxDepth: number,
  ) {}

  document(document: Document | RawBson, depth = 1): void {
    if (document instanceof RawBson) return this.out.raw(document.bytes);
    const start = this.begin(depth);
    for (const name of Object.keys(document)) this.field(name, document[name], depth);
    this.end(start);
  }

  private array(items: readonly unknown[], depth: number): void {
    const start = this.begin(depth);
    for (let i = 0; i < items.length; i += 1) this.field(String(i), items[i] ?? null, depth);
    this.end(start);
  }

  private begin(depth: number): number {
    if (depth > this.maxDepth) throw mongoError(15, `document is nested deeper than ${this.maxDepth} levels`);
    return this.out.startLength();
  }

  private end(start: number): void {
    this.out.byte(0);
    this.out.endLength(start);
  }

  /** Begins an element and gives the sink, which takes its value. */
  private element(type: number, name: string): ByteSink {
    if (name.includes('\0')) throw mongoError(2, 'a field name must not contain a null byte');
    this.out.byte(type);
    this.out.cstring(name);
    return this.out;
  }

  field(name: string, value: unknown, depth: number): void {
    switch (typeof value) {
      case 'undefined':
      case 'function':
      case 'symbol':
        return;
      case 'number':
        return (value | 0) === value && !Object.is(value, -0)
          ? this.element(T.int, name).int32(value)
          : this.element(T.double, name).double(value);
      case 'string':
        return this.element(T.string, name).string(value);
      case 'boolean':
        return this.element(T.bool, name).byte(value ? 1 : 0);
      case 'bigint':
        return this.element(T.long, name).int64(BigInt.asIntN(64, value));
      case 'object':
        return this.object(name, value, depth);
    }
  }

  private object(name: string, value: object | null, depth: number): void {
    if (value === null) return void this.element(T.null, name);
    if (Array.isArray(value)) {
      this.element(T.array, name);
      return this.array(value, depth + 1);
    }
    if (value instanceof Date) return this.element(T.date, name).int64(BigInt(value.getTime()));
    const tag = bsonTag(value);
    if (tag !== undefined) return this.tagged(name, tag, value, depth);
    if (value instanceof Uint8Array) return this.binary(name, value, 0);
    this.element(T.object, name);
    this.document(value as Document, depth + 1);
  }

  private binary(name: string, data: Uint8Array, subtype: number): void {
    const out = this.element(T.binData, name);
    const repeatsLength = subtype === 2;
    out.int32(data.length + (repeatsLength ? 4 : 0));
    out.byte(subtype);
    if (repeatsLength) out.int32(data.length);
    out.raw(data);
  }

  private tagged(name: string, type: string, value: object, depth: number): void {
    switch (type) {
      case 'ObjectId':
        return this.element(T.objectId, name).raw((value as bson.ObjectId).id);
      case 'Long':
      case 'Timestamp': {
        const { low, high } = value as bson.Long;
        const out = this.element(type === 'Long' ? T.long : T.timestamp, name);
        out.int32(low);
        return out.int32(high);
      }
      case 'Double':
        return this.element(T.double, name).double((value as bson.Double).value);
      case 'Int32':
        return this.element(T.int, name).int32((value as bson.Int32).value);
      case 'Decimal128':
        return this.element(T.decimal, name).raw((value as bson.Decimal128).bytes);
      case 'Binary':
        return this.binary(name, (value as bson.Binary).value(), (value as bson.Binary).sub_type);
      case 'BSONRegExp': {
        const out = this.element(T.regex, name);
        out.cstring((value as bson.BSONRegExp).pattern);
        return out.cstring((value as bson.BSONRegExp).options);
      }
      case 'BSONSymbol':
        return this.element(T.symbol, name).string((value as bson.BSONSymbol).value);
      case 'MinKey':
        return void this.element(T.minKey, name);
      case 'MaxKey':
        return void this.element(T.maxKey, name);
      case 'Code':
        return this.code(name, value as bson.Code, depth);
      case 'DBRef': {
        const { collection: $ref, oid: $id, db: $db, fields } = value as bson.DBRef;
        this.element(T.object, name);
        return this.document({ $ref, $id, $db, ...fields }, depth + 1);
      }
      default:
        throw mongoError(2, `cannot encode a value of type ${type}`);
    }
  }

  private code(name: string, { code, scope }: bson.Code, depth: number): void {
    if (scope === null || scope === undefined) return this.element(T.javascript, name).string(code);
    const out = this.element(T.javascriptWithScope, name);
    const start = out.startLength();
    out.string(code);
    this.document(scope as Document, depth + 1);
    out.endLength(start);
  }
}

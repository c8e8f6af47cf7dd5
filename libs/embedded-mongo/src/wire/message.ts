import type { Document } from '../bson/document.js';
import { decodeDocument } from './decode.js';
import { ByteSink, encodeInto } from './encode.js';
import { MAX_COMMAND_DEPTH, MAX_MESSAGE_BYTES, readRawDocuments } from './raw-bson.js';

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

const OP_REPLY = 1;
const OP_QUERY = 2004;
const OP_MSG = 2013;

const FLAG_CHECKSUM = 1;
const FLAG_MORE_TO_COME = 2;
/** Bits a receiver must understand; the optional ones (such as exhaustAllowed) lie above. */
const REQUIRED_FLAGS = 0xffff;

const REPLY_AWAIT_CAPABLE = 8;

/** One command as it came over the wire. */
export interface Request {
  readonly requestId: number;
  /** True for the OP_QUERY handshake, which is answered by OP_REPLY. */
  readonly legacy: boolean;
  /** False when the client set moreToCome and wants no answer. */
  readonly wantsReply: boolean;
  readonly body: Document;
  /** The encoded documents of an array field of the command, so that inserts store the client's own bytes. */
  rawDocuments(field: string): Buffer[] | undefined;
}

/** A message this server cannot read; the connection is closed. */
export class WireError extends Error {}

export function parseRequest(message: Buffer): Request {
  const requestId = message.readInt32LE(4);
  const opCode = message.readInt32LE(12);
  if (opCode === OP_QUERY) return parseQuery(message, requestId);
  if (opCode === OP_MSG) return parseMsg(message, requestId);
  throw new WireError(`unsupported opCode ${opCode}`);
}

function parseQuery(message: Buffer, requestId: number): Request {
  const nameEnd = message.indexOf(0, 20);
  if (nameEnd < 0) throw new WireError('OP_QUERY without a collection name');
  const namespace = message.toString('utf8', 20, nameEnd);
  if (!namespace.endsWith('.$cmd')) throw new WireError('OP_QUERY is for the handshake only');
  const start = nameEnd + 9;
  const raw = message.subarray(start, start + lengthAt(message, start, message.length));
  const body = decodeDocument(raw, MAX_COMMAND_DEPTH);
  return {
    requestId,
    legacy: true,
    wantsReply: true,
    body: { ...body, $db: namespace.slice(0, -'.$cmd'.length) },
    rawDocuments: (field) => readRawDocuments(raw, field),
  };
}

function parseMsg(message: Buffer, requestId: number): Request {
  const flags = message.readUInt32LE(16);
  if (flags & REQUIRED_FLAGS & ~(FLAG_CHECKSUM | FLAG_MORE_TO_COME)) throw new WireError('unknown flag');
  const end = message.length - (flags & FLAG_CHECKSUM ? 4 : 0);
  const sequences = new Map<string, Buffer[]>();
  let raw: Buffer | undefined;
  let at = 20;
  while (at < end) {
    const kind = message[at];
    at += 1;
    const size = lengthAt(message, at, end);
    const section = message.subarray(at, at + size);
    at += size;
    if (kind === 0 && raw === undefined) raw = section;
    else if (kind === 1) addSequence(sequences, section);
    else throw new WireError('bad section');
  }
  if (raw === undefined) throw new WireError('no body section');
  const bodyBytes = raw;
  const body = decodeDocument(bodyBytes, MAX_COMMAND_DEPTH);
  for (const [name, documents] of sequences) {
    if (Object.hasOwn(body, name)) throw new WireError('a field is given twice');
    // The documents of an insert are decoded one by one when they are stored.
    body[name] = name === 'documents' ? [] : documents.map((one) => decodeDocument(one, MAX_COMMAND_DEPTH));
  }
  return {
    requestId,
    legacy: false,
    wantsReply: (flags & FLAG_MORE_TO_COME) === 0,
    body,
    rawDocuments: (field) => sequences.get(field) ?? readRawDocuments(bodyBytes, field),
  };
}

function addSequence(sequences: Map<string, Buffer[]>, section: Buffer): void {
  const nameEnd = section.indexOf(0, 4);
  if (nameEnd < 0) throw new WireError('document sequence without a name');
  const name = section.toString('utf8', 4, nameEnd);
  if (sequences.has(name) || name === '__proto__') throw new WireError('bad document sequence');
  const documents: Buffer[] = [];
  let at = nameEnd + 1;
  while (at < section.length) {
    const size = lengthAt(section, at, section.length);
    documents.push(section.subarray(at, at + size));
    at += size;
  }
  sequences.set(name, documents);
}

function lengthAt(bytes: Buffer, at: number, end: number): number {
  if (at + 5 > end) throw new WireError('message too short');
  const size = bytes.readInt32LE(at);
  if (size < 5 || at + size > end) throw new WireError('a length points outside the message');
  return size;
}

let lastRequestId = 0;
const sink = new ByteSink();

/** Encodes the answer to `request`, in OP_REPLY form when the request was an OP_QUERY. */
export function encodeReply(request: Pick<Request, 'requestId' | 'legacy'>, reply: Document): Buffer {
  lastRequestId = (lastRequestId + 1) & 0x7fffffff;
  sink.reset();
  const start = sink.startLength();
  sink.int32(lastRequestId);
  sink.int32(request.requestId);
  if (request.legacy) {
    sink.int32(OP_REPLY);
    sink.int32(REPLY_AWAIT_CAPABLE);
    sink.int64(0n);
    sink.int32(0);
    sink.int32(1);
  } else {
    sink.int32(OP_MSG);
    sink.uint32(0);
    sink.byte(0);
  }
  encodeInto(sink, reply);
  sink.endLength(start);
  return sink.copy();
}

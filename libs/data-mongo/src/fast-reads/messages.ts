import { BSON, type Document } from 'mongodb';

const HEADER_BYTES = 16;
/** Header, flags, and the kind of the one section. */
const BEFORE_DOCUMENT = 21;
const OP_MSG = 2013;
/** The largest message that MongoDB sends. */
const MOST_BYTES = 48_000_000;

/** As the driver writes a command: a value that is undefined becomes null, and never a filter that is left out. */
const AS_THE_DRIVER = { ignoreUndefined: false, serializeFunctions: false, checkKeys: false } as const;

/** The documents of a batch stay bytes. */
const AS_BYTES = {
  fieldsAsRaw: { firstBatch: true, nextBatch: true },
  promoteLongs: false,
  validation: { utf8: false },
} as const;

/** What arrived is not the answer to what was asked. Nothing that comes from this connection can be believed. */
export class UnexpectedReply extends Error {
  override readonly name = 'UnexpectedReply';
}

/** A command as the message `OP_MSG` with one section. @throws BSONError for names that BSON cannot hold */
export function requestMessage(id: number, command: Document): Buffer {
  const document = BSON.serialize(command, AS_THE_DRIVER);
  const message = Buffer.allocUnsafe(BEFORE_DOCUMENT + document.byteLength);
  message.writeInt32LE(message.byteLength, 0);
  message.writeInt32LE(id, 4);
  message.writeInt32LE(0, 8);
  message.writeInt32LE(OP_MSG, 12);
  message.writeInt32LE(0, HEADER_BYTES);
  message[BEFORE_DOCUMENT - 1] = 0;
  message.set(document, BEFORE_DOCUMENT);
  return message;
}

/**
 * The document of an answer.
 * @param id of the request
 * @throws UnexpectedReply for anything but one `OP_MSG` that answers this request with one document and announces no other
 */
export function replyDocument(message: Buffer, id: number): Document {
  if (message.byteLength < BEFORE_DOCUMENT + 5) throw new UnexpectedReply('too short');
  if (message.readInt32LE(8) !== id) throw new UnexpectedReply('the answer to another request');
  if (message.readInt32LE(12) !== OP_MSG) throw new UnexpectedReply('not OP_MSG');
  if (message.readInt32LE(HEADER_BYTES) !== 0) throw new UnexpectedReply('flags that were not asked for');
  if (message[BEFORE_DOCUMENT - 1] !== 0) throw new UnexpectedReply('not a document');
  const document = message.subarray(BEFORE_DOCUMENT);
  if (document.readInt32LE(0) !== document.byteLength) throw new UnexpectedReply('not one document alone');
  try {
    return BSON.deserialize(document, AS_BYTES);
  } catch (error) {
    throw new UnexpectedReply('not BSON', { cause: error });
  }
}

/** Puts the chunks of a socket together to one message. */
export class IncomingMessage {
  private chunks: Buffer[] = [];
  private received = 0;
  private length = 0;

  /** Whether nothing of a message has arrived. */
  get empty(): boolean {
    return this.received === 0;
  }

  /**
   * @returns the message once it is whole, else null
   * @throws UnexpectedReply when the length is impossible, or more arrives than one message
   */
  add(chunk: Buffer): Buffer | null {
    this.chunks.push(chunk);
    this.received += chunk.byteLength;
    if (this.length === 0) {
      if (this.received < HEADER_BYTES) return null;
      this.length = this.joinChunks().readInt32LE(0);
      if (this.length < HEADER_BYTES || this.length > MOST_BYTES)
        throw new UnexpectedReply('impossible length');
    }
    if (this.received < this.length) return null;
    if (this.received > this.length) throw new UnexpectedReply('more than one answer');
    const message = this.joinChunks();
    this.chunks = [];
    this.received = 0;
    this.length = 0;
    return message;
  }

  private joinChunks(): Buffer {
    if (this.chunks.length > 1) this.chunks = [Buffer.concat(this.chunks)];
    return this.chunks[0] as Buffer;
  }
}

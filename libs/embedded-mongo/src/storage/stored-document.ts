import { ObjectId } from 'bson';
import { firstKey, idFirst, isDocument, type Document } from '../bson/document.js';
import { withServerTimes } from '../bson/timestamps.js';
import { badValue, mongoError } from '../errors.js';
import { decodeDocument } from '../wire/decode.js';
import { encodeChanged, encodeDocument } from '../wire/encode.js';
import { MAX_DOCUMENT_BYTES, MAX_DOCUMENT_DEPTH } from '../wire/limits.js';
import { RawBson } from '../wire/raw-bson.js';

/** A document ready to be stored: its encoded bytes are the truth, the decoded view serves queries. */
export interface Draft {
  readonly document: Document;
  readonly raw: RawBson;
}

/** A stored version of a document. It never changes; an update stores another version under the same record. */
export class StoredDocument implements Draft {
  constructor(
    readonly recordId: number,
    readonly document: Document,
    readonly raw: RawBson,
  ) {}
}

/** Checks and adopts a client's encoded document; adds an `_id` when there is none. Errors: 2, 15, 52, 10334. */
export function draftFromRaw(bytes: Buffer): Draft {
  const decoded = decodeDocument(bytes, MAX_DOCUMENT_DEPTH);
  if (firstKey(decoded) !== '_id') return createDraft(decoded);
  checkId(decoded['_id']);
  // The slice would keep the whole wire message alive.
  return checkSize({ document: decoded, raw: new RawBson(Buffer.from(bytes)) });
}

/** The same for a document that is inserted, which may leave times to the server. */
export function draftInserted(bytes: Buffer): Draft {
  const draft = draftFromRaw(bytes);
  const document = withServerTimes(draft.document);
  return document === draft.document ? draft : createDraft(document);
}

/** Encodes a document to be stored; adds an `_id` when there is none. Errors: 2, 15, 52, 10334. */
export function createDraft(document: Document): Draft {
  const withId = Object.hasOwn(document, '_id') ? idFirst(document) : { _id: new ObjectId(), ...document };
  checkId(withId['_id']);
  return checkSize({ document: withId, raw: new RawBson(encodeDocument(withId, MAX_DOCUMENT_DEPTH)) });
}

/** Encodes the next version of `before`, keeping the bytes of unchanged fields. */
export function draftNext(before: StoredDocument, after: Document): Draft {
  const document = idFirst(after);
  const bytes = encodeChanged(before.raw.bytes, before.document, document, MAX_DOCUMENT_DEPTH);
  return checkSize({ document, raw: new RawBson(bytes) });
}

function checkSize(draft: Draft): Draft {
  const size = draft.raw.bytes.length;
  if (size > MAX_DOCUMENT_BYTES) {
    throw mongoError(
      10334,
      `BSONObj size: ${size} is invalid. Size must be between 0 and ${MAX_DOCUMENT_BYTES}`,
    );
  }
  return draft;
}

function checkId(id: unknown): void {
  if (id === undefined || Array.isArray(id)) throw badValue("The '_id' value cannot be of type array");
  if (isRegex(id)) throw badValue("The '_id' value cannot be of type regex");
  if (!isDocument(id)) return;
  const operator = Object.keys(id).find((name) => name.startsWith('$'));
  if (operator === undefined) return;
  throw mongoError(
    52,
    `_id fields may not contain '$'-prefixed fields: ${operator} is not valid for storage.`,
  );
}

const isRegex = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (value as { _bsontype?: unknown })._bsontype === 'BSONRegExp';

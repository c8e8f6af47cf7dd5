import { isRegex } from '../query/regex.js';
import { ObjectId, type UUID } from 'bson';
import { type Document, firstKey, idFirst, isDocument } from '../bson/document.js';
import { withServerTimes } from '../bson/times.js';
import { badValue, mongoError } from '../errors.js';
import { decodeDocument } from '../wire/decode.js';
import { encodeChanged, encodeDocument } from '../wire/encode.js';
import { MAX_DOCUMENT_BYTES, MAX_DOCUMENT_DEPTH, RawBson, refuseLarge } from '../wire/raw-bson.js';

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
  refuseLarge(draft.raw.bytes, MAX_DOCUMENT_BYTES);
  return draft;
}

function checkId(id: unknown): void {
  if (id === undefined || Array.isArray(id)) throw badValue("The '_id' value cannot be of type array");
  if (isRegex(id)) throw badValue("The '_id' value cannot be of type regex");
  if (!isDocument(id)) return;
  const operator = Object.keys(id).find((name) => name.startsWith('$'));
  if (operator === undefined) return;
  throw mongoError(52, `_id fields may not contain '$'-prefixed fields: ${operator}`);
}

/** A collection's full name. */
export interface Namespace {
  readonly db: string;
  readonly coll: string;
}

/** How a write takes the place of a document. */
export type Renewal = 'update' | 'replace';

interface InCollection {
  readonly ns: Namespace;
  readonly uuid: UUID;
}

/** One committed change of the stored data: what the journal keeps and change streams report. */
export type Change =
  | (InCollection & { readonly kind: 'insert'; readonly after: StoredDocument })
  | (InCollection & {
      readonly kind: Renewal;
      readonly before: StoredDocument;
      readonly after: StoredDocument;
      /** Whether the collection keeps pre- and post-images for change streams. */
      readonly images: boolean;
    })
  | (InCollection & { readonly kind: 'delete'; readonly before: StoredDocument; readonly images: boolean })
  | (InCollection & { readonly kind: 'create' | 'modify'; readonly options: Document })
  | (InCollection & { readonly kind: 'drop'; readonly view?: boolean })
  | (InCollection & { readonly kind: 'rename'; readonly to: Namespace; readonly dropTarget: boolean })
  | (InCollection & {
      readonly kind: 'createIndexes' | 'dropIndexes' | 'modifyIndex';
      readonly spec: Document;
    })
  | { readonly kind: 'dropDatabase'; readonly db: string };

/** The transaction that a group of changes was committed by. */
export interface ChangeOrigin {
  readonly lsid: Document;
  readonly txnNumber: unknown;
}

/** Receives changes once they are applied; the changes of one call are one atomic group. */
export interface ChangeSink {
  publish(changes: readonly Change[], origin?: ChangeOrigin): void;
}

import type { UUID } from 'bson';
import type { Document } from '../bson/document.js';
import type { StoredDocument } from './stored-document.js';

/** A collection's full name. */
export interface Namespace {
  readonly db: string;
  readonly coll: string;
}

interface InCollection {
  readonly ns: Namespace;
  readonly uuid: UUID;
}

/** One committed change of the stored data: what the journal keeps and change streams report. */
export type Change =
  | (InCollection & { readonly kind: 'insert'; readonly after: StoredDocument })
  | (InCollection & {
      readonly kind: 'update' | 'replace';
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

import type { ChainHead } from '../audit-event.js';
import type { Sealed } from '../chain/record-seal.js';
import type { AuditPage, AuditQuery } from '../search/audit-trail.js';

/** A database that keeps records. It only ever adds. */
export abstract class AuditCollection {
  /** Makes its indexes. @returns what it holds last @throws when it cannot be reached */
  abstract open(): Promise<ChainHead | null>;
  /** In order; a record that is there already is passed over. @throws when one is not kept */
  abstract insert(records: readonly Sealed[]): Promise<void>;
  /** @throws AuditQueryError, and when it cannot be reached */
  abstract search(query: AuditQuery): Promise<AuditPage>;
  /** Everything, chain by chain in order; with a type, only that. */
  abstract all(type?: string): AsyncIterable<unknown>;
  abstract close(): Promise<void>;
}

import type { ChainHead } from '../audit-record.js';
import type { Sealed, SealedLine } from '../chain/audit-chain.js';
import { type AuditPage, type AuditQuery, AuditTrail } from '../search/audit-trail.js';
import type { RecordDelivery } from './record-delivery.js';

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

/** Records into a database that can be searched. */
export class CollectionDelivery implements RecordDelivery {
  readonly name = 'mongodb';
  readonly batch = 500;

  constructor(private readonly collection: AuditCollection) {}

  open(): Promise<ChainHead | null> {
    return this.collection.open();
  }

  deliver(records: readonly SealedLine[]): Promise<void> {
    return this.collection.insert(records.map(({ record }) => record));
  }

  close(): Promise<void> {
    return this.collection.close();
  }
}

/** Everything that a database keeps, of all replicas. */
export class CollectionAuditTrail extends AuditTrail {
  readonly reach = 'kept';

  constructor(private readonly collection: AuditCollection) {
    super();
  }

  search(query: AuditQuery): Promise<AuditPage> {
    return this.collection.search(query);
  }
}

import type { ChainHead } from '../audit-record.js';
import { type AuditPage, type AuditQuery, AuditTrail } from '../audit-trail.js';
import type { SealedRecord, SealedLine } from '../chain/audit-chain.js';
import type { RecordDelivery } from './record-delivery.js';

/** A database collection of records. Records are only added. */
export abstract class AuditCollection {
  /** Creates the indexes. @returns the latest record @throws when the database cannot be reached */
  abstract open(): Promise<ChainHead | null>;
  /** Inserts in order and skips records that exist. @throws when a record was not stored */
  abstract insert(records: readonly SealedRecord[]): Promise<void>;
  /** @throws AuditQueryError, or when the database cannot be reached */
  abstract search(query: AuditQuery, signal?: AbortSignal): Promise<AuditPage>;
  /** All records, chain by chain in order, optionally of one type. */
  abstract all(type?: string): AsyncIterable<unknown>;
  abstract close(): Promise<void>;
}

/** Delivers records to a searchable database. */
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

/** Searches the records of all replicas in a database. */
export class CollectionAuditTrail extends AuditTrail {
  readonly reach = 'kept';

  constructor(private readonly collection: AuditCollection) {
    super();
  }

  async search(query: AuditQuery, signal?: AbortSignal): Promise<AuditPage> {
    const page = await this.collection.search(query, signal);
    return { ...page, searched: { store: 'mongodb', scope: 'replicas', cut: null, back_to: null } };
  }
}

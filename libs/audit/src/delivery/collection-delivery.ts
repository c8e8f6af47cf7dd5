import type { ChainHead } from '../audit-event.js';
import type { SealedLine } from '../chain/record-seal.js';
import type { AuditCollection } from './audit-collection.js';
import type { RecordDelivery } from './record-delivery.js';

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

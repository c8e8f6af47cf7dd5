import type { AuditCollection } from '../delivery/audit-collection.js';
import { type AuditPage, type AuditQuery, AuditTrail } from './audit-trail.js';

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

import type { AuditEntry } from './audit-entry.js';
import { limitOf, matching, newestFirst, pageOf } from './audit-matching.js';
import { type AuditPage, type AuditQuery, AuditTrail } from './audit-trail.js';

const DEFAULT_SIZE = 2000;

/** The latest entries of this process; the oldest is forgotten first. Serves where no sink can be searched. */
export class RecentAuditTrail extends AuditTrail {
  readonly reach = 'recent';
  private readonly entries: AuditEntry[] = [];
  private next = 0;

  /** @param size entries remembered. Default 2000 */
  constructor(private readonly size = DEFAULT_SIZE) {
    super();
  }

  remember(entry: AuditEntry): void {
    this.entries[this.next] = entry;
    this.next = (this.next + 1) % this.size;
  }

  search(query: AuditQuery): Promise<AuditPage> {
    return Promise.resolve().then(() => {
      const limit = limitOf(query);
      return pageOf(this.entries.filter(matching(query)).sort(newestFirst), limit);
    });
  }
}

import type { AuditEntry } from './audit-entry.js';
import { readSealed } from '../chain/record-seal.js';
import type { RecordSource } from '../verify/record-source.js';
import { limitOf, matching, newestFirst, pageOf } from './audit-matching.js';
import { type AuditPage, type AuditQuery, AuditTrail } from './audit-trail.js';

/** Files of records, read from their beginning for every page: what a command line needs, and no service. */
export class FilesAuditTrail extends AuditTrail {
  readonly reach = 'kept';

  constructor(private readonly sources: readonly RecordSource[]) {
    super();
  }

  async search(query: AuditQuery): Promise<AuditPage> {
    const limit = limitOf(query);
    const matches = matching(query);
    let found: AuditEntry[] = [];
    for (const { read } of this.sources) {
      for await (const { value } of read()) {
        const entry = readSealed(value) as unknown as AuditEntry | null;
        if (!entry || !matches(entry)) continue;
        found.push(entry);
        // More than a page is never needed.
        if (found.length > 10 * limit) found = found.sort(newestFirst).slice(0, limit + 1);
      }
    }
    return pageOf(found.sort(newestFirst), limit);
  }
}

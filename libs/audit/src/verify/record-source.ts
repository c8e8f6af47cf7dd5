import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { readSealed } from '../chain/audit-chain.js';
import type { AuditCollection } from '../delivery/audit-collection.js';
import {
  type AuditEntry,
  type AuditPage,
  type AuditQuery,
  AuditTrail,
  limitOf,
  matching,
  newestFirst,
  pageOf,
} from '../search/audit-trail.js';

/** A record, or what should be one, and where it stands. */
interface FoundRecord {
  /** Of a file, from 1; of a database, its place in the order of the chains. */
  readonly line: number;
  /** What JSON made of it; undefined for what is no JSON. */
  readonly value: unknown;
  /** As it is written, where that could be something else for the same value. */
  readonly text?: string;
}

/** Where records are read from, again and again. */
export interface RecordSource {
  readonly name: string;
  /**
   * Sources of one group hold the parts of one history, as the files of one process do. Different groups hold the same
   * history each.
   */
  readonly group: string;
  /** @throws when it cannot be read */
  read(): AsyncIterable<FoundRecord>;
}

/** A file of one record a line; it may be one of several that were put aside. */
export function fileSource(path: string): RecordSource {
  return {
    name: path,
    group: 'files',
    async *read() {
      const lines = createInterface({ input: createReadStream(path, 'utf8'), crlfDelay: Infinity });
      let line = 0;
      for await (const text of lines) {
        line += 1;
        if (text !== '') yield { line, value: parsed(text), text };
      }
    },
  };
}

export function collectionSource(collection: AuditCollection): RecordSource {
  return {
    name: 'mongodb',
    group: 'mongodb',
    async *read() {
      let line = 0;
      for await (const value of collection.all()) yield { line: ++line, value };
    },
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

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

import { createReadStream } from 'node:fs';
import {
  type AuditEntry,
  type AuditPage,
  type AuditQuery,
  AuditTrail,
  readLimit,
  createMatcher,
  newestFirst,
  takePage,
} from '../audit-trail.js';
import { readSealed } from '../chain/audit-chain.js';
import type { AuditCollection } from '../delivery/audit-collection.js';

/** A value that should be a record, and its position. */
interface FoundRecord {
  /** Line of a file, starting at 1; in a database, the index in the order of the chains. */
  readonly line: number;
  /** The parsed JSON; undefined when the text is not JSON. */
  readonly value: unknown;
  /** The original text, where the same value could be written differently. */
  readonly text?: string;
}

/** A source of records that can be read repeatedly. */
export interface RecordSource {
  readonly name: string;
  /**
   * Sources of one group hold parts of one history, like the rotated files of a process. Each group holds a copy of
   * the whole history.
   */
  readonly group: string;
  /** @throws when it cannot be read */
  read(): AsyncIterable<FoundRecord>;
}

/** A file with one record per line; it may be one of several rotated files. */
export function fileSource(path: string): RecordSource {
  return {
    name: path,
    group: 'files',
    async *read() {
      let line = 0;
      for await (const text of readLines(path)) {
        line += 1;
        if (text === null) yield { line, value: undefined };
        else if (text !== '') yield { line, value: parseLine(text), text };
      }
    },
  };
}

/** Bytes. A longer line is no record; it is passed over, because a text cannot hold lines of any length. */
const LONGEST_LINE = 64 * 1_048_576;
const LINE_END = 0x0a;

/** The lines of a file, without their ends; null: one that is too long. */
async function* readLines(path: string): AsyncGenerator<string | null> {
  let parts: Buffer[] = [];
  let length = 0;
  const add = (part: Buffer) => {
    length += part.length;
    if (length <= LONGEST_LINE) parts.push(part);
    else parts = [];
  };
  const takeLine = () => {
    const text = length <= LONGEST_LINE ? Buffer.concat(parts).toString().replace(/\r$/, '') : null;
    [parts, length] = [[], 0];
    return text;
  };
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_END); end >= 0; end = chunk.indexOf(LINE_END, start)) {
      add(chunk.subarray(start, end));
      yield takeLine();
      start = end + 1;
    }
    add(chunk.subarray(start));
  }
  if (length > 0) yield takeLine();
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

function parseLine(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Searches files. Each page reads them from the start, which suits a command and not a service. */
export class FilesAuditTrail extends AuditTrail {
  readonly reach = 'kept';

  constructor(private readonly sources: readonly RecordSource[]) {
    super();
  }

  /** @throws Error for a source of which nothing is a record */
  async search(query: AuditQuery): Promise<AuditPage> {
    const limit = readLimit(query);
    const matches = createMatcher(query);
    let found: AuditEntry[] = [];
    for (const { name, read } of this.sources) {
      let [lines, records] = [0, 0];
      for await (const { value } of read()) {
        lines += 1;
        const entry = readSealed(value) as unknown as AuditEntry | null;
        if (entry) records += 1;
        if (!entry || !matches(entry)) continue;
        found.push(entry);
        // Bounds memory: only one page is needed.
        if (found.length > 10 * limit) found = found.sort(newestFirst).slice(0, limit + 1);
      }
      if (lines > 0 && records === 0) throw new Error(`${name}: no line of it is an audit record`);
    }
    return takePage(found.sort(newestFirst), limit);
  }
}

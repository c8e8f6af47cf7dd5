import type { ParseRow, RecordReader } from '@parley/server';

const OPERATION = { maxTimeMS: 10_000, comment: 'parley testing' };
const MOST_ROWS = 10_000;

/** The rows as they are stored, whatever the policy says: for assertions about what happened, never for an agent. */
export class UngovernedRows {
  /** @internal Made by the application. */
  constructor(private readonly database: { readonly rows: RecordReader } | null) {}

  /** At most 10 000 rows, in the order of their ids. @param where a constraint in Parse's words. Default: all */
  find(className: string, where: Readonly<Record<string, unknown>> = {}): Promise<ParseRow[]> {
    const order = [{ field: 'objectId', descending: false }];
    return this.reader.find({ className, where, order, limit: MOST_ROWS }, this.operation);
  }

  /** Null: there is none. */
  async get(className: string, objectId: string): Promise<ParseRow | null> {
    const [row] = await this.reader.find({ className, where: { objectId }, limit: 1 }, this.operation);
    return row ?? null;
  }

  /** How many there are. @param where as in `find` */
  count(className: string, where: Readonly<Record<string, unknown>> = {}): Promise<number> {
    return this.reader.count({ className, where }, this.operation);
  }

  private get reader(): RecordReader {
    if (!this.database) throw new Error('ungoverned: give the TestingDatabase of the application along');
    return this.database.rows;
  }

  private get operation() {
    return { ...OPERATION, signal: new AbortController().signal };
  }
}

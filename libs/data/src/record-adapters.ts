import type { Where } from '#policy';
import {
  type AggregatedRows,
  type AggregateQuery,
  type Caller,
  type CountQuery,
  type FindQuery,
  type FirstRows,
  type Handlers,
  type OperationContext,
  type ParseRow,
  type PlannedQuery,
  type QueryPlan,
  type Reads,
  ReadStore,
  type RelatedQuery,
  type ShownQuery,
  type StoreOperation,
  type Writes,
  WriteStore,
} from './record-store.js';

/** The first rows of a store that only finds. */
export function firstRows(rows: readonly ParseRow[], { atMost }: Pick<ShownQuery, 'atMost'>): FirstRows {
  return { count: rows.length, rows: rows.slice(0, atMost) };
}

/**
 * Reads rows in Parse's terms, one method for each kind of operation. A constraint may contain `{ $readableBy: { principals } }`
 * or `$writableBy` beside fields: rows whose ACL names one of the principals, and rows without an ACL. It applies exactly the
 * given constraints. Every method is one command to the database. A reader that depends on the caller overrides `run`.
 * @throws StoreError
 */
export abstract class RecordReader extends ReadStore {
  /** Runs an operation by the method of its kind. */
  run<K extends keyof Reads>(
    operation: StoreOperation<Reads, K>,
    context: OperationContext,
    caller: Caller,
  ): Promise<Reads[K]['answer']> {
    return (this as Handlers<Reads>)[operation.kind](operation, context, caller);
  }

  /** Rows that the query permits, in its order. */
  abstract find(query: FindQuery, operation: OperationContext): Promise<ParseRow[]>;

  /** The first of those rows, and how many there are. */
  async findShown(query: ShownQuery, operation: OperationContext): Promise<FirstRows> {
    return firstRows(await this.find(query, operation), query);
  }

  /** How many rows the query permits. */
  abstract count(query: CountQuery, operation: OperationContext): Promise<number>;

  /** Values are converted to JSON (dates to ISO text); keys stay as the pipeline named them. */
  abstract aggregate(query: AggregateQuery, operation: OperationContext): Promise<AggregatedRows>;

  /**
   * The ids of the members of a row, or of the rows with one of the members, in no particular order and possibly repeated; none
   * for a row or a relation that does not exist.
   */
  abstract related(query: RelatedQuery, operation: OperationContext): Promise<string[]>;

  /** The query plan of the database; reads no row. */
  abstract explain(query: PlannedQuery, operation: OperationContext): Promise<QueryPlan>;
}

/**
 * Creates, changes and deletes rows, one method for each kind of operation. A writer that depends on the caller overrides `run`.
 * @throws StoreError with `outcome: 'unknown'` when the write was sent and its outcome is not known
 */
export abstract class RecordWriter extends WriteStore {
  private readonly handlers: Handlers<Writes> = {
    create: ({ className, fields, objectId }, context) => this.create(className, fields, context, objectId),
    update: ({ className, objectId, fields, where, updatedAt }, context) =>
      this.update(className, objectId, fields, where, context, updatedAt),
    delete: ({ className, objectId, where }, context) => this.delete(className, objectId, where, context),
  };

  /** Runs an operation by the method of its kind. */
  run<K extends keyof Writes>(
    operation: StoreOperation<Writes, K>,
    context: OperationContext,
    caller: Caller,
  ): Promise<Writes[K]['answer']> {
    return this.handlers[operation.kind](operation, context, caller);
  }

  /** Stores a new row. @param objectId for a writer that accepts ids. Default: a new one. @returns the stored row */
  abstract create(
    className: string,
    fields: ParseRow,
    operation: OperationContext,
    objectId?: string,
  ): Promise<ParseRow>;

  /**
   * Applies `fields` (values or `{ __op }`) to the row that `where` admits.
   * @param updatedAt ISO time for a writer that accepts ids. Default: now. @returns the stored row, or null when none
   */
  abstract update(
    className: string,
    objectId: string,
    fields: ParseRow,
    where: Where,
    operation: OperationContext,
    updatedAt?: string,
  ): Promise<ParseRow | null>;

  /** Deletes the row if `where` admits it. @returns whether there was such a row */
  abstract delete(
    className: string,
    objectId: string,
    where: Where,
    operation: OperationContext,
  ): Promise<boolean>;
}

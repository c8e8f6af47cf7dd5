import { createHash } from 'node:crypto';
import type { Where } from '#policy';
import type { OperationContext, ParseRow, ReadStore, StoreErrorCode, WriteStore } from '../record-store.js';

/** A transaction that is open, as the stores of one adapter know it. Nothing else reads it. */
export abstract class RowTransaction {
  declare private readonly brand: never;
}

/** A row exactly as it is stored, in base64. Only the adapter that made it reads it. */
export type RowImage = string;

/** Identifies a row as it is stored. */
export const digestImage = (image: RowImage): string =>
  createHash('sha256').update(image).digest('base64url');

/** Rows as they are stored: to compare them, and to put one back as it was. @throws StoreError */
export abstract class RowImages {
  /** Rows by id, in one read: those that there are, and that meet a constraint. */
  abstract find(
    className: string,
    objectIds: readonly string[],
    where: Where,
    operation: OperationContext,
  ): Promise<ReadonlyMap<string, RowImage>>;

  /** Null: there is no such row. */
  async read(className: string, objectId: string, operation: OperationContext): Promise<RowImage | null> {
    return (await this.find(className, [objectId], {}, operation)).get(objectId) ?? null;
  }

  /**
   * Replaces a row by an image of it, stores the image where there is no row, or deletes the row.
   * @param now the row as the same transaction read it; null: there was none. @param image null: there is no row afterwards
   */
  abstract replace(
    row: ReplacedRow,
    now: RowImage | null,
    image: RowImage | null,
    operation: OperationContext,
  ): Promise<void>;

  /** Whether the time stamp of the row is the same in both, and so are the named fields; absent: all of them. */
  abstract areAlike(
    className: string,
    one: RowImage,
    other: RowImage,
    operation: OperationContext,
    fields?: readonly string[],
  ): Promise<boolean>;

  /** The row in Parse's terms, with every field that has a value. */
  abstract toRow(className: string, image: RowImage, operation: OperationContext): Promise<ParseRow>;
}

export interface ReplacedRow {
  readonly className: string;
  readonly objectId: string;
  /** What the row meets that is replaced: in a sharded collection an id alone may name rows of several tenants. */
  readonly where: Where;
}

/** A row that was written. */
export interface WrittenRow {
  /** As it was; null: there was none. */
  readonly before: RowImage | null;
  /** As it is stored now; null: there is none. */
  readonly after: RowImage | null;
}

/** The stores whose operations belong to one transaction. */
export interface BoundStores {
  readonly reads: ReadStore;
  readonly writes: WriteStore;
  /** The same for a write after which the work asks for no row: a new one may be stored as late as at the end. */
  readonly lastWrite: WriteStore;
  readonly images: RowImages;
  readonly transaction: RowTransaction;
  /** The row that was written last. @throws TypeError when none was */
  readonly written: WrittenRow;
  /** Why an operation of the transaction failed: then no other one succeeds. Null: none did. */
  readonly failure: StoreErrorCode | null;
}

/** Transactions over rows of one database: all of their writes are applied, or none. */
export abstract class RowTransactions {
  /** The rows outside of any transaction. */
  abstract readonly images: RowImages;

  /**
   * What the database of a class lacks for a transaction, as a sentence for a caller; null: nothing. @throws StoreError
   */
  abstract findObstacle(className: string, operation: OperationContext): Promise<string | null>;

  /**
   * Runs work in a transaction of the database that holds a class, and applies it when the work resolves. Rows of other databases can
   * be read in it, and not changed. The work runs again when another writer was in the way.
   * @throws what the work throws: nothing was applied then. @throws StoreError `outcome: 'unknown'` when it is not known whether the
   * transaction was applied
   */
  abstract run<T>(
    className: string,
    operation: OperationContext,
    work: (stores: BoundStores) => Promise<T>,
  ): Promise<T>;
}

class NoRowImages extends RowImages {
  find(): Promise<ReadonlyMap<string, RowImage>> {
    return Promise.resolve(new Map());
  }

  replace(): Promise<void> {
    return Promise.resolve();
  }

  areAlike(): Promise<false> {
    return Promise.resolve(false);
  }

  toRow(): Promise<ParseRow> {
    return Promise.resolve({});
  }
}

/** Where rows cannot be written in transactions. */
export class NoRowTransactions extends RowTransactions {
  readonly images = new NoRowImages();

  /** @param obstacle as a sentence for a caller */
  constructor(private readonly obstacle: string) {
    super();
  }

  findObstacle(): Promise<string> {
    return Promise.resolve(this.obstacle);
  }

  run(): Promise<never> {
    return Promise.reject(new TypeError('there are no transactions here'));
  }
}

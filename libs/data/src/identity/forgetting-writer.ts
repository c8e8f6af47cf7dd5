import type { Where } from '#policy';
import { type OperationContext, type ParseRow, RecordWriter, type StoreCall } from '../record-store.js';
import type { CachedPrincipalDirectory } from './cached-directory.js';

/** Writes as the writer it wraps, and lets the directory forget what it learnt from a class whose rows were written. */
export class ForgettingWriter extends RecordWriter {
  constructor(
    private readonly writer: RecordWriter,
    private readonly directory: Pick<CachedPrincipalDirectory, 'forgetClass'>,
  ) {
    super();
  }

  override get takesObjectIds(): boolean {
    return this.writer.takesObjectIds;
  }

  override forCall(call: StoreCall): RecordWriter {
    return new ForgettingWriter(this.writer.forCall(call), this.directory);
  }

  create(
    className: string,
    fields: ParseRow,
    operation: OperationContext,
    objectId?: string,
  ): Promise<ParseRow> {
    return this.forgetting(className, () => this.writer.create(className, fields, operation, objectId));
  }

  update(
    className: string,
    objectId: string,
    fields: ParseRow,
    where: Where,
    operation: OperationContext,
    updatedAt?: string,
  ): Promise<ParseRow | null> {
    return this.forgetting(className, () =>
      this.writer.update(className, objectId, fields, where, operation, updatedAt),
    );
  }

  delete(className: string, objectId: string, where: Where, operation: OperationContext): Promise<boolean> {
    return this.forgetting(className, () => this.writer.delete(className, objectId, where, operation));
  }

  /** A write that failed may have happened all the same. */
  private async forgetting<T>(className: string, write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } finally {
      this.directory.forgetClass(className);
    }
  }
}

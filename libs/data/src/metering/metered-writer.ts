import type { Where } from '#policy';
import { type OperationContext, type ParseRow, RecordWriter, type StoreCall } from '../record-store.js';
import { metered, type Metering } from './metered.js';

const rowIn = (row: ParseRow | null): number => (row ? 1 : 0);

/** Writes as the writer it wraps, in the turns of its principal, and tells the meter of one call what each operation took. */
export class MeteredWriter extends RecordWriter {
  constructor(
    private readonly writer: RecordWriter,
    private readonly metering: Metering,
  ) {
    super();
  }

  override get takesObjectIds(): boolean {
    return this.writer.takesObjectIds;
  }

  override forCall(call: StoreCall): RecordWriter {
    return new MeteredWriter(this.writer.forCall(call), this.metering);
  }

  create(
    className: string,
    fields: ParseRow,
    operation: OperationContext,
    objectId?: string,
  ): Promise<ParseRow> {
    return metered(
      this.metering,
      { name: 'create', className, signal: operation.signal },
      () => this.writer.create(className, fields, operation, objectId),
      rowIn,
    );
  }

  update(
    className: string,
    objectId: string,
    fields: ParseRow,
    where: Where,
    operation: OperationContext,
    updatedAt?: string,
  ): Promise<ParseRow | null> {
    const write = () => this.writer.update(className, objectId, fields, where, operation, updatedAt);
    return metered(this.metering, { name: 'update', className, signal: operation.signal }, write, rowIn);
  }

  delete(className: string, objectId: string, where: Where, operation: OperationContext): Promise<boolean> {
    const write = () => this.writer.delete(className, objectId, where, operation);
    return metered(this.metering, { name: 'delete', className, signal: operation.signal }, write, () => 0);
  }
}

import type { DataMeter } from '#agent';
import type { Where } from '#policy';
import { type OperationContext, type ParseRow, RecordWriter, type StoreCall } from '../record-store.js';
import { metered } from './metered.js';

const rowIn = (row: ParseRow | null): number => (row ? 1 : 0);

/** Writes as the writer it wraps, and tells the meter of one call what each operation took. */
export class MeteredWriter extends RecordWriter {
  constructor(
    private readonly writer: RecordWriter,
    private readonly meter: DataMeter,
  ) {
    super();
  }

  override forCall(call: StoreCall): RecordWriter {
    return new MeteredWriter(this.writer.forCall(call), this.meter);
  }

  create(className: string, fields: ParseRow, operation: OperationContext): Promise<ParseRow> {
    return metered(
      this.meter,
      { name: 'create', className },
      () => this.writer.create(className, fields, operation),
      rowIn,
    );
  }

  update(
    className: string,
    objectId: string,
    fields: ParseRow,
    where: Where,
    operation: OperationContext,
  ): Promise<ParseRow | null> {
    const write = () => this.writer.update(className, objectId, fields, where, operation);
    return metered(this.meter, { name: 'update', className }, write, rowIn);
  }

  delete(className: string, objectId: string, where: Where, operation: OperationContext): Promise<boolean> {
    const write = () => this.writer.delete(className, objectId, where, operation);
    return metered(this.meter, { name: 'delete', className }, write, () => 0);
  }
}

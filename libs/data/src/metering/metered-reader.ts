import {
  type AggregateQuery,
  type CountQuery,
  type FindQuery,
  type OperationContext,
  type ParseRow,
  type PipelineRoute,
  type QueryPlan,
  RecordReader,
  type RelatedQuery,
  type StoreCall,
} from '../record-store.js';
import { metered, type Metering } from './metered.js';

const rowsIn = (rows: readonly unknown[]): number => rows.length;
const noRows = (): number => 0;

/** Reads as the reader it wraps, in the turns of its principal, and tells the meter of one call what each operation took. */
export class MeteredReader extends RecordReader {
  constructor(
    private readonly reader: RecordReader,
    private readonly metering: Metering,
  ) {
    super();
  }

  override get pipelineRoute(): PipelineRoute {
    return this.reader.pipelineRoute;
  }

  override forCall(call: StoreCall): RecordReader {
    return new MeteredReader(this.reader.forCall(call), this.metering);
  }

  find(query: FindQuery, operation: OperationContext): Promise<ParseRow[]> {
    return metered(
      this.metering,
      { name: 'find', className: query.className, signal: operation.signal },
      () => this.reader.find(query, operation),
      rowsIn,
    );
  }

  count(query: CountQuery, operation: OperationContext): Promise<number> {
    return metered(
      this.metering,
      { name: 'count', className: query.className, signal: operation.signal },
      () => this.reader.count(query, operation),
      noRows,
    );
  }

  aggregate(query: AggregateQuery, operation: OperationContext): Promise<ParseRow[]> {
    return metered(
      this.metering,
      { name: 'aggregate', className: query.className, signal: operation.signal },
      () => this.reader.aggregate(query, operation),
      rowsIn,
    );
  }

  related(query: RelatedQuery, operation: OperationContext): Promise<string[]> {
    return metered(
      this.metering,
      { name: 'related', className: query.className, signal: operation.signal },
      () => this.reader.related(query, operation),
      rowsIn,
    );
  }

  explain(query: CountQuery, operation: OperationContext): Promise<QueryPlan> {
    return metered(
      this.metering,
      { name: 'explain', className: query.className, signal: operation.signal },
      () => this.reader.explain(query, operation),
      noRows,
    );
  }
}

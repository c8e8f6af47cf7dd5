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
} from '#data';
import { comparable, cut, isAdmitted } from './checked-rows.js';

/**
 * A reader that the application bound is not believed where its rows can be held against the question: columns that were not
 * asked for go, and so do rows that a plain constraint (a tenant, an id) does not admit.
 */
export class CheckedReader extends RecordReader {
  constructor(private readonly bound: RecordReader) {
    super();
  }

  override get pipelineRoute(): PipelineRoute {
    return this.bound.pipelineRoute;
  }

  override forCall(call: StoreCall): RecordReader {
    const own = this.bound.forCall(call);
    return own === this.bound ? this : new CheckedReader(own);
  }

  async find(query: FindQuery, operation: OperationContext): Promise<ParseRow[]> {
    const rows = await this.bound.find({ ...query, ...comparable(query) }, operation);
    return rows
      .filter((row) => isAdmitted(row, query))
      .slice(0, query.limit)
      .map((row) => cut(row, query));
  }

  count(query: CountQuery, operation: OperationContext): Promise<number> {
    return this.bound.count(query, operation);
  }

  aggregate(query: AggregateQuery, operation: OperationContext): Promise<ParseRow[]> {
    return this.bound.aggregate(query, operation);
  }

  async related(query: RelatedQuery, operation: OperationContext): Promise<string[]> {
    return (await this.bound.related(query, operation)).slice(0, query.limit);
  }

  explain(query: CountQuery, operation: OperationContext): Promise<QueryPlan> {
    return this.bound.explain(query, operation);
  }
}

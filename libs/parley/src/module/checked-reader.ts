import {
  type AggregateQuery,
  type CountQuery,
  type FindQuery,
  type IncludePlan,
  type OperationContext,
  type ParseRow,
  type PipelineRoute,
  type QueryPlan,
  RecordReader,
  type RelatedQuery,
  type StoreCall,
} from '#data';
import { comparedColumns, contradicts } from './plain-constraints.js';

const ALWAYS = ['objectId', 'createdAt', 'updatedAt'];
/** What a row inside a row says of itself. */
const OF_OBJECTS = ['__type', 'className'];

const rootOf = (path: string) => path.split('.', 1)[0] ?? path;

type Wanted = Pick<FindQuery, 'where' | 'keys' | 'include'>;

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

/** The question with what its rows are held against among its keys. */
function comparable({ where, keys, include }: Wanted): Pick<FindQuery, 'keys' | 'include'> {
  return {
    ...(keys && { keys: [...new Set([...keys, ...comparedColumns(where)])] }),
    ...(include && { include: include.map((plan) => ({ ...plan, ...comparable(plan) })) }),
  };
}

const isAdmitted = (row: ParseRow, { where }: Wanted): boolean => isRow(row) && !contradicts(row, where);

/** The row with the columns that were asked for, and of rows inside it likewise. */
function cut(row: ParseRow, { keys, include = [] }: Wanted): ParseRow {
  const kept = keys && new Set([...keys.map(rootOf), ...ALWAYS, ...OF_OBJECTS]);
  const shown = kept ? Object.entries(row).filter(([name]) => kept.has(name)) : Object.entries(row);
  const included = new Map(include.map((plan) => [plan.field, plan]));
  return Object.fromEntries(shown.map(([name, value]) => [name, cutInside(value, included.get(name))]));
}

/** Without a plan there is nothing but a pointer. */
function cutInside(value: unknown, plan: IncludePlan | undefined): unknown {
  if (Array.isArray(value)) return value.map((entry: unknown) => cutInside(entry, plan));
  if (!isRow(value) || value['__type'] !== 'Object') return value;
  if (plan && isAdmitted(value, plan)) return cut(value, plan);
  return { __type: 'Pointer', className: value['className'], objectId: value['objectId'] };
}

function isRow(value: unknown): value is ParseRow {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

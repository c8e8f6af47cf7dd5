import {
  type AggregateQuery,
  type CountQuery,
  type FindQuery,
  type ParseRow,
  RecordReader,
  type QueryPlan,
  type RelatedQuery,
} from '#data';

/** One command that would have gone to the database. */
export type StoreCommand =
  | { readonly command: 'find'; readonly query: FindQuery }
  | { readonly command: 'count'; readonly query: CountQuery }
  | { readonly command: 'aggregate'; readonly query: AggregateQuery }
  | { readonly command: 'related'; readonly query: RelatedQuery }
  | { readonly command: 'explain'; readonly query: CountQuery };

/** Stands where the database is: writes down what it is asked and answers as if nothing were stored. */
export class RecordingStore extends RecordReader {
  private commands: StoreCommand[] = [];

  /** What was asked since the last time, in order. */
  take(): readonly StoreCommand[] {
    const taken = this.commands;
    this.commands = [];
    return taken;
  }

  find(query: FindQuery): Promise<ParseRow[]> {
    return this.answer({ command: 'find', query }, []);
  }

  /** One, so that the question behind an existence check is asked too. */
  count(query: CountQuery): Promise<number> {
    return this.answer({ command: 'count', query }, 1);
  }

  aggregate(query: AggregateQuery): Promise<ParseRow[]> {
    return this.answer({ command: 'aggregate', query }, []);
  }

  related(query: RelatedQuery): Promise<string[]> {
    return this.answer({ command: 'related', query }, []);
  }

  explain(query: CountQuery): Promise<QueryPlan> {
    return this.answer({ command: 'explain', query }, {});
  }

  private answer<T>(command: StoreCommand, value: T): Promise<T> {
    this.commands.push(command);
    return Promise.resolve(value);
  }
}

/** What a store is asked for: the kind of operation and the class, never a value. */
export interface DataOperation {
  readonly name:
    | 'find'
    | 'count'
    | 'aggregate'
    | 'related'
    | 'explain'
    | 'create'
    | 'update'
    | 'delete'
    | 'search'
    | 'facets'
    | 'nearest';
  readonly className: string;
}

/** @param fault what the operation failed with; absent when it did not */
export type OperationEnds = (rows: number, fault?: unknown) => void;

/** Hears what the operations of one call take from the database, as they happen. */
export interface DataMeter {
  /** An operation begins. @returns called once at its end, with the rows that it handed out */
  begins(operation: DataOperation): OperationEnds;
}

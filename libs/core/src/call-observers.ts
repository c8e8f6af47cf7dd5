/** The rule behind a row limit that the caller did not write. */
export type LimitOrigin = 'tenant' | 'agent filter' | 'canonical filter' | 'row rights';

/**
 * Receives the decisions of one call from the code that makes them; it cannot change them. Present in simulations and in
 * calls whose trace is recorded.
 */
export interface CallTrace {
  /** The gate passed the call. @param subject the class that it checked, if any */
  notePassed(gate: string, subject?: string): void;
  /** Every row that is read of the class must match this. */
  noteLimit(className: string, origin: LimitOrigin, where: Readonly<Record<string, unknown>>): void;
  /** The masks of these fields of the class: path and description. */
  noteMasks(className: string, fields: ReadonlyMap<string, string>): void;
}

/** A database operation: its kind and its class, never a value. */
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
  /** What the configuration calls the database. Absent: the first one, or the only one. */
  readonly database?: string;
}

/** @param error what the operation failed with; absent when it succeeded */
export type OperationEnded = (rows: number, error?: unknown) => void;

/** Receives the database operations of one call as they happen. */
export interface DataMeter {
  /** An operation starts. @returns called once at its end, with the number of rows that it returned */
  begins(operation: DataOperation): OperationEnded;
  /** The class gate passed a class that the call reaches from another one: by a join, an include, a subquery or a pointer. */
  reaches?(className: string): void;
}

/** How a tool call ended, in the members of its audit record: names and counts, never a value. */
export interface ToolEnding {
  readonly success: boolean;
  readonly agent_name?: string;
  readonly duration_ms: number;
  readonly error_code?: string;
  readonly gate?: string;
  readonly denial_kind?: string;
  readonly result_size?: number;
  readonly est_input_tokens?: number;
  readonly est_cost_usd?: number;
  readonly embed_calls?: number;
  readonly embed_tokens?: number;
  readonly embed_cost_usd?: number;
}

/** The observers of one tool call. */
export interface ToolTelemetry {
  readonly trace?: CallTrace | undefined;
  readonly meter?: DataMeter | undefined;
  /** Every gate passed the call: its handler starts now. */
  begins(): void;
  /** Only the first counts. Without `ending` the call continues elsewhere, or waits for its client. */
  ends(ending?: ToolEnding): void;
  /** Runs work of the call so that spans of its own code become children of the call's span. */
  within<T>(work: () => T): T;
}

/**
 * Receives what traces and metrics need of one request: names, counts and outcomes, never a value. It changes nothing and
 * never throws.
 */
export interface CallTelemetry {
  /** 32 lower-case hexadecimal digits; absent when no traces are made. */
  readonly traceId?: string | undefined;
  /** W3C `traceparent` of the call, for work that continues after it. */
  readonly traceParent?: string | undefined;
  readonly trace?: CallTrace | undefined;
  readonly meter?: DataMeter | undefined;
  tool(name: string): ToolTelemetry;
}

import type { CallTrace } from './call-trace.js';
import type { DataMeter } from './data-meter.js';

/** How a tool call ended, in the members of its audit record: names and counts, never a value. */
export interface ToolEnding {
  readonly success: boolean;
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

/** What listens to one tool call. */
export interface ToolTelemetry {
  readonly trace?: CallTrace | undefined;
  readonly meter?: DataMeter | undefined;
  /** Every gate let it pass: its handler runs from here on. */
  begins(): void;
  /** Only the first counts. Without an ending the call goes on elsewhere, or its client is asked first. */
  ends(ending?: ToolEnding): void;
  /** Runs work of the call, so that spans which its code makes itself stand below the call's own. */
  within<T>(work: () => T): T;
}

/**
 * Hears what traces and metrics need of one request. It is told names, counts and outcomes, never a value; it changes
 * nothing and never throws. Absent where nothing is measured.
 */
export interface CallTelemetry {
  /** 32 lower-case hexadecimal digits; absent where no traces are made. */
  readonly traceId?: string | undefined;
  /** W3C `traceparent` of the call, for work that it leaves behind. */
  readonly traceParent?: string | undefined;
  readonly trace?: CallTrace | undefined;
  readonly meter?: DataMeter | undefined;
  tool(name: string): ToolTelemetry;
}

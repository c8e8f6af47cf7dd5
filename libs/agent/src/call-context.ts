import type { Agent } from './agent.js';
import type { CallTelemetry } from './call-telemetry.js';
import type { CallTrace } from './call-trace.js';
import type { ClientAsks } from './client-question.js';
import type { DataMeter } from './data-meter.js';

/** How far a call is. */
export interface ProgressUpdate {
  /** Grows with every update. */
  readonly progress: number;
  /** What `progress` ends at. Default: unknown. */
  readonly total?: number;
  /** For the person who waits. Default none. */
  readonly message?: string;
}

/**
 * What a tool reports, as it may be sent on: what is null or of another type counts as not given.
 * @returns null for a report without a finite `progress`, which nobody could be told
 */
export function readProgress(update: unknown): ProgressUpdate | null {
  if (update === null || typeof update !== 'object') return null;
  const { progress, total, message } = update as Record<string, unknown>;
  if (typeof progress !== 'number' || !Number.isFinite(progress)) return null;
  return {
    progress,
    ...(typeof total === 'number' && Number.isFinite(total) && { total }),
    ...(typeof message === 'string' && { message }),
  };
}

/** From the least to the most urgent (RFC 5424). */
export const LOG_LEVELS = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export function isLogLevel(value: unknown): value is LogLevel {
  return LOG_LEVELS.includes(value as LogLevel);
}

/** A line that a running call tells its client. */
export interface LogEntry {
  /** How urgent it is; the client may have asked for the more urgent ones alone. */
  readonly level: LogLevel;
  /** Any JSON value. */
  readonly data: unknown;
  /** Who says so. Default: nobody in particular. */
  readonly logger?: string;
}

/** What travels with one request from the edge to the database. */
export interface CallContext {
  /** Who is calling, and with which rights. */
  readonly agent: Agent;
  /** Ends when the client goes away or cancels, or the time is up. */
  readonly signal: AbortSignal;
  /** `[A-Za-z0-9._-]{1,128}`; threads audit records and database comments, and is never an identity. */
  readonly correlationId?: string;
  /** Hears what the gates decide. Default none. */
  readonly trace?: CallTrace;
  /** Absent where nothing limits or measures what the call uses. */
  readonly meter?: DataMeter;
  /** Absent where neither traces nor metrics are kept. */
  readonly telemetry?: CallTelemetry;
  /** Absent where the caller cannot be asked anything. */
  readonly asks?: ClientAsks;
  /**
   * `offered`: the call may be answered with a task that goes on. `running`: this is such a task, whose call has been
   * counted and approved. Absent: neither (docs/tasks.md).
   */
  readonly background?: 'offered' | 'running';
  /** Who decided upon the call that this is a later run of. */
  readonly approver?: string;
  /** A no-op when the transport cannot carry progress, and for a report without a finite `progress`. Never throws. */
  progress(update: ProgressUpdate): void;
  /** Tells the client, when it asked for lines of that level. Absent where the transport can carry nothing but the answer. */
  log?(entry: LogEntry): void;
  /**
   * Ends the stream of the answer while the call goes on: its client comes back for the rest. Absent where it could not.
   */
  endStream?(): void;
}

/** The same request, on whose behalf a sub-agent now acts: signal, correlation and progress stay what they were. */
export function actingAs(context: CallContext, agent: Agent): CallContext {
  return {
    ...context,
    agent,
    // Not part of the copy where it is a method of a class.
    progress: (update) => context.progress(update),
  };
}

const CORRELATION_ID = /^[A-Za-z0-9._-]+$/;

/** Whether a value can thread records as it is. */
export function isCorrelationId(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 128 && CORRELATION_ID.test(value);
}

/** Ids with other characters are dropped, long ones cut to 128 characters. */
export function sanitizeCorrelationId(value: string | undefined): string | undefined {
  return value !== undefined && CORRELATION_ID.test(value) ? value.slice(0, 128) : undefined;
}

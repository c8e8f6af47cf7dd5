import type { Agent } from './agent.js';
import type { CallTrace } from './call-trace.js';
import type { ClientAsks } from './client-question.js';

export interface ProgressUpdate {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

/** What travels with one request from the edge to the database. */
export interface CallContext {
  readonly agent: Agent;
  readonly signal: AbortSignal;
  /** `[A-Za-z0-9._-]{1,128}`; threads audit records and database comments, and is never an identity. */
  readonly correlationId?: string;
  /** Hears what the gates decide. Default none. */
  readonly trace?: CallTrace;
  /** Absent where the caller cannot be asked anything. */
  readonly asks?: ClientAsks;
  /** A no-op when the transport cannot carry progress. */
  progress(update: ProgressUpdate): void;
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

/** Ids with other characters are dropped, long ones cut to 128 characters. */
export function sanitizeCorrelationId(value: string | undefined): string | undefined {
  return value !== undefined && CORRELATION_ID.test(value) ? value.slice(0, 128) : undefined;
}

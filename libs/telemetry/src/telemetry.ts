import type { CallTelemetry } from '#core';

/** A received HTTP request. Headers are read for trace context only. */
export interface Arrival {
  readonly verb: string;
  /** The configured path, not the requested target. */
  readonly route: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** `X-Request-Id`, as the answer carries it. */
  readonly requestId: string;
  /** HTTP version, for example `1.1`. */
  readonly httpVersion: string;
}

export interface ReceivedMessage {
  readonly method: string;
  /** Whether the protocol revision has a method of that name. */
  readonly served: boolean;
  readonly params: unknown;
  readonly id: unknown;
  readonly era: 'legacy' | 'modern';
  readonly version: string;
  /** Session of the caller. */
  readonly session?: string | undefined;
  /** Correlation id of the call's records. */
  readonly correlationId?: string | undefined;
}

/**
 * `ok`: answered with a result. `tool_error`: with a result that reports an error. `error`: with a JSON-RPC error of
 * that code.
 */
export type MessageEnding =
  { readonly outcome: 'ok' | 'tool_error' | 'gone' } | { readonly outcome: 'error'; readonly code: number };

/** Observes one MCP message. */
export interface MessageTelemetry extends CallTelemetry {
  /** Runs the work of the message in its trace context, so that spans and log lines belong to it. */
  within<T>(work: () => T): T;
  /** Only the first call counts. */
  ends(ending: MessageEnding): void;
}

/** Observes one HTTP request. */
export interface RequestTelemetry {
  /** @returns a function to call once the caller is authenticated or refused */
  startAuthentication(): (admitted: boolean) => void;
  message(said: ReceivedMessage): MessageTelemetry;
  /** The request downloads a file, which is produced while it is sent. */
  file(): CallTelemetry;
  /** A named check before the message refused the request. */
  recordRefusal(check: string): void;
  /** @param status null when the client disconnected before the response. Only the first call counts */
  ends(status: number | null): void;
}

/** A call that continues or runs outside a request. */
export interface BackgroundWork {
  readonly tool: string;
  /** `traceparent` of the request that started it. */
  readonly began?: string | undefined;
  readonly correlationId?: string | undefined;
}

/**
 * Observes the service: traces, metrics, both or neither. Implementations change nothing, never throw, and check and
 * bound all text that clients choose.
 */
export abstract class Telemetry {
  abstract request(arrival: Arrival): RequestTelemetry;
  /** A message on stdio. */
  abstract message(said: ReceivedMessage): MessageTelemetry;
  abstract background(work: BackgroundWork): MessageTelemetry;
}

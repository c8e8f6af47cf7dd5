import type { CallTelemetry } from '#agent';

/** A request as it came in over HTTP. Headers are read for trace context and nothing else. */
export interface Arrival {
  readonly verb: string;
  /** The configured path that it asks for, never the target as sent. */
  readonly route: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Of HTTP, `1.1` say. */
  readonly httpVersion: string;
}

/** One MCP message as its envelope describes it. */
export interface SaidMessage {
  readonly method: string;
  /** Whether a method of that name exists in that revision. */
  readonly served: boolean;
  readonly params: unknown;
  readonly id: unknown;
  readonly era: 'legacy' | 'modern';
  readonly version: string;
  /** Of the caller's own session. */
  readonly session?: string | undefined;
  /** What the records of the call are found by. */
  readonly correlationId?: string | undefined;
}

/** `ok`: answered with a result. `tool_error`: with one that says it failed. `error`: with a JSON-RPC error of that code. */
export type MessageEnding =
  { readonly outcome: 'ok' | 'tool_error' | 'gone' } | { readonly outcome: 'error'; readonly code: number };

/** What listens to one MCP message. */
export interface MessageTelemetry extends CallTelemetry {
  /** Runs the work of the message, so that spans and log lines of its code are found below it. */
  within<T>(work: () => T): T;
  /** Only the first counts. */
  ends(ending: MessageEnding): void;
}

/** What listens to one HTTP request. */
export interface RequestTelemetry {
  /** @returns called once the caller is known, or refused */
  authenticating(): (admitted: boolean) => void;
  message(said: SaidMessage): MessageTelemetry;
  /** The request is for a file, which is made while it is sent. */
  file(): CallTelemetry;
  /** A named check of the edge refused it. */
  refused(check: string): void;
  /** @param status null: there was nobody left to answer. Only the first counts */
  ends(status: number | null): void;
}

/** A call that goes on, or is made, outside any request. */
export interface BackgroundWork {
  readonly tool: string;
  /** `traceparent` of the request that began it. */
  readonly began?: string | undefined;
  readonly correlationId?: string | undefined;
}

/**
 * What listens to the service: traces, metrics, both or neither. It changes nothing it hears of and never throws. Whatever it
 * is told of a client's making is checked and bounded here.
 */
export abstract class Telemetry {
  abstract request(arrival: Arrival): RequestTelemetry;
  /** A message that came in over a pipe. */
  abstract message(said: SaidMessage): MessageTelemetry;
  abstract background(work: BackgroundWork): MessageTelemetry;
}

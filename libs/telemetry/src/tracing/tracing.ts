import type * as Api from '@opentelemetry/api';
import type { Attributes } from '@opentelemetry/api';
import type { DataOperation } from '#core';
import { OTHER_NAME } from '../bounded-names.js';
import type { Arrival, ReceivedMessage } from '../telemetry.js';

/** How the trace context of a caller is used (docs/operations/observability.md#callers). */
export type CallerTraces = 'continue' | 'follow' | 'restart';

/** Parent and links of a new span. */
interface Origin {
  readonly context: Api.Context;
  readonly links: Api.Link[];
}

interface TracingOptions {
  readonly api: typeof Api;
  readonly tracer: Api.Tracer;
  readonly callers: CallerTraces;
  /** Exports the remaining spans and closes the SDK. */
  readonly close: () => Promise<void>;
}

/** Creates spans. Kinds, statuses and attributes follow the OpenTelemetry semantic conventions. */
export class Tracing {
  readonly api: typeof Api;
  private readonly correlation: symbol;

  constructor(private readonly options: TracingOptions) {
    this.api = options.api;
    this.correlation = options.api.createContextKey('parley correlation id');
  }

  start(
    name: string,
    kind: 'SERVER' | 'CLIENT' | 'INTERNAL' | 'CONSUMER',
    { context, links }: Origin,
    attributes: Api.Attributes,
  ): Api.Span {
    const { tracer, api } = this.options;
    return tracer.startSpan(name, { kind: api.SpanKind[kind], attributes, links }, context);
  }

  below(span: Api.Span): Origin {
    return { context: this.createContext(span), links: [] };
  }

  /** @param beside a span of the same work that is not the parent */
  fromCaller(parent: unknown, state: unknown, beside: Api.Span | null): Origin {
    const { api, callers } = this.options;
    const caller = readTraceParent(parent, state);
    if (!caller) return beside ? this.below(beside) : { context: api.ROOT_CONTEXT, links: [] };
    const context = this.remote(caller);
    const links: Api.Link[] = beside ? [{ context: beside.spanContext() }] : [];
    if (callers !== 'restart') return { context: api.trace.setSpanContext(api.ROOT_CONTEXT, context), links };
    const linked = { context };
    return beside
      ? { context: this.createContext(beside), links: [linked] }
      : { context: api.ROOT_CONTEXT, links: [linked] };
  }

  /** A new trace with a link to the request that started the work and has been answered. */
  after(parent: unknown): Origin {
    const { api } = this.options;
    const caller = readTraceParent(parent);
    return { context: api.ROOT_CONTEXT, links: caller ? [{ context: this.remote(caller) }] : [] };
  }

  /** @param correlationId added to the log lines of the work */
  within<T>(span: Api.Span, correlationId: string | undefined, work: () => T): T {
    const context = this.createContext(span);
    const linked = correlationId === undefined ? context : context.setValue(this.correlation, correlationId);
    return this.api.context.with(linked, work);
  }

  /** Log fields of the active span; empty outside of one. */
  activeFields(): Readonly<Record<string, string>> {
    const context = this.api.context.active();
    const active = this.api.trace.getSpanContext(context);
    if (!active) return {};
    const correlation = context.getValue(this.correlation);
    return {
      trace_id: active.traceId,
      span_id: active.spanId,
      ...(typeof correlation === 'string' && { correlation_id: correlation }),
    };
  }

  fail(span: Api.Span, type: string): void {
    span.setAttribute('error.type', type);
    span.setStatus({ code: this.api.SpanStatusCode.ERROR });
  }

  close(): Promise<void> {
    return this.options.close();
  }

  private createContext(span: Api.Span): Api.Context {
    return this.api.trace.setSpan(this.api.ROOT_CONTEXT, span);
  }

  private remote({ traceId, spanId, sampled, state }: TraceParent): Api.SpanContext {
    const { TraceFlags, createTraceState } = this.api;
    return {
      traceId,
      spanId,
      traceFlags: sampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
      isRemote: true,
      ...(state !== undefined && { traceState: createTraceState(state) }),
    };
  }
}

/** Request ids that may appear in a trace. */
const PLAIN_ID = /^[\w.-]{1,64}$/;

const VERBS = new Set(['GET', 'POST', 'DELETE', 'HEAD', 'OPTIONS', 'PUT', 'PATCH']);

export function toVerb({ verb }: Arrival): string {
  return VERBS.has(verb) ? verb : OTHER_NAME;
}

export function requestAttributes(arrival: Arrival): Attributes {
  return {
    'http.request.method': toVerb(arrival),
    'http.route': arrival.route,
    'network.protocol.name': 'http',
    'network.protocol.version': arrival.httpVersion,
    'network.transport': 'tcp',
    'parley.request_id': arrival.requestId,
  };
}

/** The existing tool or prompt that a message names; never an argument. */
export interface MessageTarget {
  readonly tool?: string;
  readonly prompt?: string;
}

export function messageAttributes(
  { id, version, session, correlationId, era }: ReceivedMessage,
  method: string,
  { tool, prompt }: MessageTarget,
  transport: 'tcp' | 'pipe',
): Attributes {
  const named = typeof id === 'number' || (typeof id === 'string' && PLAIN_ID.test(id));
  return {
    'mcp.method.name': method,
    'mcp.protocol.version': /^\d{4}-\d{2}-\d{2}$/.test(version) ? version : OTHER_NAME,
    'parley.era': era,
    'network.transport': transport,
    ...(transport === 'tcp' && { 'network.protocol.name': 'http' }),
    ...(named && { 'jsonrpc.request.id': String(id) }),
    ...(session !== undefined && { 'mcp.session.id': session }),
    ...(correlationId !== undefined && { 'parley.correlation_id': correlationId }),
    ...(tool !== undefined && { 'gen_ai.tool.name': tool, 'gen_ai.operation.name': 'execute_tool' }),
    ...(prompt !== undefined && { 'gen_ai.prompt.name': prompt }),
  };
}

export function databaseAttributes({ name, className, database }: DataOperation): Attributes {
  return {
    'db.system.name': 'mongodb',
    'db.operation.name': name,
    'db.collection.name': className,
    ...(database !== undefined && { 'db.namespace': database }),
  };
}

/** The caller's span, from its `traceparent`. */
export interface TraceParent {
  /** 32 lower-case hexadecimal digits, not all zero. */
  readonly traceId: string;
  /** 16 lower-case hexadecimal digits, not all zero. */
  readonly spanId: string;
  readonly sampled: boolean;
  /** As received, within the limits below; absent when it is invalid. */
  readonly state?: string;
}

/** Maximum characters and entries of a `tracestate` (W3C Trace Context, 3.3.1.5). */
const MAX_STATE = 512;
const MAX_STATE_ENTRIES = 32;

const PARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const STATE_ENTRY =
  /^[a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;
/** No version has longer ones; text after the four known fields is ignored. */
const MAX_PARENT = 128;

/** `undefined` for invalid values: the request then starts a trace of its own. */
export function readTraceParent(parent: unknown, state?: unknown): TraceParent | undefined {
  if (typeof parent !== 'string' || parent.length > MAX_PARENT) return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] = PARENT.exec(parent) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  const kept = readTraceState(state);
  return {
    traceId,
    spanId,
    sampled: (Number.parseInt(flags, 16) & 1) === 1,
    ...(kept !== undefined && { state: kept }),
  };
}

/** Keeps the whole state or none of it: a part would change the state of other vendors. */
function readTraceState(state: unknown): string | undefined {
  if (typeof state !== 'string' || state === '' || state.length > MAX_STATE) return undefined;
  const entries = state.split(',').map((entry) => entry.trim());
  const named = entries.filter((entry) => entry !== '');
  if (named.length === 0 || named.length > MAX_STATE_ENTRIES) return undefined;
  const keys = new Set(named.map((entry) => entry.slice(0, entry.indexOf('='))));
  if (keys.size !== named.length || !named.every((entry) => STATE_ENTRY.test(entry))) return undefined;
  return named.join(',');
}

export function writeTraceParent({ traceId, spanId, sampled }: TraceParent): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}

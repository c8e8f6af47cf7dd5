import type * as Api from '@opentelemetry/api';
import type { Attributes } from '@opentelemetry/api';
import type { DataOperation } from '#agent';
import { OTHER_NAME } from '../bounded-names.js';
import type { Arrival, SaidMessage } from '../telemetry.js';
import { readTraceParent, type TraceParent } from '../trace-context.js';

/** What the trace context of a caller is worth (docs/observability.md#callers). */
export type CallerTraces = 'continue' | 'follow' | 'restart';

/** Where a span begins: below another, below a caller's, or nowhere. */
interface Origin {
  readonly context: Api.Context;
  readonly links: Api.Link[];
}

interface TracingOptions {
  readonly api: typeof Api;
  readonly tracer: Api.Tracer;
  readonly callers: CallerTraces;
  /** Sends what was not sent yet, and ends. */
  readonly close: () => Promise<void>;
}

/** Makes spans. The names of kinds, statuses and attributes are those of the OpenTelemetry semantic conventions. */
export class Tracing {
  readonly api: typeof Api;
  private readonly correlation: symbol;

  constructor(private readonly parts: TracingOptions) {
    this.api = parts.api;
    this.correlation = parts.api.createContextKey('parley correlation id');
  }

  start(
    name: string,
    kind: 'SERVER' | 'CLIENT' | 'INTERNAL' | 'CONSUMER',
    { context, links }: Origin,
    attributes: Api.Attributes,
  ): Api.Span {
    const { tracer, api } = this.parts;
    return tracer.startSpan(name, { kind: api.SpanKind[kind], attributes, links }, context);
  }

  below(span: Api.Span): Origin {
    return { context: this.contextOf(span), links: [] };
  }

  /** @param beside a span that is not the parent and belongs to the same work */
  fromCaller(parent: unknown, state: unknown, beside: Api.Span | null): Origin {
    const { api, callers } = this.parts;
    const caller = readTraceParent(parent, state);
    if (!caller) return beside ? this.below(beside) : { context: api.ROOT_CONTEXT, links: [] };
    const context = this.remote(caller);
    const links: Api.Link[] = beside ? [{ context: beside.spanContext() }] : [];
    if (callers !== 'restart') return { context: api.trace.setSpanContext(api.ROOT_CONTEXT, context), links };
    const linked = { context };
    return beside
      ? { context: this.contextOf(beside), links: [linked] }
      : { context: api.ROOT_CONTEXT, links: [linked] };
  }

  /** Work that was begun by a request which has been answered: a trace of its own that names the other. */
  after(parent: unknown): Origin {
    const { api } = this.parts;
    const caller = readTraceParent(parent);
    return { context: api.ROOT_CONTEXT, links: caller ? [{ context: this.remote(caller) }] : [] };
  }

  /** @param correlationId told on the log lines of the work */
  within<T>(span: Api.Span, correlationId: string | undefined, work: () => T): T {
    const context = this.contextOf(span);
    const linked = correlationId === undefined ? context : context.setValue(this.correlation, correlationId);
    return this.api.context.with(linked, work);
  }

  /** Of the work that is going on where this is called; nothing outside of any. */
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
    return this.parts.close();
  }

  private contextOf(span: Api.Span): Api.Context {
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

/** What a client may name a request by and still be told in a trace. */
const PLAIN_ID = /^[\w.-]{1,64}$/;

const VERBS = new Set(['GET', 'POST', 'DELETE', 'HEAD', 'OPTIONS', 'PUT', 'PATCH']);

export function verbOf({ verb }: Arrival): string {
  return VERBS.has(verb) ? verb : OTHER_NAME;
}

export function requestAttributes(arrival: Arrival): Attributes {
  return {
    'http.request.method': verbOf(arrival),
    'http.route': arrival.route,
    'network.protocol.name': 'http',
    'network.protocol.version': arrival.httpVersion,
    'network.transport': 'tcp',
  };
}

/** What a message is about, by a name that exists: a tool or a prompt, never an argument. */
export interface MessageTarget {
  readonly tool?: string;
  readonly prompt?: string;
}

export function messageAttributes(
  { id, version, session, correlationId, era }: SaidMessage,
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

export function databaseAttributes({ name, className }: DataOperation): Attributes {
  return {
    'db.system.name': 'mongodb',
    'db.operation.name': name,
    'db.collection.name': className,
  };
}

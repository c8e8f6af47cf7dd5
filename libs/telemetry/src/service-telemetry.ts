import type { Span } from '@opentelemetry/api';
import {
  type CallTelemetry,
  type CallTrace,
  type DataMeter,
  type DataOperation,
  type LimitOrigin,
  type OperationEnded,
  type ToolEnding,
  type ToolTelemetry,
  member,
} from '#core';
import { OTHER_NAME } from './bounded-names.js';
import type { KnownMetricNames, ServiceMetrics } from './metrics/service-metrics.js';
import {
  type Arrival,
  type BackgroundWork,
  type MessageEnding,
  type MessageTelemetry,
  type RequestTelemetry,
  type ReceivedMessage,
  Telemetry,
} from './telemetry.js';
import {
  databaseAttributes,
  messageAttributes,
  type MessageTarget,
  requestAttributes,
  type Tracing,
  toVerb,
  writeTraceParent,
} from './tracing/tracing.js';

/** Traces and metrics; null when disabled. */
export interface Observers {
  readonly tracing: Tracing | null;
  readonly metrics: ServiceMetrics | null;
  readonly names: KnownMetricNames;
}

/** Codes of store errors are few and hold no data; all other errors are reported as `failed`. */
const STORE_CODE = /^[a-z_]{1,40}$/;

function readCode(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  return name === 'StoreError' && typeof code === 'string' && STORE_CODE.test(code) ? code : 'failed';
}

/** Measures the database operations of a call, each as a child of the innermost open span. */
class ObservedData implements DataMeter {
  constructor(
    private readonly observers: Observers,
    private readonly parent: () => Span | null,
  ) {}

  begins(operation: DataOperation): OperationEnded {
    const { tracing, metrics } = this.observers;
    const parent = this.parent();
    const began = metrics ? performance.now() : 0;
    const span =
      tracing && parent?.isRecording()
        ? tracing.start(
            `${operation.name} ${operation.className}`,
            'CLIENT',
            tracing.below(parent),
            databaseAttributes(operation),
          )
        : null;
    return (rows, error) => {
      const code = error === undefined ? null : readCode(error);
      metrics?.database(operation, rows, performance.now() - began, code);
      if (!span || !tracing) return;
      span.setAttribute('db.response.returned_rows', rows);
      if (code !== null) tracing.fail(span, code);
      span.end();
    };
  }
}

/** Records gates as events of the open span: a span for each would cost more than most gates. */
class ObservedGates implements CallTrace {
  constructor(private readonly span: () => Span | null) {}

  notePassed(gate: string, subject?: string): void {
    this.span()?.addEvent('gate.passed', {
      'parley.gate': gate,
      ...(subject !== undefined && { 'db.collection.name': subject }),
    });
  }

  /** Reports the origin of a limit, not its content. */
  noteLimit(className: string, origin: LimitOrigin): void {
    this.span()?.addEvent('rows.limited', { 'db.collection.name': className, 'parley.limit': origin });
  }

  /** Reports the number of fields, not their names. */
  noteMasks(className: string, fields: ReadonlyMap<string, string>): void {
    this.span()?.addEvent('fields.masked', {
      'db.collection.name': className,
      'parley.masked_fields': fields.size,
    });
  }
}

/** Observes one tool call: gates are events on the span of the message, the handler has its own span. */
class ObservedTool implements ToolTelemetry {
  readonly trace: ObservedGates | undefined;
  readonly meter: ObservedData;
  private handler: Span | null = null;
  private over = false;

  /** @param message null when the trace is not sampled */
  constructor(
    private readonly observers: Observers,
    private readonly name: string,
    private readonly message: Span | null,
    private readonly correlationId?: string | undefined,
  ) {
    const open = () => this.handler ?? this.message;
    this.trace = message ? new ObservedGates(open) : undefined;
    this.meter = new ObservedData(observers, open);
  }

  begins(): void {
    const { tracing, names } = this.observers;
    if (!tracing || !this.message || this.handler || !names.isTool(this.name)) return;
    this.handler = tracing.start(`execute_tool ${this.name}`, 'INTERNAL', tracing.below(this.message), {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': this.name,
    });
  }

  within<T>(work: () => T): T {
    const { tracing } = this.observers;
    return tracing && this.handler ? tracing.within(this.handler, this.correlationId, work) : work();
  }

  ends(ending?: ToolEnding): void {
    if (this.over) return;
    this.over = true;
    if (ending) this.observers.metrics?.tool(this.name, ending);
    const { handler, message } = this;
    if (ending && message) this.setEnding(handler ?? message, ending);
    handler?.end();
  }

  private setEnding(span: Span, ending: ToolEnding): void {
    const { success, agent_name, error_code: code = '_OTHER', gate, denial_kind: kind } = ending;
    const { result_size, est_input_tokens, est_cost_usd, embed_calls, embed_tokens, embed_cost_usd } = ending;
    span.setAttributes({
      ...(agent_name !== undefined && { 'parley.agent': agent_name }),
      ...(result_size !== undefined && { 'parley.result.bytes': result_size }),
      ...(est_input_tokens !== undefined && { 'parley.result.tokens': est_input_tokens }),
      ...(est_cost_usd !== undefined && { 'parley.result.cost_usd': est_cost_usd }),
      ...(embed_calls !== undefined && { 'parley.embedding.requests': embed_calls }),
      ...(embed_tokens !== undefined && { 'parley.embedding.tokens': embed_tokens }),
      ...(embed_cost_usd !== undefined && { 'parley.embedding.cost_usd': embed_cost_usd }),
    });
    if (success) return;
    span.setAttributes({
      'parley.error_code': code,
      ...(gate !== undefined && { 'parley.gate': gate }),
      ...(kind !== undefined && { 'parley.denial_kind': kind }),
    });
    this.observers.tracing?.fail(span, code);
  }
}

interface MessageLabels {
  readonly method: string;
  readonly era: string;
  readonly transport: 'http' | 'stdio' | 'background';
}

class ObservedMessage implements MessageTelemetry {
  readonly traceId: string | undefined;
  readonly traceParent: string | undefined;
  readonly trace: ObservedGates | undefined;
  readonly meter: ObservedData;
  private readonly recorded: Span | null;
  private readonly began = performance.now();
  private over = false;

  constructor(
    private readonly observers: Observers,
    private readonly labels: MessageLabels,
    private readonly span: Span | null,
    private readonly correlationId?: string | undefined,
  ) {
    const named = span?.spanContext();
    this.traceId = named?.traceId;
    this.traceParent = named && writeTraceParent({ ...named, sampled: span?.isRecording() === true });
    // Of a trace that is not sampled only the id is needed.
    this.recorded = span?.isRecording() ? span : null;
    this.trace = this.recorded ? new ObservedGates(() => this.recorded) : undefined;
    this.meter = new ObservedData(observers, () => this.recorded);
  }

  tool(name: string): ToolTelemetry {
    return new ObservedTool(this.observers, name, this.recorded, this.correlationId);
  }

  within<T>(work: () => T): T {
    const { tracing } = this.observers;
    return tracing && this.span ? tracing.within(this.span, this.correlationId, work) : work();
  }

  ends(ending: MessageEnding): void {
    if (this.over) return;
    this.over = true;
    this.observers.metrics?.message(this.labels, ending, performance.now() - this.began);
    if (this.recorded) this.setEnding(this.recorded, ending);
    this.span?.end();
  }

  private setEnding(span: Span, ending: MessageEnding): void {
    const { tracing } = this.observers;
    if (ending.outcome === 'tool_error' || ending.outcome === 'gone') tracing?.fail(span, ending.outcome);
    if (ending.outcome !== 'error') return;
    span.setAttribute('rpc.response.status_code', String(ending.code));
    tracing?.fail(span, String(ending.code));
  }
}

/** The tool or prompt of a message, if it exists; names that a client made up are not reported. */
function findTarget({ method, params }: ReceivedMessage, { names }: Observers): MessageTarget {
  const name = member(params, 'name');
  if (typeof name !== 'string') return {};
  if (method === 'tools/call') return { tool: names.isTool(name) ? name : OTHER_NAME };
  if (method === 'prompts/get') return { prompt: names.isPrompt(name) ? name : OTHER_NAME };
  return {};
}

/**
 * Starts observing a message. The trace context in its `_meta` becomes the parent, and the span of the HTTP request
 * is linked, because one request can carry several messages (MCP conventions, context propagation).
 */
function observeMessage(
  observers: Observers,
  message: ReceivedMessage,
  transport: 'http' | 'stdio',
  requestSpan: Span | null,
): ObservedMessage {
  const { tracing } = observers;
  const method = message.served ? message.method : OTHER_NAME;
  const labels = { method, era: message.era, transport };
  if (!tracing) return new ObservedMessage(observers, labels, null);
  const target = findTarget(message, observers);
  const meta = member(message.params, '_meta');
  const origin = tracing.fromCaller(member(meta, 'traceparent'), member(meta, 'tracestate'), requestSpan);
  const name = target.tool ?? target.prompt;
  const span = tracing.start(
    name === undefined ? method : `${method} ${name}`,
    'SERVER',
    origin,
    messageAttributes(message, method, target, transport === 'http' ? 'tcp' : 'pipe'),
  );
  return new ObservedMessage(observers, labels, span, message.correlationId);
}

/** Ends with its request and is not counted as a message. */
const FILE = { method: 'exports/read', era: 'legacy', transport: 'http' } as const;

class ObservedRequest implements RequestTelemetry {
  private over = false;

  constructor(
    private readonly observers: Observers,
    private readonly span: Span | null,
  ) {}

  startAuthentication(): (admitted: boolean) => void {
    const { tracing } = this.observers;
    if (!tracing || !this.span?.isRecording()) return () => undefined;
    const span = tracing.start('authenticate', 'INTERNAL', tracing.below(this.span), {});
    return (admitted) => {
      if (!admitted) tracing.fail(span, 'unauthorized');
      span.end();
    };
  }

  message(message: ReceivedMessage): MessageTelemetry {
    return observeMessage(this.observers, message, 'http', this.span);
  }

  file(): CallTelemetry {
    return new ObservedMessage(this.observers, FILE, this.span);
  }

  recordRefusal(check: string): void {
    this.observers.metrics?.countEdgeRefusal(check);
    this.span?.setAttribute('parley.check', check);
  }

  ends(status: number | null): void {
    if (this.over) return;
    this.over = true;
    const { span } = this;
    if (!span) return;
    if (status === null) this.observers.tracing?.fail(span, 'client_disconnect');
    else span.setAttribute('http.response.status_code', status);
    // A refusal is an error of the caller and not of this server (HTTP conventions, span status).
    if (status !== null && status >= 500) this.observers.tracing?.fail(span, String(status));
    span.end();
  }
}

/** Reports to traces and metrics, as far as they are enabled. */
export class ServiceTelemetry extends Telemetry {
  constructor(private readonly observers: Observers) {
    super();
    observers.metrics?.knowNames(observers.names);
  }

  request(arrival: Arrival): RequestTelemetry {
    const { tracing } = this.observers;
    if (!tracing) return new ObservedRequest(this.observers, null);
    const { traceparent, tracestate } = arrival.headers;
    const origin = tracing.fromCaller(traceparent, tracestate, null);
    const name = `${toVerb(arrival)} ${arrival.route}`;
    return new ObservedRequest(
      this.observers,
      tracing.start(name, 'SERVER', origin, requestAttributes(arrival)),
    );
  }

  message(message: ReceivedMessage): MessageTelemetry {
    return observeMessage(this.observers, message, 'stdio', null);
  }

  background({ tool, began, correlationId }: BackgroundWork): MessageTelemetry {
    const { tracing, names } = this.observers;
    const labels = { method: 'tasks/run', era: 'modern', transport: 'background' } as const;
    if (!tracing) return new ObservedMessage(this.observers, labels, null);
    const named = names.isTool(tool) ? tool : OTHER_NAME;
    const span = tracing.start(`tasks/run ${named}`, 'CONSUMER', tracing.after(began), {
      'gen_ai.tool.name': named,
      'gen_ai.operation.name': 'execute_tool',
      ...(correlationId !== undefined && { 'parley.correlation_id': correlationId }),
    });
    return new ObservedMessage(this.observers, labels, span, correlationId);
  }
}

import type { Span } from '@opentelemetry/api';
import type { ToolTelemetry } from '#agent';
import { ObservedData, ObservedGates } from './observed-data.js';
import type { ObservedParts } from './observed-parts.js';
import { ObservedTool } from './observed-tool.js';
import type { MessageEnding, MessageTelemetry } from './telemetry.js';
import { writeTraceParent } from './trace-context.js';

/** What a message counts as. */
export interface MessageLabels {
  readonly method: string;
  readonly era: string;
  readonly transport: 'http' | 'stdio' | 'background';
}

export class ObservedMessage implements MessageTelemetry {
  readonly traceId: string | undefined;
  readonly traceParent: string | undefined;
  readonly trace: ObservedGates | undefined;
  readonly meter: ObservedData;
  private readonly recorded: Span | null;
  private readonly began = performance.now();
  private over = false;

  constructor(
    private readonly parts: ObservedParts,
    private readonly labels: MessageLabels,
    private readonly span: Span | null,
    private readonly correlationId?: string | undefined,
  ) {
    const named = span?.spanContext();
    this.traceId = named?.traceId;
    this.traceParent = named && writeTraceParent({ ...named, sampled: span?.isRecording() === true });
    // Of a trace that is not kept only the id is needed.
    this.recorded = span?.isRecording() ? span : null;
    this.trace = this.recorded ? new ObservedGates(() => this.recorded) : undefined;
    this.meter = new ObservedData(parts, () => this.recorded);
  }

  tool(name: string): ToolTelemetry {
    return new ObservedTool(this.parts, name, this.recorded, this.correlationId);
  }

  within<T>(work: () => T): T {
    const { tracing } = this.parts;
    return tracing && this.span ? tracing.within(this.span, this.correlationId, work) : work();
  }

  ends(ending: MessageEnding): void {
    if (this.over) return;
    this.over = true;
    this.parts.metrics?.message(this.labels, ending, performance.now() - this.began);
    if (this.recorded) this.tell(this.recorded, ending);
    this.span?.end();
  }

  private tell(span: Span, ending: MessageEnding): void {
    const { tracing } = this.parts;
    if (ending.outcome === 'tool_error' || ending.outcome === 'gone') tracing?.fail(span, ending.outcome);
    if (ending.outcome !== 'error') return;
    span.setAttribute('rpc.response.status_code', String(ending.code));
    tracing?.fail(span, String(ending.code));
  }
}

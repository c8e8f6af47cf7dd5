import type { Span } from '@opentelemetry/api';
import type { ToolEnding, ToolTelemetry } from '#agent';
import { ObservedData, ObservedGates } from './observed-data.js';
import type { ObservedParts } from './observed-parts.js';

/** One tool call: its gates are told on the span of the message, its handler has one of its own. */
export class ObservedTool implements ToolTelemetry {
  readonly trace: ObservedGates | undefined;
  readonly meter: ObservedData;
  private handler: Span | null = null;
  private over = false;

  /** @param message null: its trace is not kept */
  constructor(
    private readonly parts: ObservedParts,
    private readonly name: string,
    private readonly message: Span | null,
    private readonly correlationId?: string | undefined,
  ) {
    const open = () => this.handler ?? this.message;
    this.trace = message ? new ObservedGates(open) : undefined;
    this.meter = new ObservedData(parts, open);
  }

  begins(): void {
    const { tracing, names } = this.parts;
    if (!tracing || !this.message || this.handler || !names.isTool(this.name)) return;
    this.handler = tracing.start(`execute_tool ${this.name}`, 'INTERNAL', tracing.below(this.message), {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': this.name,
    });
  }

  within<T>(work: () => T): T {
    const { tracing } = this.parts;
    return tracing && this.handler ? tracing.within(this.handler, this.correlationId, work) : work();
  }

  ends(ending?: ToolEnding): void {
    if (this.over) return;
    this.over = true;
    if (ending) this.parts.metrics?.tool(this.name, ending);
    const { handler, message } = this;
    if (ending && message) this.tell(handler ?? message, ending);
    handler?.end();
  }

  private tell(span: Span, ending: ToolEnding): void {
    const { success, error_code: code = '_OTHER', gate, denial_kind: kind } = ending;
    const { result_size, est_input_tokens, est_cost_usd, embed_calls, embed_tokens, embed_cost_usd } = ending;
    span.setAttributes({
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
    this.parts.tracing?.fail(span, code);
  }
}

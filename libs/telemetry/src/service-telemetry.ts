import { OTHER_NAME } from './bounded-names.js';
import { observeMessage } from './observe-message.js';
import { ObservedMessage } from './observed-message.js';
import type { ObservedParts } from './observed-parts.js';
import { ObservedRequest } from './observed-request.js';
import {
  type Arrival,
  type BackgroundWork,
  type MessageTelemetry,
  type RequestTelemetry,
  type SaidMessage,
  Telemetry,
} from './telemetry.js';
import { requestAttributes, verbOf } from './tracing/span-attributes.js';

/** Tells traces and metrics, whichever of the two there are. */
export class ServiceTelemetry extends Telemetry {
  constructor(private readonly parts: ObservedParts) {
    super();
    parts.metrics?.knowTools(parts.names.isTool);
  }

  request(arrival: Arrival): RequestTelemetry {
    const { tracing } = this.parts;
    if (!tracing) return new ObservedRequest(this.parts, null);
    const { traceparent, tracestate } = arrival.headers;
    const origin = tracing.fromCaller(traceparent, tracestate, null);
    const name = `${verbOf(arrival)} ${arrival.route}`;
    return new ObservedRequest(this.parts, tracing.start(name, 'SERVER', origin, requestAttributes(arrival)));
  }

  message(said: SaidMessage): MessageTelemetry {
    return observeMessage(this.parts, said, 'stdio', null);
  }

  background({ tool, began, correlationId }: BackgroundWork): MessageTelemetry {
    const { tracing, names } = this.parts;
    const labels = { method: 'tasks/run', era: 'modern', transport: 'background' } as const;
    if (!tracing) return new ObservedMessage(this.parts, labels, null);
    const named = names.isTool(tool) ? tool : OTHER_NAME;
    const span = tracing.start(`tasks/run ${named}`, 'CONSUMER', tracing.after(began), {
      'gen_ai.tool.name': named,
      'gen_ai.operation.name': 'execute_tool',
      ...(correlationId !== undefined && { 'parley.correlation_id': correlationId }),
    });
    return new ObservedMessage(this.parts, labels, span, correlationId);
  }
}

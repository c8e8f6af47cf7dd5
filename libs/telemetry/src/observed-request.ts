import type { Span } from '@opentelemetry/api';
import type { CallTelemetry } from '#agent';
import { observeMessage } from './observe-message.js';
import { ObservedMessage } from './observed-message.js';
import type { ObservedParts } from './observed-parts.js';
import type { MessageTelemetry, RequestTelemetry, SaidMessage } from './telemetry.js';

/** Ends with its request, so that it counts as none by itself. */
const FILE = { method: 'exports/read', era: 'legacy', transport: 'http' } as const;

export class ObservedRequest implements RequestTelemetry {
  private over = false;

  constructor(
    private readonly parts: ObservedParts,
    private readonly span: Span | null,
  ) {}

  authenticating(): (admitted: boolean) => void {
    const { tracing } = this.parts;
    if (!tracing || !this.span?.isRecording()) return () => undefined;
    const span = tracing.start('authenticate', 'INTERNAL', tracing.below(this.span), {});
    return (admitted) => {
      if (!admitted) tracing.fail(span, 'unauthorized');
      span.end();
    };
  }

  message(said: SaidMessage): MessageTelemetry {
    return observeMessage(this.parts, said, 'http', this.span);
  }

  file(): CallTelemetry {
    return new ObservedMessage(this.parts, FILE, this.span);
  }

  refused(check: string): void {
    this.parts.metrics?.refusedByEdge(check);
    this.span?.setAttribute('parley.check', check);
  }

  ends(status: number | null): void {
    if (this.over) return;
    this.over = true;
    const { span } = this;
    if (!span) return;
    if (status === null) this.parts.tracing?.fail(span, 'client_disconnect');
    else span.setAttribute('http.response.status_code', status);
    // A refusal is the caller's error, not one of this server (HTTP conventions, span status).
    if (status !== null && status >= 500) this.parts.tracing?.fail(span, String(status));
    span.end();
  }
}

import type { Span } from '@opentelemetry/api';
import type { CallTrace, DataMeter, DataOperation, LimitOrigin, OperationEnds } from '#agent';
import type { ObservedParts } from './observed-parts.js';
import { databaseAttributes } from './tracing/span-attributes.js';

/** The codes of a store's faults are few and say nothing of data; anything else is told by no name. */
const STORE_CODE = /^[a-z_]{1,40}$/;

function codeOf(fault: unknown): string {
  const { code, name } = (fault ?? {}) as { code?: unknown; name?: unknown };
  return name === 'StoreError' && typeof code === 'string' && STORE_CODE.test(code) ? code : 'failed';
}

/** Measures the database operations of a call, each as a span below whichever of its spans is open. */
export class ObservedData implements DataMeter {
  constructor(
    private readonly parts: ObservedParts,
    private readonly parent: () => Span | null,
  ) {}

  begins(operation: DataOperation): OperationEnds {
    const { tracing, metrics } = this.parts;
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
    return (rows, fault) => {
      const code = fault === undefined ? null : codeOf(fault);
      metrics?.database(operation, rows, performance.now() - began, code);
      if (!span || !tracing) return;
      span.setAttribute('db.response.returned_rows', rows);
      if (code !== null) tracing.fail(span, code);
      span.end();
    };
  }
}

/** Gates as events of the open span: a span for each would cost more than most gates do. */
export class ObservedGates implements CallTrace {
  constructor(private readonly span: () => Span | null) {}

  passed(gate: string, subject?: string): void {
    this.span()?.addEvent('gate.passed', {
      'parley.gate': gate,
      ...(subject !== undefined && { 'db.collection.name': subject }),
    });
  }

  /** Where a limit comes from, never what it says. */
  limited(className: string, origin: LimitOrigin): void {
    this.span()?.addEvent('rows.limited', { 'db.collection.name': className, 'parley.limit': origin });
  }

  /** How many, not which. */
  masked(className: string, fields: ReadonlyMap<string, string>): void {
    this.span()?.addEvent('fields.masked', {
      'db.collection.name': className,
      'parley.masked_fields': fields.size,
    });
  }
}

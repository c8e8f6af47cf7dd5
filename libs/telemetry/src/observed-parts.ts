import type { ServiceMetrics } from './metrics/service-metrics.js';
import type { Tracing } from './tracing/tracing.js';

/** Names that exist: only they are told in traces and metrics. */
export interface KnownNames {
  readonly isTool: (name: string) => boolean;
  readonly isPrompt: (name: string) => boolean;
}

/** Who listens; null: nobody does. */
export interface ObservedParts {
  readonly tracing: Tracing | null;
  readonly metrics: ServiceMetrics | null;
  readonly names: KnownNames;
}

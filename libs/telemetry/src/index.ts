export {
  type MetricDeclaration,
  type MetricName,
  METRICS,
  openMetrics,
  type Reading,
  type ServiceMetrics,
} from './metrics/service-metrics.js';
export { type MetricsAddress, MetricsListener } from './metrics/metrics-listener.js';
export { type KnownNames, ServiceTelemetry } from './service-telemetry.js';
export * from './telemetry.js';
export { openTracing, type TraceOptions } from './tracing/open-tracing.js';
export type { CallerTraces, Tracing } from './tracing/tracing.js';
export { NOTHING_OBSERVED, type Observability, TelemetryModule } from './telemetry.module.js';

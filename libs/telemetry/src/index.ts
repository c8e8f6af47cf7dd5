export { METRICS, type MetricDeclaration, type MetricName } from './metrics/metric-catalogue.js';
export { MetricsListener, type MetricsAddress } from './metrics/metrics-listener.js';
export { openMetrics } from './metrics/open-metrics.js';
export type { Reading, ServiceMetrics } from './metrics/service-metrics.js';
export type { KnownNames } from './observed-parts.js';
export { ServiceTelemetry } from './service-telemetry.js';
export * from './telemetry.js';
export { openTracing, type TraceOptions } from './tracing/open-tracing.js';
export type { CallerTraces, Tracing } from './tracing/tracing.js';

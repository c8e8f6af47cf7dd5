export { type KnownMetricNames, openMetrics, type ServiceMetrics } from './metrics/service-metrics.js';
export { channelTo, gatherMetrics, MetricsListener, metricsOfAll } from './metrics/process-metrics.js';
export * from './telemetry.js';
export { openTracing } from './tracing/open-tracing.js';
export type { CallerTraces } from './tracing/tracing.js';
export {
  KNOWN_NAMES,
  NOTHING_OBSERVED,
  OBSERVABILITY,
  type Observability,
  TelemetryModule,
} from './telemetry.module.js';

import { ServiceMetrics } from './service-metrics.js';

/** Begins to count. What counts is loaded only here. */
export async function openMetrics(): Promise<ServiceMetrics> {
  return new ServiceMetrics(await import('prom-client'));
}

import { Module } from '@nestjs/common';
import type { KnownMetricNames } from './metrics/service-metrics.js';
import { type Observers, ServiceTelemetry } from './service-telemetry.js';
import { Telemetry } from './telemetry.js';

/** What listens to the service; null: nobody asked for it, and nothing of it is loaded. */
export type Observability = Omit<Observers, 'names'>;

export const NOTHING_OBSERVED: Observability = Object.freeze({ tracing: null, metrics: null });

export const OBSERVABILITY = Symbol('listeners of the service');
export const KNOWN_NAMES = Symbol('names of tools and prompts');

/** Traces and metrics. `Telemetry` is null where nothing listens. */
@Module({
  providers: [
    {
      provide: Telemetry,
      useFactory: ({ tracing, metrics }: Observability, names: KnownMetricNames) =>
        tracing || metrics ? new ServiceTelemetry({ tracing, metrics, names }) : null,
      inject: [OBSERVABILITY, KNOWN_NAMES],
    },
  ],
  exports: [Telemetry],
})
export class TelemetryModule {}

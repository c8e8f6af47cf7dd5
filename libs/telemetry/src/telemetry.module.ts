import { type DynamicModule, Module, type ModuleMetadata, type Type } from '@nestjs/common';
import { type KnownNames, type Observers, ServiceTelemetry } from './service-telemetry.js';

import { Telemetry } from './telemetry.js';

/** What listens to the service; null: nobody asked for it, and nothing of it is loaded. */
export type Observability = Omit<Observers, 'names'>;

export const NOTHING_OBSERVED: Observability = Object.freeze({ tracing: null, metrics: null });

/** Traces and metrics. `Telemetry` is null where nothing listens. */
@Module({})
export class TelemetryModule {
  /** @param names injects what `imports` export */
  static register(
    { tracing, metrics }: Observability,
    names: Type<KnownNames>,
    imports: ModuleMetadata['imports'],
  ): DynamicModule {
    if (!tracing && !metrics)
      return {
        module: TelemetryModule,
        providers: [{ provide: Telemetry, useValue: null }],
        exports: [Telemetry],
      };
    return {
      module: TelemetryModule,
      imports: [...(imports ?? [])],
      providers: [
        { provide: KNOWN_NAMES, useClass: names },
        {
          provide: Telemetry,
          useFactory: (known: KnownNames) => new ServiceTelemetry({ tracing, metrics, names: known }),
          inject: [KNOWN_NAMES],
        },
      ],
      exports: [Telemetry],
    };
  }
}

const KNOWN_NAMES = Symbol('names of tools and prompts');

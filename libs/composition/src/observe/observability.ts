import type { INestApplicationContext, Logger, Provider } from '@nestjs/common';
import { PromptRegistry } from '#dispatcher';
import {
  MetricsListener,
  openMetrics,
  openTracing,
  ServiceTelemetry,
  type ServiceMetrics,
  Telemetry,
  type Tracing,
} from '#telemetry';
import { ToolRegistry } from '#tools';
import { type ParleyConfig, ConfigError, type Environment } from '#config';
import { productVersion } from '../product-version.js';
import { readFrom } from './readings.js';

/** What listens to the service; null: nobody asked for it, and nothing of it is loaded. */
export interface Observability {
  readonly tracing: Tracing | null;
  readonly metrics: ServiceMetrics | null;
}

export const NOTHING_OBSERVED: Observability = Object.freeze({ tracing: null, metrics: null });

export async function openObservability(
  { traces, metrics }: Pick<ParleyConfig, 'traces' | 'metrics'>,
  env: Environment,
  log: Pick<Logger, 'warn'>,
): Promise<Observability> {
  const [tracing, counted] = await Promise.all([
    openTracing(traces, env, productVersion(), log),
    metrics.port === null ? null : openMetrics(),
  ]);
  return { tracing, metrics: counted };
}

/** `Telemetry` is null where nothing listens. */
export function telemetryProviders({ tracing, metrics }: Observability): Provider[] {
  if (!tracing && !metrics) return [{ provide: Telemetry, useValue: null }];
  return [
    {
      provide: Telemetry,
      useFactory: (tools: ToolRegistry, prompts: PromptRegistry) =>
        new ServiceTelemetry({
          tracing,
          metrics,
          names: {
            isTool: (name) => tools.get(name) !== undefined,
            isPrompt: (name) => prompts.get(name) !== undefined,
          },
        }),
      inject: [ToolRegistry, PromptRegistry],
    },
  ];
}

/** Serves what is counted from now on. @returns how to end it. @throws ConfigError when the address cannot be listened on */
export async function showMetrics(
  app: INestApplicationContext,
  { metrics }: Observability,
  { metrics: { port, host } }: Pick<ParleyConfig, 'metrics'>,
  log: Pick<Logger, 'log'>,
): Promise<() => Promise<void>> {
  if (!metrics || port === null) return () => Promise.resolve();
  readFrom(app, metrics);
  try {
    const listener = await MetricsListener.open(metrics, { port, host });
    log.log(`Metrics on http://${host.includes(':') ? `[${host}]` : host}:${listener.port}/metrics`);
    return () => listener.close();
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    throw new ConfigError('metrics', [
      { path: 'metrics.port', message: `cannot listen on ${host}:${port} (${code})` },
    ]);
  }
}

/** For log lines: what belongs to the call that writes them. */
export function fieldsOf({ tracing }: Observability): Readonly<Record<string, string>> {
  return tracing?.activeFields() ?? {};
}

import type { CallerTraces } from './tracing.js';

export type Environment = Readonly<Record<string, string | undefined>>;

export function switchedOff(env: Environment): boolean {
  return env['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true';
}

/** Whether the standard variables of OpenTelemetry say that spans go somewhere. */
export function environmentExports(env: Environment): boolean {
  if (switchedOff(env)) return false;
  const exporter = env['OTEL_TRACES_EXPORTER']?.trim();
  if (exporter) return exporter.split(',').some((name) => name.trim() === 'otlp');
  return Boolean(env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] || env['OTEL_EXPORTER_OTLP_ENDPOINT']);
}

interface Sampling {
  readonly ratio: number;
  readonly callers: CallerTraces;
}

/** `OTEL_TRACES_SAMPLER` and its argument over what is configured; names that are not standard change nothing. */
export function samplingOf(env: Environment, configured: Sampling): Sampling {
  const named = env['OTEL_TRACES_SAMPLER']?.trim().toLowerCase() ?? '';
  const [, parent, kind] = /^(parentbased_)?(always_on|always_off|traceidratio)$/.exec(named) ?? [];
  if (kind === undefined) return configured;
  const argument = Number(env['OTEL_TRACES_SAMPLER_ARG'] ?? 1);
  const share = argument >= 0 && argument <= 1 ? argument : 1;
  const ratio = kind === 'traceidratio' ? share : kind === 'always_on' ? 1 : 0;
  return { ratio, callers: parent === undefined ? configured.callers : 'follow' };
}

const BATCHES = {
  scheduledDelayMillis: 'OTEL_BSP_SCHEDULE_DELAY',
  exportTimeoutMillis: 'OTEL_BSP_EXPORT_TIMEOUT',
  maxQueueSize: 'OTEL_BSP_MAX_QUEUE_SIZE',
  maxExportBatchSize: 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
} as const;

/** How spans are collected before they are sent, where the environment says so. */
export function batchesOf(env: Environment): Partial<Record<keyof typeof BATCHES, number>> {
  const given = Object.entries(BATCHES).map(
    ([option, variable]) => [option, Number(env[variable] || 0)] as const,
  );
  return Object.fromEntries(given.filter(([, value]) => Number.isSafeInteger(value) && value > 0));
}

import { AsyncLocalStorage } from 'node:async_hooks';
import { readFileSync } from 'node:fs';
import type * as Api from '@opentelemetry/api';
import type { Context, ContextManager } from '@opentelemetry/api';
import type { Sampler, SamplingResult } from '@opentelemetry/sdk-trace';
import { cutText, createCheckedLookup, type ResolveHost } from '#core';
import { type CallerTraces, Tracing } from './tracing.js';

type Environment = Readonly<Record<string, string | undefined>>;

function isSwitchedOff(env: Environment): boolean {
  return env['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true';
}

/** Whether the standard variables of OpenTelemetry enable the export of spans. */
export function environmentExports(env: Environment): boolean {
  if (isSwitchedOff(env)) return false;
  const exporter = env['OTEL_TRACES_EXPORTER']?.trim();
  if (exporter) return exporter.split(',').some((name) => name.trim() === 'otlp');
  return Boolean(env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] || env['OTEL_EXPORTER_OTLP_ENDPOINT']);
}

interface Sampling {
  readonly ratio: number;
  readonly callers: CallerTraces;
}

/** `OTEL_TRACES_SAMPLER` and its argument override the configuration; unknown samplers are ignored. */
export function readSampling(env: Environment, configured: Sampling): Sampling {
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

function readBatches(env: Environment): Partial<Record<keyof typeof BATCHES, number>> {
  const given = Object.entries(BATCHES).map(
    ([option, variable]) => [option, Number(env[variable] || 0)] as const,
  );
  return Object.fromEntries(given.filter(([, value]) => Number.isSafeInteger(value) && value > 0));
}

/** `SamplingDecision` of the SDK, which is loaded only when traces are enabled. */
const NOT_RECORD = 0;
const RECORD_AND_SAMPLED = 2;

/**
 * Samples every request independently of its caller: neither the flag nor the trace id of a caller may hide calls
 * from the operator or flood the collector. Child spans follow their local parent.
 */
class OwnSampler implements Sampler {
  constructor(
    private readonly api: Pick<typeof Api, 'trace' | 'TraceFlags'>,
    private readonly ratio: number,
  ) {}

  shouldSample(context: Api.Context): SamplingResult {
    const parent = this.api.trace.getSpanContext(context);
    const kept =
      parent && parent.isRemote !== true
        ? (parent.traceFlags & this.api.TraceFlags.SAMPLED) !== 0
        : Math.random() < this.ratio;
    return { decision: kept ? RECORD_AND_SAMPLED : NOT_RECORD };
  }

  toString(): string {
    return `OwnSampler{${this.ratio}}`;
  }
}

/**
 * Keeps the active trace context across asynchronous work. Created only when traces are enabled, because tracking
 * every promise costs time.
 */
class CallContexts implements ContextManager {
  private readonly storage = new AsyncLocalStorage<Context>();

  constructor(private readonly root: Context) {}

  active(): Context {
    return this.storage.getStore() ?? this.root;
  }

  with<A extends unknown[], F extends (...args: A) => ReturnType<F>>(
    context: Context,
    fn: F,
    thisArg?: ThisParameterType<F>,
    ...args: A
  ): ReturnType<F> {
    return this.storage.run(context, () => fn.apply(thisArg, args));
  }

  bind<T>(context: Context, target: T): T {
    if (typeof target !== 'function') return target;
    const bindContext = (...args: unknown[]): unknown =>
      this.storage.run(context, () => target(...args) as unknown);
    return bindContext as T;
  }

  enable(): this {
    return this;
  }

  disable(): this {
    this.storage.disable();
    return this;
  }
}

/** Where `OTEL_SERVICE_NAME` says nothing. */
const SERVICE_NAME = 'parley';

export interface TraceOptions {
  /** OTLP endpoint over HTTP: `http://collector:4318/v1/traces`. Null: as the `OTEL_*` variables say, or none. */
  readonly endpoint: string | null;
  /** Request headers for the collector. */
  readonly headers: Readonly<Record<string, string>>;
  /** Share of the requests that are traced, 0 to 1. */
  readonly ratio: number;
  readonly callers: CallerTraces;
  /** Default: as the system resolves names. */
  readonly resolve?: ResolveHost;
}

interface TraceLog {
  warn(line: string): void;
}

const SCOPE = 'parley';

/** Packages to install for traces. */
const PACKAGES = [
  '@opentelemetry/api',
  '@opentelemetry/exporter-trace-otlp-http',
  '@opentelemetry/resources',
  '@opentelemetry/sdk-trace',
];

/** Milliseconds for exporting the remaining spans at shutdown. */
const SHUTDOWN_TIMEOUT = 3_000;

/** Whether the application has registered a tracer provider with any copy of `@opentelemetry/api`. */
function applicationTraces(): boolean {
  const registered = (globalThis as Record<symbol, unknown>)[Symbol.for('opentelemetry.js.api.1')];
  return typeof registered === 'object' && registered !== null && 'trace' in registered;
}

/**
 * Opens traces as configured, as the environment says, or with the application's tracer provider. Returns null when
 * none of them enables traces; the SDK is then not loaded.
 */
export async function openTracing(
  options: TraceOptions,
  env: Environment,
  version: string,
  log: TraceLog,
): Promise<Tracing | null> {
  const { callers } = options;
  if (isSwitchedOff(env)) return null;
  const api = async () => import('@opentelemetry/api');
  if (applicationTraces()) {
    const registered = await api();
    const tracer = registered.trace.getTracer(SCOPE, version);
    return new Tracing({ api: registered, tracer, callers, close: () => Promise.resolve() });
  }
  if (options.endpoint !== null) return startSdk(await api(), options, env, version, log);
  if (!environmentExports(env)) return null;
  try {
    return await startSdk(await api(), options, env, version, log);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    // The variables apply to every process of the machine, also to those without the packages.
    log.warn(
      `OTEL_* variables enable traces, but their packages are not installed: npm install ${PACKAGES.join(' ')}`,
    );
    return null;
  }
}

async function startSdk(
  api: typeof Api,
  { endpoint, headers, resolve, ...configured }: TraceOptions,
  env: Environment,
  version: string,
  log: TraceLog,
): Promise<Tracing> {
  const [sdk, { OTLPTraceExporter }, resources] = await Promise.all([
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
  ]);
  const exporter = new OTLPTraceExporter({
    ...(endpoint !== null && { url: endpoint }),
    ...(Object.keys(headers).length > 0 && { headers: { ...headers } }),
    // A collector's name must not lead to this machine; private networks are permitted.
    httpAgentOptions: {
      ...readCertificates(env),
      lookup: createCheckedLookup({ rule: 'elsewhere', resolve }),
    },
  });
  logErrors(api, log);
  const { ratio, callers } = readSampling(env, configured);
  const sampler =
    callers === 'follow'
      ? new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(ratio) })
      : new OwnSampler(api, ratio);
  const named = env['OTEL_SERVICE_NAME'] ? {} : { 'service.name': SERVICE_NAME };
  const provider = new sdk.TracerProvider({
    sampler,
    resource: resources
      .defaultResource()
      .merge(resources.resourceFromAttributes({ ...named, 'service.version': version }))
      .merge(resources.detectResources({ detectors: [resources.envDetector] })),
    // Queue and batches are bounded: a collector that is unreachable loses spans and has no other effect.
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter, ...readBatches(env) })],
    spanLimits: {
      attributeValueLengthLimit: 256,
      attributeCountLimit: 32,
      eventCountLimit: 64,
      linkCountLimit: 4,
    },
  });
  const contexts = new CallContexts(api.ROOT_CONTEXT);
  api.context.setGlobalContextManager(contexts);
  api.trace.setGlobalTracerProvider(provider);
  const close = async () => {
    api.trace.disable();
    api.context.disable();
    api.diag.disable();
    await within(SHUTDOWN_TIMEOUT, provider.shutdown());
  };
  return new Tracing({ api, tracer: provider.getTracer(SCOPE, version), callers, close });
}

/** TLS settings of the environment: these agent options replace those that the exporter reads itself. */
function readCertificates(env: Environment) {
  const readFileVariable = (name: string) => {
    const path =
      env[`OTEL_EXPORTER_OTLP_TRACES_${name}`]?.trim() || env[`OTEL_EXPORTER_OTLP_${name}`]?.trim();
    try {
      return path ? readFileSync(path) : undefined;
    } catch {
      // The exporter logs that the file cannot be read.
      return undefined;
    }
  };
  return {
    keepAlive: true,
    ca: readFileVariable('CERTIFICATE'),
    cert: readFileVariable('CLIENT_CERTIFICATE'),
    key: readFileVariable('CLIENT_KEY'),
  };
}

/** Logs repeated errors once, without the URL and headers of the collector. */
function logErrors({ diag, DiagLogLevel }: typeof Api, log: TraceLog): void {
  let logged = '';
  const warn = (line: string) => {
    const kind = cutText(line, 40);
    if (kind !== logged) log.warn(`[Traces] spans were lost: ${cutText(line, 200)}`);
    logged = kind;
  };
  const quiet = () => undefined;
  diag.setLogger(
    { error: warn, warn, info: quiet, debug: quiet, verbose: quiet },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}

async function within(milliseconds: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => (timer = setTimeout(resolve, milliseconds)));
  await Promise.race([
    work.then(
      () => undefined,
      () => undefined,
    ),
    timeout,
  ]);
  clearTimeout(timer);
}

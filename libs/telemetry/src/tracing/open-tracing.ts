import { readFileSync } from 'node:fs';
import type * as Api from '@opentelemetry/api';
import { checkedLookup, type ResolveHost } from '#agent';
import { CallContexts } from './call-contexts.js';
import {
  batchesOf,
  type Environment,
  environmentExports,
  samplingOf,
  switchedOff,
} from './otel-environment.js';
import { OwnSampler } from './own-sampler.js';
import { type CallerTraces, Tracing } from './tracing.js';

export interface TraceOptions {
  /** Where spans are sent, OTLP over HTTP: `http://collector:4318/v1/traces`. Null: where `OTEL_*` variables say, or nowhere. */
  readonly endpoint: string | null;
  /** Sent along. */
  readonly headers: Readonly<Record<string, string>>;
  /** Share of the requests that are traced, 0 to 1. */
  readonly ratio: number;
  readonly callers: CallerTraces;
  readonly serviceName: string;
  /** Default: as the system resolves names. */
  readonly resolve?: ResolveHost;
}

export interface TraceLog {
  warn(line: string): void;
}

const SCOPE = 'parley';

/** Installed where traces are wanted. */
const PACKAGES = [
  '@opentelemetry/api',
  '@opentelemetry/exporter-trace-otlp-http',
  '@opentelemetry/resources',
  '@opentelemetry/sdk-trace',
];

/** Milliseconds that the last spans have to leave before the process ends. */
const LAST_EXPORT = 3_000;

/** Where an application keeps what it registered with `@opentelemetry/api`, of whichever copy. */
function applicationTraces(): boolean {
  const registered = (globalThis as Record<symbol, unknown>)[Symbol.for('opentelemetry.js.api.1')];
  return typeof registered === 'object' && registered !== null && 'trace' in registered;
}

/**
 * Traces as configured, by the environment, or through what the surrounding application has registered; null where none of
 * them asks for any, and then nothing is loaded.
 */
export async function openTracing(
  options: TraceOptions,
  env: Environment,
  version: string,
  log: TraceLog,
): Promise<Tracing | null> {
  const { callers } = options;
  if (switchedOff(env)) return null;
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
    // The environment speaks to every process of its machine, also to those that nobody meant to trace.
    log.warn(`OTEL_* variables ask for traces, and there are none: npm install ${PACKAGES.join(' ')}`);
    return null;
  }
}

async function startSdk(
  api: typeof Api,
  { endpoint, headers, serviceName, resolve, ...configured }: TraceOptions,
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
    // The name of a collector does not lead to this machine; a private network is the operator's.
    httpAgentOptions: { ...certificatesOf(env), lookup: checkedLookup({ rule: 'elsewhere', resolve }) },
  });
  tellFaults(api, log);
  const { ratio, callers } = samplingOf(env, configured);
  const sampler =
    callers === 'follow'
      ? new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(ratio) })
      : new OwnSampler(api, ratio);
  const named = env['OTEL_SERVICE_NAME'] ? {} : { 'service.name': serviceName };
  const provider = new sdk.TracerProvider({
    sampler,
    resource: resources
      .defaultResource()
      .merge(resources.resourceFromAttributes({ ...named, 'service.version': version }))
      .merge(resources.detectResources({ detectors: [resources.envDetector] })),
    // Queue and batches are bounded; a collector that is away costs spans and nothing else.
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter, ...batchesOf(env) })],
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
    await within(LAST_EXPORT, provider.shutdown());
  };
  return new Tracing({ api, tracer: provider.getTracer(SCOPE, version), callers, close });
}

/** What the exporter reads of the environment for its own connections, which these options replace. */
function certificatesOf(env: Environment) {
  const fileOf = (name: string) => {
    const path =
      env[`OTEL_EXPORTER_OTLP_TRACES_${name}`]?.trim() || env[`OTEL_EXPORTER_OTLP_${name}`]?.trim();
    try {
      return path ? readFileSync(path) : undefined;
    } catch {
      // The exporter logs the file that it cannot read.
      return undefined;
    }
  };
  return {
    keepAlive: true,
    ca: fileOf('CERTIFICATE'),
    cert: fileOf('CLIENT_CERTIFICATE'),
    key: fileOf('CLIENT_KEY'),
  };
}

/** A collector that is away is told once until a line of another kind; its URL and headers are not. */
function tellFaults({ diag, DiagLogLevel }: typeof Api, log: TraceLog): void {
  let told = '';
  const tell = (line: string) => {
    const kind = line.slice(0, 40);
    if (kind !== told) log.warn(`[Traces] spans were lost: ${line.slice(0, 200)}`);
    told = kind;
  };
  const quiet = () => undefined;
  diag.setLogger(
    { error: tell, warn: tell, info: quiet, debug: quiet, verbose: quiet },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}

async function within(milliseconds: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<void>((resolve) => (timer = setTimeout(resolve, milliseconds)));
  await Promise.race([
    work.then(
      () => undefined,
      () => undefined,
    ),
    patience,
  ]);
  clearTimeout(timer);
}

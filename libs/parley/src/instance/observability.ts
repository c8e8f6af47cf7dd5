import type { INestApplicationContext, Logger } from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { AuditRecorder, SINK_STATES } from '#audit';
import { SharedState } from '#state';
import {
  type ParleyConfig,
  ConfigVersions,
  type Environment,
  toListeningError,
  processNumber,
} from '#config';
import { TaskQueue, TaskWorker } from '#tasks';
import { McpEdge } from '#streaming';
import { SubscriptionManager } from '#subscriptions';
import {
  channelTo,
  metricsOfAll,
  MetricsListener,
  type Observability,
  openMetrics,
  openTracing,
  type ServiceMetrics,
} from '#telemetry';
import { productVersion } from '../package-files.js';
import { Readiness } from './routes/readiness.js';

/** Loads only the telemetry that the configuration enables. */
export async function openObservability(
  { traces, metrics }: Pick<ParleyConfig, 'traces' | 'metrics'>,
  env: Environment,
  log: Pick<Logger, 'warn'>,
): Promise<Observability> {
  const [tracing, counted] = await Promise.all([
    openTracing(traces, env, productVersion(), log),
    metrics.port === null
      ? null
      : openMetrics({ process: processNumber(env), agentLabel: metrics.agentLabel }),
  ]);
  return { tracing, metrics: counted };
}

/** Serves the metrics. @returns a function that stops it. @throws ConfigError when the address cannot be listened on */
export async function showMetrics(
  app: INestApplicationContext,
  { metrics }: Observability,
  { metrics: { port, host } }: Pick<ParleyConfig, 'metrics'>,
  log: Pick<Logger, 'log'>,
  env: Environment,
): Promise<() => Promise<void>> {
  if (!metrics || port === null) return () => Promise.resolve();
  readFrom(app, metrics);
  try {
    const served = processNumber(env) === null ? metrics : metricsOfAll(metrics, channelTo(process));
    const listener = await MetricsListener.open(served, { port, host });
    log.log(`Metrics on http://${host.includes(':') ? `[${host}]` : host}:${listener.port}/metrics`);
    return () => listener.close();
  } catch (error) {
    throw toListeningError('metrics.port', { host, port }, error);
  }
}

/** A shared state that is away has no number: the series is absent until it is back. */
const countShared = (count: () => Promise<number>): Promise<number | null> => count().catch(() => null);

/** Sources of values that the service keeps anyway. */
function readFrom(app: INestApplicationContext, metrics: ServiceMetrics): void {
  const edge = app.get(McpEdge);
  const shared = app.get(SharedState);
  const subscriptions = app.get(SubscriptionManager);
  const worker = app.get(TaskWorker);
  const queue = app.get(TaskQueue);
  const readiness = app.get(Readiness);
  const versions = app.get(ConfigVersions);
  const recorder = app.get(AuditRecorder);
  metrics.read('parley_streamed_answers', () => edge.activeDispatcherCount);
  metrics.read('parley_open_streams', () => edge.activeListeningStreamCount);
  metrics.read('parley_abandoned_calls_total', () => edge.abandonedDispatcherCount);
  metrics.read('parley_sessions', () => countShared(() => shared.sessions.count()));
  metrics.read('parley_subscriptions', () => subscriptions.watches);
  metrics.read('parley_tasks_running', () => worker.active);
  metrics.read('parley_tasks_waiting', () => queue.countWaiting());
  metrics.read('parley_pending_approvals', () => countShared(() => shared.approvals.countPending()));
  metrics.read('parley_audit_sink_state', () =>
    [...recorder.states].flatMap(([sink, state]) =>
      SINK_STATES.map((each) => ({ labels: { sink, state: each }, value: each === state ? 1 : 0 })),
    ),
  );
  metrics.read('parley_policy_info', () => [
    { labels: { version: versions.current.policy.version }, value: 1 },
  ]);
  metrics.read('parley_configuration_version', () => versions.current.number);
  metrics.read('parley_configuration_refused', () => (versions.refused ? 1 : 0));
  metrics.read('parley_build_info', () => [{ labels: { version: productVersion() }, value: 1 }]);
  metrics.read('parley_ready', async () => ((await readiness.look()).ready ? 1 : 0));
  metrics.read('parley_dependency_up', async () =>
    Object.entries((await readiness.look()).dependencies).map(([dependency, state]) => ({
      labels: { dependency },
      value: state === 'up' ? 1 : 0,
    })),
  );
  app
    .get(EventEmitter2)
    .on('parse.agent.approval', ({ outcome }: { readonly outcome: string }) => metrics.approval(outcome));
}

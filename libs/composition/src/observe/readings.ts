import type { INestApplicationContext } from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { SharedState } from '#cluster';
import { TaskQueue, TaskWorker } from '#jobs';
import { McpEdge } from '#streaming';
import { SubscriptionManager } from '#subscriptions';
import type { ServiceMetrics } from '#telemetry';
import { Editions } from '../editions/editions.js';
import { Readiness } from '../http/readiness.js';
import { productVersion } from '../product-version.js';

/** Where the values are read that the service keeps anyway. */
export function readFrom(app: INestApplicationContext, metrics: ServiceMetrics): void {
  const edge = app.get(McpEdge);
  const shared = app.get(SharedState);
  const subscriptions = app.get(SubscriptionManager);
  const worker = app.get(TaskWorker);
  const queue = app.get(TaskQueue);
  const readiness = app.get(Readiness);
  const editions = app.get(Editions);
  metrics.read('parley_streamed_answers', () => edge.activeDispatcherCount);
  metrics.read('parley_open_streams', () => edge.activeListeningStreamCount);
  metrics.read('parley_abandoned_calls_total', () => edge.abandonedDispatcherCount);
  metrics.read('parley_sessions', () => shared.sessions.held);
  metrics.read('parley_subscriptions', () => subscriptions.watches);
  metrics.read('parley_tasks_running', () => worker.active);
  metrics.read('parley_tasks_waiting', () => queue.waiting());
  metrics.read('parley_approvals_waiting', () => shared.approvals.waiting());
  metrics.read('parley_policy_info', () => [
    { labels: { version: editions.current.policy.version }, value: 1 },
  ]);
  metrics.read('parley_configuration_edition', () => editions.current.number);
  metrics.read('parley_configuration_refused', () => (editions.refused ? 1 : 0));
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

import { randomUUID } from 'node:crypto';
import { type ServiceReport, ServiceStatus } from '#console';
import type { McpEdge } from '#streaming';
import type { LoadedConfig } from '../config/load-config.js';
import type { HealthController } from '../http/health.controller.js';
import { productVersion } from '../mcp.js';

export interface StatusParts {
  readonly current: () => LoadedConfig;
  readonly lastRefused: () => ServiceReport['policy']['last_refused'];
  readonly health: Pick<HealthController, 'dependencies'>;
  readonly edge: Pick<McpEdge, 'activeDispatcherCount' | 'activeListeningStreamCount'>;
  readonly consoleStreams: { readonly size: number };
  readonly reach: 'process' | 'replicas';
}

/** How this process is. */
export class ReplicaStatus extends ServiceStatus {
  private readonly version = productVersion();
  private readonly replica = randomUUID().slice(0, 8);
  private readonly startedAt = new Date(Date.now() - process.uptime() * 1000).toISOString();

  constructor(private readonly parts: StatusParts) {
    super();
  }

  async read(): Promise<ServiceReport> {
    const { current, lastRefused, health, edge, consoleStreams, reach } = this.parts;
    const { policy, agents } = current();
    return {
      version: this.version,
      node: process.version,
      started_at: this.startedAt,
      replica: this.replica,
      shared_state: reach,
      memory_bytes: process.memoryUsage.rss(),
      policy: {
        version: policy.version,
        classes: policy.classes.size,
        agents: agents.size,
        last_refused: lastRefused(),
      },
      dependencies: await health.dependencies(),
      streams: {
        calls: edge.activeDispatcherCount,
        listening: edge.activeListeningStreamCount,
        console: consoleStreams.size,
      },
    };
  }
}

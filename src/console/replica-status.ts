import { randomUUID } from 'node:crypto';
import { type ServiceReport, ServiceStatus } from '#console';
import type { McpEdge } from '#streaming';
import type { ConfigVersions } from '#config';
import { productVersion, type Readiness } from '#instance';

export interface StatusParts {
  readonly versions: Pick<ConfigVersions, 'current' | 'refused'>;
  readonly readiness: Pick<Readiness, 'look'>;
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
    const { versions, readiness, edge, consoleStreams, reach } = this.parts;
    const { policy, agents, number, loadedAt } = versions.current;
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
        edition: number,
        loaded_at: loadedAt.toISOString(),
        last_refused: refusedOf(versions),
      },
      dependencies: (await readiness.look()).dependencies,
      streams: {
        calls: edge.activeDispatcherCount,
        listening: edge.activeListeningStreamCount,
        console: consoleStreams.size,
      },
    };
  }
}

function refusedOf({ refused }: Pick<ConfigVersions, 'refused'>): ServiceReport['policy']['last_refused'] {
  if (!refused) return null;
  return {
    at: refused.at.toISOString(),
    faults: refused.faults.slice(0, 20).map(({ path, message }) => `${path}: ${message}`),
  };
}

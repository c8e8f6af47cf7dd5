import type { SinkState } from '#audit';
import {
  type AuthRuleConfig,
  type ConfigIssue,
  describeIssue,
  type EndingKey,
  findEndingKeys,
} from '#config';
import type { AgentDefinition } from '#core';
import type { Policy } from '#policy';
import type { SuspendedAgents, Suspension } from '#state';
import type { McpEdge } from '#streaming';

/** Status of a replica for operators. */
export interface ServiceReport {
  readonly version: string;
  readonly node: string;
  /** ISO 8601. */
  readonly started_at: string;
  readonly replica: string;
  /** `replicas`: the state is shared by several processes. */
  readonly shared_state: 'process' | 'replicas';
  readonly memory_bytes: number;
  readonly policy: {
    readonly version: string;
    readonly classes: number;
    readonly agents: number;
    /** Number of the configuration version: 1 at the start, incremented by each reload. */
    readonly number: number;
    readonly loaded_at: string;
    /** Whether it lets an agent do more than the version before it; null: there was none, or it is not compared yet. */
    readonly widened: boolean | null;
    /** The latest configuration file that was refused, and why; null when there was none. */
    readonly last_refused: { readonly at: string; readonly faults: readonly string[] } | null;
  };
  /** Configured external services; empty when there are none. */
  readonly dependencies: Readonly<Record<string, 'up' | 'down'>>;
  /** When each of them that is down was first found down. ISO 8601 */
  readonly down_since: Readonly<Record<string, string>>;
  /** Audit sinks by name; empty when there are none. */
  readonly sinks: Readonly<Record<string, SinkState>>;
  /** Keys that ended, or end within 14 days. */
  readonly keys: readonly EndingKey[];
  /** Agents that operators suspended, as this replica knows it. */
  readonly suspended: readonly Suspension[];
  /** It finishes running calls and accepts no new ones. */
  readonly draining: boolean;
  readonly streams: { readonly calls: number; readonly listening: number; readonly console: number };
}

/** Reads the status of this replica. Never fails for a dependency that is down. */
export abstract class ServiceStatus {
  abstract read(): Promise<ServiceReport>;
}

/** The served version of the configuration, and the last one that was refused. */
interface ServedVersions {
  readonly current: {
    readonly config: { readonly auth: readonly AuthRuleConfig[] };
    readonly policy: Pick<Policy, 'version' | 'classes'>;
    readonly agents: ReadonlyMap<string, AgentDefinition>;
    readonly number: number;
    readonly loadedAt: Date;
  };
  readonly refused: {
    readonly at: Date;
    readonly issues: readonly ConfigIssue[];
  } | null;
}

export interface StatusDependencies {
  /** The version of the product. */
  readonly product: string;
  readonly versions: ServedVersions;
  readonly readiness: {
    look(): Promise<
      Pick<ServiceReport, 'dependencies'> & { readonly downSince: ServiceReport['down_since'] }
    >;
  };
  readonly sinks: { readonly states: ReadonlyMap<string, SinkState> };
  readonly suspended: Pick<SuspendedAgents, 'list'>;
  /** Whether the served version widens access; null: not known. */
  readonly widened: () => Promise<boolean | null>;
  readonly edge: Pick<McpEdge, 'activeDispatcherCount' | 'activeListeningStreamCount' | 'isAccepting'>;
  readonly consoleStreams: { readonly size: number };
  readonly reach: 'process' | 'replicas';
  readonly replica: string;
}

/** The status of this process. */
export class ReplicaStatus extends ServiceStatus {
  private readonly startedAt = new Date(Date.now() - process.uptime() * 1000).toISOString();

  constructor(private readonly options: StatusDependencies) {
    super();
  }

  async read(): Promise<ServiceReport> {
    const { product, versions, readiness, sinks, suspended, widened, edge, consoleStreams, reach, replica } =
      this.options;
    const [{ dependencies, downSince }, isWidened] = await Promise.all([readiness.look(), widened()]);
    const { config, policy, agents, number, loadedAt } = versions.current;
    return {
      version: product,
      node: process.version,
      started_at: this.startedAt,
      replica,
      shared_state: reach,
      memory_bytes: process.memoryUsage.rss(),
      policy: {
        version: policy.version,
        classes: policy.classes.size,
        agents: agents.size,
        number,
        loaded_at: loadedAt.toISOString(),
        widened: isWidened,
        last_refused: refusedOf(versions),
      },
      dependencies,
      down_since: downSince,
      sinks: Object.fromEntries(sinks.states),
      keys: findEndingKeys(config.auth),
      suspended: suspended.list(),
      draining: !edge.isAccepting,
      streams: {
        calls: edge.activeDispatcherCount,
        listening: edge.activeListeningStreamCount,
        console: consoleStreams.size,
      },
    };
  }
}

function refusedOf({ refused }: Pick<ServedVersions, 'refused'>): ServiceReport['policy']['last_refused'] {
  if (!refused) return null;
  return {
    at: refused.at.toISOString(),
    faults: refused.issues.slice(0, 20).map(describeIssue),
  };
}

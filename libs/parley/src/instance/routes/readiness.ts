import { Inject, Injectable } from '@nestjs/common';
import { AuditRecorder } from '#audit';
import { ConfigVersions } from '#config';
import { SharedState } from '#state';
import { MongoConnection } from '#data-mongo';
import { ParseConnection } from '#data-parse';
import { TaskQueue } from '#tasks';
import { McpEdge } from '#streaming';

/** Milliseconds a dependency has to answer each of two probes: one that is silent is down after twice that. */
const PROBE_TIMEOUT = 1_000;

type Dependencies = Readonly<Record<string, 'up' | 'down'>>;

export interface ReadyState {
  /** Whether the service accepts calls. */
  readonly ready: boolean;
  /** `draining`: it finishes running calls and accepts no new ones. */
  readonly status: 'ready' | 'unavailable' | 'draining';
  readonly dependencies: Dependencies;
  /** When those that are down were first found down. ISO 8601 */
  readonly downSince: Readonly<Record<string, string>>;
}

/** A dependency that can be probed. */
interface Probed {
  /** Rejects when the dependency is down. */
  ping(timeoutMs: number): Promise<void>;
}

/**
 * Readiness of the service by its dependencies. Dependencies that are not configured are left out; a database that is not
 * required is named and does not decide.
 */
@Injectable()
export class Readiness {
  /** Concurrent requests share one probe of each dependency. */
  private looking: Promise<Dependencies> | null = null;
  private downSince: Readonly<Record<string, string>> = {};

  constructor(
    @Inject(MongoConnection) private readonly mongo: MongoConnection | null,
    @Inject(ParseConnection) private readonly parse: ParseConnection | null,
    @Inject(SharedState) private readonly shared: SharedState,
    @Inject(TaskQueue) private readonly queue: TaskQueue,
    @Inject(McpEdge) private readonly edge: McpEdge,
    @Inject(AuditRecorder) private readonly audit: AuditRecorder,
    @Inject(ConfigVersions) private readonly versions: Pick<ConfigVersions, 'current'>,
  ) {}

  async look(): Promise<ReadyState> {
    this.looking ??= this.probeAll().finally(() => (this.looking = null));
    const dependencies = await this.looking;
    const { furtherDatabases } = this.versions.current.config;
    const optional = new Set(
      Object.keys(furtherDatabases)
        .filter((label) => furtherDatabases[label]?.required === false)
        .map((label) => `mongodb.${label}`),
    );
    const up = Object.entries(dependencies).every(([name, state]) => state === 'up' || optional.has(name));
    const draining = !this.edge.isAccepting;
    return {
      ready: up && !draining,
      status: draining ? 'draining' : up ? 'ready' : 'unavailable',
      dependencies,
      downSince: this.downSince,
    };
  }

  private auditIsUp(): Promise<boolean> {
    return Promise.resolve(![...this.audit.states.values()].includes('down'));
  }

  private async probeAll(): Promise<Dependencies> {
    // The memory of this process is not a dependency.
    const replicas = this.shared.reach === 'replicas';
    const probed = await Promise.all([
      probe('mongodb', this.mongo),
      ...[...(this.mongo?.further ?? [])].map(([label, one]) => probe(`mongodb.${label}`, one)),
      probe('parse', this.parse),
      probe('redis', replicas ? yesOrNo(() => this.shared.isUp()) : null),
      probe('queue', replicas ? yesOrNo(() => this.queue.isUp()) : null),
      // Without audit no call runs.
      probe('audit', this.audit.states.size > 0 ? yesOrNo(() => this.auditIsUp()) : null),
    ]);
    const found = probed.flat();
    const now = new Date().toISOString();
    const down = found.filter(([, state]) => state === 'down');
    this.downSince = Object.fromEntries(down.map(([name]) => [name, this.downSince[name] ?? now]));
    return Object.fromEntries(found);
  }
}

/** A dependency that does not answer in time is down. */
function yesOrNo(check: () => Promise<boolean>): Probed {
  return {
    ping: async (timeoutMs) => {
      let timer: NodeJS.Timeout | undefined;
      const silence = new Promise<boolean>((resolve) => (timer = setTimeout(resolve, timeoutMs, false)));
      const up = await Promise.race([check(), silence]).finally(() => clearTimeout(timer));
      if (!up) throw new Error('it does not answer');
    },
  };
}

/**
 * Down is what failed twice in a row. A single probe fails as well on a connection that an election has closed, and when this
 * process itself was busy for as long as the probe waits.
 */
async function probe(name: string, connection: Probed | null): Promise<[string, 'up' | 'down'][]> {
  if (!connection) return [];
  const answers = () =>
    connection.ping(PROBE_TIMEOUT).then(
      () => true,
      () => false,
    );
  return [[name, (await answers()) || (await answers()) ? 'up' : 'down']];
}

import { Inject, Injectable } from '@nestjs/common';
import { AuditRecorder } from '#audit';
import { SharedState } from '#state';
import { MongoConnection } from '#data-mongo';
import { ParseConnection } from '#data-parse';
import { TaskQueue } from '#tasks';
import { McpEdge } from '#streaming';

/** Milliseconds a dependency has to answer a readiness probe. */
const PROBE_TIMEOUT = 1_000;

type Dependencies = Readonly<Record<string, 'up' | 'down'>>;

export interface ReadyState {
  /** Whether the service accepts calls. */
  readonly ready: boolean;
  /** `draining`: it finishes running calls and accepts no new ones. */
  readonly status: 'ready' | 'unavailable' | 'draining';
  readonly dependencies: Dependencies;
}

/** A dependency that can be probed. */
interface Probed {
  /** Rejects when the dependency is down. */
  ping(timeoutMs: number): Promise<void>;
}

/** Readiness of the service by its dependencies. Dependencies that are not configured are left out. */
@Injectable()
export class Readiness {
  /** Concurrent requests share one probe of each dependency. */
  private looking: Promise<Dependencies> | null = null;

  constructor(
    @Inject(MongoConnection) private readonly mongo: MongoConnection | null,
    @Inject(ParseConnection) private readonly parse: ParseConnection | null,
    @Inject(SharedState) private readonly shared: SharedState,
    @Inject(TaskQueue) private readonly queue: TaskQueue,
    @Inject(McpEdge) private readonly edge: McpEdge,
    @Inject(AuditRecorder) private readonly audit: AuditRecorder,
  ) {}

  async look(): Promise<ReadyState> {
    this.looking ??= this.probeAll().finally(() => (this.looking = null));
    const dependencies = await this.looking;
    const up = Object.values(dependencies).every((state) => state === 'up');
    const draining = !this.edge.isAccepting;
    return {
      ready: up && !draining,
      status: draining ? 'draining' : up ? 'ready' : 'unavailable',
      dependencies,
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
      probe('parse', this.parse),
      probe('redis', replicas ? yesOrNo(() => this.shared.isUp()) : null),
      probe('queue', replicas ? yesOrNo(() => this.queue.isUp()) : null),
      // Without audit no call runs.
      probe('audit', this.audit.states.size > 0 ? yesOrNo(() => this.auditIsUp()) : null),
    ]);
    return Object.fromEntries(probed.flat());
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

async function probe(name: string, connection: Probed | null): Promise<[string, 'up' | 'down'][]> {
  if (!connection) return [];
  const state = await connection.ping(PROBE_TIMEOUT).then(
    () => 'up' as const,
    () => 'down' as const,
  );
  return [[name, state]];
}

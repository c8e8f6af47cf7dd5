import { Controller, Get, HttpCode, Inject, Res } from '@nestjs/common';
import type { Response } from 'express';
import { AuditBook } from '#audit';
import { SharedState } from '#cluster';
import { MongoConnection } from '#data-mongo';
import { ParseConnection } from '#data-parse';

/** Milliseconds a dependency has to answer a readiness probe. */
const PROBE_TIMEOUT = 1_000;

/** Liveness and readiness, without credentials and without details. */
@Controller()
export class HealthController {
  /** Requests at the same time share one look: however many ask, no dependency is asked more often for it. */
  private looking: Promise<Dependencies> | null = null;

  constructor(
    @Inject(MongoConnection) private readonly mongo: MongoConnection | null,
    @Inject(ParseConnection) private readonly parse: ParseConnection | null,
    @Inject(SharedState) private readonly shared: SharedState,
    @Inject(AuditBook) private readonly audit: AuditBook,
  ) {}

  @Get('health')
  @HttpCode(200)
  health() {
    return { status: 'ok', mcp_enabled: true };
  }

  @Get('ready')
  async ready(@Res() response: Response): Promise<void> {
    const dependencies = await this.dependencies();
    const ready = Object.values(dependencies).every((state) => state === 'up');
    response.status(ready ? 200 : 503).json({ status: ready ? 'ready' : 'unavailable', dependencies });
  }

  /** Of what is configured. Never rejects. */
  dependencies(): Promise<Dependencies> {
    this.looking ??= this.look().finally(() => (this.looking = null));
    return this.looking;
  }

  private async look(): Promise<Dependencies> {
    const probed = await Promise.all([
      probe('mongodb', this.mongo),
      probe('parse', this.parse),
      // Memory of this process is no dependency.
      probe('redis', this.shared.reach === 'replicas' ? sharedProbe(this.shared) : null),
      // Without it no call runs.
      probe('audit', this.audit.states.size > 0 ? auditProbe(this.audit) : null),
    ]);
    return Object.fromEntries(probed.flat());
  }
}

type Dependencies = Readonly<Record<string, 'up' | 'down'>>;

/** What can be asked whether it answers. */
interface Probed {
  /** Rejects when it does not. */
  ping(timeoutMs: number): Promise<void>;
}

function sharedProbe(shared: SharedState): Probed {
  return {
    ping: async () => {
      if (!(await shared.isUp())) throw new Error('shared state is down');
    },
  };
}

function auditProbe({ states }: AuditBook): Probed {
  const isDown = [...states.values()].includes('down');
  return { ping: () => (isDown ? Promise.reject(new Error('audit is down')) : Promise.resolve()) };
}

/** Nothing is told of what is not configured. */
async function probe(name: string, connection: Probed | null): Promise<[string, 'up' | 'down'][]> {
  if (!connection) return [];
  const state = await connection.ping(PROBE_TIMEOUT).then(
    () => 'up' as const,
    () => 'down' as const,
  );
  return [[name, state]];
}

import type { MongoConnection } from '../connection/mongo-connection.js';

/** Milliseconds after which an answer is asked for anew: a server may become a replica set. */
const BELIEVED = 30_000;

/** Milliseconds that an answer may take. */
const PATIENCE = 2_000;

/** Whether the server has change streams: replica sets and sharded clusters do, a server alone does not. */
export class ChangeStreamSupport {
  private supported = false;
  private asked = -Infinity;
  private asking: Promise<void> | null = null;

  constructor(private readonly connection: MongoConnection) {}

  /** The last answer; none counts as no. Asks again in the background when it is old. */
  get known(): boolean {
    if (performance.now() - this.asked > BELIEVED) void this.probe();
    return this.supported;
  }

  /** Never rejects: a server that cannot be asked leaves the last answer. */
  probe(): Promise<void> {
    this.asking ??= this.ask().finally(() => (this.asking = null));
    return this.asking;
  }

  private async ask(): Promise<void> {
    this.asked = performance.now();
    try {
      const { db } = this.connection;
      const hello = await db.command({ hello: 1 }, { signal: AbortSignal.timeout(PATIENCE) });
      this.supported = typeof hello['setName'] === 'string' || hello['msg'] === 'isdbgrid';
    } catch {
      // Asked again at the next occasion.
      this.asked = -Infinity;
    }
  }
}

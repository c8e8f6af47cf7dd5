import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { type Environment, type ParleyConfig, PROCESS_VARIABLE, processCount } from '#config';
import { EMBEDDED_URI, type LoadedService, openDatabase, type OpenDatabase } from '#parley/instance';
import { channelTo, gatherMetrics } from '#telemetry';
import { openLogger } from '../logging/service-logger.js';
import type { RunningService } from '../running-service.js';
import { isReport, type Order } from './one-of-several.js';

/** Milliseconds before a process is started again: doubled with each end, from the first to the last. */
const FIRST_DELAY = 100;
const LAST_DELAY = 10_000;
/** Milliseconds after which an end counts as the first one again. */
const SETTLED_AFTER = 60_000;
/** Milliseconds that a process may take beyond `server.drainTimeout`. */
const MAX_CLOSING_TIME = 20_000;

/** One of the processes that serve, and those that take its place. */
interface Place {
  readonly number: number;
  worker: Worker;
  startedAt: number;
  delay: number;
}

/**
 * The first process of a service with `server.processes`. It serves nothing and holds no state: it starts the others, which share
 * the port, and starts each again that ends. Only an embedded database lives here.
 */
class FirstProcess {
  private readonly places: Place[] = [];
  private readonly log = new Logger('Parley');
  private closing = false;
  /** How often the processes were told to reload. */
  private reloads = 0;

  constructor(
    private readonly count: number,
    private readonly drainTimeout: number,
    private readonly variables: Readonly<Record<string, string>>,
  ) {}

  /** @returns the URL of the MCP endpoint, once all listen @throws FailedStart with what the one that failed said */
  async start(): Promise<string> {
    const started = Array.from({ length: this.count }, (_, index) => {
      const number = index + 1;
      const place = { number, worker: this.fork(number), startedAt: performance.now(), delay: FIRST_DELAY };
      this.places.push(place);
      return place;
    });
    const urls = await Promise.all(started.map(({ worker }) => waitForListening(worker)));
    for (const place of started) {
      this.reportServing(place);
      this.watch(place);
    }
    return urls[0] as string;
  }

  /** Every process reads the configuration again. */
  reload(): void {
    this.reloads += 1;
    this.order({ parley: 'reload' });
  }

  /** Every process drains and ends; one that takes too long is ended. */
  async close(): Promise<void> {
    this.closing = true;
    const running = this.listRunning();
    const ends = running.map(async (worker) => {
      const ended = once(worker, 'exit');
      const late = pause(this.drainTimeout * 1000 + MAX_CLOSING_TIME, null, { ref: false });
      if ((await Promise.race([ended, late])) === null) this.kill(worker);
      await ended;
    });
    this.order({ parley: 'close' });
    await Promise.all(ends);
  }

  /** Ends every process at once. */
  abandon(): void {
    this.closing = true;
    for (const worker of this.listRunning()) this.kill(worker);
  }

  private fork(number: number): Worker {
    const { reloads } = this;
    const worker = cluster.fork({ ...this.variables, [PROCESS_VARIABLE]: String(number) });
    // One that has just ended cannot be written to; its end is dealt with elsewhere.
    worker.on('error', () => undefined);
    // An order is lost on one that does not listen yet, and it may have read the configuration before.
    worker.on('message', (message: unknown) => {
      if (!isReport(message) || message.parley !== 'listening') return;
      if (this.closing) worker.send({ parley: 'close' } satisfies Order);
      else if (this.reloads > reloads) worker.send({ parley: 'reload' } satisfies Order);
    });
    gatherMetrics(channelTo(worker), () => this.listRunning().map(channelTo));
    return worker;
  }

  private watch(place: Place): void {
    const handleEnd = (code: number | null, signal: string | null) => {
      if (this.closing) return;
      const { number, worker, startedAt } = place;
      if (performance.now() - startedAt > SETTLED_AFTER) place.delay = FIRST_DELAY;
      const { delay } = place;
      place.delay = Math.min(delay * 2, LAST_DELAY);
      const how = signal ?? `code ${code}`;
      this.log.warn(
        `process ${number} (pid ${worker.process.pid}) ended with ${how}; starts again in ${delay} ms`,
      );
      setTimeout(() => void this.restart(place), delay);
    };
    const { worker } = place;
    if (worker.isDead()) handleEnd(worker.process.exitCode, worker.process.signalCode);
    else worker.once('exit', handleEnd);
  }

  private async restart(place: Place): Promise<void> {
    if (this.closing) return;
    place.worker = this.fork(place.number);
    place.startedAt = performance.now();
    const came = waitForListening(place.worker);
    this.watch(place);
    try {
      await came;
      if (!this.closing) this.reportServing(place);
    } catch (error) {
      if (!this.closing) this.log.error(`process ${place.number} cannot start: ${(error as Error).message}`);
    }
  }

  private reportServing({ number, worker }: Place): void {
    this.log.log(`process ${number} (pid ${worker.process.pid}) serves`);
  }

  private listRunning(): Worker[] {
    return this.places.map(({ worker }) => worker).filter((worker) => worker.isConnected());
  }

  private order(order: Order): void {
    for (const worker of this.listRunning()) worker.send(order);
  }

  private kill(worker: Worker): void {
    worker.process.kill('SIGKILL');
  }
}

/** A process could not start; its message is what the operator has to read. */
export class FailedStart extends Error {
  override readonly name = 'FailedStart';

  constructor(message: string) {
    super(message);
    // Where it was read says nothing about why it failed.
    this.stack = message;
  }
}

/** The URL that a process reports. @throws FailedStart when it ends instead */
async function waitForListening(worker: Worker): Promise<string> {
  return new Promise<string>((resolve, reject) => {
    worker.on('message', (message: unknown) => {
      if (!isReport(message)) return;
      if (message.parley === 'listening') resolve(message.url);
      else reject(new FailedStart(message.text));
    });
    worker.once('exit', (code, signal) =>
      reject(new FailedStart(`a process ended with ${signal ?? `code ${code}`}`)),
    );
  });
}

/**
 * Starts the processes that serve, and returns once all listen.
 * @throws FailedStart, ConfigError
 */
export async function serveFromSeveral(
  { config }: Pick<LoadedService, 'config'>,
  env: Environment,
): Promise<RunningService> {
  Logger.overrideLogger(await openLogger({ config, level: 'info' }));
  const database = await openEmbedded(config);
  const first = new FirstProcess(processCount(config.server), config.server.drainTimeout, {
    ...readVariables(env),
    // All share the one database; a file is not read for it again.
    ...(database?.uri && { MONGODB_URI: database.uri, [EMBEDDED_URI]: database.uri }),
  });
  try {
    const url = await first.start();
    return {
      url,
      reload: async () => first.reload(),
      close: async () => {
        await first.close();
        await database?.close();
      },
    };
  } catch (error) {
    first.abandon();
    await database?.close();
    throw error;
  }
}

/** The embedded database; any other is opened by each process itself. */
async function openEmbedded({ database }: Pick<ParleyConfig, 'database'>): Promise<OpenDatabase | null> {
  return database.uri === 'embedded' ? openDatabase({ database, furtherDatabases: {} }) : null;
}

function readVariables(env: Environment): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

import { hash } from 'node:crypto';
import { type ChainableCommander, Cluster, type Redis, type RedisOptions } from 'ioredis';
import { type BusMessage, SharedStateUnavailable } from '../ports/stores.js';
import { MissingDatabase, type SharedStateLog } from '../ports/shared-state.js';
import type { RedisSettings } from '#core';
import { createRedisClient, createSubscriber, type RedisClient } from './redis-client.js';

/** A Lua script: several commands that run atomically, in one round trip. */
export class RedisScript {
  private readonly digest: string;

  constructor(private readonly lua: string) {
    this.digest = hash('sha1', lua, 'hex');
  }

  /** Adds it to a pipeline, whole: in a pipeline nobody can send it again where Redis does not know its digest. */
  addTo(
    pipeline: ChainableCommander,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): ChainableCommander {
    return pipeline.eval(this.lua, keys.length, ...keys, ...args);
  }

  /** Redis identifies a script by its digest after the first call; after a restart the script is sent again. */
  async run(
    redis: RedisClient,
    keys: readonly string[],
    args: readonly (string | number)[] = [],
  ): Promise<unknown> {
    try {
      return await redis.evalsha(this.digest, keys.length, ...keys, ...args);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return redis.eval(this.lua, keys.length, ...keys, ...args);
    }
  }
}

/** A message by the node of a key: nodes that took turns would deliver in another order. */
const PUBLISH = new RedisScript(`return redis.call('PUBLISH', KEYS[1], ARGV[1])`);

/** Any client may have written the data in Redis: only a JSON object is accepted. */
export function parseStoredObject(text: unknown): BusMessage | undefined {
  if (typeof text !== 'string') return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === 'object' && !Array.isArray(value)
      ? (value as BusMessage)
      : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Milliseconds in which Redis must answer. Then the connection is treated as lost, so that the next command fails at once.
 */
const ANSWER_TIMEOUT = 400;
/** Milliseconds in which replicas must have a record. */
const REPLICATION_TIMEOUT = 250;
/** Milliseconds in which Redis must answer where others may wait for replicas before. */
const WAITING_TIMEOUT = 1_000;
const LONGEST_RECONNECT_PAUSE = 1_000;
const MOST_LOST_NODES = 1_000;

/** Milliseconds after a check that failed until the next one. */
const RECHECK_PAUSE = 1_000;
const NOT_ADMITTED = 'it is not known yet whose keys these are';

/** What a check of a connection may use of it. */
export type CheckedRedis = Pick<RedisConnection, 'send' | 'key'>;

const OPTIONS: RedisOptions = {
  lazyConnect: true,
  protocol: 2,
  disableClientInfo: true,
  // A command is sent now or fails now, and nothing is sent twice: a refused caller must not be counted later.
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  autoResubscribe: false,
  connectTimeout: 1_000,
  // The timeout of the handshake; `send` has a shorter one.
  commandTimeout: 1_000,
  disconnectTimeout: 1,
  keepAlive: 10_000,
  retryStrategy: (attempt) => Math.min(25 * 2 ** Math.min(attempt, 6), LONGEST_RECONNECT_PAUSE),
  // After a failover this server is a replica: reconnecting finds the new primary.
  reconnectOnError: (error) => error.message.startsWith('READONLY'),
};

/** Only the message of a driver's error: the error itself contains the arguments of the command, which must not be logged. */
function unavailable(error: unknown): SharedStateUnavailable {
  return new SharedStateUnavailable(new Error(error instanceof Error ? error.message : 'unknown failure'));
}

/** Owner of one connection to Redis, or to a cluster. It never queues, and reconnects by itself without a limit. */
export class RedisConnection {
  private readonly redis: RedisClient;
  private readonly prefix: string;
  private readonly replicas: number;
  /** Redis serves nothing else on a connection that waits for replicas: it has one of its own, if any are waited for. */
  private readonly replicated: RedisConnection | undefined;
  private away = false;
  private ended = false;
  /** What has to pass before anything is sent over a new connection. */
  private admission: ((redis: CheckedRedis) => Promise<void>) | undefined;
  private isAdmitted = true;
  /** A check that began before a loss says nothing of the connection after it. */
  private losses = 0;
  /** Undefined when it subscribes to no channel. */
  private isSubscribed: boolean | undefined;
  private whenUsable: (() => void) | undefined;
  private readonly returnListeners: (() => void)[] = [];
  /** Nodes of the cluster that failed and did not answer since. */
  private readonly lostNodes = new Set<string>();
  private reason = 'no answer';
  private missing: MissingDatabase | undefined;

  constructor(
    settings: RedisSettings,
    private readonly role: 'commands' | 'replicated commands' | 'subscriptions',
    private readonly log: SharedStateLog,
    private readonly timeout = ANSWER_TIMEOUT,
  ) {
    this.prefix = settings.prefix ?? 'parley';
    this.replicas = settings.waitForReplicas ?? 0;
    if (role === 'commands' && this.replicas > 0) {
      this.replicated = new RedisConnection(settings, 'replicated commands', log, WAITING_TIMEOUT);
      this.replicated.redis.on('close', () => this.distrust());
      this.replicated.redis.on('ready', () => void this.whenReady());
    }
    const options = { ...OPTIONS, connectionName: `parley-${role.replace(' ', '-')}` };
    this.redis =
      role === 'subscriptions' ? createSubscriber(settings, options) : createRedisClient(settings, options);
    this.redis.on('error', (error: Error) => {
      if (error instanceof MissingDatabase) this.refuseDatabase(error);
      this.logLoss(error.message);
    });
    this.redis.on('close', () => {
      this.distrust();
      this.logLoss('connection closed');
    });
    this.redis.on('ready', () => void this.whenReady());
    if (this.redis instanceof Cluster) this.watchNodes(this.redis);
  }

  /** Whether it can be used now; a connection with a channel must be subscribed to it. */
  get isUsable(): boolean {
    return (
      this.redis.status === 'ready' &&
      this.isAdmitted &&
      (this.isSubscribed ?? true) &&
      (this.replicated?.isUsable ?? true)
    );
  }

  /**
   * Has `check` pass before anything else is sent, and again after every outage: another Redis may answer then. Called once, before it is
   * opened. An error that is no `SharedStateUnavailable` leaves it unusable.
   */
  checkFirst(check: (redis: CheckedRedis) => Promise<void>): void {
    this.admission = check;
    this.isAdmitted = false;
  }

  /** Why it could not be used when it last could not. */
  get lossReason(): string {
    return this.reason;
  }

  /** Why the server did not give it its database; undefined where it did, and before it was asked. */
  get missingDatabase(): MissingDatabase | undefined {
    return this.missing;
  }

  /** The servers that take writes. */
  get primaries(): readonly Redis[] {
    return this.redis instanceof Cluster ? this.redis.nodes('master') : [this.redis];
  }

  /**
   * Starts to connect and waits at most `timeout` milliseconds; attempts at an unavailable Redis continue without a limit.
   */
  async open(timeout: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const settled = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, timeout);
      this.whenUsable = resolve;
    });
    this.redis.connect().catch(() => undefined);
    await Promise.all([settled, this.replicated?.open(timeout)]);
    clearTimeout(timer);
  }

  /**
   * The Redis key of an entry. Its name is hashed: short and harmless whatever the caller chose. The braces keep the keys of
   * one entry on one node of a cluster.
   */
  key(kind: string, name: string, part?: string): string {
    const key = `${this.prefix}:{${kind}:${hash('sha256', name, 'base64url')}}`;
    return part === undefined ? key : `${key}:${part}`;
  }

  /** The name of a channel: not a key, and the same for every replica. */
  channel(name: string): string {
    return `${this.prefix}:${name}`;
  }

  /** @throws SharedStateUnavailable for every failure */
  async send<T>(command: (redis: RedisClient) => Promise<T>): Promise<T> {
    this.assertAdmitted();
    return this.sendUnchecked(command);
  }

  private async sendUnchecked<T>(command: (redis: RedisClient) => Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    let waiting = true;
    const silence = new Promise<never>((_, reject) => {
      const giveUp = () => {
        if (!waiting) return;
        reject(new Error(`no answer within ${this.timeout} ms`));
        this.reconnect();
      };
      // A process that was busy itself first reads the data that has arrived, in two turns of its event loop.
      timer = setTimeout(() => setImmediate(() => setImmediate(giveUp)), this.timeout);
    });
    try {
      // The client of a cluster would keep the command, and send it after the caller was refused.
      if (this.redis instanceof Cluster && this.redis.status !== 'ready') throw new Error(this.reason);
      return await Promise.race([command(this.redis), silence]);
    } catch (error) {
      throw unavailable(error);
    } finally {
      waiting = false;
      clearTimeout(timer);
    }
  }

  /**
   * Runs a script whose effect a fail-over must not forget, and waits for the configured replicas.
   * @throws SharedStateUnavailable also when too few replicas have it in time: it may have been run
   */
  async runDurably(
    script: RedisScript,
    keys: readonly string[],
    args: readonly (string | number)[] = [],
  ): Promise<unknown> {
    const { replicated } = this;
    if (!replicated) return this.send((redis) => script.run(redis, keys, args));
    this.assertAdmitted();
    const replies = await replicated.send((redis) =>
      script.addTo(redis.pipeline(), keys, args).wait(this.replicas, REPLICATION_TIMEOUT).exec(),
    );
    const [[failure, answer] = [], [unable, acknowledged] = []] = replies ?? [];
    const error = failure ?? unable;
    if (error) throw unavailable(error);
    if (Number(acknowledged) >= this.replicas) return answer;
    throw new SharedStateUnavailable(new Error('too few replicas of Redis have the record'));
  }

  /** @throws SharedStateUnavailable when it does not answer, or is a cluster in which keys have no primary */
  async check(): Promise<void> {
    const state = await this.send((redis) =>
      redis instanceof Cluster ? redis.cluster('INFO') : redis.ping(),
    );
    if (state !== 'PONG' && !String(state).includes('cluster_state:ok'))
      throw new SharedStateUnavailable(new Error('the cluster does not serve all keys'));
  }

  /** Subscribers of every node get it. @throws SharedStateUnavailable */
  async publish(channel: string, text: string): Promise<void> {
    await this.send((redis) =>
      redis instanceof Cluster ? PUBLISH.run(redis, [channel], [text]) : redis.publish(channel, text),
    );
  }

  /** Gives the connection up, as when it was lost. */
  reconnect(): void {
    this.redis.disconnect(true);
  }

  /** Subscribes to channels, again after every outage. Called once, before it is opened. */
  subscribe(channels: readonly string[], receive: (text: string, channel: string) => void): void {
    this.isSubscribed = false;
    this.redis.on('message', (channel: string, text: string) => receive(text, channel));
    this.redis.on('close', () => (this.isSubscribed = false));
    this.redis.on('ready', () => {
      this.send((redis) => redis.subscribe(...channels)).then(
        () => {
          this.isSubscribed = true;
          this.logReturn();
        },
        () => this.reconnect(),
      );
    });
  }

  /** Called after every outage: Redis may have lost its data. */
  onReturn(listener: () => void): void {
    this.returnListeners.push(listener);
  }

  close(): void {
    this.ended = true;
    this.replicated?.close();
    this.redis.disconnect();
  }

  /** It stays unusable, and is tried again: the server may be another one later. */
  private refuseDatabase(error: MissingDatabase): void {
    if (this.away && !this.missing) this.log.warn(`[Redis] ${this.role}: ${error.message}`);
    this.missing = error;
    this.whenUsable?.();
  }

  private async whenReady(): Promise<void> {
    this.missing = undefined;
    if (this.isSubscribed !== undefined) return;
    // The client connects to a node with the first command for it. Without this the calls after a start would wait for that.
    if (this.redis instanceof Cluster)
      await Promise.allSettled(this.redis.nodes('master').map((node) => node.ping()));
    if (this.redis.status === 'ready' && (await this.admit())) this.logReturn();
  }

  /** After a pause, over a new connection; not at all where this one was lost meanwhile. */
  private checkAgain(losses: number): void {
    setTimeout(() => {
      if (!this.ended && losses === this.losses) this.reconnect();
    }, RECHECK_PAUSE).unref();
  }

  /** @throws SharedStateUnavailable */
  private assertAdmitted(): void {
    if (!this.isAdmitted) throw unavailable(new Error(NOT_ADMITTED));
  }

  private distrust(): void {
    if (!this.admission) return;
    this.isAdmitted = false;
    this.losses += 1;
  }

  /** @returns whether this connection may be used */
  private async admit(): Promise<boolean> {
    const { admission, losses } = this;
    if (!admission) return true;
    try {
      await admission({
        send: (command) => this.sendUnchecked(command),
        key: (kind, name) => this.key(kind, name),
      });
      if (losses === this.losses) this.isAdmitted = true;
      return this.isAdmitted;
    } catch (error) {
      if (error instanceof SharedStateUnavailable) this.checkAgain(losses);
      // Nothing will change by waiting for longer.
      else this.whenUsable?.();
      return false;
    }
  }

  private watchNodes(cluster: Cluster): void {
    cluster.on('node error', ({ message }: Error, node: string) => {
      this.reason = message;
      if (this.lostNodes.has(node) || this.ended) return;
      // Nodes that left the cluster are not named again.
      if (this.lostNodes.size >= MOST_LOST_NODES) this.lostNodes.clear();
      this.lostNodes.add(node);
      this.log.warn(`[Redis] ${this.role}: the node ${node} is unavailable (${message}); trying again`);
    });
    // Another node takes the keys over, and may lack the last of them.
    cluster.on('-node', () => this.notifyReturn());
    cluster.on('+node', (node: Redis) => {
      node.on('ready', () => {
        const { host, port } = node.options;
        if (this.lostNodes.delete(`${host}:${port}`))
          this.log.warn(`[Redis] ${this.role}: the node ${host}:${port} is available again`);
      });
    });
  }

  private notifyReturn(): void {
    for (const listener of this.returnListeners) listener();
  }

  private logLoss(reason: string): void {
    if (reason !== 'connection closed') this.reason = reason;
    if (this.away || this.ended) return;
    this.away = true;
    this.log.warn(`[Redis] ${this.role}: unavailable (${reason}); trying again`);
  }

  private logReturn(): void {
    this.whenUsable?.();
    if (!this.away) return;
    this.away = false;
    this.notifyReturn();
    this.log.warn(`[Redis] ${this.role}: available again`);
  }
}

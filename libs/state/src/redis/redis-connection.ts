import { hash } from 'node:crypto';
import { Redis, type RedisOptions } from 'ioredis';
import { type BusMessage, SharedStateUnavailable } from '../ports/stores.js';
import type { SharedStateLog } from '../ports/shared-state.js';

/** A Lua script: several commands that run atomically, in one round trip. */
export class RedisScript {
  private readonly digest: string;

  constructor(private readonly lua: string) {
    this.digest = hash('sha1', lua, 'hex');
  }

  /** Redis identifies a script by its digest after the first call; after a restart the script is sent again. */
  async run(
    redis: Redis,
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

export interface RedisSettings {
  /** `redis://` or `rediss://`. */
  readonly url: string;
  /** The prefix of every key and channel. Default `parley`. */
  readonly prefix?: string;
}

/**
 * Milliseconds in which Redis must answer. Then the connection is treated as lost, so that the next command fails at once.
 */
const ANSWER_TIMEOUT = 400;
const LONGEST_RECONNECT_PAUSE = 1_000;

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

/** @throws TypeError without the URL in it: it may contain a password */
function createClient(url: string, connectionName: string): Redis {
  if (!/^rediss?:\/\//.test(url) || !URL.canParse(url)) {
    throw new TypeError('the Redis URL cannot be read: expected redis://host:port or rediss://host:port');
  }
  return new Redis(url, { ...OPTIONS, connectionName });
}

/** Only the message of a driver's error: the error itself contains the arguments of the command, which must not be logged. */
function unavailable(error: unknown): SharedStateUnavailable {
  return new SharedStateUnavailable(new Error(error instanceof Error ? error.message : 'unknown failure'));
}

/** Owner of one connection to Redis. It never queues, and reconnects by itself without a limit. */
export class RedisConnection {
  private readonly redis: Redis;
  private readonly prefix: string;
  private away = false;
  private ended = false;
  /** Undefined when it subscribes to no channel. */
  private isSubscribed: boolean | undefined;
  private whenUsable: (() => void) | undefined;
  private readonly returnListeners: (() => void)[] = [];

  constructor(
    { url, prefix = 'parley' }: RedisSettings,
    private readonly role: 'commands' | 'subscriptions',
    private readonly log: SharedStateLog,
  ) {
    this.prefix = prefix;
    this.redis = createClient(url, `parley-${role}`);
    this.redis.on('error', (error: Error) => this.logLoss(error.message));
    this.redis.on('close', () => this.logLoss('connection closed'));
    this.redis.on('ready', () => {
      if (this.isSubscribed === undefined) this.logReturn();
    });
  }

  /** Whether it can be used now; a connection with a channel must be subscribed to it. */
  get isUsable(): boolean {
    return this.redis.status === 'ready' && (this.isSubscribed ?? true);
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
    await settled;
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
  async send<T>(command: (redis: Redis) => Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    let waiting = true;
    const silence = new Promise<never>((_, reject) => {
      const giveUp = () => {
        if (!waiting) return;
        reject(new Error(`no answer within ${ANSWER_TIMEOUT} ms`));
        this.redis.disconnect(true);
      };
      // A process that was busy itself first reads the data that has arrived, in two turns of its event loop.
      timer = setTimeout(() => setImmediate(() => setImmediate(giveUp)), ANSWER_TIMEOUT);
    });
    try {
      return await Promise.race([command(this.redis), silence]);
    } catch (error) {
      throw unavailable(error);
    } finally {
      waiting = false;
      clearTimeout(timer);
    }
  }

  /** Subscribes to a channel, again after every outage. One channel for each connection, set before it is opened. */
  subscribe(channel: string, receive: (text: string) => void): void {
    this.isSubscribed = false;
    this.redis.on('message', (_from: string, text: string) => receive(text));
    this.redis.on('close', () => (this.isSubscribed = false));
    this.redis.on('ready', () => {
      this.send((redis) => redis.subscribe(channel)).then(
        () => {
          this.isSubscribed = true;
          this.logReturn();
        },
        () => this.redis.disconnect(true),
      );
    });
  }

  /** Called after every outage: Redis may have lost its data. */
  onReturn(listener: () => void): void {
    this.returnListeners.push(listener);
  }

  close(): void {
    this.ended = true;
    this.redis.disconnect();
  }

  private logLoss(reason: string): void {
    if (this.away || this.ended) return;
    this.away = true;
    this.log.warn(`[Redis] ${this.role}: unavailable (${reason}); trying again`);
  }

  private logReturn(): void {
    this.whenUsable?.();
    if (!this.away) return;
    this.away = false;
    for (const listener of this.returnListeners) listener();
    this.log.warn(`[Redis] ${this.role}: available again`);
  }
}

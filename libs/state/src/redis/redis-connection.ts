import { hash } from 'node:crypto';
import { Redis, type RedisOptions } from 'ioredis';
import { SharedStateUnavailable } from '../ports/bounds.js';
import type { BusMessage } from '../ports/message-bus.js';
import type { SharedStateLog } from '../ports/shared-state.js';

/** A Lua script: several commands that nothing can come between, in one round trip. */
export class RedisScript {
  private readonly digest: string;

  constructor(private readonly lua: string) {
    this.digest = hash('sha1', lua, 'hex');
  }

  /** Redis knows a script by its digest after the first time; one that was restarted is sent it again. */
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

/** What Redis holds may have been written by anything: only a JSON object is one. */
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
  /** What every key and channel begins with. Default `parley`. */
  readonly prefix?: string;
}

/** Milliseconds Redis has to answer. Then it is taken for gone, so that the next command fails at once. */
const ANSWER_TIMEOUT = 400;
const LONGEST_RECONNECT_PAUSE = 1_000;

const OPTIONS: RedisOptions = {
  lazyConnect: true,
  protocol: 2,
  disableClientInfo: true,
  // A command is sent now or fails now, and nothing is sent twice: a caller that was refused must not be counted later.
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  autoResubscribe: false,
  connectTimeout: 1_000,
  // Of the handshake; `send` is less patient.
  commandTimeout: 1_000,
  disconnectTimeout: 1,
  keepAlive: 10_000,
  retryStrategy: (attempt) => Math.min(25 * 2 ** Math.min(attempt, 6), LONGEST_RECONNECT_PAUSE),
  // After a failover this is a replica: the new primary is found by connecting again.
  reconnectOnError: (error) => error.message.startsWith('READONLY'),
};

/** @throws TypeError without the URL in it: it may hold a password */
function createClient(url: string, connectionName: string): Redis {
  if (!/^rediss?:\/\//.test(url) || !URL.canParse(url)) {
    throw new TypeError('the Redis URL cannot be read: expected redis://host:port or rediss://host:port');
  }
  return new Redis(url, { ...OPTIONS, connectionName });
}

/** Only the words of a driver's error: the error itself carries the arguments of the command, which are not for a log. */
function unavailable(error: unknown): SharedStateUnavailable {
  return new SharedStateUnavailable(new Error(error instanceof Error ? error.message : 'unknown failure'));
}

/** Owner of one connection to Redis. It never queues, and reconnects by itself for ever. */
export class RedisConnection {
  private readonly redis: Redis;
  private readonly prefix: string;
  private away = false;
  private ended = false;
  /** Undefined while it subscribes to none. */
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

  /** Whether it can be used at this moment; one with a channel must be subscribed to it. */
  get isUsable(): boolean {
    return this.redis.status === 'ready' && (this.isSubscribed ?? true);
  }

  /** Begins to connect and waits at most `timeout` milliseconds for it; a Redis that is away is tried again for ever. */
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
   * The key of a thing. Its name is hashed: short and harmless whatever a caller chose. The braces keep the parts of one
   * thing on one node of a cluster.
   */
  key(kind: string, name: string, part?: string): string {
    const key = `${this.prefix}:{${kind}:${hash('sha256', name, 'base64url')}}`;
    return part === undefined ? key : `${key}:${part}`;
  }

  /** The name of a channel: no key, and the same for every replica. */
  channel(name: string): string {
    return `${this.prefix}:${name}`;
  }

  /** @throws SharedStateUnavailable whatever goes wrong */
  async send<T>(command: (redis: Redis) => Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    let waiting = true;
    const silence = new Promise<never>((_, reject) => {
      const giveUp = () => {
        if (!waiting) return;
        reject(new Error(`no answer within ${ANSWER_TIMEOUT} ms`));
        this.redis.disconnect(true);
      };
      // A process that was busy itself first reads what has arrived, twice round its event loop.
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

  /** Hears a channel, again after every outage. One channel for each connection, named before it is opened. */
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

  /** After every outage: Redis may have lost what it held. */
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

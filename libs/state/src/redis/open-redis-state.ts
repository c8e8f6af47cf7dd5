import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Observable } from 'rxjs';
import { TopicListeners } from '../memory/stores.js';
import type { RedisFacts } from './redis-facts.js';
import { ForeignInstallation, type SharedState, type SharedStateLog } from '../ports/shared-state.js';
import { type BusMessage, ENDED_SESSION_SHARE, MessageBus, SharedStateUnavailable } from '../ports/stores.js';
import { RedisApprovalStore } from './approvals.js';
import { RedisClock } from './redis-clock.js';
import { RedisBudgetStore, RedisRateLimiters } from './limits.js';
import type { RedisSettings } from '#core';
import { claimInstallation } from './installation.js';
import { parseStoredObject, RedisConnection } from './redis-connection.js';
import { RedisSecrets } from './secrets.js';
import { RedisSessionStore, RedisStreamLog } from './sessions.js';
import { RedisOneTimeStore, RedisVersionedStore } from './stores.js';
import { RedisSubscriptionStore } from './subscriptions.js';

/** Milliseconds between checks of a subscribed connection: otherwise a dead connection would not be detected. */
const HEARTBEAT_INTERVAL = 5_000;
/** Milliseconds that a message may take to every subscriber. */
const DELIVERY_TIMEOUT = 1_000;

interface BusConnections {
  readonly commands: RedisConnection;
  /** A separate connection: a subscribed one cannot send other commands. */
  readonly subscriptions: RedisConnection;
}

/**
 * A bus for all replicas. All topics use one channel, so that a listener receives from the moment it subscribes; a message is
 * `topic`, a line break and JSON, so that a replica without a listener parses nothing.
 */
class RedisMessageBus extends MessageBus {
  private readonly listeners = new TopicListeners();
  private readonly channel: string;
  /** The channel of this process alone: what is published there shows whether messages still arrive. */
  private readonly ownChannel: string;
  private received = true;
  private readonly heartbeat: NodeJS.Timeout;

  constructor(
    private readonly connections: BusConnections,
    private readonly log: SharedStateLog,
  ) {
    super();
    this.channel = connections.commands.channel('bus');
    this.ownChannel = connections.commands.channel(`bus:${randomUUID()}`);
    connections.subscriptions.subscribe([this.channel, this.ownChannel], (text, channel) => {
      if (channel === this.ownChannel) this.received = true;
      // Whoever speaks there may be another installation.
      else if (connections.commands.isUsable) this.receive(text);
    });
    this.heartbeat = setInterval(() => void this.checkConnection(), HEARTBEAT_INTERVAL);
    this.heartbeat.unref();
  }

  async publish(topic: string, message: BusMessage): Promise<void> {
    if (topic.includes('\n')) throw new TypeError('a topic has one line');
    const text = `${topic}\n${JSON.stringify(message)}`;
    await this.connections.commands.publish(this.channel, text);
  }

  messages(topic: string): Observable<BusMessage> {
    return this.listeners.messages(topic);
  }

  close(): void {
    clearInterval(this.heartbeat);
    this.listeners.close();
  }

  private receive(text: string): void {
    const end = text.indexOf('\n');
    const topic = text.slice(0, Math.max(end, 0));
    if (end >= 0 && !this.listeners.has(topic)) return;
    const message = end < 0 ? undefined : parseStoredObject(text.slice(end + 1));
    if (message) this.listeners.publish(topic, message);
    else this.log.warn('[Redis] a message on the bus was no message of ours');
  }

  private async checkConnection(): Promise<void> {
    const { commands, subscriptions } = this.connections;
    if (!subscriptions.isUsable) return;
    try {
      // Without an answer `send` closes the connection, and it reconnects.
      await subscriptions.send((redis) => redis.ping());
      // A former primary, and a node that lost its cluster, answer and deliver nothing.
      this.received = false;
      await commands.publish(this.ownChannel, '');
    } catch {
      return;
    }
    await pause(DELIVERY_TIMEOUT, undefined, { ref: false });
    // A process that was busy itself first reads the messages that have arrived.
    await nextTurn();
    await nextTurn();
    if (!this.received && subscriptions.isUsable) subscriptions.reconnect();
  }
}

const DATA_LOST =
  '[Redis] it lost what it held: sessions, limits, tasks, exports and approvals. Tokens that `parley revoke` ended are accepted again until they expire: revoke them again';

/** Milliseconds for which the start waits for Redis. */
const FIRST_CONNECTION = 1_000;

/**
 * State in Redis, for every replica that is given the same URL and prefix.
 * @param installation places of its data; empty: not compared
 * @throws ForeignInstallation, and MissingDatabase where the server refuses the database of the URL
 */
export async function openRedisState(
  settings: RedisSettings,
  log: SharedStateLog,
  installation: readonly string[] = [],
): Promise<SharedState> {
  const commands = new RedisConnection(settings, 'commands', log);
  const subscriptions = new RedisConnection(settings, 'subscriptions', log);
  const bus = new RedisMessageBus({ commands, subscriptions }, log);
  const closing: { close(): void }[] = [bus, commands, subscriptions];
  const close = () => {
    for (const one of closing) one.close();
  };
  let isOpen = false;
  const refuse = (error: ForeignInstallation) => {
    if (isOpen) log.warn(`[Redis] ${error.message}`);
    close();
    return error;
  };
  let foreign: ForeignInstallation | undefined;
  let known: Buffer | undefined;
  // Redis may have lost what it held, or have been away at the start, and another installation may have come first.
  if (installation.length > 0)
    commands.checkFirst(async (redis) => {
      try {
        const mark = await claimInstallation(redis, installation);
        if (known && !known.equals(mark)) log.warn(DATA_LOST);
        known = mark;
      } catch (error) {
        if (error instanceof ForeignInstallation) foreign = refuse(error);
        throw error;
      }
    });
  await Promise.all([commands.open(FIRST_CONNECTION), subscriptions.open(FIRST_CONNECTION)]);
  if (foreign) throw foreign as ForeignInstallation;
  if (commands.missingDatabase) {
    close();
    throw commands.missingDatabase;
  }
  isOpen = true;
  const clock = new RedisClock(commands, log);
  closing.push(clock);
  await clock.measure();
  const now = () => clock.now();
  const secrets = new RedisSecrets(commands);
  return {
    reach: 'replicas',
    clock: now,
    sessions: new RedisSessionStore(commands),
    bus,
    oneTime: new RedisOneTimeStore(commands),
    streams: new RedisStreamLog(commands),
    subscriptions: new RedisSubscriptionStore(commands),
    tasks: new RedisVersionedStore(commands, 'task'),
    exports: new RedisVersionedStore(commands, 'export'),
    endedSessions: new RedisVersionedStore(commands, 'ended', ENDED_SESSION_SHARE),
    auditChains: new RedisVersionedStore(commands, 'audit'),
    revocations: new RedisVersionedStore(commands, 'revoked'),
    writeKeys: new RedisVersionedStore(commands, 'write'),
    history: new RedisVersionedStore(commands, 'history'),
    limiters: new RedisRateLimiters(commands),
    budgets: new RedisBudgetStore(commands),
    approvals: new RedisApprovalStore(commands, now),
    secrets,
    isUp: async () => {
      if (!subscriptions.isUsable || !commands.isUsable) return false;
      return commands.check().then(
        () => true,
        () => false,
      );
    },
    close: () => {
      close();
      return Promise.resolve();
    },
  };
}

/** Milliseconds that a first connection may take. */
const CONNECT_TIMEOUT = 2_000;

/** `name:value` lines of INFO. */
function readInfo(text: string): Map<string, string> {
  return new Map(
    text.split(/\r?\n/).flatMap((line): [string, string][] => {
      const at = line.indexOf(':');
      return line.startsWith('#') || at < 1 ? [] : [[line.slice(0, at), line.slice(at + 1)]];
    }),
  );
}

/** The facts of each primary. @throws SharedStateUnavailable with the reason */
export async function readRedisFacts(settings: RedisSettings): Promise<readonly RedisFacts[]> {
  const connection = new RedisConnection(settings, 'commands', { warn: () => undefined });
  try {
    await connection.open(CONNECT_TIMEOUT);
    if (!connection.isUsable) throw new SharedStateUnavailable(new Error(connection.lossReason));
    await connection.check();
    return await Promise.all(connection.primaries.map((server) => readFacts(connection, server)));
  } finally {
    connection.close();
  }
}

async function readFacts(connection: RedisConnection, server: Redis): Promise<RedisFacts> {
  const asked = Date.now();
  const [seconds, micros] = await connection.send(() => server.time());
  const answered = Date.now();
  const info = readInfo(await connection.send(() => server.info()));
  const save = await connection.send(() => server.config('GET', 'save')).catch(() => null);
  return {
    address: `${server.options.host}:${server.options.port}`,
    version: info.get('redis_version') ?? 'unknown',
    replicas: Number(info.get('connected_slaves') ?? 0),
    persistence: readPersistence(info, save),
    eviction: info.get('maxmemory_policy') ?? null,
    maxMemory: Number(info.get('maxmemory') ?? 0),
    clockAhead: Number(seconds) * 1000 + Number(micros) / 1000 - (asked + answered) / 2,
  };
}

/** @param answer of `CONFIG GET save`; null where a hosted Redis does not expose its configuration */
function readPersistence(info: ReadonlyMap<string, string>, answer: unknown): RedisFacts['persistence'] {
  if (info.get('aof_enabled') === '1') return 'append-only file';
  const save: unknown = Array.isArray(answer) ? answer[1] : undefined;
  if (typeof save !== 'string') return null;
  return save === '' ? 'none' : 'snapshots';
}

import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import { findRedisUrlProblem, readRedisAddress, type RedisSettings } from '#core';
import { MissingDatabase } from '../ports/shared-state.js';

/** The client of one server, of the primary behind Sentinels, or of a cluster. All take the same commands. */
export type RedisClient = Redis | Cluster;

interface Address {
  readonly host: string;
  readonly port: number;
}

/** @throws TypeError without the address in it: a wrong one may contain a password */
function readAddresses(texts: readonly string[]): Address[] {
  const addresses = texts.flatMap((text) => readRedisAddress(text) ?? []);
  if (addresses.length === 0 || addresses.length < texts.length)
    throw new TypeError('an address of Redis cannot be read: expected host:port');
  return addresses;
}

/** Where the server is a cluster or behind Sentinels, its user is not part of an address. */
function toCredentials({ username, password }: RedisSettings): Partial<RedisOptions> {
  return {
    ...(typeof username === 'string' && { username }),
    ...(typeof password === 'string' && { password }),
  };
}

function toTls({ tls }: RedisSettings): Partial<RedisOptions> {
  if (tls === undefined || tls === null) return {};
  const { ca, cert, key } = tls;
  return {
    tls: { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) },
  };
}

/**
 * The client would go on in database 0 where the server refuses the one that was asked for: another installation may have its
 * keys there. Here such a connection is never ready, and is given up.
 */
class ServerClient extends Redis {
  override async select(database: number | string): Promise<'OK'> {
    try {
      return await super.select(database);
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'unknown failure';
      this.emit('error', new MissingDatabase(Number(database), reason));
      this.disconnect(true);
      // The handshake swallows a refusal, and would end.
      return new Promise(() => undefined);
    }
  }

  /** BullMQ makes its blocking connection with it. */
  override duplicate(override?: Partial<RedisOptions>): Redis {
    const copy = new ServerClient({ ...this.options, ...override, replyMapping: 'legacy' });
    // BullMQ takes its own listener away before the connection has ended.
    copy.on('error', () => undefined);
    return copy;
  }
}

function ofServer(url: string, settings: RedisSettings, options: RedisOptions): Redis {
  const problem = findRedisUrlProblem(url);
  if (problem !== undefined) throw new TypeError(`the Redis URL ${problem}`);
  return new ServerClient(url, { ...options, ...toTls(settings), replyMapping: 'legacy' });
}

function behindSentinels(texts: readonly string[], settings: RedisSettings, options: RedisOptions): Redis {
  const { name, sentinelPassword } = settings;
  if (typeof name !== 'string' || name === '')
    throw new TypeError('Sentinels need the name under which they watch the primary');
  return new Redis({
    ...options,
    ...toCredentials(settings),
    ...toTls(settings),
    sentinels: readAddresses(texts),
    name,
    ...(typeof sentinelPassword === 'string' && { sentinelPassword }),
    ...(settings.tls && { enableTLSForSentinelMode: true, sentinelTLS: toTls(settings).tls }),
    // The Sentinels report a fail-over: an old primary that still answers is left at once.
    failoverDetector: true,
  });
}

/**
 * A command is never sent twice: a node that closed its connection may have run it. Only what the cluster refused to run is
 * sent again, to the node that it names, and for less time than a caller waits.
 */
const CLUSTER_OPTIONS: ClusterOptions = {
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
  retryDelayOnTryAgain: 20,
  maxRedirections: 16,
  slotsRefreshInterval: 1_000,
  slotsRefreshTimeout: 1_000,
};

/** @throws TypeError when an address cannot be read; the message does not repeat it */
export function createRedisClient(settings: RedisSettings, options: RedisOptions): RedisClient {
  const { url, sentinels, cluster } = settings;
  if (sentinels) return behindSentinels(sentinels, settings, options);
  if (!cluster) return ofServer(url ?? '', settings, options);
  const { lazyConnect, retryStrategy, ...redisOptions } = options;
  return new Cluster(readAddresses(cluster), {
    ...CLUSTER_OPTIONS,
    ...(lazyConnect !== undefined && { lazyConnect }),
    ...(retryStrategy && { clusterRetryStrategy: (attempt: number) => retryStrategy(attempt) }),
    redisOptions: { ...redisOptions, ...toCredentials(settings), ...toTls(settings) },
  });
}

/**
 * The client of a subscription. Every node of a cluster gets the messages of all, so a connection to any one of them is
 * enough; after each loss it goes to the next, and it is known when it has none.
 * @throws TypeError when an address cannot be read
 */
export function createSubscriber(settings: RedisSettings, options: RedisOptions): Redis {
  if (!settings.cluster) return createRedisClient(settings, options) as Redis;
  const nodes = readAddresses(settings.cluster);
  let at = Math.floor(Math.random() * nodes.length);
  const { retryStrategy } = options;
  const client: Redis = new Redis({
    ...options,
    ...toCredentials(settings),
    ...toTls(settings),
    ...nodes[at],
    retryStrategy: (attempt) => {
      at = (at + 1) % nodes.length;
      Object.assign(client.options, nodes[at]);
      return retryStrategy?.(attempt);
    },
  });
  return client;
}

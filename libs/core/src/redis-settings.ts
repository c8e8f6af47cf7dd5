/** Certificates as PEM text. */
interface RedisTls {
  /** The authorities that signed the certificates of the servers. Null: those that Node trusts. */
  readonly ca?: string | null;
  /** The certificate of this client, with `key`. Null: none is shown. */
  readonly cert?: string | null;
  readonly key?: string | null;
}

/** Where Redis is: `url` of one server, `sentinels` with `name`, or `cluster`. None of them: there is no Redis. */
export interface RedisSettings {
  /** `redis://` or `rediss://`, with the user and password of this one server. */
  readonly url?: string | null;
  /** `host:port` of the Sentinels that know which server is the primary. */
  readonly sentinels?: readonly string[] | null;
  /** The name under which the Sentinels watch the primary. */
  readonly name?: string | null;
  /** `host:port` of nodes of a Redis Cluster; the others are found through them. */
  readonly cluster?: readonly string[] | null;
  /** The ACL user of the servers behind `sentinels` or `cluster`. Null: the default user. */
  readonly username?: string | null;
  readonly password?: string | null;
  /** The password of the Sentinels themselves. Null: they ask for none. */
  readonly sentinelPassword?: string | null;
  /** TLS to every server and Sentinel. Null: only where `url` is `rediss://`. */
  readonly tls?: RedisTls | null;
  /**
   * Replicas that must hold a claim, a decision or a record before it counts. Redis itself answers before any of them has it,
   * so that a fail-over could forget that a write was made. Default 0.
   */
  readonly waitForReplicas?: number;
  /** The prefix of every key and channel: installations on one Redis need different prefixes. Default `parley`. */
  readonly prefix?: string;
}

/** Whether replicas share their state over Redis. */
export function hasRedis({ url, sentinels, cluster }: RedisSettings): boolean {
  return [url, sentinels, cluster].some((address) => address !== undefined && address !== null);
}

/** A host name or address and its port; an IPv6 address stands in brackets. */
const ADDRESS = /^(?<host>[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):(?<port>\d{1,5})$/;

/** Undefined where the text is no address. */
export function readRedisAddress(text: string): { readonly host: string; readonly port: number } | undefined {
  const { host, port } = ADDRESS.exec(text)?.groups ?? {};
  const number = Number(port);
  if (host === undefined || number < 1 || number > 65_535) return undefined;
  return { host: host.replace(/^\[|\]$/g, ''), port: number };
}

const REDIS_URL_FORM = 'must be redis://host:port or rediss://host:port, with /1 behind it for database 1';

/**
 * What is wrong with the URL of one server, without a word of it: it may contain a password. A query would set options of the
 * client in the place of those that Parley needs.
 */
export function findRedisUrlProblem(text: string): string | undefined {
  if (!/^rediss?:\/\//.test(text) || !URL.canParse(text)) return REDIS_URL_FORM;
  const { pathname, search, hash, username, password } = new URL(text);
  if (!/^(\/\d{0,5})?$/.test(pathname))
    return `${REDIS_URL_FORM}: the path is the number of a database, or empty`;
  if (search !== '' || hash !== '') return `${REDIS_URL_FORM}: nothing follows the number of the database`;
  try {
    decodeURIComponent(username + password);
    return undefined;
  } catch {
    return 'has a user or password with a % that begins no code: write %25 for it';
  }
}

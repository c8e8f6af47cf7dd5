export interface DatabaseConfig {
  /** `embedded`, or a mongodb:// URI. Null, the default beside a Parse Server: no direct access. */
  readonly uri: string | null;
  readonly name: string;
  /** Seed file for an empty database; relative to the configuration file. */
  readonly seed: string | null;
}

export interface ParseConfig {
  /** Where Parse Server is mounted. Null: there is none, and everything is read directly. */
  readonly serverUrl: string | null;
  readonly appId: string | null;
  /** Null: every agent is one in client mode. */
  readonly masterKey: string | null;
  /** For servers that ask clients for one. */
  readonly restApiKey: string | null;
}

export interface RedisConfig {
  /** `redis://` or `rediss://`: where replicas share their state. Default null: this process keeps it alone. */
  readonly url: string | null;
  /** What every key and channel begins with. Default `parley`. */
  readonly prefix: string;
}

export const DEFAULT_DATABASE: DatabaseConfig = Object.freeze({
  uri: 'embedded',
  name: 'parley',
  seed: null,
});

export const DEFAULT_PARSE: ParseConfig = Object.freeze({
  serverUrl: null,
  appId: null,
  masterKey: null,
  restApiKey: null,
});

export const DEFAULT_REDIS: RedisConfig = Object.freeze({ url: null, prefix: 'parley' });

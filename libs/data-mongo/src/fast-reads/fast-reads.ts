import type { MongoClient, MongoOptions } from 'mongodb';
import type { TcpSocketConnectOpts } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { type ConnectionOwner, ReadConnection, type ReadServer } from './read-connection.js';
import { SCRAM_SHA_256, ScramLogin } from './scram-login.js';

/** Milliseconds after which a connection that nobody needed is closed, unless `maxIdleTimeMS` is shorter. */
const IDLE_MS = 60_000;
/** Milliseconds between two attempts to open a connection after one failed: the driver says what is wrong. */
const RETRY_MS = 2_000;
/** Where `maxPoolSize` is 0, which means no limit to the driver. */
const MOST_CONNECTIONS = 100;

/** What the driver knows of its servers. Its types hide the property; where it is not as expected, reads are the driver's. */
interface DriverTopology {
  readonly topology?: { readonly description?: TopologyDescription };
}
interface TopologyDescription {
  readonly type: string;
  readonly servers: ReadonlyMap<string, ServerDescription>;
}
interface ServerDescription {
  readonly type: string;
  readonly setName: string | null;
  readonly hostAddress: { readonly host?: string; readonly port?: number; readonly socketPath?: string };
}

const TAKES_READS = new Set(['Standalone', 'RSPrimary', 'Mongos']);

/** As the driver: the options of sockets and of TLS that it hands to Node. */
const TCP_OPTIONS = [
  'autoSelectFamily',
  'autoSelectFamilyAttemptTimeout',
  'family',
  'hints',
  'localAddress',
  'lookup',
] as const satisfies readonly (keyof TcpSocketConnectOpts)[];

const TLS_OPTIONS = [
  'allowPartialTrustChain',
  'ALPNProtocols',
  'ca',
  'cert',
  'checkServerIdentity',
  'ciphers',
  'crl',
  'ecdhCurve',
  'key',
  'minDHSize',
  'passphrase',
  'pfx',
  'rejectUnauthorized',
  'secureContext',
  'secureProtocol',
  'servername',
] as const satisfies readonly (keyof ConnectionOptions)[];

/**
 * Connections for reads beside the pool of the driver (docs/contributing/decisions/0033-reads-on-connections-of-our-own.md). The driver
 * finds the server, watches it and says when it is gone; it also serves every read that finds no free connection here. So no read
 * waits for this class, and none fails because of it.
 */
export class FastReads implements ConnectionOwner {
  private readonly idle: { readonly connection: ReadConnection; readonly since: number }[] = [];
  private readonly open = new Set<ReadConnection>();
  private opening = false;
  private notBefore = 0;
  private closed = false;
  private description: TopologyDescription | undefined;
  private server: ReadServer | null = null;
  private readonly most: number;
  private readonly idleFor: number;
  private readonly login: ScramLogin | null;
  private readonly sweep: NodeJS.Timeout;

  /** @throws TypeError for a client whose options rule it out (`fastReadsProblem`) */
  constructor(private readonly client: MongoClient) {
    const problem = fastReadsProblem(client);
    if (problem !== null) throw new TypeError(problem);
    const { maxPoolSize, maxIdleTimeMS, credentials } = client.options;
    this.most = maxPoolSize || MOST_CONNECTIONS;
    this.idleFor = Math.min(maxIdleTimeMS || IDLE_MS, IDLE_MS);
    this.login = credentials ? new ScramLogin(credentials) : null;
    this.sweep = setInterval(() => this.closeIdle(), this.idleFor / 2).unref();
    client.on('connectionPoolCleared', this.noteCleared);
  }

  /** A connection for the commands of one read, until it is released. Null: none is free, the driver has to read. */
  take(): ReadConnection | null {
    if (this.closed) return null;
    const { description } = (this.client as unknown as DriverTopology).topology ?? {};
    if (description !== this.description) this.follow(description);
    const { server } = this;
    if (!server) return null;
    const kept = this.idle.pop();
    if (kept) return kept.connection;
    void this.openAnother(server);
    return null;
  }

  release(connection: ReadConnection): void {
    if (this.closed || connection.server !== this.server || !connection.free) connection.destroy();
    else this.idle.push({ connection, since: performance.now() });
  }

  handleEnd(connection: ReadConnection): void {
    this.open.delete(connection);
    const at = this.idle.findIndex((kept) => kept.connection === connection);
    if (at !== -1) this.idle.splice(at, 1);
  }

  /** Ends every connection. Commands that run on them fail. */
  close(): void {
    this.closed = true;
    clearInterval(this.sweep);
    this.client.off('connectionPoolCleared', this.noteCleared);
    for (const connection of this.open) connection.destroy();
  }

  private async openAnother(server: ReadServer): Promise<void> {
    if (this.opening || this.open.size >= this.most || performance.now() < this.notBefore) return;
    this.opening = true;
    try {
      const connection = await ReadConnection.open(server, this);
      // It may have ended in the meantime.
      if (!connection.free) return;
      this.open.add(connection);
      this.release(connection);
    } catch {
      this.notBefore = performance.now() + RETRY_MS;
    } finally {
      this.opening = false;
    }
  }

  /** What the driver knows of its servers has changed. Connections to a server that no longer takes the reads end. */
  private follow(description: TopologyDescription | undefined): void {
    this.description = description;
    const found = description ? findReadServer(description) : null;
    const { host, port } = found?.hostAddress ?? {};
    if (found && this.server && this.server.host === host && this.server.port === port) return;
    this.server =
      found && host !== undefined && port !== undefined
        ? toServer(this.client.options, { host, port, setName: found.setName, login: this.login })
        : null;
    this.endIdle();
  }

  /** The driver lost a server, or closed its connections: what is open here leads there as well. */
  private readonly noteCleared = (): void => {
    // A new object: connections that are busy end when they are given back.
    if (this.server) this.server = { ...this.server };
    this.endIdle();
  };

  private endIdle(): void {
    for (const { connection } of this.idle.splice(0)) connection.destroy();
  }

  private closeIdle(): void {
    const before = performance.now() - this.idleFor;
    // The last that was released is taken first, so the first has waited longest.
    for (let kept = this.idle[0]; kept && kept.since < before; kept = this.idle[0]) kept.connection.destroy();
  }
}

/** The one server that answers all reads, where there is one and it is reached by a host and a port. */
function findReadServer({ type, servers }: TopologyDescription): ServerDescription | null {
  if (type === 'Sharded' && servers.size > 1) return null;
  for (const server of servers.values())
    if (TAKES_READS.has(server.type) && server.hostAddress.socketPath === undefined) return server;
  return null;
}

function toServer(
  options: MongoOptions,
  found: Pick<ReadServer, 'host' | 'port' | 'setName' | 'login'>,
): ReadServer {
  return {
    ...found,
    tcp: readOption(options, TCP_OPTIONS),
    tls: options.tls ? readOption(options, TLS_OPTIONS) : null,
    connectTimeout: options.connectTimeoutMS || 30_000,
    socketTimeout: options.socketTimeoutMS ?? 0,
    appName: options.appName ?? 'parley',
  };
}

/** Those of the options that are set. */
function readOption<Name extends keyof MongoOptions>(
  options: MongoOptions,
  names: readonly Name[],
): Partial<Pick<MongoOptions, Name>> {
  const set: Partial<Pick<MongoOptions, Name>> = {};
  for (const name of names)
    if (options[name] !== undefined && options[name] !== null) set[name] = options[name];
  return set;
}

/**
 * Why reads of this client stay the driver's: what its connection string asks for and only the driver does. Null: nothing does.
 * @returns a sentence without its subject, for an operator
 */
export function fastReadsProblem({
  options,
  bsonOptions,
}: Pick<MongoClient, 'options' | 'bsonOptions'>): string | null {
  const { credentials, compressors, readPreference } = options;
  if (options.loadBalanced) return 'the connection string has loadBalanced=true';
  if (options.proxyHost) return 'the connection string has a proxyHost';
  if (options.autoEncryption) return 'the client encrypts fields';
  if (options.serverApi) return 'the client names a version of the API';
  if (options.monitorCommands) return 'the connection string has monitorCommands=true';
  if (compressors?.some((name) => name !== 'none')) return 'the connection string has compressors';
  if (!options.retryReads) return 'the connection string has retryReads=false';
  if (bsonOptions.ignoreUndefined || bsonOptions.serializeFunctions)
    return 'the client changes how values are written';
  if (readPreference.mode !== 'primary')
    return `the connection string has readPreference=${readPreference.mode}`;
  if (!credentials) return null;
  if (credentials.mechanism !== 'DEFAULT' && credentials.mechanism !== SCRAM_SHA_256)
    return `the user logs in with ${credentials.mechanism}`;
  if (!ScramLogin.knows(credentials)) return 'the password has other characters than those of ASCII';
  return null;
}

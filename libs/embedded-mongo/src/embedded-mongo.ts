import type { EmbeddedUser } from './server/access.js';
import type { EmbeddedTls, WireServerOptions } from './server/wire-server.js';
import { runInWorker, type RunningServer } from './worker/host.js';

/** How to start the embedded database; everything has a default. */
export interface EmbeddedMongoOptions {
  /** Port to listen on; 0, the default, takes a free one. */
  readonly port?: number;
  /** Loopback address to listen on: `127.0.0.1` (default), `::1` or `localhost`. */
  readonly host?: string;
  /** Unix socket to listen on instead of host and port; made accessible to its owner only. */
  readonly path?: string;
  /** Replica set name the server reports, `rs0` by default; `false` answers as a standalone without transactions. */
  readonly replSet?: string | false;
  /**
   * Members of the replica set, 1 by default. Each has an address of its own and all have the same data, so that another one can
   * become the primary (`stepDown`). The others listen on free ports.
   */
  readonly members?: number;
  /** Users: everything but the handshake then needs a login (SCRAM-SHA-256) and a role. By default nobody logs in. */
  readonly users?: readonly EmbeddedUser[];
  /** Certificate and key: the server then speaks TLS only. With `ca`, clients must present a certificate of that authority. */
  readonly tls?: EmbeddedTls;
  /** File to keep the data in; without it everything is gone at the end. */
  readonly dataFile?: string;
  /** A data file of another server: this one starts with its content, in memory, and leaves the file as it is. */
  readonly initialData?: string;
  /**
   * When changes are on disk. `interval`, the default: at the latest 100 ms after they were answered, so that a process that is
   * killed may lose the last of them. `always`: before they are answered; each write waits for the disk.
   */
  readonly fsync?: 'always' | 'interval';
  /** Runs in this thread instead of a worker of its own. Long scans then slow the caller down. Default false. */
  readonly inProcess?: boolean;
  /** Most client connections at a time, 1000 by default; further ones are closed at once. */
  readonly maxConnections?: number;
  /** Answers search stages, default true; `false` refuses them with 31082 as a server without Atlas Search does. */
  readonly search?: boolean;
  /**
   * A whole number, the seed: filters are then evaluated as MongoDB's optimiser may choose, not as they are written. Members of
   * `$and`, `$or` and `$nor` in a drawn order and every one of them, `$match` stages merged and moved in front of others. What
   * cannot fail answers the same. Default: the environment variable `EMBEDDED_MONGO_REORDER_FILTERS`, otherwise as written.
   */
  readonly reorderFilters?: number;
}

/** How the primary steps down. */
export interface StepDownOptions {
  /** How long it cannot become primary again. Default 10. */
  readonly seconds?: number;
  /** Also cuts the connections to it, as a crash would. Default false. */
  readonly closeConnections?: boolean;
}

/** A running embedded database: a small server that speaks MongoDB's wire protocol, for development and tests. */
export class EmbeddedMongo {
  private closing: Promise<void> | undefined;

  /** Connection string for any MongoDB driver. */
  readonly uri: string;
  /** The address listened on; the path for a unix socket. */
  readonly host: string;
  /** The port listened on; 0 for a unix socket. */
  readonly port: number;
  /** Where the server runs. */
  readonly mode: 'worker' | 'in-process';

  private constructor(private readonly running: RunningServer) {
    ({ uri: this.uri, host: this.host, port: this.port, mode: this.mode } = running);
  }

  /**
   * Starts a server. It runs in a worker thread where the built worker file is at hand, otherwise (sources run by a
   * test runner) in this thread; `mode` says which. Errors: a TypeError for an address that is not local, the
   * system's error when the address is taken, an Error when the data file is damaged or in use.
   */
  static async start(options: EmbeddedMongoOptions = {}): Promise<EmbeddedMongo> {
    const complete: WireServerOptions = {
      host: options.host ?? '127.0.0.1',
      port: options.port ?? 0,
      path: options.path,
      replSet: options.replSet === false ? undefined : (options.replSet ?? 'rs0'),
      members: options.members ?? 1,
      users: options.users,
      tls: options.tls,
      dataFile: options.dataFile,
      initialData: options.initialData,
      fsync: options.fsync ?? 'interval',
      maxConnections: options.maxConnections ?? 1_000,
      search: options.search ?? true,
      reorderFilters: options.reorderFilters ?? seedFromEnvironment(),
    };
    const worker = options.inProcess === true ? undefined : await runInWorker(complete);
    if (worker) return new EmbeddedMongo(worker);
    // Loaded only here: beside a worker this thread never needs the server's code.
    const { WireServer } = await import('./server/wire-server.js');
    const { server, address } = await WireServer.listen(complete);
    return new EmbeddedMongo({
      ...address,
      mode: 'in-process',
      control: async (control) => server.control(control),
      close: () => server.close(),
    });
  }

  /**
   * Makes another member the primary, as `replSetStepDown` does. Writes to the former one are refused with 10107 and open
   * transactions are aborted. With one member, that one is the primary again after `seconds`.
   */
  stepDown({ seconds = 10, closeConnections = false }: StepDownOptions = {}): Promise<void> {
    return this.running.control({ kind: 'stepDown', seconds, closeConnections });
  }

  /**
   * The server hangs: it accepts connections and requests and answers nothing until `resume`.
   * @param member only this member, counted from 0. Default: all
   */
  pause(member?: number): Promise<void> {
    return this.running.control({ kind: 'pause', member });
  }

  /** Ends a `pause`; what waited is answered. */
  resume(member?: number): Promise<void> {
    return this.running.control({ kind: 'resume', member });
  }

  /** Ends all connections, writes what is pending and stops; may be called again. */
  close(): Promise<void> {
    this.closing ??= this.running.close();
    return this.closing;
  }
}

/** For services under test, which start their database themselves. */
function seedFromEnvironment(): number | undefined {
  const seed = process.env['EMBEDDED_MONGO_REORDER_FILTERS'];
  if (seed === undefined || seed === '') return undefined;
  if (!/^\d{1,15}$/.test(seed))
    throw new TypeError('EMBEDDED_MONGO_REORDER_FILTERS is a seed: a whole number');
  return Number(seed);
}

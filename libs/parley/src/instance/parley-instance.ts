import { access, constants } from 'node:fs/promises';
import { type DynamicModule, type INestApplicationContext, Logger } from '@nestjs/common';
import { AuditRecorder, type AuditSink, FileHeld, holdFile, LogMessage } from '#audit';
import { ForeignInstallation, MissingDatabase, openSharedState, type SharedState } from '#state';
import {
  ConfigError,
  type Environment,
  type LoadedConfig,
  logSecurityWarnings,
  type ParleyConfig,
  listAuditPaths,
} from '#config';
import type { MongoConnection } from '#data-mongo';
import { FilterNames } from '#dispatcher';
import { openTaskQueue, type TaskQueue, TaskService, TaskWorker } from '#tasks';
import { readEnvironmentGates } from '#policy';
import { McpEdge } from '#streaming';
import { NOTHING_OBSERVED, type Observability } from '#telemetry';
import { checkFilterNames, warnOfDatabase, warnOfFastReads, warnOfNoClasses } from './agent-names.js';
import { CLOSING_TIMEOUT, type ClosingStep, closeWithin } from './closing.js';
import {
  type ConfigurationReload,
  followConfiguration,
  type ReadableAgain,
} from './configuration-changes.js';
import { followLists } from './list-changes.js';
import { installationOf } from './data/installation.js';
import { openDatabase, type OpenDatabase } from './data/open-database.js';
import { InstanceModule } from './instance.module.js';
import type { InstanceOptions } from './instance-options.js';
import { openObservability, showMetrics } from './observability.js';
import { RoutesApplication } from './routes/routes-application.js';
import { describeStart } from './start-line.js';

type Composed = Pick<InstanceOptions, 'features' | 'overrides' | 'holdsTasks' | 'plugins'>;

/** The start parameters of an instance. Resources that are passed open stay open when the instance closes. */
export interface InstanceSetting extends Composed {
  readonly loaded: LoadedConfig & ReadableAgain;
  readonly environment: Environment;
  /** Default: the gates that the environment opens. */
  readonly gates?: InstanceOptions['gates'];
  /**
   * Whether clients or an application use it: it then has telemetry and logs security warnings. False for commands.
   * Default true.
   */
  readonly serves?: boolean;
  /** Default: the connection of the configuration, opened here. */
  readonly connection?: MongoConnection | null;
  /** An open database that closes with the instance. Default: that of the configuration. */
  readonly database?: OpenDatabase;
  /** Default: memory or Redis, according to the configuration. */
  readonly shared?: SharedState;
  /** Replaces the opened state. Default: no replacement. */
  readonly stateOver?: (shared: SharedState) => SharedState;
  /** `process`: tasks of this process alone. Default: according to the configuration. */
  readonly queue?: TaskQueue | 'process';
  /** Opens the console, where it is served: `openConsole`. Default: there is none. */
  readonly console?: OpensConsole;
  /** Opens the Nest applications that the instance needs beside its own. Default: as they are. */
  readonly start?: StartsApplication;
  /** Receives the telemetry of the instance before any other resource is opened. */
  readonly onObserved?: (observed: Observability) => void;
}

/** Runs the start of a Nest application, whose lines an application around it may not want. */
type StartsApplication = <T>(opening: () => Promise<T>) => Promise<T>;

/** What the console opens itself. */
export interface ConsoleOpening {
  /** Starts its simulations. Default: as they are. */
  readonly start?: StartsApplication | undefined;
}

export interface InstanceConsole {
  /** Receive all records of this process. */
  readonly listeners: readonly AuditSink[];
  /** The module with its routes, at `/console`. */
  routes(app: INestApplicationContext): Promise<DynamicModule>;
}

/** Null where the configuration has no console. */
type OpensConsole = (
  loaded: LoadedConfig & ReadableAgain,
  shared: SharedState,
  opening: ConsoleOpening,
) => Promise<InstanceConsole | null>;

/** The opened resources of an instance, and how to close them. */
interface Resources {
  readonly observed: Observability;
  readonly connection: MongoConnection | null;
  readonly shared: SharedState;
  readonly queue: TaskQueue | undefined;
  /** Closed by the modules after a successful start. */
  readonly openedQueue: TaskQueue | undefined;
  /** The instance's own resources, last opened first. */
  readonly closing: readonly ClosingStep[];
}

/** Milliseconds that the database may take to close. */
const DATABASE_TIMEOUT = 2_000;

/**
 * One instance of Parley: its connections, the Nest application of its modules, its start and its end. The service,
 * `parley stdio`, commands, simulations and `ParleyModule` all use it. An instance has its own container, because an
 * application may hold several, and because no provider of an application may inject an ungoverned port
 * (docs/contributing/decisions/0001-modules.md).
 */
export class ParleyInstance<App extends INestApplicationContext = INestApplicationContext> {
  private readonly log = new Logger('Parley');
  private hideMetrics = (): Promise<void> => Promise.resolve();
  private configuration: ConfigurationReload | null = null;
  private readonly routes: RoutesApplication[] = [];

  private constructor(
    readonly app: App,
    private readonly setting: InstanceSetting,
    private readonly resources: Resources,
    private readonly console: InstanceConsole | null,
  ) {}

  /**
   * Opens the configured resources and creates every provider.
   * @param create creates the Nest application of the root module
   */
  static async open<App extends INestApplicationContext>(
    setting: InstanceSetting,
    create: (module: DynamicModule) => Promise<App>,
  ): Promise<ParleyInstance<App>> {
    const resources = await openResources(setting);
    try {
      const { loaded, environment, gates, features, overrides, holdsTasks, plugins } = setting;
      const { observed, connection, shared, queue } = resources;
      const console = (await setting.console?.(loaded, shared, { start: setting.start })) ?? null;
      const module = InstanceModule.forRoot({
        loaded,
        connection,
        shared,
        observed,
        gates: gates ?? readEnvironmentGates(environment),
        environment,
        ...(queue && { queue }),
        ...(console && { auditListeners: console.listeners }),
        ...(features && { features }),
        ...(overrides && { overrides }),
        ...(holdsTasks && { holdsTasks }),
        ...(plugins && { plugins }),
      });
      return new ParleyInstance(await create(module), setting, resources, console);
    } catch (error) {
      await abandon(resources);
      throw error;
    }
  }

  /** The state that it shares with other replicas. */
  get shared(): SharedState {
    return this.resources.shared;
  }

  /**
   * The start steps that need all tools registered: warnings, the names in agents' limits, list changes, tasks,
   * metrics.
   * @throws ConfigError
   */
  async begin(): Promise<void> {
    const { loaded, environment, serves = true, holdsTasks = false } = this.setting;
    const { app, log } = this;
    if (serves) {
      logSecurityWarnings(loaded, log);
      warnOfNoClasses(loaded.policy, log);
    }
    await app.init();
    await checkFilterNames(loaded, app.get(FilterNames), log, loaded.locate);
    if (!serves) return;
    warnOfFastReads(this.resources.connection, log);
    // The start does not wait for a database that is down.
    void warnOfDatabase(loaded, app.get(FilterNames), log);
    followLists(app);
    if (holdsTasks) app.get(TaskService).begin();
    this.hideMetrics = await showMetrics(app, this.resources.observed, loaded.config, log, environment);
  }

  /** Whether the console is among the routes, at `CONSOLE_PATH`. */
  get hasConsole(): boolean {
    return this.console !== null;
  }

  /**
   * Opens the routes beside MCP, and those of the console. They close with the instance.
   * @param further modules with further controllers
   */
  async openRoutes(further: readonly DynamicModule[] = []): Promise<RoutesApplication> {
    const console = await this.console?.routes(this.app);
    const routes = await RoutesApplication.open(this.app, [...further, ...(console ? [console] : [])]);
    this.routes.push(routes);
    return routes;
  }

  /** Follows the configuration file from now on, if the configuration has one. */
  follow(): ConfigurationReload {
    return (this.configuration ??= followConfiguration(this.app, this.setting.loaded));
  }

  /** Logs what is served, at the end of the start. @param url where MCP is */
  reportStart(url: string): void {
    const { loaded, environment, gates = readEnvironmentGates(environment) } = this.setting;
    const sinks = this.app.get(AuditRecorder).states;
    this.log.log(describeStart({ loaded, gates, environment, sinks, url }));
  }

  /** Refuses new calls and lets running ones end within `server.drainTimeout` seconds. */
  async drain(): Promise<void> {
    this.configuration?.stop();
    const edge = this.app.get(McpEdge);
    const { drainTimeout } = this.setting.loaded.config.server;
    this.log.log(
      new LogMessage('draining', {
        requests: edge.answering,
        streams: edge.activeListeningStreamCount,
        tasks: this.app.get(TaskWorker).active,
        timeout_s: drainTimeout,
      }),
    );
    const grace = drainTimeout * 1000;
    await Promise.all([this.closeRoutes(), edge.close(grace), this.app.get(TaskService).drain(grace)]);
  }

  /** Closes the application and its resources. */
  async close(): Promise<void> {
    this.configuration?.stop();
    const steps: ClosingStep[] = [
      ['the routes', () => this.closeRoutes()],
      ['the application', () => this.app.close()],
      ['the metrics', this.hideMetrics],
    ];
    await closeWithin(CLOSING_TIMEOUT, [...steps, ...this.resources.closing], this.log);
  }

  /** Closes the resources that would keep the process alive after a failed start. */
  async abandon(): Promise<void> {
    await this.closeRoutes();
    await this.hideMetrics();
    await abandon(this.resources);
  }

  private async closeRoutes(): Promise<void> {
    await Promise.all(this.routes.splice(0).map((routes) => routes.close()));
  }
}

const openConfiguredQueue = ({ redis, tasks }: ParleyConfig): Promise<TaskQueue> =>
  openTaskQueue({
    ...redis,
    concurrency: tasks.concurrency,
    lockDuration: tasks.heartbeat * 2000,
    log: new Logger('Tasks'),
  });

/** @throws ConfigError where another installation has the keys of the prefix, or Redis lacks the database */
async function openOwnState({ redis }: ParleyConfig, installation: readonly string[]): Promise<SharedState> {
  try {
    return await openSharedState({ ...redis, installation, log: new Logger('SharedState') });
  } catch (error) {
    if (error instanceof MissingDatabase)
      throw new ConfigError('redis', [{ path: 'redis.url', message: error.message }]);
    if (!(error instanceof ForeignInstallation)) throw error;
    throw new ConfigError('redis', [
      { path: 'redis.prefix', message: `'${redis.prefix}': ${error.message}` },
    ]);
  }
}

/**
 * Makes this instance the only writer of its audit files. A path that cannot be written is reported by the sink, as down.
 * @returns releases them. @throws ConfigError where another process writes one, or the lock of a file that can be written cannot be made
 */
async function holdAuditFiles({ audit }: ParleyConfig): Promise<() => Promise<void>> {
  const releases: (() => Promise<void>)[] = [];
  const releaseAll = async () => void (await Promise.all(releases.map((release) => release())));
  for (const [option, path] of listAuditPaths(audit))
    try {
      releases.push(await holdFile(path));
    } catch (error) {
      if (!(error instanceof FileHeld) && !(await isWritable(path))) continue;
      await releaseAll();
      const message =
        error instanceof FileHeld
          ? error.message
          : `the lock beside ${path} cannot be made (${String((error as NodeJS.ErrnoException).code)}): let the service write the folder`;
      throw new ConfigError('audit', [{ path: option, message }]);
    }
  return releaseAll;
}

const isWritable = (path: string): Promise<boolean> =>
  access(path, constants.W_OK).then(
    () => true,
    () => false,
  );

async function openResources({
  loaded: { config },
  environment,
  serves = true,
  onObserved,
  ...given
}: InstanceSetting): Promise<Resources> {
  const closing: ClosingStep[] = [];
  try {
    closing.unshift(['the audit files', await holdAuditFiles(config)]);
    const observed = serves
      ? await openObservability(config, environment, new Logger('Telemetry'))
      : NOTHING_OBSERVED;
    onObserved?.(observed);
    closing.unshift(['the traces', () => observed.tracing?.close()]);
    const database = given.connection === undefined ? (given.database ?? (await openDatabase(config))) : null;
    if (database)
      closing.unshift([
        'the database',
        () => closeWithin(DATABASE_TIMEOUT, [['the database', () => database.close()]], new Logger('Parley')),
      ]);
    const connection = database ? database.connection : (given.connection ?? null);
    const opened =
      given.shared ?? (await openOwnState(config, installationOf(config, environment, connection)));
    if (!given.shared) closing.unshift(['the shared state', () => opened.close()]);
    const openedQueue = given.queue === undefined ? await openConfiguredQueue(config) : undefined;
    return {
      observed,
      connection,
      shared: given.stateOver?.(opened) ?? opened,
      queue: given.queue === 'process' ? undefined : (given.queue ?? openedQueue),
      openedQueue,
      closing,
    };
  } catch (error) {
    for (const [, close] of closing) await close();
    throw error;
  }
}

async function abandon({ openedQueue, closing }: Resources): Promise<void> {
  await openedQueue?.close();
  for (const [, close] of closing) await close();
}

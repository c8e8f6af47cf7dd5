import {
  type DynamicModule,
  type INestApplicationContext,
  Logger,
  type LoggerService,
  Module,
  type ModuleMetadata,
  type OnApplicationShutdown,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { getParleyToken, loadWithPlugins, Parley, ParleyModule } from '@parley/server';
import type { LoadedConfig, ParleyModuleOptions } from '@parley/server';
import { resolve } from 'node:path';
import { assertKeys } from './known-names.js';
import { TestingApplication } from './testing-application.js';
import { TestingDatabase } from './testing-database.js';
import { readGates, type TestingOptions } from './testing-options.js';

/** Seconds that running calls have to end after a test. */
const DRAIN = 1;

@Module({})
class TestingRoot {}

type Host = OnApplicationShutdown & { readonly parley: Parley };

const isHost = (made: unknown): made is Host => {
  const { parley, onApplicationShutdown: close } = (made ?? {}) as Partial<Host>;
  return parley instanceof Parley && typeof close === 'function';
};

/** Closes what Parley opened for an application whose start fails: Nest returns nothing that could be closed. */
class OpenedHosts {
  private readonly hosts: Host[] = [];
  private failed = false;

  readonly watch = <T>(made: T): T => {
    if (isHost(made)) {
      this.hosts.push(made);
      // Other providers of a failed start are still being made.
      if (this.failed) void made.onApplicationShutdown();
    }
    return made;
  };

  async close(): Promise<void> {
    this.failed = true;
    await Promise.all(this.hosts.map((host) => host.onApplicationShutdown()));
  }
}

/**
 * Starts an application with Parley in it: every gate, the audit and the real driver over a database in memory. It
 * opens no port; its database uses a unix socket.
 * @throws ConfigError listing every error of the options or the configuration file. @throws Error for an invalid seed
 */
export async function createTestingApplication(options: TestingOptions = {}): Promise<TestingApplication> {
  const { seed: seedOfFile, ...sections } = await readConfiguration(options);
  const seed = options.seed ?? seedOfFile;
  const restoreLog = logTo(options.logger);
  let database: TestingDatabase | undefined;
  const hosts = new OpenedHosts();
  try {
    database = await TestingDatabase.start(seed);
    const { uri } = database;
    const given = moduleOptions(options, sections, uri);
    const context = await NestFactory.createApplicationContext(createRoot(options, given), {
      // A failed start rejects and must not end the test process.
      abortOnError: false,
      instrument: { instanceDecorator: hosts.watch },
    });
    const opened = database;
    return new TestingApplication({
      context,
      parley: context.get(Parley),
      database,
      classes: Object.keys(given.policy?.classes ?? {}),
      close: async () => {
        try {
          await context.close();
          await opened.close();
        } finally {
          restoreLog();
        }
      },
    });
  } catch (error) {
    await hosts.close();
    await database?.close();
    restoreLog();
    throw error;
  }
}

/**
 * The same over an existing application, such as a testing module of Nest. Closing it closes that application.
 * @param setting name of the instance (default `default`), and the database that its options name, which is then closed
 * with it
 */
export function createTestingOver(
  context: INestApplicationContext,
  setting: { readonly instance?: string; readonly database?: TestingDatabase } = {},
): TestingApplication {
  assertKeys('createTestingOver', setting, ['instance', 'database']);
  const { instance, database } = setting;
  return new TestingApplication({
    context,
    parley: context.get<Parley>(getParleyToken(instance), { strict: false }),
    database: database ?? null,
    classes: [],
    close: async () => {
      await context.close();
      await database?.close();
    },
  });
}

/** Options that are not of the kit are those of the module, which refuses unknown ones. */
function moduleOptions(options: TestingOptions, read: ConfigurationRead, uri: string): ParleyModuleOptions {
  const {
    seed: _seed,
    config: _config,
    env: _env,
    tools: _tools,
    providers: _providers,
    imports: _imports,
    seams: _seams,
    pluginsAreListed: _pluginsAreListed,
    logger: _logger,
    gates,
    database,
    ...sections
  } = options;
  assertKeys('database', database, ['storage']);
  return {
    ...read,
    ...Object.fromEntries(Object.entries(sections).filter(([, section]) => section !== undefined)),
    server: { drainTimeout: DRAIN, ...read.server, ...options.server },
    database: { ...database, uri },
    gates: readGates(gates),
    environment: {},
  };
}

function createRoot(options: TestingOptions, parley: ParleyModuleOptions): DynamicModule {
  const { tools = [], providers = [], imports = [], seams = [] } = options;
  const modules = [...imports] as NonNullable<ModuleMetadata['imports']>;
  return {
    module: TestingRoot,
    imports: [ParleyModule.forRoot({ ...parley, providers: seams }), ...modules],
    providers: [...tools, ...providers],
  };
}

/** The sections of a file that a test covers. */
type ConfigurationRead = Pick<
  TestingOptions,
  'policy' | 'agents' | 'server' | 'approvals' | 'tasks' | 'exports' | 'seed'
>;

/**
 * Reads policy, agents and dependent sections of a configuration file.
 * @throws ConfigError listing every error of the file. @throws TypeError for unlisted plugins
 */
async function readConfiguration({
  config,
  env = {},
  pluginsAreListed = false,
}: TestingOptions): Promise<ConfigurationRead> {
  if (config === undefined) return {};
  const { PARLEY_SEED: _, ...given } = env;
  const loaded = await loadWithPlugins({ ...given, PARLEY_CONFIG: resolve(config) });
  if (loaded.plugins.length > 0 && !pluginsAreListed)
    throw new TypeError(
      `${config} has plugins: list their classes in tools, and say so with pluginsAreListed: true`,
    );
  const { policy, server, approvals, tasks, exports, database } = loaded.config;
  return {
    policy,
    agents: listAgents(loaded),
    server: { approvalTimeout: server.approvalTimeout },
    // No webhook receives anything.
    approvals: { ...approvals, webhook: null },
    tasks,
    exports,
    ...(database.seed !== null && { seed: database.seed }),
  };
}

/**
 * The identity of an agent may depend on the auth rules, which are left out. It is set here, so that it is not the
 * master key by default.
 */
function listAgents({ config, identities }: LoadedConfig): NonNullable<ParleyModuleOptions['agents']> {
  return Object.fromEntries(
    Object.entries(config.agents).map(([name, agent]) => {
      const byCaller = identities.get(name) === 'callerSession' && agent.identity === undefined;
      return [name, byCaller ? { ...agent, identity: { session: 'caller' } } : agent];
    }),
  );
}

const NOWHERE: LoggerService = {
  log: () => undefined,
  error: () => undefined,
  warn: () => undefined,
};

/** Nest has one logger per process: the previous one is restored when the last application has ended. */
class ProcessLogger extends Logger {
  private static before: LoggerService | undefined;
  private static users = 0;

  static use(logger: LoggerService): () => void {
    if (ProcessLogger.users === 0) ProcessLogger.before = Logger.staticInstanceRef;
    ProcessLogger.users += 1;
    Logger.overrideLogger(logger);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      ProcessLogger.users -= 1;
      if (ProcessLogger.users === 0) Logger.staticInstanceRef = ProcessLogger.before;
    };
  }
}

/** Redirects log lines to the logger, or drops them, until the returned function is called. */
function logTo(logger: LoggerService = NOWHERE): () => void {
  return ProcessLogger.use(logger);
}

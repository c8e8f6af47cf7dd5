import {
  type DynamicModule,
  type INestApplicationContext,
  Module,
  type ModuleMetadata,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { getParleyToken, Parley, ParleyModule, type ParleyModuleOptions } from '@parley/server';
import { type ConfigurationRead, readConfiguration } from './configuration-file.js';
import { logTo } from './quiet-logging.js';
import { TestingApplication } from './testing-application.js';
import { TestingDatabase } from './testing-database.js';
import { gatesOf, type TestingOptions } from './testing-options.js';

/** Seconds that running calls have to end in when a test is over. */
const DRAIN = 1;

@Module({})
class TestingRoot {}

/**
 * Starts an application with Parley in it: every gate, the audit and the real driver over a database in memory. It listens
 * nowhere; its database is reached over a unix socket.
 * @throws ConfigError listing every fault of the options or the configuration file. @throws Error for a seed that cannot be
 */
export async function createTestingApplication(options: TestingOptions = {}): Promise<TestingApplication> {
  const { seed: seedOfFile, ...sections } = await readConfiguration(options);
  const seed = options.seed ?? seedOfFile;
  const restoreLog = logTo(options.logger);
  let database: TestingDatabase | undefined;
  try {
    database = await TestingDatabase.start(seed);
    const { uri } = database;
    const given = moduleOptions(options, sections, uri);
    const context = await NestFactory.createApplicationContext(rootOf(options, given), {
      // A start that fails is told to the test; it must not end its process.
      abortOnError: false,
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
    await database?.close();
    restoreLog();
    throw error;
  }
}

/**
 * The same over an application that exists, a testing module of Nest say. Closing it closes that application.
 * @param setting name of the instance (default `default`), and the database that its options name, which is then closed along
 */
export function testingOver(
  context: INestApplicationContext,
  { instance, database }: { readonly instance?: string; readonly database?: TestingDatabase } = {},
): TestingApplication {
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

function moduleOptions(options: TestingOptions, read: ConfigurationRead, uri: string): ParleyModuleOptions {
  const { policy, agents, approvals, tasks, exports, subscriptions, embeddings } = options;
  const given = { policy, agents, approvals, tasks, exports, subscriptions, embeddings };
  return {
    ...read,
    ...Object.fromEntries(Object.entries(given).filter(([, section]) => section !== undefined)),
    server: { drainTimeout: DRAIN, ...read.server, ...options.server },
    database: { uri },
    gates: gatesOf(options.gates),
    environment: {},
  };
}

function rootOf(options: TestingOptions, parley: ParleyModuleOptions): DynamicModule {
  const { tools = [], providers = [], imports = [], seams = [] } = options;
  const modules = [...imports] as NonNullable<ModuleMetadata['imports']>;
  return {
    module: TestingRoot,
    imports: [
      ParleyModule.forRoot({ ...parley, providers: seams }),
      ParleyModule.forFeature(tools, { providers, imports: modules }),
    ],
  };
}

import { NestFactory } from '@nestjs/core';
import type { Agent } from '#agent';
import { type AuditRecord, AuditSink } from '#audit';
import { processState } from '#cluster';
import {
  CachedPrincipalDirectory,
  RecordReader,
  RecordSearcher,
  RecordWriter,
  SchemaCatalogue,
  SchemaWriter,
} from '#data';
import { MongoConnection } from '#data-mongo';
import {
  Approver,
  DataBudgets,
  RecordingSchemaWriter,
  RecordingSearcher,
  RecordingStore,
  RecordingWriter,
  RecordsSource,
  Rehearser,
  rehearsingAgent,
  RehearsingApprover,
} from '#dispatcher';
import { readEnvironmentGates } from '#policy';
import { type SchemaReader, ToolRegistry, ToolRunner } from '#tools';
import {
  AppModule,
  type LoadedWithPlugins,
  toolsOfPlugins,
  catalogueOf,
  directoryOf,
  parseConnectionOf,
  openDatabase,
} from '#composition';
import type { Environment } from '#config';
import { ServiceLogger } from '../logging/service-logger.js';
import { rehearsedEmbeddings } from './rehearsing-embeddings.js';
import { rehearsedIdentity, RehearsingDirectory } from './rehearsing-directory.js';

/** Rehearsed calls are nobody's, so they leave no record. */
class NoAudit extends AuditSink {
  record(_entry: AuditRecord): void {}
}

/** Code of a plugin may do anything, so a rehearsal ends where it would begin. */
const notRun = () => ({ rehearsed: 'the gates only: the code of a plugin is not run' });

/** Stands for the schema of a result that there is none of. */
const ANYTHING: SchemaReader = { jsonSchema: {}, compile: () => (value) => ({ ok: true, value }) };

/** The service as it would be served, with nothing behind it but schema and roles. */
export interface RehearsalRoom {
  readonly rehearser: Rehearser;
  readonly runner: ToolRunner;
  readonly records: RecordsSource;
  /** Every agent of the configuration, by name. */
  readonly agents: ReadonlyMap<string, Agent>;
  close(): Promise<void>;
}

export interface RehearsalOptions {
  /** What takes the place of the database's own catalogue. */
  readonly schemas?: (read: SchemaCatalogue) => SchemaCatalogue;
  /** Id of the user whose session an agent reads with that reads with its caller's. Default: a user without roles. */
  readonly user?: string;
  /** A connection to the database that is open already. Default: one of its own. */
  readonly connection?: MongoConnection | null;
  /** False leaves the log of the process as it is. Default true: faults alone. */
  readonly quiet?: boolean;
}

/**
 * Composes the service over a connection that is closed: whatever an adapter would send has nowhere to go. Only the schema
 * catalogue and the directory of roles are given one that works.
 */
export async function openRehearsal(
  loaded: LoadedWithPlugins,
  env: Environment,
  options: RehearsalOptions = {},
): Promise<RehearsalRoom> {
  const { connection, quiet = true } = options;
  const database =
    connection === undefined
      ? await openDatabase(loaded.config.database)
      : { connection, close: () => Promise.resolve() };
  try {
    const closed = new MongoConnection({ uri: 'mongodb://127.0.0.1', database: loaded.config.database.name });
    await closed.close();
    const store = new RecordingStore();
    const connections = { mongo: database.connection, parse: parseConnectionOf(loaded.config.parse) };
    const read = catalogueOf(connections);
    const approver = new RehearsingApprover();
    const directory = new RehearsingDirectory(directoryOf(connections));
    // A rehearsal is nobody's call: replicas hear nothing of it.
    const shared = processState();
    // And nothing of it is kept.
    const audit = { ...loaded.config.audit, sinks: [] };
    const service = AppModule.compose({
      loaded: { ...loaded, config: { ...loaded.config, audit } },
      connection: closed,
      shared,
      gates: readEnvironmentGates(env),
    });
    const app = await NestFactory.createApplicationContext(
      {
        ...service,
        // A later provider of a token replaces an earlier one.
        providers: [
          ...(service.providers ?? []),
          { provide: SchemaCatalogue, useValue: options.schemas?.(read) ?? read },
          { provide: RecordReader, useValue: store },
          { provide: RecordSearcher, useValue: new RecordingSearcher(store) },
          ...rehearsedEmbeddings(loaded),
          { provide: RecordWriter, useValue: new RecordingWriter(store) },
          { provide: SchemaWriter, useValue: new RecordingSchemaWriter(store) },
          { provide: CachedPrincipalDirectory, useValue: new CachedPrincipalDirectory(directory) },
          { provide: Approver, useValue: approver },
          { provide: AuditSink, useClass: NoAudit },
          { provide: DataBudgets, useValue: new DataBudgets(shared.budgets, () => null) },
        ],
      },
      // A fault is told to whoever asked; it must not end the process.
      { abortOnError: false, ...(quiet && { logger: new ServiceLogger({ logLevels: ['error', 'fatal'] }) }) },
    );
    const registry = app.get<ToolRegistry>(ToolRegistry);
    for (const { methodName: _method, ...declared } of toolsOfPlugins(loaded.plugins))
      registry.register({ ...declared, output: ANYTHING, handler: notRun });
    const runner = app.get<ToolRunner>(ToolRunner);
    return {
      rehearser: new Rehearser(runner, store, approver),
      runner,
      records: app.get<RecordsSource>(RecordsSource),
      agents: new Map(
        [...loaded.agents].map(([name, shape]): [string, Agent] => {
          const identity = rehearsedIdentity(loaded.identities.get(name), options.user);
          return [name, rehearsingAgent(shape, identity && { identity })];
        }),
      ),
      close: async () => {
        await app.close();
        await database.close();
      },
    };
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** @throws Error listing the agents there are */
export function agentNamed(name: string, { agents }: Pick<RehearsalRoom, 'agents'>): Agent {
  const agent = agents.get(name);
  if (!agent)
    throw new Error(`no agent named '${name}'; the configuration has: ${[...agents.keys()].join(', ')}`);
  return agent;
}

import type { INestApplicationContext, LoggerService, Provider } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { type Agent, type Identity, isUserId, sessionIdentity } from '#core';
import { type AuditRecord, AuditSink } from '#audit';
import { processState } from '#state';
import type { AgentIdentity } from '#auth';
import { ConfigVersions, type LoadedConfig } from '#config';
import {
  CachedPrincipalDirectory,
  type ChangeSet,
  ChangeSets,
  type Embedding,
  EmbeddingProvider,
  estimateTokens,
  NoRowTransactions,
  PrincipalDirectory,
  type UserField,
  ReadStore,
  RowTransactions,
  SchemaCatalogue,
  SchemaWriter,
  SearchStore,
  type SessionOwner,
  WriteStore,
} from '#data';
import { MongoConnection } from '#data-mongo';
import { ParseConnection } from '#data-parse';
import {
  type AgentSurface,
  Approver,
  recordedReads,
  recordedSearches,
  recordedWrites,
  RecordingSchemaWriter,
  RecordingStore,
  RecordsSource,
  type SimulatedCall,
  Simulator,
  createSimulatedAgent,
  SimulatedApprover,
  describeSurface,
  TENANT_BUDGETS,
} from '#dispatcher';
import type { EnvironmentGates } from '#policy';
import { type SchemaReader, ToolEnvironment, type ToolRegistration, ToolRegistry, ToolRunner } from '#tools';
import { catalogueOf } from './data/adapters.module.js';
import { ParleyInstance } from './parley-instance.js';

/** Replaces the embeddings endpoint: it sends nothing, and every text has the same vector. */
class SimulatedEmbeddings extends EmbeddingProvider {
  readonly model = 'rehearsal';

  constructor(readonly dimensions: number) {
    super();
  }

  embed(text: string): Promise<Embedding> {
    const vector = Array.from({ length: this.dimensions }, (_, at) => (at === 0 ? 1 : 0));
    return Promise.resolve({ vector, tokens: estimateTokens(text) });
  }
}

/** None where none are configured, so that a simulation refuses the same calls. */
function createSimulatedEmbeddings({ config: { embeddings } }: LoadedConfig): Provider[] {
  if (!embeddings) return [];
  return [{ provide: EmbeddingProvider, useValue: new SimulatedEmbeddings(embeddings.dimensions) }];
}

/** An id of no real user: a signed-in user without roles. */
const SIMULATED_USER = 'rehearsal';

/** The roles of the database. A session belongs to the user that its token names; one of the configuration names none: its user has no roles. */
export class SimulatedDirectory extends PrincipalDirectory {
  constructor(private readonly roles: PrincipalDirectory) {
    super();
  }

  ownerOfSession(token: string): Promise<SessionOwner | null> {
    return Promise.resolve({ userId: isUserId(token) ? token : SIMULATED_USER, expiresAt: null });
  }

  findUser(field: UserField, value: string): Promise<string | null> {
    return this.roles.findUser(field, value);
  }

  rolesOfUser(userId: string): Promise<readonly string[]> {
    return userId === SIMULATED_USER ? Promise.resolve([]) : this.roles.rolesOfUser(userId);
  }

  rolesOfRole(name: string): Promise<readonly string[] | null> {
    return this.roles.rolesOfRole(name);
  }
}

/** @param user whose session is simulated, for an agent that reads with its caller's session */
export function createSimulatedIdentity(
  identity: AgentIdentity | undefined,
  user = SIMULATED_USER,
): Identity | undefined {
  if (identity === 'callerSession') return sessionIdentity(user);
  if (identity?.kind === 'claimedUser') return { kind: 'aclUser', userId: user };
  return identity?.kind === 'impersonate' ? sessionIdentity(identity.userId) : identity;
}

/** Simulated calls propose nothing that is there afterwards. */
class NoChangeSets extends ChangeSets {
  create(): Promise<true> {
    return Promise.resolve(true);
  }

  find(): Promise<null> {
    return Promise.resolve(null);
  }

  findOpen(): Promise<null> {
    return Promise.resolve(null);
  }

  list(): Promise<readonly ChangeSet[]> {
    return Promise.resolve([]);
  }

  change(): Promise<true> {
    return Promise.resolve(true);
  }
}

/** Simulated calls leave no record. */
class NoAudit extends AuditSink {
  record(_entry: AuditRecord): void {}
}

/** Application code can have any effect, so a simulation ends before it. */
const notRun = () => ({ rehearsed: 'the gates only: code of an application is not run' });

/** Replaces the schema of a result, because there is no result. */
const ANYTHING: SchemaReader = { jsonSchema: {}, compile: () => (value) => ({ ok: true, value }) };

/** The composed service with only schema and roles behind it. */
export interface SimulatedInstance {
  /** @internal */
  readonly simulator: Simulator;
  /** @internal */
  readonly runner: ToolRunner;
  /** @internal */
  readonly records: RecordsSource;
  /** Every agent of the configuration, by name. */
  readonly agents: ReadonlyMap<string, Agent>;
  /**
   * Simulates a call and returns the outcome and its reasons. One at a time. Nothing is read, written or consumed, and
   * no tool code runs.
   * @param agent one of `agents`, or any other
   */
  simulate(agent: Agent, tool: string, args: object): Promise<SimulatedCall>;
  /** What an agent may do with these classes: one simulated call per tool and class. */
  surfaceOf(agent: Agent, classNames: readonly string[]): Promise<AgentSurface>;
  /** Closes it; later calls fail. */
  close(): Promise<void>;
}

export interface SimulationSetting {
  readonly gates: EnvironmentGates;
  readonly schemas: SchemaCatalogue;
  /** The roles of users, and the users of sessions. */
  readonly directory: PrincipalDirectory;
  /** Whether the database can search, on which the list of tools depends. Default: not known. */
  readonly searcher?: Pick<SearchStore, 'canSearch'>;
  /** Tools of the application: their gates are simulated, their code does not run. Default none. */
  readonly tools?: readonly Omit<ToolRegistration, 'handler'>[];
  /**
   * User id of the simulated session, for an agent that reads with its caller's session, and of the caller in row filters.
   * Default: a user without roles, and none in row filters.
   */
  readonly user?: string;
  /** Default: the logger of the process. */
  readonly logger?: LoggerService;
}

/**
 * Composes the service over a closed connection, so that no adapter can send anything. Only the schema catalogue and
 * the directory of roles have a working connection.
 */
export async function openSimulation(
  loaded: LoadedConfig,
  { gates, schemas, directory, searcher, tools = [], user, logger }: SimulationSetting,
): Promise<SimulatedInstance> {
  const closed = new MongoConnection({ uri: 'mongodb://127.0.0.1', database: loaded.config.database.name });
  await closed.close();
  const { classes } = loaded.policy;
  const store = new RecordingStore((className) => classes.get(className)?.database);
  const approver = new SimulatedApprover();
  // Other replicas receive nothing of a simulated call.
  const shared = processState();
  // A simulated call stores nothing.
  const audit = { ...loaded.config.audit, sinks: [] };
  const setting = {
    loaded: { ...loaded, config: { ...loaded.config, audit } },
    environment: {},
    serves: false,
    connection: closed,
    shared,
    queue: 'process' as const,
    gates,
    overrides: [
      { provide: SchemaCatalogue, useValue: schemas },
      { provide: ReadStore, useValue: recordedReads(store) },
      { provide: SearchStore, useValue: recordedSearches(store, searcher) },
      ...createSimulatedEmbeddings(loaded),
      { provide: WriteStore, useValue: recordedWrites(store) },
      { provide: ChangeSets, useValue: new NoChangeSets() },
      { provide: RowTransactions, useValue: new NoRowTransactions('a simulation applies nothing') },
      { provide: SchemaWriter, useValue: new RecordingSchemaWriter(store) },
      { provide: CachedPrincipalDirectory, useValue: new CachedPrincipalDirectory(directory) },
      { provide: Approver, useValue: approver },
      { provide: AuditSink, useClass: NoAudit },
      { provide: TENANT_BUDGETS, useValue: { of: () => ({ tenantBudget: null }) } },
    ],
  };
  const instance = await ParleyInstance.open(setting, (module) =>
    NestFactory.createApplicationContext(module, {
      // An error is returned to the caller and must not end the process.
      abortOnError: false,
      ...(logger && { logger }),
    }),
  );
  const { app } = instance;
  const registry = app.get<ToolRegistry>(ToolRegistry);
  for (const { definition, input, override } of tools)
    registry.register({
      definition,
      ...(input && { input }),
      ...(override !== undefined && { override }),
      output: ANYTHING,
      handler: notRun,
    });
  const runner = app.get<ToolRunner>(ToolRunner);
  const parts = {
    simulator: new Simulator(runner, store, approver),
    runner,
    records: app.get<RecordsSource>(RecordsSource),
  };
  const agents = new Map(
    [...loaded.agents].map(([name, definition]): [string, Agent] => {
      const identity = createSimulatedIdentity(loaded.identities.get(name), user);
      return [
        name,
        createSimulatedAgent(definition, {
          ...(identity && { identity }),
          ...(user !== undefined && { user }),
        }),
      ];
    }),
  );
  const own = new Set(agents.values());
  // A simulation consumes no budget.
  const simulateAs = (agent: Agent) =>
    own.has(agent)
      ? agent
      : createSimulatedAgent(agent.definition, {
          identity: agent.identity,
          tenantId: agent.tenantId,
          claims: agent.claims,
          user: agent.user,
        });
  return {
    ...parts,
    agents,
    simulate: (agent, tool, args) => parts.simulator.simulate(simulateAs(agent), tool, args),
    surfaceOf: (agent, classNames) => describeSurface(parts, simulateAs(agent), classNames),
    close: () => instance.close(),
  };
}

/** Real sessions, and simulated sessions for the callers of agents that read with their caller's session. */
class InstanceDirectory extends SimulatedDirectory {
  constructor(
    private readonly instance: PrincipalDirectory,
    private readonly stand: ReadonlySet<string>,
  ) {
    super(instance);
  }

  override async ownerOfSession(token: string): Promise<SessionOwner | null> {
    const owner = await this.instance.ownerOfSession(token);
    return owner ?? (this.stand.has(token) ? super.ownerOfSession(token) : null);
  }
}

interface InstanceSimulation {
  /** Default: the current version of the configuration. */
  readonly loaded?: LoadedConfig;
  /** Replaces the catalogue that the simulation would read. Default: it is read. */
  readonly schemas?: (read: SchemaCatalogue) => SchemaCatalogue;
  /** `simulated`: every session is that of the user whom its token names; no real one is looked up. Default `real`. */
  readonly sessions?: 'real' | 'simulated';
}

/** A simulation beside a running instance, with a version of its configuration, its gates, tools, schema and roles. */
export function simulateInstance(
  context: INestApplicationContext,
  { loaded, schemas, sessions = 'real' }: InstanceSimulation = {},
): Promise<SimulatedInstance> {
  const tools = context.get<ToolRegistry>(ToolRegistry).all();
  const { current } = context.get(ConfigVersions);
  const version = loaded ?? current;
  // The session of an agent itself is a real one.
  const tokens = [...version.identities.values()].flatMap((own) => {
    const identity = createSimulatedIdentity(own);
    return identity !== own && identity?.kind === 'sessionToken' ? [identity.token] : [];
  });
  const roles = context.get<PrincipalDirectory>(PrincipalDirectory);
  const read = catalogueOfVersion(context, version, current);
  return openSimulation(version, {
    gates: context.get<EnvironmentGates>(ToolEnvironment),
    schemas: schemas?.(read) ?? read,
    directory:
      sessions === 'simulated'
        ? new SimulatedDirectory(roles)
        : new InstanceDirectory(roles, new Set(tokens)),
    searcher: context.get<SearchStore>(SearchStore),
    tools: tools
      .filter(({ builtIn }) => !builtIn)
      .map(({ definition, input }) => ({ definition, override: true, ...(input && { input }) })),
  });
}

/** How classes are stored depends on the policy: the catalogue of the instance is that of the current version. */
function catalogueOfVersion(
  context: INestApplicationContext,
  version: LoadedConfig,
  current: LoadedConfig,
): SchemaCatalogue {
  if (version.policy === current.policy) return context.get<SchemaCatalogue>(SchemaCatalogue);
  const connections = {
    mongo: context.get<MongoConnection | null>(MongoConnection),
    parse: context.get<ParseConnection | null>(ParseConnection),
  };
  return catalogueOf(connections, () => version.policy);
}

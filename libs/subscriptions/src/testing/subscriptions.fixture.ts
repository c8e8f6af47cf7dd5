import { NEVER } from 'rxjs';
import {
  Agent,
  type AgentOptions,
  CurrentAgents,
  type Identity,
  compileAgentDefinition,
  sessionIdentity,
  McpRequest,
} from '#core';
import { processState, ProcessSubscriptionStore, SuspendedAgents } from '#state';
import {
  type ChangeSource,
  GovernedRecordsSource,
  MemoryChangeSets,
  type ParseRow,
  PrincipalResolver,
} from '#data';
import {
  loadSeed,
  MongoChangeFeed,
  MongoConnection,
  MongoPrincipalDirectory,
  MongoRecordReader,
  MongoRecordWriter,
  MongoSchemaCatalogue,
  parseSeed,
} from '#data-mongo';
import { ResourceRegistry } from '#dispatcher';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { AgentScopes, compilePolicy, Policies } from '#policy';
import { FeedSource, WatchService } from '../watching.js';
import { HeldSessions } from '../held-sessions.js';
import { ReplicaMessages } from '../replica-messages.js';
import { SubscriptionLimits, type SubscriptionOptions } from '../subscription-limits.js';
import { SubscriptionManager } from '../subscription-manager.js';
import { LossyBus } from './lossy-bus.js';
import { SmallStreams } from './small-streams.js';

const LATER = '2099-01-01T00:00:00.000Z';

const SEED = {
  schemas: [
    {
      className: 'Post',
      fields: {
        title: { type: 'String' },
        org: { type: 'String' },
        archived: { type: 'Boolean' },
        owner: { type: 'Pointer', targetClass: '_User' },
      },
    },
    {
      className: 'Diary',
      fields: { owner: { type: 'Pointer', targetClass: '_User' } },
      classLevelPermissions: {
        find: { pointerFields: ['owner'] },
        count: { pointerFields: ['owner'] },
        get: { pointerFields: ['owner'] },
      },
    },
    { className: 'Payroll', fields: {}, classLevelPermissions: { find: {}, count: {}, get: {} } },
    { className: 'Secret', fields: {} },
  ],
  users: ['ada', 'bob'].map((name) => ({ objectId: name, username: name })),
  sessions: ['ada', 'bob'].map((user) => ({ sessionToken: `r:${user}`, user, expiresAt: LATER })),
  objects: {},
};

const { policy } = compilePolicy({
  unlistedClasses: 'allow',
  classes: {
    Post: { tenantScope: { field: 'org', bypass: ['admin'] }, canonicalFilter: { archived: { $ne: true } } },
    Secret: { hidden: true },
  },
});

const EDITOR = compileAgentDefinition('editor', {});
const ADMIN = compileAgentDefinition('admin', { permissions: 'admin' });

export const admin = (principal = 'root'): AgentOptions => ({ definition: ADMIN, principal });
export const tenant = (tenantId: string): AgentOptions => ({
  definition: EDITOR,
  principal: tenantId,
  tenantId,
});
export const createActing = (identity: Identity): AgentOptions => ({
  definition: ADMIN,
  identity,
  principal: 'acting',
});
export const createSignedIn = (user: string): AgentOptions => createActing(sessionIdentity(`r:${user}`));

export interface Replica {
  readonly manager: SubscriptionManager;
  subscribe(session: string | undefined, uri: string, agent: AgentOptions): Promise<boolean>;
  unsubscribe(session: string, uri: string): Promise<void>;
}

/** Agents of a configuration that does not change, unless a test says what they are now. */
class FixedAgents extends CurrentAgents {
  readonly changes = NEVER;

  constructor(private readonly now: (agent: Agent) => Agent | null = (agent) => agent) {
    super();
  }

  findDefinition(): undefined {
    return undefined;
  }

  knows(): boolean {
    return true;
  }

  asNow(agent: Agent): Agent | null {
    return this.now(agent);
  }

  isCurrent(): boolean {
    return true;
  }

  digestRights(): string {
    return '';
  }
}

/** A database of its own, and replicas of Parley's subscriptions over it. */
export class WatchedPosts {
  readonly streams = new SmallStreams();
  readonly store = new ProcessSubscriptionStore();
  readonly warnings: string[] = [];
  readonly suspended = new SuspendedAgents(processState());
  readonly bus = new LossyBus();
  private readonly managers: SubscriptionManager[] = [];

  private constructor(
    private readonly server: EmbeddedMongo,
    private readonly connection: MongoConnection,
    private readonly catalogue: MongoSchemaCatalogue,
  ) {}

  static async open(): Promise<WatchedPosts> {
    const server = await EmbeddedMongo.start();
    const connection = new MongoConnection({ uri: server.uri, database: 'posts' });
    await loadSeed(connection, parseSeed(SEED));
    return new WatchedPosts(server, connection, new MongoSchemaCatalogue(connection));
  }

  /** @param other sources preferred to the change stream */
  async replica(
    options: SubscriptionOptions = { debounce: 0 },
    other: ChangeSource[] = [],
    asNow?: (agent: Agent) => Agent | null,
  ): Promise<Replica> {
    const reader = new MongoRecordReader(this.connection, this.catalogue);
    const identities = new PrincipalResolver(new MongoPrincipalDirectory(this.connection));
    const records = new GovernedRecordsSource(
      new AgentScopes(new Policies(policy)),
      reader,
      this.catalogue,
      identities,
    );
    const feed = new MongoChangeFeed(this.connection, this.catalogue);
    await feed.probe();
    const limits = new SubscriptionLimits(options);
    const log = { warn: (line: string) => void this.warnings.push(line) };
    const sources = { preferred: [...other, new FeedSource(feed)], close: () => undefined };
    const agents = new FixedAgents(asNow);
    const service = new WatchService(
      records,
      sources,
      new ResourceRegistry(),
      agents,
      this.suspended,
      limits,
      { bus: this.bus },
      new MemoryChangeSets(),
      { permits: () => true },
      log,
    );
    const streams = this.streams.replica();
    const state = { subscriptions: this.store };
    const manager = new SubscriptionManager(
      limits,
      service,
      new HeldSessions(service, streams, state, log),
      new ReplicaMessages(this.bus),
      streams,
      state,
      log,
    );
    this.managers.push(manager);
    return {
      manager,
      subscribe: (session, uri, agent) => manager.subscribe(uri, createContext(agent, session)),
      unsubscribe: (session, uri) => manager.unsubscribe(uri, createContext(admin(), session)),
    };
  }

  async create(className: string, fields: ParseRow): Promise<string> {
    return String((await this.writer.create(className, fields, UNHURRIED))['objectId']);
  }

  async update(className: string, objectId: string, fields: ParseRow): Promise<void> {
    await this.writer.update(className, objectId, fields, {}, UNHURRIED);
  }

  async delete(className: string, objectId: string): Promise<void> {
    await this.writer.delete(className, objectId, {}, UNHURRIED);
  }

  async endSession(sessionToken: string): Promise<void> {
    await this.connection.collection('_Session').deleteOne({ _session_token: sessionToken });
  }

  async close(): Promise<void> {
    for (const manager of this.managers) manager.close();
    await this.connection.close();
    await this.server.close();
  }

  private get writer(): MongoRecordWriter {
    return new MongoRecordWriter(this.connection, this.catalogue);
  }
}

const UNHURRIED = { maxTimeMS: 30_000, comment: 'test', signal: new AbortController().signal };

export function createContext(agent: AgentOptions, sessionId?: string): McpRequest {
  return new McpRequest(new Agent(agent), {
    era: 'legacy',
    version: '2025-06-18',
    clientCapabilities: {},
    signal: UNHURRIED.signal,
    sessionId,
  });
}

import {
  Agent,
  type AgentOptions,
  compileAgentDefinition,
  type Identity,
  sessionIdentity,
  type RequestContext,
} from '#core';
import { ProcessMessageBus, ProcessSubscriptionStore } from '#state';
import {
  type ChangeSource,
  GovernedRecordsSource,
  GovernedViews,
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
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { AgentScopes, compilePolicy, Policies } from '#policy';
import { FeedSource } from '../feed-source.js';
import {
  SubscriptionManager,
  type SubscriptionOptions,
  type SubscriptionDependencies,
} from '../subscription-manager.js';
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
  classes: {
    Post: { tenantScope: { field: 'org', bypass: ['admin'] }, canonicalFilter: { archived: { $ne: true } } },
    Secret: { hidden: true },
  },
});

const EDITOR = compileAgentDefinition('editor', {});
const ADMIN = compileAgentDefinition('admin', { permissions: 'admin' });

export const admin = (principal = 'root'): AgentOptions => ({ shape: ADMIN, principal });
export const tenant = (tenantId: string): AgentOptions => ({ shape: EDITOR, principal: tenantId, tenantId });
export const acting = (identity: Identity): AgentOptions => ({ shape: ADMIN, identity, principal: 'acting' });
export const signedIn = (user: string): AgentOptions => acting(sessionIdentity(`r:${user}`));

export interface Replica {
  readonly manager: SubscriptionManager;
  subscribe(session: string | undefined, uri: string, agent: AgentOptions): Promise<boolean>;
  unsubscribe(session: string, uri: string): Promise<void>;
}

/** A database of its own, and replicas of Parley's subscriptions over it. */
export class WatchedPosts {
  readonly streams = new SmallStreams();
  readonly book = new ProcessSubscriptionStore();
  readonly warnings: string[] = [];
  private readonly bus = new ProcessMessageBus();
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
    asNow?: SubscriptionDependencies['asNow'],
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
    const manager = new SubscriptionManager(
      {
        views: new GovernedViews(records),
        sources: [...other, new FeedSource(feed)],
        streams: this.streams.replica(),
        book: this.book,
        bus: this.bus,
        ...(asNow && { asNow }),
        log: { warn: (line) => this.warnings.push(line) },
      },
      options,
    );
    this.managers.push(manager);
    return {
      manager,
      subscribe: (session, uri, agent) => manager.subscribe(uri, contextOf(agent, session)),
      unsubscribe: (session, uri) => manager.unsubscribe(uri, contextOf(admin(), session)),
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

export function contextOf(agent: AgentOptions, sessionId?: string): RequestContext {
  return {
    agent: new Agent(agent),
    era: 'legacy',
    version: '2025-06-18',
    clientCapabilities: {},
    signal: UNHURRIED.signal,
    progress: () => undefined,
    ...(sessionId !== undefined && { sessionId }),
  };
}

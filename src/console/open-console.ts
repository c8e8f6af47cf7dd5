import { type INestApplicationContext, Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { ApprovalOffice } from '#approvals';
import { AuditSink, AuditTrail } from '#audit';
import { Authenticator, RecordedAuthenticator } from '#auth';
import type { SharedState } from '#state';
import { type ConfigVersion, ConfigVersions } from '#config';
import {
  approvalRoutes,
  auditRoutes,
  ConsoleApp,
  explainRoutes,
  type LiveRecords,
  liveRoutes,
  LiveStreams,
  OperatorGate,
  OperatorNotes,
  OperatorSessions,
  PageFiles,
  policyRoutes,
  type Route,
  type ServiceReport,
  ServiceStatus,
  SignIn,
  statusRoutes,
  workRoutes,
} from '#console';
import type { MongoConnection } from '#data-mongo';
import { MetadataAudit, SealedText, StateKeys } from '#dispatcher';
import { ExportOverview } from '#exports';
import { builtPage, type LoadedWithPlugins, type Mounted, productVersion, Readiness } from '#instance';
import { TaskOverview } from '#tasks';
import { McpEdge } from '#streaming';
import { openConfiguredSimulation } from '../cli/simulation.js';
import { ConfiguredSimulations } from './configured-simulations.js';

export interface ConsoleSetting {
  readonly shared: SharedState;
  readonly connection: MongoConnection | null;
  readonly plugins: LoadedWithPlugins['plugins'];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Receives all records of this process. */
  readonly live: LiveRecords;
}

export interface MountedConsole extends Mounted {
  close(): Promise<void>;
}

/**
 * Limits of sign-in attempts per remote network, and of requests per operator, each per minute and over all replicas.
 */
const SIGN_INS = { limit: 20, window: 60 };
const REQUESTS = { limit: 600, window: 60 };

/** The console beside a running service. */
export function openConsole(app: INestApplicationContext, setting: ConsoleSetting): MountedConsole {
  const { shared } = setting;
  const versions = app.get(ConfigVersions);
  const { config } = versions.current;
  const notes = new OperatorNotes(app.get<AuditSink>(AuditSink), new Logger('Console'));
  const sealed = new SealedText(app.get(StateKeys), 'parley operator session');
  const sessions = new OperatorSessions({ sealed, ended: shared.endedSessions });
  const authenticator = app.get<Authenticator>(Authenticator);
  const gate = new OperatorGate({
    authenticator,
    sessions,
    forged: (request) => {
      if (authenticator instanceof RecordedAuthenticator)
        authenticator.recordRefused(request, { cause: 'a session of the console that was not made here' });
    },
    operators: () => versions.current.config.console.operators ?? [],
    limiter: shared.limiters.limiter('console', REQUESTS),
  });
  const streams = new LiveStreams(setting.live, app.get(McpEdge).unread);
  const simulations = simulationsOf(versions, setting);
  const console = new ConsoleApp({
    edge: app.get(McpEdge),
    gate,
    signIn: new SignIn({
      gate,
      sessions,
      notes,
      limiter: shared.limiters.limiter('console sign-in', SIGN_INS),
      approvers: config.approvals.approvers,
      log: new Logger('Console'),
    }),
    page: new PageFiles(builtPage('console')),
    routes: routesOf(app, setting, { notes, streams, rehearsals: simulations }),
    log: new Logger('Console'),
  });
  return {
    claims: (url) => /^\/console(?:[/?]|$)/.test(url),
    handle: (request, response) => console.handle(request, response),
    close: async () => {
      streams.close();
      setting.live.close();
      await simulations.close();
    },
  };
}

interface Stores {
  readonly notes: OperatorNotes;
  readonly streams: LiveStreams;
  readonly rehearsals: ConfiguredSimulations<ConfigVersion>;
}

function routesOf(
  app: INestApplicationContext,
  { shared }: ConsoleSetting,
  { notes, streams, rehearsals }: Stores,
): readonly Route[] {
  const versions = app.get(ConfigVersions);
  const status = new ReplicaStatus({
    versions,
    readiness: app.get(Readiness),
    edge: app.get(McpEdge),
    consoleStreams: streams,
    reach: shared.reach,
  });
  return [
    ...liveRoutes(streams),
    ...approvalRoutes(app.get(ApprovalOffice), notes),
    ...explainRoutes(rehearsals, notes),
    ...policyRoutes({ policy: () => versions.current.policy, metadata: app.get(MetadataAudit) }),
    ...auditRoutes(app.get<AuditTrail>(AuditTrail)),
    ...workRoutes({
      tasks: new TaskOverview(shared.tasks),
      exports: new ExportOverview(shared.exports),
    }),
    ...statusRoutes(status),
  ];
}

/** Schema and roles are read over the connection of the service; the other ports of a simulation have no backend. */
function simulationsOf(
  versions: ConfigVersions,
  { connection, plugins, env }: ConsoleSetting,
): ConfiguredSimulations<ConfigVersion> {
  return new ConfiguredSimulations(
    () => versions.current,
    (version) => openConfiguredSimulation({ ...version, plugins }, env, { connection, quiet: false }),
  );
}

interface StatusDependencies {
  readonly versions: Pick<ConfigVersions, 'current' | 'refused'>;
  readonly readiness: Pick<Readiness, 'look'>;
  readonly edge: Pick<McpEdge, 'activeDispatcherCount' | 'activeListeningStreamCount'>;
  readonly consoleStreams: { readonly size: number };
  readonly reach: 'process' | 'replicas';
}

/** The status of this process. */
class ReplicaStatus extends ServiceStatus {
  private readonly version = productVersion();
  private readonly replica = randomUUID().slice(0, 8);
  private readonly startedAt = new Date(Date.now() - process.uptime() * 1000).toISOString();

  constructor(private readonly options: StatusDependencies) {
    super();
  }

  async read(): Promise<ServiceReport> {
    const { versions, readiness, edge, consoleStreams, reach } = this.options;
    const { policy, agents, number, loadedAt } = versions.current;
    return {
      version: this.version,
      node: process.version,
      started_at: this.startedAt,
      replica: this.replica,
      shared_state: reach,
      memory_bytes: process.memoryUsage.rss(),
      policy: {
        version: policy.version,
        classes: policy.classes.size,
        agents: agents.size,
        edition: number,
        loaded_at: loadedAt.toISOString(),
        last_refused: refusedOf(versions),
      },
      dependencies: (await readiness.look()).dependencies,
      streams: {
        calls: edge.activeDispatcherCount,
        listening: edge.activeListeningStreamCount,
        console: consoleStreams.size,
      },
    };
  }
}

function refusedOf({ refused }: Pick<ConfigVersions, 'refused'>): ServiceReport['policy']['last_refused'] {
  if (!refused) return null;
  return {
    at: refused.at.toISOString(),
    faults: refused.faults.slice(0, 20).map(({ path, message }) => `${path}: ${message}`),
  };
}

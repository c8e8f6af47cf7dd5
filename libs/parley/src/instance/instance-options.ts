import type { Provider, Type } from '@nestjs/common';
import { hasRedis, MCP_PATH } from '#core';
import { APPROVAL_OPTIONS } from '#approvals';
import { AUDIT_OPTIONS, type AuditModuleOptions, type AuditSink, MAX_LOG_SIZE } from '#audit';
import {
  type AuditConfig,
  assertSubAgentOptions,
  type Environment,
  hasPlainClassesAlone,
  isLoopbackHost,
  type LoadedConfig,
  type MongoSinkConfig,
  type ParleyConfig,
} from '#config';
import { CHANGE_SETTINGS, type ChangeSettings } from '#changes';
import { EMBEDDING_OPTIONS } from '#data';
import { MongoAuditCollection, type MongoConnection } from '#data-mongo';
import {
  CLIENT_ANSWER_OPTIONS,
  INSTRUCTIONS,
  KERNEL_OPTIONS,
  OPERATOR_KEYS,
  MAX_RESULT_BYTES,
  RUNNING_CALLS_OPTIONS,
  SERVES_PARSE,
  SUB_AGENT_CHECK,
} from '#dispatcher';
import { DEFAULT_EXPORTS, EXPORT_SETTINGS } from '#exports';
import type { EnvironmentGates } from '#policy';
import { CLOCK_DIFFERENCE, type SharedState } from '#state';
import { STREAMING_OPTIONS, type StreamingModuleOptions } from '#streaming';
import { SUBSCRIPTION_OPTIONS } from '#subscriptions';
import { TASK_OPTIONS, type TaskQueue } from '#tasks';
import { NOTHING_OBSERVED, OBSERVABILITY, type Observability } from '#telemetry';
import { VIEW_PAGES } from '#views';
import { readBuiltPage, productVersion } from '../package-files.js';
import { LOADED_CONFIG } from './configuration.module.js';
import { CLASSES_READ_HOOKS } from './data/adapters.module.js';
import { connectTo } from './data/open-database.js';
import { UNGOVERNED_NAMES } from './data/ungoverned-data.js';
import { CONVERSATION_ENVIRONMENT } from './conversations.js';
import type { PluginModule } from './plugins.js';

/** The parts of an instance. The code that opened a connection, the state or the queue closes it. */
export interface InstanceOptions {
  readonly loaded: LoadedConfig;
  /** Null: Parse Server only, without direct database access. */
  readonly connection: MongoConnection | null;
  readonly shared: SharedState;
  /** Default: a queue of this process. */
  readonly queue?: TaskQueue;
  /** Default: no telemetry. */
  readonly observed?: Observability;
  readonly gates: EnvironmentGates;
  /** Where conversations look for their model. Default: nowhere. */
  readonly environment?: Environment;
  /** Listeners of all records. Default: none. */
  readonly auditListeners?: readonly AuditSink[];
  /** The application's own `@Tool` and `@ParseClass` providers. */
  readonly features?: readonly Provider[];
  /** Replace the providers of their tokens, in any module. */
  readonly overrides?: readonly Provider[];
  /** Processes tasks only after `TaskService.begin`, because its tools are registered later. Default false. */
  readonly holdsTasks?: boolean;
  /** Modules of the operator with such providers. */
  readonly plugins?: readonly PluginModule[];
}

/** The options of the libs, under the tokens that they declare. */
export function optionProviders(options: InstanceOptions): Exclude<Provider, Type>[] {
  const { loaded, shared, observed = NOTHING_OBSERVED, holdsTasks: held = false } = options;
  const { config, policy } = loaded;
  const { server, llm, tasks, exports, approvals, embeddings, redis } = config;
  const values: (readonly [token: symbol, value: unknown])[] = [
    [LOADED_CONFIG, loaded],
    [OPERATOR_KEYS, listStateKeys(config)],
    [CLASSES_READ_HOOKS, config.parse.readHooks],
    [AUDIT_OPTIONS, createAuditOptions(config.audit, options)],
    [SERVES_PARSE, !hasPlainClassesAlone(policy)],
    [UNGOVERNED_NAMES, config.ungoverned],
    [CONVERSATION_ENVIRONMENT, options.environment ?? {}],
    [APPROVAL_OPTIONS, { ...approvals, clientTimeout: server.approvalTimeout }],
    [EMBEDDING_OPTIONS, embeddings && { ...embeddings, listed: llm.allowedEndpoints !== null }],
    [MAX_RESULT_BYTES, server.maxResultBytes],
    [RUNNING_CALLS_OPTIONS, { perPrincipal: server.maxRunningCalls }],
    [MAX_LOG_SIZE, policy.switches.maxLogSize],
    [SUB_AGENT_CHECK, (given: unknown) => assertSubAgentOptions('sub-agent', given)],
    [OBSERVABILITY, observed],
    [MCP_PATH, server.path],
    [CHANGE_SETTINGS, toChangeSettings(config.changes)],
    [EXPORT_SETTINGS, { ...DEFAULT_EXPORTS, lifetime: exports.lifetime * 1000, maxRows: exports.maxRows }],
    [
      SUBSCRIPTION_OPTIONS,
      { ...config.subscriptions, enabled: config.subscriptions.enabled && server.streaming },
    ],
    [TASK_OPTIONS, { ...tasks, held }],
    [
      CLIENT_ANSWER_OPTIONS,
      {
        timeout: server.approvalTimeout * 1000,
        // Without Redis one process seals and opens.
        clockDifference: hasRedis(redis) ? CLOCK_DIFFERENCE : 0,
        now: shared.clock,
      },
    ],
    [KERNEL_OPTIONS, { version: productVersion(), instructions: INSTRUCTIONS, announces: server.streaming }],
    [VIEW_PAGES, () => readBuiltPage('views')],
    [STREAMING_OPTIONS, createStreamingOptions(config)],
  ];
  return values.map(([provide, useValue]) => ({ provide, useValue }));
}

const toChangeSettings = ({ keep, openFor, ...settings }: ParleyConfig['changes']): ChangeSettings => ({
  ...settings,
  keep: keep * 1000,
  openFor: openFor * 1000,
});

/** The operator's keys, the current one first; null: one that all replicas share. */
function listStateKeys({
  server: { stateKey, previousStateKeys },
}: Pick<ParleyConfig, 'server'>): readonly [string, ...string[]] | null {
  return stateKey === null ? null : [stateKey, ...previousStateKeys];
}

function createAuditOptions(
  config: AuditConfig,
  {
    loaded,
    connection,
    auditListeners = [],
  }: Pick<InstanceOptions, 'loaded' | 'connection' | 'auditListeners'>,
): AuditModuleOptions {
  return {
    ...config,
    sinks: config.sinks.map((sink, index) =>
      sink.kind === 'mongodb'
        ? { ...sink, store: createAuditCollection(sink, connection, `audit.sinks.${index}.uri`) }
        : sink,
    ),
    listeners: auditListeners,
    servesParse: !hasPlainClassesAlone(loaded.policy),
  };
}

function createAuditCollection(
  { uri, database, collection, days }: MongoSinkConfig,
  connection: MongoConnection | null,
  option: string,
): MongoAuditCollection {
  const lifetime = days === null ? null : days * 86_400_000;
  if (uri !== null) {
    const own = connectTo({ uri, database }, option);
    return new MongoAuditCollection({ connection: own, collection, lifetime, ownsConnection: true });
  }
  if (!connection) throw new TypeError('audit.sinks: there is no database to share a server with');
  return new MongoAuditCollection({ connection, database, collection, lifetime, ownsConnection: false });
}

function createStreamingOptions({ server, auth }: ParleyConfig): StreamingModuleOptions {
  // Without rules, application code authenticates the caller, perhaps by a cookie, which browsers send automatically.
  const asksNothing =
    (auth.length === 0 || auth.some((rule) => 'anonymous' in rule)) && server.requireCustomHeader === null;
  return {
    path: server.path,
    maxBodySize: server.maxBodySize,
    allowedOrigins: server.allowedOrigins,
    allowedHosts: server.allowedHosts,
    requireCustomHeader: server.requireCustomHeader,
    requireContentLength: server.requireContentLength,
    sessions: server.sessions,
    streaming: server.streaming,
    heartbeatInterval: server.heartbeatInterval * 1000,
    maxConcurrentDispatchers: server.maxConcurrentDispatchers,
    loopbackHosts: isLoopbackHost(server.host),
    loopbackOrigins: asksNothing,
    requestRateLimit: server.requestRateLimit,
    preAuthRateLimit: server.preAuthRateLimit,
  };
}

import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { AgentShape } from '#agent';
import {
  type ClassDeclaration,
  compilePolicy,
  isTruthy,
  type Policy,
  unknownAgentNames,
  withDeclaredClasses,
} from '#policy';
import {
  type AgentIdentity,
  compileAgents,
  type DeclaredFilters,
  identityErrors,
  nameFaults,
  readAgentIdentity,
} from './compile-agents.js';
import { CONFIG_SCHEMA, ConfigurationFile, type ParleyConfig } from './config.js';
import { ConfigError, type ConfigFault } from './config-error.js';
import { environmentFiles, overlayEnvironment } from './environment.js';
import { configFile, type Environment } from './read-config-file.js';
import { defaultsOf } from './schema/class-schema.js';
import { findMisfits } from './schema/option.js';
import { readablePart } from './schema/readable-part.js';
import type { SchemaFinding } from './schema/schema-errors.js';
import { isSection, type Section } from './schema/schema-node.js';
import { auditConfig, auditErrors } from './sections/audit.js';
import { authRuleErrors } from './sections/auth.js';
import { ExportConfig, ReloadConfig, SubscriptionsConfig, TaskConfig } from './sections/background.js';
import { agentLlmErrors, EmbeddingsConfig, endpointErrors, LlmConfig } from './sections/models.js';
import { LoggingConfig, MetricsConfig, packageErrors, TracesConfig } from './sections/observability.js';
import { approvalErrors, ApprovalsConfig, ConsoleConfig, consoleErrors } from './sections/operators.js';
import { ServerConfig, startFaults, type StartKind } from './sections/server.js';
import {
  DatabaseConfig,
  inClientMode,
  liveQueryConfig,
  ParseConfig,
  parseServerErrors,
  RedisConfig,
  storeAddressErrors,
} from './sections/stores.js';

const DEFAULT_FILE = 'parley.yaml';
/** Used when the file names no agents: reads everything the policy leaves. */
const DEFAULT_AGENT = 'default';

/** Everything the service starts from: validated, compiled, frozen. */
export interface LoadedConfig {
  /** Every section, with its defaults. */
  readonly config: ParleyConfig;
  /** That of the file, narrowed by what code declares. */
  readonly policy: Policy;
  /** By name. */
  readonly agents: ReadonlyMap<string, AgentShape>;
  /** By the names of the agents. */
  readonly identities: ReadonlyMap<string, AgentIdentity>;
}

/** The file that the service is configured by, which need not exist unless it was named. */
export function configPath(env: Environment, cwd: string): string {
  return resolve(cwd, env['PARLEY_CONFIG'] ?? DEFAULT_FILE);
}

/**
 * Reads, overlays, validates and compiles the configuration.
 * @param declared what the application's code declares about classes; it narrows the file's policy
 * @param filters row filters of named agents that only code can give: functions of the agent
 * @throws ConfigError listing every fault at once
 */
export function loadConfig(
  given: Environment = process.env,
  cwd = process.cwd(),
  declared: readonly ClassDeclaration[] = [],
  filters: DeclaredFilters = {},
): LoadedConfig {
  return checkedConfig({ env: given, cwd, declared, filters });
}

export interface ConfigQuestion {
  /** Default: that of the process. */
  readonly env?: Environment;
  /** Default: that of the process. */
  readonly cwd?: string;
  /** What code declares of classes. Default none. */
  readonly declared?: readonly ClassDeclaration[];
  /** Row filters that code declares. Default none. */
  readonly filters?: DeclaredFilters;
  /** What the configuration is to be served by: a listener or a pipe has rules of its own. Default: nothing. */
  readonly start?: StartKind;
  /** The tools that there will be, for those that agents name. Default null: nobody can say yet. */
  readonly tools?: ReadonlySet<string> | null;
  /** What was found elsewhere, to be listed with all others. Default none. */
  readonly found?: readonly ConfigFault[];
}

/**
 * Every error of the configuration of a service, found by one function for whoever asks: start, reload, `policy check` and
 * `doctor`. What no file can say, because it takes the classes of the database, is `unknownAgentNames` of the policy.
 * @throws ConfigError listing every error at once, one for each mistake
 */
export function checkedConfig({
  env: given = process.env,
  cwd = process.cwd(),
  declared = [],
  filters = {},
  start,
  tools = null,
  found = [],
}: ConfigQuestion = {}): LoadedConfig {
  const { env, faults: fromFiles } = environmentFiles(given);
  const path = configPath(env, cwd);
  const named = env['PARLEY_CONFIG'] !== undefined || existsSync(path);
  const { value, faults: unread } = named ? configFile(path, env) : { value: {}, faults: [] };
  const faults = [...fromFiles, ...unread, ...found];
  const known: SchemaFinding[] = unread.map((fault) => ({
    path: fault.path === '' ? [] : fault.path.split('.'),
    message: fault.message,
  }));
  const overlaid = overlayEnvironment(value, env, faults);
  const source = fromFiles.length > 0 && faults.length === fromFiles.length ? 'environment' : path;
  return compiled(overlaid, {
    path: source,
    base: dirname(path),
    cwd,
    env,
    declared,
    filters,
    faults,
    known,
    tools,
    ...(start && { start: { kind: start, env } }),
  });
}

export interface ConfigSource {
  /** What faults are told of. Default `options`. */
  readonly name?: string;
  /** Folder that relative paths start from. Default: the working directory. */
  readonly base?: string;
  /** Default none. */
  readonly declared?: readonly ClassDeclaration[];
  /** Default none. */
  readonly filters?: DeclaredFilters;
  /** Says whether a listener may start. Default: it is not asked. */
  readonly environment?: Environment;
  /** What was found elsewhere, to be listed with all others. Default none. */
  readonly found?: readonly ConfigFault[];
}

/**
 * The configuration as code gives it: the same options under the same rules as in a file, and nothing laid over them.
 * @throws ConfigError listing every fault at once
 */
export function configOf(
  options: Readonly<Record<string, unknown>>,
  {
    name = 'options',
    base = process.cwd(),
    declared = [],
    filters = {},
    environment,
    found = [],
  }: ConfigSource = {},
): LoadedConfig {
  const reading = { path: name, base, cwd: base, env: {}, declared, filters, known: [], tools: null };
  return compiled(options, {
    ...reading,
    faults: [...found],
    ...(environment && { start: { kind: 'http', env: environment } }),
  });
}

interface Reading {
  readonly path: string;
  readonly base: string;
  readonly cwd: string;
  readonly env: Environment;
  readonly declared: readonly ClassDeclaration[];
  readonly filters: DeclaredFilters;
  /** Those found so far. */
  readonly faults: readonly ConfigFault[];
  /** Places of the file that could not be read, and are among the faults. */
  readonly known: readonly SchemaFinding[];
  readonly tools: ReadonlySet<string> | null;
  readonly start?: { readonly kind: StartKind; readonly env: Environment };
}

function compiled(overlaid: unknown, reading: Reading): LoadedConfig {
  const { errors, value, independent } = readablePart(CONFIG_SCHEMA, overlaid, { known: reading.known });
  // class-validator has the last word, should a finding have been missed.
  const misfits =
    errors.length === 0 && reading.known.length === 0 ? findMisfits(ConfigurationFile, overlaid) : [];
  const missed = misfits.map((path) => ({ path, message: 'not valid' }));
  const { loaded, faults: meaning } = meant(isSection(value) ? value : {}, reading);
  const all = [...reading.faults, ...errors, ...missed, ...independent(meaning)];
  if (all.length > 0 || !loaded) throw new ConfigError(reading.path, once(all));
  return loaded;
}

/** The same place and message is one line. */
function once(faults: readonly ConfigFault[]): ConfigFault[] {
  const seen = new Map(faults.map((fault) => [`${fault.path}|${fault.message}`, fault]));
  return [...seen.values()];
}

/** What a configuration of the right form means, and what cannot be meant by it. */
function meant(
  given: Section,
  { base, cwd, env, declared, filters, tools, start }: Reading,
): { readonly loaded: LoadedConfig; readonly faults: ConfigFault[] } {
  const faults: ConfigFault[] = [
    ...authRuleErrors(given, DEFAULT_AGENT),
    ...endpointErrors(given),
    ...agentLlmErrors(given),
    ...storeAddressErrors(given),
  ];
  const policy = policyOf(given, declared, env, faults);
  const config = withoutMasterKey(withDefaults(given as Partial<ParleyConfig>, base, cwd, env), faults);
  faults.push(...parseServerErrors(config));
  const recursionDepth = policy.switches.defaultRecursionDepth;
  const agents = compileAgents(config.agents, { recursionDepth, filters }, faults);
  const identities = new Map(
    Object.entries(config.agents).map(
      ([name, agent]) => [name, readAgentIdentity(name, agent, config.auth, faults)] as const,
    ),
  );
  const named = [...agents.values()].flatMap((shape) =>
    unknownAgentNames(shape, policy, { tools, classes: null }),
  );
  faults.push(
    ...identityErrors(config.auth, config.agents, identities),
    ...approvalErrors(config),
    ...consoleErrors(config),
    ...auditErrors(config),
    ...packageErrors(config),
    ...nameFaults(named).errors,
    ...(start ? startFaults(config, start.env, start.kind) : []),
  );
  return { loaded: { config, policy, agents, identities }, faults };
}

function policyOf(
  config: Section,
  declared: readonly ClassDeclaration[],
  env: Environment,
  faults: ConfigFault[],
): Policy {
  const given = (config as Partial<ParleyConfig>).policy ?? {};
  const strict = env['PARSE_STRICT_POINTER_SHAPES'];
  const { policy, faults: found } = compilePolicy(withDeclaredClasses(given, declared, faults), {
    strictPointerShapes: strict === undefined || isTruthy(strict),
  });
  faults.push(...found);
  return policy;
}

function withoutMasterKey(config: ParleyConfig, faults: ConfigFault[]): ParleyConfig {
  const { serverUrl, masterKey } = config.parse;
  if (serverUrl === null || masterKey !== null) return config;
  return { ...config, agents: inClientMode(config.agents, faults) };
}

function withDefaults(
  given: Partial<ParleyConfig>,
  base: string,
  cwd: string,
  env: Environment,
): ParleyConfig {
  const agents =
    given.agents && Object.keys(given.agents).length > 0 ? given.agents : { [DEFAULT_AGENT]: {} };
  const parse = { ...defaultsOf(ParseConfig), ...given.parse };
  // The embedded database is nobody's but ours: beside a Parse Server there is its own or none.
  const uri = parse.serverUrl === null ? defaultsOf(DatabaseConfig).uri : null;
  const database = { ...defaultsOf(DatabaseConfig), uri, ...given.database };
  // A path from the environment is the caller's, one from the file is the file's.
  const seedBase = env['PARLEY_SEED'] === undefined ? base : cwd;
  return {
    server: { ...defaultsOf(ServerConfig), ...given.server },
    database: { ...database, seed: database.seed === null ? null : resolve(seedBase, database.seed) },
    parse,
    redis: { ...defaultsOf(RedisConfig), ...given.redis },
    reload: { ...defaultsOf(ReloadConfig), ...given.reload },
    liveQuery: liveQueryConfig(given),
    subscriptions: { ...defaultsOf(SubscriptionsConfig), ...given.subscriptions },
    tasks: { ...defaultsOf(TaskConfig), ...given.tasks },
    exports: { ...defaultsOf(ExportConfig), ...given.exports },
    agents,
    auth: given.auth ?? [{ anonymous: true, agent: Object.keys(agents)[0] as string }],
    approvals: { ...defaultsOf(ApprovalsConfig), ...given.approvals },
    console: { ...defaultsOf(ConsoleConfig), ...given.console },
    audit: auditConfig(given.audit, base),
    policy: given.policy ?? {},
    embeddings: given.embeddings ? { ...defaultsOf(EmbeddingsConfig), ...given.embeddings } : null,
    llm: { ...defaultsOf(LlmConfig), ...given.llm },
    ungoverned: given.ungoverned ?? [],
    traces: { ...defaultsOf(TracesConfig), ...given.traces },
    metrics: { ...defaultsOf(MetricsConfig), ...given.metrics },
    logging: { ...defaultsOf(LoggingConfig), ...given.logging },
  };
}

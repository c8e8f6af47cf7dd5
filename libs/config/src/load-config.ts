import type { AgentIdentity } from '#auth';
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type AgentDefinition, isJsonObject, type JsonObject } from '#core';
import {
  type ClassDeclaration,
  compilePolicy,
  isTruthy,
  type Policy,
  unknownAgentNames,
  withDeclaredClasses,
} from '#policy';
import {
  compileAgents,
  type DeclaredFilters,
  identityErrors,
  ofNoRules,
  nameErrors,
  readAgentIdentity,
} from './compile-agents.js';
import { CONFIG_SCHEMA, type ConfigurationFile, type ParleyConfig } from './config.js';
import { ConfigError, type ConfigIssue, locateError } from './config-error.js';
import { environmentFiles, findOverlay, overlayEnvironment } from './environment.js';
import { type ConfigFile, configFile } from './read-config-file.js';
import type { Environment } from './environment.js';
import { readDefaults } from './schema/class-schema.js';
import type { SchemaFinding } from '#schema';
import { readablePart } from './schema/readable-part.js';
import { withRecordedSections, withTriedSections } from './tried-sections.js';
import { auditErrors } from './checks/audit-checks.js';
import { auditConfig } from './sections/audit.js';
import { authRuleErrors } from './sections/auth.js';
import {
  ChangesSection,
  ExportSection,
  ReloadSection,
  SubscriptionsSection,
  TaskSection,
} from './sections/background.js';
import { agentLlmErrors, endpointErrors } from './checks/models-checks.js';
import { EmbeddingsSection, LlmSection } from './sections/models.js';
import { packageErrors } from './checks/observability-checks.js';
import { LoggingSection, MetricsSection, TracesSection } from './sections/observability.js';
import { changesErrors } from './checks/changes-checks.js';
import { approvalErrors, consoleErrors } from './checks/operators-checks.js';
import { ApprovalsSection, ConsoleOidcConfig, ConsoleSection } from './sections/operators.js';
import {
  anonymousErrors,
  customHeaderErrors,
  originErrors,
  pathErrors,
  startErrors,
  type StartKind,
} from './checks/server-checks.js';
import { ServerSection } from './sections/server.js';
import { RedisSection } from './sections/redis.js';
import {
  inClientMode,
  parseServerErrors,
  plainStorageErrors,
  storeAddressErrors,
} from './checks/stores-checks.js';
import { databasesErrors, databasesOfPolicy, readDatabases } from './sections/databases.js';
import {
  readDatabaseName,
  DatabaseSection,
  liveQueryConfig,
  OPENED_BY_APPLICATION,
  ParseSection,
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
  readonly agents: ReadonlyMap<string, AgentDefinition>;
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
 * @throws ConfigError listing every error at once
 */
export function loadConfig(
  given: Environment = process.env,
  cwd = process.cwd(),
  declared: readonly ClassDeclaration[] = [],
  filters: DeclaredFilters = {},
): LoadedConfig {
  return checkConfig({ env: given, cwd, declared, filters });
}

export interface ConfigCheckOptions {
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
  /** The tools that there will be, for those that agents name. Default null: they are not known yet. */
  readonly tools?: ReadonlySet<string> | null;
  /** What was found elsewhere, to be listed with all others. Default none. */
  readonly found?: readonly ConfigIssue[];
  /** Whether an application serves it: all routes are below the path of MCP there. Default false. */
  readonly inApplication?: boolean;
  /** The file as it was read for this check. Default: it is read now. */
  readonly file?: ConfigFile;
  /** YAML whose agents and policy are checked in the place of those of the file. Default: those of the file. */
  readonly tried?: string;
  /** YAML with the agents and the policy of an earlier start, which are read in the place of those of the file. Default: those of the file. */
  readonly recorded?: string;
}

/**
 * Every error of the configuration of a service, found by one function for all callers: start, reload, `policy check` and
 * `doctor`. Errors that need the classes of the database are found by `unknownAgentNames` of the policy.
 * @throws ConfigError listing every error at once, one for each mistake
 */
export function checkConfig({
  env: given = process.env,
  cwd = process.cwd(),
  declared = [],
  filters = {},
  start,
  tools = null,
  found = [],
  file: read,
  tried,
  recorded,
}: ConfigCheckOptions = {}): LoadedConfig {
  const { env, errors: fromFiles } = environmentFiles(given);
  const path = configPath(env, cwd);
  const named = env['PARLEY_CONFIG'] !== undefined || existsSync(path);
  const file = read ?? (named ? configFile(path, env) : NO_FILE);
  const {
    value,
    errors: unread,
    locate,
  } = recorded !== undefined
    ? withRecordedSections(file, recorded)
    : tried !== undefined
      ? withTriedSections(file, tried)
      : file;
  const errors = [...fromFiles, ...unread, ...found];
  const known: SchemaFinding[] = unread.map((error) => ({
    path: error.path === '' ? [] : error.path.split('.'),
    message: error.message,
  }));
  const overlaid = overlayEnvironment(value, env, errors);
  const source =
    fromFiles.length > 0 && errors.length === fromFiles.length
      ? 'environment'
      : named
        ? path
        : 'the configuration';
  const reading: Reading = {
    path: source,
    base: dirname(path),
    cwd,
    env,
    declared,
    filters,
    errors,
    known,
    tools,
    ...(start && { start: { kind: start, env } }),
  };
  try {
    return compileConfig(overlaid, reading);
  } catch (error) {
    throw locateError(error, (issues) => locateWith({ value, locate }, issues, env));
  }
}

/** What a variable gives is not what the file says: the variable is its place. */
const locateWith = (
  { value, locate }: Pick<ConfigFile, 'value' | 'locate'>,
  issues: readonly ConfigIssue[],
  env: Environment,
) =>
  issues.map((issue) => {
    const variable = findOverlay(toFirstDatabase(issue.path, value), env);
    return variable === null ? locate(issue) : { ...issue, at: variable };
  });

/** The variables of the database are those of the first one of `databases`. */
function toFirstDatabase(path: string, value: unknown): string {
  const databases = isJsonObject(value) ? value['databases'] : undefined;
  const [first] = isJsonObject(databases) ? Object.keys(databases) : [];
  const prefix = `databases.${first}.`;
  return first !== undefined && path.startsWith(prefix) ? `database.${path.slice(prefix.length)}` : path;
}

const NO_FILE: ConfigFile = { value: {}, errors: [], locate: (issue) => issue };

/** Says of issues that were found later where the file of the configuration has what they are about. */
export function locateIssues(
  issues: readonly ConfigIssue[],
  given: Environment,
  cwd: string,
): readonly ConfigIssue[] {
  if (issues.length === 0) return issues;
  const { env } = environmentFiles(given);
  const path = configPath(env, cwd);
  return locateWith(existsSync(path) ? configFile(path, env) : NO_FILE, issues, env);
}

export interface ConfigSource {
  /** The source that errors name. Default `options`. */
  readonly name?: string;
  /** Folder that relative paths start from. Default: the working directory. */
  readonly base?: string;
  /** Default none. */
  readonly declared?: readonly ClassDeclaration[];
  /** Default none. */
  readonly filters?: DeclaredFilters;
  /** Checked for whether a listener may start. Default: not checked. */
  readonly environment?: Environment;
  /**
   * The names of the databases that the application opened itself, by the path of their options (`database`, `databases.crm`).
   * Default: the options describe every connection.
   */
  readonly openDatabases?: ReadonlyMap<string, string>;
  /** What was found elsewhere, to be listed with all others. Default none. */
  readonly found?: readonly ConfigIssue[];
  /** Whether an application serves it: all routes are below the path of MCP there. Default false. */
  readonly inApplication?: boolean;
}

/**
 * The configuration as code gives it: the same options under the same rules as in a file, and nothing laid over them.
 * @throws ConfigError listing every error at once
 */
export function readConfig(
  options: Readonly<Record<string, unknown>>,
  {
    name = 'options',
    base = process.cwd(),
    declared = [],
    filters = {},
    environment,
    openDatabases = new Map(),
    found = [],
    inApplication = false,
  }: ConfigSource = {},
): LoadedConfig {
  const section = options['server'];
  const processes = isJsonObject(section) ? (section['processes'] ?? 1) : 1;
  const alone: ConfigIssue[] =
    processes === 1
      ? []
      : [
          {
            path: 'server.processes',
            message: 'only for the service: an application starts its own processes',
          },
        ];
  const reading = { path: name, base, cwd: base, env: {}, declared, filters, known: [], tools: null };
  return compileConfig(options, {
    ...reading,
    errors: [...found, ...alone],
    inApplication,
    openDatabases,
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
  readonly errors: readonly ConfigIssue[];
  /** Places of the file that could not be read, and are among the errors. */
  readonly known: readonly SchemaFinding[];
  readonly tools: ReadonlySet<string> | null;
  readonly openDatabases?: ReadonlyMap<string, string>;
  readonly inApplication?: boolean;
  readonly start?: { readonly kind: StartKind; readonly env: Environment };
}

function compileConfig(overlaid: unknown, reading: Reading): LoadedConfig {
  const { errors, value, independent } = readablePart(CONFIG_SCHEMA, overlaid, { known: reading.known });
  const { loaded, errors: meaning } = meant(isJsonObject(value) ? value : {}, reading);
  const all = [...reading.errors, ...errors, ...independent(meaning)];
  if (all.length > 0 || !loaded) throw new ConfigError(reading.path, once(all));
  return loaded;
}

/** The same place and message is one line. */
function once(errors: readonly ConfigIssue[]): ConfigIssue[] {
  const seen = new Map(errors.map((error) => [`${error.path}|${error.message}`, error]));
  return [...seen.values()];
}

/** What a configuration of the right form means, and what cannot be meant by it. */
function meant(
  read: JsonObject,
  { base, cwd, env, declared, filters, tools, openDatabases, inApplication, start }: Reading,
): { readonly loaded: LoadedConfig; readonly errors: ConfigIssue[] } {
  const given = openDatabases ? withOpenDatabases(read, openDatabases) : read;
  const errors: ConfigIssue[] = [
    ...authRuleErrors(given, DEFAULT_AGENT),
    ...endpointErrors(given),
    ...agentLlmErrors(given),
    ...storeAddressErrors(given),
    ...databasesErrors(given),
  ];
  const { plugins = [] } = given as ConfigurationFile;
  const policy = readPolicy(given, declared, env, errors);
  const config = withoutMasterKey(withDefaults(given as Partial<ParleyConfig>, base, cwd, env), errors);
  errors.push(...parseServerErrors(config), ...plainStorageErrors(config, policy));
  const recursionDepth = policy.switches.defaultRecursionDepth;
  const undoesWrites = config.changes.record === 'all' && config.changes.undo === 'agents';
  const agents = compileAgents(config.agents, { recursionDepth, filters, undoesWrites }, errors);
  const identities = new Map(
    Object.entries(config.agents).map(
      ([name, agent]) => [name, readAgentIdentity(name, agent, config.auth, errors)] as const,
    ),
  );
  const named = [...agents.values()].flatMap((definition) =>
    unknownAgentNames(definition, policy, { tools, classes: null }),
  );
  const ruleErrors = identityErrors(config.auth, config.agents, identities);
  errors.push(
    ...(given['auth'] === undefined ? ofNoRules(ruleErrors) : ruleErrors),
    ...approvalErrors(config),
    ...changesErrors(config),
    ...consoleErrors(config, identities, inApplication),
    ...auditErrors(config),
    ...packageErrors(start?.kind === 'http' ? { ...config, plugins } : config),
    ...nameErrors(named).errors,
    ...(start?.kind === 'stdio' ? [] : anonymousErrors(config, inApplication === true)),
    ...customHeaderErrors(config),
    ...originErrors(config),
    ...pathErrors(config, inApplication === true),
    ...(start ? startErrors(config, start.env, start.kind) : []),
  );
  return { loaded: { config, policy, agents, identities }, errors: atFirstDatabase(errors, given) };
}

/** What is wrong with the database of the service, where the file writes it. */
function atFirstDatabase(errors: readonly ConfigIssue[], given: JsonObject): ConfigIssue[] {
  const { name } = readDatabases(given);
  if (name === undefined) return [...errors];
  const toPlace = (path: string) => path.replace(/^database\./, `databases.${name}.`);
  return errors.map(({ path, related, ...issue }) => ({
    ...issue,
    path: toPlace(path),
    ...(related && { related: related.map(toPlace) }),
  }));
}

function readPolicy(
  config: JsonObject,
  declared: readonly ClassDeclaration[],
  env: Environment,
  errors: ConfigIssue[],
): Policy {
  const given = (config as Partial<ParleyConfig>).policy ?? {};
  const strict = env['PARSE_STRICT_POINTER_SHAPES'];
  const { policy, issues: found } = compilePolicy(withDeclaredClasses(given, declared, errors), {
    strictPointerShapes: strict === undefined || isTruthy(strict),
    ...databasesOfPolicy(config),
  });
  errors.push(...found);
  return policy;
}

function withoutMasterKey(config: ParleyConfig, errors: ConfigIssue[]): ParleyConfig {
  const { serverUrl, masterKey } = config.parse;
  if (serverUrl === null || masterKey !== null) return config;
  return { ...config, agents: inClientMode(config.agents, errors) };
}

/** Nothing opens a connection of the application a second time: it has no address here. */
function withOpenDatabases(given: JsonObject, opened: ReadonlyMap<string, string>): JsonObject {
  const { database, databases } = given;
  const placed = (path: string, entry: unknown): unknown =>
    opened.has(path) && isJsonObject(entry ?? {})
      ? { ...(entry as JsonObject | undefined), uri: OPENED_BY_APPLICATION, name: opened.get(path) }
      : entry;
  return {
    ...given,
    ...(opened.has('database') && { database: placed('database', database) }),
    ...(isJsonObject(databases) && {
      databases: Object.fromEntries(
        Object.entries(databases).map(([label, entry]) => [label, placed(`databases.${label}`, entry)]),
      ),
    }),
  };
}

function withDefaults(
  given: Partial<ParleyConfig>,
  base: string,
  cwd: string,
  env: Environment,
): ParleyConfig {
  const agents =
    given.agents && Object.keys(given.agents).length > 0 ? given.agents : { [DEFAULT_AGENT]: {} };
  const parse = { ...readDefaults(ParseSection), ...given.parse };
  // The embedded database cannot be that of a Parse Server: beside one there is its own or none.
  const uri = parse.serverUrl === null ? readDefaults(DatabaseSection).uri : null;
  const { name: databaseName = null, first, further } = readDatabases(given as JsonObject);
  const located = { ...readDefaults(DatabaseSection), uri, ...first };
  const database = { ...located, name: first?.name ?? readDatabaseName(located.uri) };
  // A path from the environment is the caller's, one from the file is the file's.
  const seedBase = env['PARLEY_SEED'] === undefined ? base : cwd;
  return {
    server: { ...readDefaults(ServerSection), ...given.server },
    database: { ...database, seed: database.seed === null ? null : resolve(seedBase, database.seed) },
    databaseName,
    furtherDatabases: further,
    parse,
    redis: { ...readDefaults(RedisSection), ...given.redis },
    reload: { ...readDefaults(ReloadSection), ...given.reload },
    liveQuery: liveQueryConfig(given),
    subscriptions: { ...readDefaults(SubscriptionsSection), ...given.subscriptions },
    tasks: { ...readDefaults(TaskSection), ...given.tasks },
    changes: { ...readDefaults(ChangesSection), ...given.changes },
    exports: { ...readDefaults(ExportSection), ...given.exports },
    agents,
    auth: given.auth ?? [{ anonymous: true, agent: Object.keys(agents)[0] as string }],
    approvals: { ...readDefaults(ApprovalsSection), ...given.approvals },
    console: {
      ...readDefaults(ConsoleSection),
      ...given.console,
      oidc: given.console?.oidc ? { ...readDefaults(ConsoleOidcConfig), ...given.console.oidc } : null,
    },
    audit: auditConfig(given.audit, base, env),
    policy: given.policy ?? {},
    embeddings: given.embeddings ? { ...readDefaults(EmbeddingsSection), ...given.embeddings } : null,
    llm: { ...readDefaults(LlmSection), ...given.llm },
    ungoverned: given.ungoverned ?? [],
    traces: { ...readDefaults(TracesSection), ...given.traces },
    metrics: { ...readDefaults(MetricsSection), ...given.metrics },
    logging: { ...readDefaults(LoggingSection), ...given.logging },
  };
}

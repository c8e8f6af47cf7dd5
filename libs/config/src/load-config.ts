import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { AgentShape } from '#agent';
import { type ClassDeclaration, compilePolicy, isTruthy, type Policy, withDeclaredClasses } from '#policy';
import { DEFAULT_SUBSCRIPTIONS } from '#subscriptions';
import { type AgentIdentity, identityFaults, readAgentIdentity } from './agent-identity.js';
import { approvalFaults } from './approval-faults.js';
import { consoleFaults } from './console-faults.js';
import { auditConfig, auditFaults } from './audit-config.js';
import { authRuleFaults } from './auth-rule-faults.js';
import { agentLlmFaults } from './agent-llm.js';
import { compileAgents, type DeclaredFilters } from './compile-agents.js';
import type { ParleyConfig } from './config.js';
import { DEFAULT_EXPORT_CONFIG, DEFAULT_TASK_CONFIG } from './lasting-work-config.js';
import { DEFAULT_EMBEDDINGS, DEFAULT_LLM } from './model-config.js';
import { DEFAULT_APPROVALS, DEFAULT_CONSOLE, DEFAULT_RELOAD } from './operation-config.js';
import { DEFAULT_SERVER } from './server-config.js';
import { DEFAULT_DATABASE, DEFAULT_PARSE, DEFAULT_REDIS } from './store-config.js';
import { ConfigError, type ConfigFault } from './config-faults.js';
import { embeddingFaults } from './embedding-faults.js';
import { llmFaults } from './llm-faults.js';
import { overlayEnvironment } from './environment.js';
import { withEnvironmentFiles } from './environment-files.js';
import { liveQueryConfig, liveQueryFaults } from './live-query-config.js';
import { DEFAULT_LOGGING, DEFAULT_METRICS, DEFAULT_TRACES } from './observability-config.js';
import { packageFaults } from './package-faults.js';
import { inClientMode, parseServerFaults } from './parse-server-faults.js';
import { redisFaults } from './redis-faults.js';
import { type Environment, readConfigFile } from './read-config-file.js';
import { configCheck, type SchemaError } from './schema-check.js';

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
  const env = withEnvironmentFiles(given);
  const path = configPath(env, cwd);
  const raw = env['PARLEY_CONFIG'] !== undefined || existsSync(path) ? readConfigFile(path, env) : {};
  const faults: ConfigFault[] = [];
  const overlaid = overlayEnvironment(raw, env, faults);
  return compiled(overlaid, { path, base: dirname(path), cwd, env, declared, filters, faults });
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
}

/**
 * The configuration as code gives it: the same options under the same rules as in a file, and nothing laid over them.
 * @throws ConfigError listing every fault at once
 */
export function configOf(
  options: Readonly<Record<string, unknown>>,
  { name = 'options', base = process.cwd(), declared = [], filters = {} }: ConfigSource = {},
): LoadedConfig {
  return compiled(options, { path: name, base, cwd: base, env: {}, declared, filters, faults: [] });
}

interface Reading {
  readonly path: string;
  readonly base: string;
  readonly cwd: string;
  readonly env: Environment;
  readonly declared: readonly ClassDeclaration[];
  readonly filters: DeclaredFilters;
  /** Those found so far. */
  readonly faults: ConfigFault[];
}

function compiled(
  overlaid: unknown,
  { path, base, cwd, env, declared, filters, faults }: Reading,
): LoadedConfig {
  const valid = validate(overlaid, faults);
  faults.push(
    ...authRuleFaults(overlaid, DEFAULT_AGENT),
    ...embeddingFaults(overlaid),
    ...llmFaults(overlaid),
    ...agentLlmFaults(overlaid),
    ...redisFaults(overlaid),
    ...liveQueryFaults(overlaid),
  );
  const policy = policyOf(overlaid, declared, env, faults);
  if (!valid || !policy) throw new ConfigError(path, faults);

  const config = withoutMasterKey(withDefaults(overlaid as Partial<ParleyConfig>, base, cwd, env), faults);
  faults.push(...parseServerFaults(config));
  const recursionDepth = policy.switches.defaultRecursionDepth;
  const agents = compileAgents(config.agents, { recursionDepth, filters }, faults);
  const identities = new Map(
    Object.entries(config.agents).map(
      ([name, agent]) => [name, readAgentIdentity(name, agent, config.auth, faults)] as const,
    ),
  );
  faults.push(
    ...identityFaults(config.auth, config.agents, identities),
    ...approvalFaults(config),
    ...consoleFaults(config),
    ...auditFaults(config),
    ...packageFaults(config),
  );
  if (faults.length > 0) throw new ConfigError(path, faults);
  return { config, policy, agents, identities };
}

/** Also compiled when another section has faults, so that all are told together; not when its own shape is wrong. */
function policyOf(
  config: unknown,
  declared: readonly ClassDeclaration[],
  env: Environment,
  faults: ConfigFault[],
): Policy | null {
  if (faults.some(({ path }) => path === '' || /^policy\b/.test(path))) return null;
  const given = (config as Partial<ParleyConfig> | null)?.policy ?? {};
  const strict = env['PARSE_STRICT_POINTER_SHAPES'];
  const compiled = compilePolicy(withDeclaredClasses(given, declared, faults), {
    strictPointerShapes: strict === undefined || isTruthy(strict),
  });
  faults.push(...compiled.faults);
  return compiled.policy;
}

function validate(raw: unknown, faults: ConfigFault[]): boolean {
  const check = configCheck();
  if (check(raw)) return faults.length === 0;
  const seen = new Set<string>();
  for (const error of check.errors ?? []) {
    const fault = describe(error);
    const key = `${fault.path}|${fault.message}`;
    if (!seen.has(key)) faults.push(fault);
    seen.add(key);
  }
  return false;
}

function describe(error: SchemaError): ConfigFault {
  const path = error.instancePath.slice(1).replaceAll('/', '.').replaceAll('~1', '/');
  if (error.keyword === 'additionalProperties') {
    const key = String(error.params['additionalProperty']);
    return { path: path === '' ? key : `${path}.${key}`, message: 'unknown key' };
  }
  if (error.keyword === 'enum') {
    return { path, message: `must be one of ${(error.params['allowedValues'] as unknown[]).join(', ')}` };
  }
  return { path, message: error.message ?? 'not valid' };
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
  const parse = { ...DEFAULT_PARSE, ...given.parse };
  // The embedded database is nobody's but ours: beside a Parse Server there is its own or none.
  const uri = parse.serverUrl === null ? DEFAULT_DATABASE.uri : null;
  const database = { ...DEFAULT_DATABASE, uri, ...given.database };
  // A path from the environment is the caller's, one from the file is the file's.
  const seedBase = env['PARLEY_SEED'] === undefined ? base : cwd;
  return {
    server: { ...DEFAULT_SERVER, ...given.server },
    database: { ...database, seed: database.seed === null ? null : resolve(seedBase, database.seed) },
    parse,
    redis: { ...DEFAULT_REDIS, ...given.redis },
    reload: { ...DEFAULT_RELOAD, ...given.reload },
    liveQuery: liveQueryConfig(given),
    subscriptions: { ...DEFAULT_SUBSCRIPTIONS, ...given.subscriptions },
    tasks: { ...DEFAULT_TASK_CONFIG, ...given.tasks },
    exports: { ...DEFAULT_EXPORT_CONFIG, ...given.exports },
    agents,
    auth: given.auth ?? [{ anonymous: true, agent: Object.keys(agents)[0] as string }],
    approvals: { ...DEFAULT_APPROVALS, ...given.approvals },
    console: { ...DEFAULT_CONSOLE, ...given.console },
    audit: auditConfig(given.audit, base),
    policy: given.policy ?? {},
    embeddings: given.embeddings ? { ...DEFAULT_EMBEDDINGS, ...given.embeddings } : null,
    llm: { ...DEFAULT_LLM, ...given.llm },
    ungoverned: given.ungoverned ?? [],
    traces: { ...DEFAULT_TRACES, ...given.traces },
    metrics: { ...DEFAULT_METRICS, ...given.metrics },
    logging: { ...DEFAULT_LOGGING, ...given.logging },
  };
}

import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { oneLine } from '#audit';
import {
  databaseSections,
  checkConfig,
  ConfigError,
  type ConfigIssue,
  configFile,
  configPath,
  describeIssue,
  type ConfigReference,
  type Environment,
  environmentFiles,
  findOverlay,
  locateIssues,
  type ParleyConfig,
} from '#config';
import { type LoadedWithPlugins, type LoadOptions, loadWithPlugins, openDatabase } from '#parley/instance';
import { readEnvironmentGates } from '#policy';
import { judgeBySchema } from '../cli/policy-check.js';
import { countOf } from '../cli/text-output.js';
import { checkAgents, checkListening, checkReadHooks } from './check-access.js';
import { checkAudit } from './check-audit.js';
import { checkClasses } from './check-classes.js';
import { areTrusted, checkFiles, secretFiles } from './check-files.js';
import { checkLimits, checkPlugins, checkRuntime } from './check-runtime.js';
import { checkOAuth, checkSignIn } from './check-oauth.js';
import { checkPorts } from './check-ports.js';
import { checkFurtherDatabases, checkMongo, checkParseServer, checkRedis } from './check-stores.js';
import { checkTenants } from './check-tenants.js';
import { fail, type Finding, type Level, ok, warn } from './finding.js';
import { type ConfigLine, type ConfigSources, MASK, maskConfig, listSecrets } from './masked-config.js';

/** The readable sources of configuration values. */
function readSources(env: Environment, cwd: string): ConfigSources {
  const { env: resolved } = environmentFiles(env);
  const path = configPath(resolved, cwd);
  const references: ConfigReference[] = [];
  const raw = existsSync(path) ? configFile(path, resolved, (one) => references.push(one)).value : {};
  const asGiven = (variable: string | null) =>
    variable !== null && env[variable] === undefined ? `${variable}_FILE` : variable;
  const closed = resolved['MCP_API_KEY'] ? 'MCP_API_KEY' : null;
  // The key replaces anonymous rules, or missing rules.
  const isClosing = (option: string) => {
    const rules = (raw as { auth?: unknown } | null)?.auth;
    const index = Number(/^auth\.(\d+)\.apiKey$/.exec(option)?.[1] ?? Number.NaN);
    const rule: unknown = Array.isArray(rules) ? rules[index] : null;
    return Number.isInteger(index) && (rules === undefined || isAnonymous(rule));
  };
  return {
    raw,
    references,
    overlay: (option) => asGiven(findOverlay(option, resolved) ?? (isClosing(option) ? closed : null)),
  };
}

const isAnonymous = (rule: unknown): boolean =>
  rule !== null && typeof rule === 'object' && (rule as { anonymous?: unknown }).anonymous === true;

interface Examination {
  readonly findings: readonly Finding[];
  /** The effective options; empty when the configuration cannot be loaded. */
  readonly config: readonly ConfigLine[];
  /** Texts that a report must not contain, from any source. */
  readonly secrets: readonly string[];
}

/** Checks everything that a start relies on. It writes nothing, and connects only to configured addresses. */
export async function examine(env: Environment, cwd: string): Promise<Examination> {
  const runtime = checkRuntime();
  try {
    const sources = readSources(env, cwd);
    const path = configPath(env, cwd);
    const plugins = pluginFiles(sources, path);
    const trusted = areTrusted(plugins);
    const { loaded, faults: issues } = await examineLoaded((start) =>
      trusted
        ? loadWithPlugins(env, cwd, { ...start, declaredTools: true })
        : { ...checkConfig({ env, cwd, ...start }), plugins: [] },
    );
    const config = maskConfig(asWritten(loaded.config), sources);
    return {
      config,
      secrets: listSecrets(loaded.config, sources),
      findings: [
        ...runtime,
        ...checkStart(issues, path),
        ...checkFiles({
          config: existsSync(path) ? path : null,
          plugins,
          secrets: secretFiles(env, sources),
          literalSecrets: config.filter(isLiteralSecret).map((line) => line.path),
        }),
        ...checkListening(loaded),
        ...checkAgents(loaded, readEnvironmentGates(env)),
        ...checkReadHooks(loaded),
        ...checkLimits(loaded),
        ...checkPlugins(loaded, plugins),
        ...(await checkStores(loaded)),
        ...(issues.some(({ path: at }) => at === 'database.seed')
          ? []
          : [
              ...(await checkPolicy(loaded, (found) => locateIssues(found, env, cwd))),
              ...(await checkTenants(loaded)),
            ]),
      ],
    };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { config: [], secrets: [], findings: [...runtime, ...listErrors(error)] };
  }
}

/** LiveQuery's settings are options of `parse`. */
function asWritten({ liveQuery, database, databaseName, furtherDatabases, ...config }: ParleyConfig): object {
  return {
    ...config,
    ...databaseSections({ database, databaseName, furtherDatabases }),
    parse: { ...config.parse, liveQueryUrl: liveQuery.url },
  };
}

const isLiteralSecret = ({ value, origin }: ConfigLine): boolean =>
  origin === 'file' && typeof value === 'string' && value.includes('***');

function listErrors({ source, issues: faults }: ConfigError): Finding[] {
  return faults.map((issue) =>
    fail('config', describeIssue(issue), `correct ${source}; nothing else was looked at`),
  );
}

/**
 * Loads the configuration like a start. If only start-specific settings are wrong (a port that others can reach, a
 * switch), the rest is still checked.
 * @throws ConfigError
 */
async function examineLoaded(
  load: (start: Pick<LoadOptions, 'start'>) => LoadedWithPlugins | Promise<LoadedWithPlugins>,
): Promise<{ loaded: LoadedWithPlugins; faults: readonly ConfigIssue[] }> {
  try {
    return { loaded: await load({ start: 'http' }), faults: [] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    try {
      return { loaded: await load({}), faults: error.issues };
    } catch {
      throw error;
    }
  }
}

function checkStart(errors: readonly ConfigIssue[], path: string): Finding[] {
  if (errors.length === 0) return [ok('config', existsSync(path) ? path : 'no file: defaults are in force')];
  return errors.map((error) => fail('config', describeIssue(error), 'the service does not start like this'));
}

function pluginFiles({ raw }: ConfigSources, path: string): string[] {
  const listed = (raw as { plugins?: unknown } | null)?.plugins;
  const paths = Array.isArray(listed) ? listed.filter((one): one is string => typeof one === 'string') : [];
  return paths.map((one) => resolve(dirname(path), one));
}

async function checkStores({ config, policy, agents }: LoadedWithPlugins): Promise<Finding[]> {
  const embedded = config.database.uri === 'embedded';
  // The policy check compares both, so it reports whether the seed can be loaded.
  const database = await openDatabase({
    ...config,
    ...(embedded && { database: { ...config.database, seed: null } }),
  });
  try {
    const found = await Promise.all([
      checkMongo(config, agents, database.connection),
      checkFurtherDatabases(config, database.connection),
      checkAudit(config),
      checkPorts(config),
      checkRedis(config),
      checkParseServer(config),
      checkOAuth(config.auth),
      checkSignIn(config),
      // An embedded database holds classes of Parse alone.
      embedded && policy.databases.size === 0 ? [] : checkClasses(policy, database.connection),
    ]);
    return found.flat();
  } finally {
    await database.close();
  }
}

async function checkPolicy(
  loaded: LoadedWithPlugins,
  locate: (issues: readonly ConfigIssue[]) => readonly ConfigIssue[],
): Promise<Finding[]> {
  try {
    const { faults, warnings: found, unread } = await judgeBySchema(loaded);
    // The check of the store says that it fails.
    const warnings = unread ? [unread, ...found] : found;
    if (faults.length + warnings.length === 0)
      return [
        ok(
          'policy',
          `${countOf(loaded.policy.classes.size, 'class', 'classes')}, nothing that may not have been meant`,
        ),
      ];
    return [
      ...locate(faults).map((issue) =>
        fail('policy', describeIssue(issue), 'the service does not start like this'),
      ),
      ...locate(warnings).map((issue) => warn('policy', describeIssue(issue), 'see parley policy check')),
    ];
  } catch (error) {
    if (error instanceof ConfigError) return listErrors(error);
    throw error;
  }
}

/** Shorter texts may occur in reports by chance. */
const SHORTEST_SECRET = 8;

const count = ({ findings }: Examination, level: Level) =>
  findings.filter((finding) => finding.level === level).length;

const ORDER: readonly Level[] = ['ok', 'warn', 'fail'];

/**
 * For people: the effective configuration, findings with their remedies, and a line with counts. Failures come last: the end is
 * what a terminal shows.
 * @param all includes unset options
 */
export function describeExamination(examination: Examination, { all = false } = {}): string {
  const findings = ORDER.flatMap((level) => examination.findings.filter((one) => one.level === level));
  const shown = examination.config.filter(({ origin }) => all || origin !== 'default');
  const left = examination.config.length - shown.length;
  const lines = [
    ...shown.map(({ path, value, origin }) => `${path} = ${JSON.stringify(value)}  (${origin})`),
    ...(left === 0
      ? []
      : [`${countOf(left, 'option has its default', 'options have their defaults')}: --all tells them`]),
    ...(examination.config.length === 0 ? [] : ['']),
    ...findings.flatMap(({ check, level, found, remedy }) => [
      `${level.padEnd(4)}  ${check.padEnd(22)}  ${found}`,
      ...(remedy === undefined ? [] : [`${''.padEnd(30)}-> ${remedy}`]),
    ]),
    '',
    `${count(examination, 'ok')} ok, ${countOf(count(examination, 'warn'), 'warning')}, ${countOf(count(examination, 'fail'), 'failure')}`,
  ];
  return lines.map((line) => `${oneLine(withoutSecrets(line, examination.secrets))}\n`).join('');
}

/** For programs: `{ findings, config, counts }`. */
export function examinationJson(examination: Examination): string {
  const { secrets, findings, config } = examination;
  const counts = {
    ok: count(examination, 'ok'),
    warn: count(examination, 'warn'),
    fail: count(examination, 'fail'),
  };
  const clean = (_: string, value: unknown) =>
    typeof value === 'string' ? withoutSecrets(value, secrets) : value;
  return `${JSON.stringify({ findings, config, counts }, clean, 2)}\n`;
}

/** The final filter: it removes every secret of the configuration from findings. */
function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets
    .filter((secret) => secret.length >= SHORTEST_SECRET)
    .reduce((clean, secret) => clean.replaceAll(secret, MASK), text);
}

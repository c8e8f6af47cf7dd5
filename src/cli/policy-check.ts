import { existsSync } from 'node:fs';
import { oneLine } from '#audit';
import { bindPolicy, lintPolicy, type SchemaSnapshot, unknownAgentNames } from '#policy';
import { BUILT_IN_TOOLS, toolDeclarations } from '#tools';
import { StoreError } from '#data';
import {
  type CatalogueProblem,
  MongoSchemaCatalogue,
  type ConnectionProblem,
  connectionProblem,
} from '#data-mongo';
import {
  ConfigError,
  type ConfigIssue,
  configPath,
  type Environment,
  type LoadedConfig,
  nameErrors,
} from '#config';
import {
  type LoadedWithPlugins,
  loadWithPlugins,
  toolsOfPlugins,
  catalogueOf,
  parseConnectionOf,
  openDatabase,
} from '#instance';
import { withConfig } from './command-options.js';
import { jsonText } from './text-output.js';

export interface CheckOptions {
  readonly config?: string;
  readonly json?: boolean;
}

interface CheckReport {
  /** Errors that stop a start. */
  readonly faults: readonly ConfigIssue[];
  /** Possibly unintended settings. */
  readonly warnings: readonly ConfigIssue[];
}

interface SchemaReport extends CheckReport {
  /** What the collections of plain classes contradict. */
  readonly problems: readonly CatalogueProblem[];
}

/** Lists every error (exit code 1) and every warning of a configuration. */
export async function runPolicyCheck({ config, json }: CheckOptions): Promise<void> {
  const report = await check(config);
  process.stdout.write(json ? `${jsonText(report)}\n` : describe(report));
  if (report.faults.length > 0) process.exitCode = 1;
}

async function check(file: string | undefined): Promise<CheckReport> {
  const env = withConfig(file);
  try {
    const loaded = await loadWithPlugins(env, process.cwd(), { start: 'http', declaredTools: true });
    const { faults, warnings, problems } = await judgedBySchema(loaded);
    return { faults, warnings: [...noFile(env), ...merged(warnings, problems)] };
  } catch (error) {
    if (error instanceof ConfigError) return { faults: error.issues, warnings: [] };
    throw error;
  }
}

/** Without a file the defaults are checked, which is probably unintended. */
function noFile(env: Environment): readonly ConfigIssue[] {
  const path = configPath(env, process.cwd());
  return existsSync(path)
    ? []
    : [{ path: '', message: `there is no ${path}: what is checked are the defaults` }];
}

/**
 * Checks that need the classes of the database: names and fields that stop a start, and possibly unintended settings.
 * Without a database no class is checked, which is a warning.
 */
export async function judgedBySchema(loaded: LoadedWithPlugins): Promise<SchemaReport> {
  const { schemas, problems, problem } = await readSchemas(loaded);
  const tools = [
    ...BUILT_IN_TOOLS.flatMap((provider) => toolDeclarations(provider.prototype)),
    ...toolsOfPlugins(loaded.plugins),
  ];
  const names = new Set(tools.map(({ definition }) => definition.name));
  const classes = schemas && new Set(schemas.classNames());
  const unknown = [...loaded.agents.values()].flatMap((definition) =>
    unknownAgentNames(definition, loaded.policy, { tools: names, classes }),
  );
  const warnings = lintPolicy(loaded.policy, loaded.agents.values(), names, schemas);
  const why = problem === null ? '' : ` (${problem.found}; ${problem.remedy})`;
  const unread = {
    path: 'database',
    message: `no classes could be read: names were not compared with any${why}`,
  };
  const { errors } = nameErrors(unknown);
  if (!schemas) return { faults: errors, warnings: [unread, ...warnings], problems };
  const misfits = bindPolicy(loaded.policy, schemas, loaded.agents.values()).errors;
  const faults = [...errors, ...misfits.map(({ path, message }) => ({ path, message }))];
  return { faults, warnings, problems };
}

/** The option of a plain class that a problem of its collection is about. */
function issueOf({ className, property, kind, text: message }: CatalogueProblem): ConfigIssue {
  const path = `policy.classes.${className}`;
  switch (kind) {
    case 'missing_collection':
    case 'system_collection':
    case 'undeclared_source':
      return { path: `${path}.collection`, message };
    case 'mixed_ids':
      return { path: `${path}.id`, message };
    case 'type_conflict':
    case 'unknown_target':
    case 'not_sampled':
      return { path: property === undefined ? path : `${path}.properties.${property}`, message };
  }
}

/** A problem says why a class does not exist, and so replaces the warning that it does not. */
function merged(
  warnings: readonly ConfigIssue[],
  problems: readonly CatalogueProblem[],
): readonly ConfigIssue[] {
  const absent = new Set(problems.map(({ className }) => `policy.classes.${className}.collection`));
  return [...warnings.filter(({ path }) => !absent.has(path)), ...problems.map(issueOf)];
}

interface StoredClasses {
  /** Null without a database: an embedded one without a seed has no classes, a real one may be down. */
  readonly schemas: SchemaSnapshot | null;
  readonly problems: readonly CatalogueProblem[];
  /** Why a database of MongoDB could not be read. */
  readonly problem: ConnectionProblem | null;
}

const UNREAD: StoredClasses = { schemas: null, problems: [], problem: null };

async function readSchemas({ config, policy }: LoadedConfig): Promise<StoredClasses> {
  if (config.database.uri === 'embedded' && config.database.seed === null) return UNREAD;
  const database = await openDatabase(config.database);
  try {
    const connections = { mongo: database.connection, parse: parseConnectionOf(config.parse) };
    const catalogue = catalogueOf(connections, () => policy);
    const schemas = await catalogue.snapshot();
    const problems = catalogue instanceof MongoSchemaCatalogue ? await catalogue.problems() : [];
    return { schemas, problems, problem: null };
  } catch (error) {
    if (error instanceof StoreError)
      return { ...UNREAD, problem: error.store === 'the database' ? connectionProblem(error) : null };
    throw error;
  } finally {
    await database.close();
  }
}

function describe({ faults, warnings }: CheckReport): string {
  const line = (level: string) => (error: ConfigIssue) =>
    `${oneLine(`${level} ${error.path === '' ? '(file)' : error.path}: ${error.message}`)}\n`;
  return [
    ...faults.map(line('fault  ')),
    ...warnings.map(line('warning')),
    `${faults.length} faults, ${warnings.length} warnings\n`,
  ].join('');
}

import { existsSync } from 'node:fs';
import {
  bindPolicy,
  type IndexSchema,
  lintPolicy,
  lintUniqueIndexes,
  type SchemaSnapshot,
  unknownAgentNames,
} from '#policy';
import { BUILT_IN_TOOLS, promptWarning, toolDeclarations, vendorWarning } from '#tools';
import { StoreError } from '#data';
import { type CatalogueProblem, connectionProblem, MongoSchemaCatalogue } from '#data-mongo';
import {
  ConfigError,
  type ConfigIssue,
  configPath,
  describeIssue,
  type Environment,
  findSecurityWarnings,
  type LoadedConfig,
  locateIssues,
  nameErrors,
} from '#config';
import {
  type LoadedWithPlugins,
  loadWithPlugins,
  promptsOfPlugins,
  toolsOfPlugins,
  catalogueOf,
  createParseConnection,
  openDatabase,
} from '#parley/instance';
import { type OutputOptions, withConfig } from './command-options.js';
import { countOf, jsonText, textLines } from './text-output.js';

interface CheckOptions extends OutputOptions {
  /** A warning is a finding as well. */
  readonly strict?: boolean;
}

interface CheckReport {
  /** Errors that stop a start. */
  readonly faults: readonly ConfigIssue[];
  /** Possibly unintended settings. */
  readonly warnings: readonly ConfigIssue[];
  /** What a start logs as `[SECURITY]`: choices that somebody should know of, and no findings. */
  readonly security: readonly ConfigIssue[];
}

interface SchemaReport extends Omit<CheckReport, 'security'> {
  /** What the collections of plain classes contradict. */
  readonly problems: readonly CatalogueProblem[];
  /** Why the configured database could not be read, so that no name was compared with it. Null: there is none, or it was read. */
  readonly unread: ConfigIssue | null;
}

/**
 * Lists every error (exit code 1) and every warning of a configuration (exit code 1 where it is strict). A configured database that cannot be read is an
 * error: the names of the policy were not checked.
 */
export async function runPolicyCheck({ config, json, strict = false }: CheckOptions): Promise<void> {
  const report = await check(config);
  process.stdout.write(json ? jsonText(report) : describe(report));
  if (report.faults.length > 0 || (strict && report.warnings.length > 0)) process.exitCode = 1;
}

async function check(file: string | undefined): Promise<CheckReport> {
  const env = withConfig(file);
  try {
    const loaded = await loadWithPlugins(env, process.cwd(), { start: 'http', declaredTools: true });
    const { faults, warnings, problems, unread } = await judgeBySchema(loaded);
    const locate = (issues: readonly ConfigIssue[]) => locateIssues(issues, env, process.cwd());
    return {
      faults: locate(unread ? [unread, ...faults] : faults),
      warnings: [...noFile(env), ...locate(mergeWarnings(warnings, problems))],
      security: locate(findSecurityWarnings(loaded).map(({ path, message }) => ({ path, message }))),
    };
  } catch (error) {
    if (error instanceof ConfigError) return { faults: error.issues, warnings: [], security: [] };
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
 * Where no database is configured no class is checked, which is a warning.
 */
export async function judgeBySchema(loaded: LoadedWithPlugins): Promise<SchemaReport> {
  const { schemas, indexes, problems, unread } = await readSchemas(loaded);
  const ownTools = toolsOfPlugins(loaded.plugins);
  const tools = [...BUILT_IN_TOOLS.flatMap((provider) => toolDeclarations(provider.prototype)), ...ownTools];
  const names = new Set(tools.map(({ definition }) => definition.name));
  const classes = schemas && new Set(schemas.classNames());
  const unknown = [...loaded.agents.values()].flatMap((definition) =>
    unknownAgentNames(definition, loaded.policy, { tools: names, classes }),
  );
  const warnings = [
    ...lintPolicy(loaded.policy, loaded.agents.values(), names, schemas),
    ...lintUniqueIndexes(loaded.policy, indexes),
    ...ownTools.flatMap(({ definition }) => {
      const message = vendorWarning(definition);
      return message === null ? [] : [{ path: `plugins: tool ${definition.name}`, message }];
    }),
    ...promptsOfPlugins(loaded.plugins).flatMap((name) => {
      const message = promptWarning(name);
      return message === null ? [] : [{ path: `plugins: prompt ${name}`, message }];
    }),
  ];
  const { errors } = nameErrors(unknown);
  if (!schemas)
    return { faults: errors, warnings: unread ? warnings : [NO_DATABASE, ...warnings], problems, unread };
  const misfits = bindPolicy(loaded.policy, schemas, loaded.agents.values()).errors;
  const faults = [...errors, ...misfits.map(({ path, message }) => ({ path, message }))];
  return { faults, warnings, problems, unread };
}

const NO_DATABASE: ConfigIssue = {
  path: 'database',
  message: 'no database with classes is configured: names were not compared with any',
};

/** The option of a plain class that a problem of its collection is about. */
function toIssue({ className, property, kind, text: message }: CatalogueProblem): ConfigIssue {
  const path = `policy.classes.${className}`;
  switch (kind) {
    case 'missing_collection':
    case 'system_collection':
    case 'undeclared_source':
    case 'collated_view':
      return { path: `${path}.collection`, message };
    case 'mixed_ids':
      return { path: `${path}.id`, message };
    case 'type_conflict':
    case 'mixed_references':
    case 'unknown_target':
    case 'not_sampled':
    case 'database_away':
      return { path: property === undefined ? path : `${path}.properties.${property}`, message };
  }
}

/** A problem says why a class does not exist, and so replaces the warning that it does not. */
function mergeWarnings(
  warnings: readonly ConfigIssue[],
  problems: readonly CatalogueProblem[],
): readonly ConfigIssue[] {
  const absent = new Set(problems.map(({ className }) => `policy.classes.${className}.collection`));
  return [...warnings.filter(({ path }) => !absent.has(path)), ...problems.map(toIssue)];
}

interface StoredClasses {
  /** Null without a database, and where it could not be read. An embedded one without a seed has no classes. */
  readonly schemas: SchemaSnapshot | null;
  /** Of each class that has a tenant scope. */
  readonly indexes: ReadonlyMap<string, readonly IndexSchema[]>;
  readonly problems: readonly CatalogueProblem[];
  readonly unread: ConfigIssue | null;
}

const NO_CLASSES: StoredClasses = { schemas: null, indexes: new Map(), problems: [], unread: null };

async function readSchemas({ config, policy }: LoadedConfig): Promise<StoredClasses> {
  const isEmpty = config.database.uri === 'embedded' && config.database.seed === null;
  if (isEmpty && policy.databases.size === 0) return NO_CLASSES;
  const database = await openDatabase(config);
  try {
    const connections = { mongo: database.connection, parse: createParseConnection(config.parse) };
    const catalogue = catalogueOf(connections, () => policy);
    const schemas = await catalogue.snapshot();
    const problems = catalogue instanceof MongoSchemaCatalogue ? await catalogue.problems() : [];
    const indexes = new Map<string, readonly IndexSchema[]>();
    for (const { className, tenantScope } of policy.classes.values()) {
      const schema = tenantScope && schemas.get(className);
      if (schema) indexes.set(className, await catalogue.listIndexes(schema));
    }
    return { schemas, indexes, problems, unread: null };
  } catch (error) {
    if (error instanceof StoreError) return { ...NO_CLASSES, unread: unreadIssue(error) };
    throw error;
  } finally {
    await database.close();
  }
}

function unreadIssue(error: StoreError): ConfigIssue {
  const isMongo = error.store === 'the database';
  const problem = isMongo ? connectionProblem(error) : null;
  const why = problem === null ? '' : `: ${problem.found}; ${problem.remedy}`;
  return {
    path: isMongo ? 'database' : 'parse',
    message: `${error.store} could not be read (${error.code}), so names were not compared with its classes${why}`,
  };
}

function describe({ faults, warnings, security }: CheckReport): string {
  const line = (level: string) => (issue: ConfigIssue) => `${level} ${describeIssue(issue)}`;
  return textLines([
    ...faults.map(line('fault  ')),
    ...warnings.map(line('warning')),
    ...security.map(line('security')),
    `${countOf(faults.length, 'fault')}, ${countOf(warnings.length, 'warning')}`,
  ]);
}

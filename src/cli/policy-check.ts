import { existsSync } from 'node:fs';
import { oneLine } from '#audit';
import { bindPolicy, lintPolicy, type SchemaSnapshot, unknownAgentNames } from '#policy';
import { BUILT_IN_TOOLS, toolDeclarations } from '#tools';
import { StoreError } from '#data';
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

/** Lists every error (exit code 1) and every warning of a configuration. */
export async function runPolicyCheck({ config, json }: CheckOptions): Promise<void> {
  const report = await check(config);
  process.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : describe(report));
  if (report.faults.length > 0) process.exitCode = 1;
}

async function check(file: string | undefined): Promise<CheckReport> {
  const env = withConfig(file);
  try {
    const loaded = await loadWithPlugins(env, process.cwd(), { start: 'http', declaredTools: true });
    const { faults, warnings } = await judgedBySchema(loaded);
    return { faults, warnings: [...noFile(env), ...warnings] };
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
export async function judgedBySchema(loaded: LoadedWithPlugins): Promise<CheckReport> {
  const schemas = await readSchemas(loaded);
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
  const unread = { path: 'database', message: 'no classes could be read: names were not compared with any' };
  const { errors } = nameErrors(unknown);
  if (!schemas) return { faults: errors, warnings: [unread, ...warnings] };
  const misfits = bindPolicy(loaded.policy, schemas, loaded.agents.values()).errors;
  return { faults: [...errors, ...misfits.map(({ path, message }) => ({ path, message }))], warnings };
}

/** Null without a database: an embedded one without a seed has no classes, a real one may be down. */
async function readSchemas({ config, policy }: LoadedConfig): Promise<SchemaSnapshot | null> {
  if (config.database.uri === 'embedded' && config.database.seed === null) return null;
  const database = await openDatabase(config.database);
  try {
    const connections = { mongo: database.connection, parse: parseConnectionOf(config.parse) };
    return await catalogueOf(connections, () => policy).snapshot();
  } catch (error) {
    if (error instanceof StoreError) return null;
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

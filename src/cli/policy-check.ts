import { existsSync } from 'node:fs';
import { oneLine } from '#audit';
import { lintPolicy, type SchemaSnapshot } from '#policy';
import { BUILT_IN_TOOLS, toolDeclarations } from '#tools';
import { StoreError } from '#data';
import {
  ConfigError,
  type ConfigFault,
  configPath,
  type Environment,
  type LoadedConfig,
  assertMayStart,
} from '#config';
import {
  type LoadedWithPlugins,
  loadWithPlugins,
  toolsOfPlugins,
  catalogueOf,
  parseConnectionOf,
  openDatabase,
} from '#composition';
import { withConfig } from './named-config.js';

export interface CheckOptions {
  readonly config?: string;
  readonly json?: boolean;
}

interface CheckReport {
  /** What stops a start. */
  readonly faults: readonly ConfigFault[];
  /** What may not have been meant. */
  readonly warnings: readonly ConfigFault[];
}

/** Lists every fault (exit code 1) and every warning of a configuration. */
export async function runPolicyCheck({ config, json }: CheckOptions): Promise<void> {
  const report = await check(config);
  process.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : describe(report));
  if (report.faults.length > 0) process.exitCode = 1;
}

async function check(file: string | undefined): Promise<CheckReport> {
  const env = withConfig(file);
  try {
    const loaded = await loadWithPlugins(env);
    assertMayStart(loaded.config, env);
    return { faults: [], warnings: [...noFile(env), ...(await lintWarnings(loaded))] };
  } catch (error) {
    if (error instanceof ConfigError) return { faults: error.faults, warnings: [] };
    throw error;
  }
}

/** Without a file the defaults are checked, which is hardly what was meant. */
function noFile(env: Environment): readonly ConfigFault[] {
  const path = configPath(env, process.cwd());
  return existsSync(path)
    ? []
    : [{ path: '', message: `there is no ${path}: what is checked are the defaults` }];
}

/** What an operator may not have meant, compared with the classes of the database where they can be read. */
export async function lintWarnings(loaded: LoadedWithPlugins): Promise<readonly ConfigFault[]> {
  const schemas = await readSchemas(loaded);
  const tools = [
    ...BUILT_IN_TOOLS.flatMap((provider) => toolDeclarations(provider.prototype)),
    ...toolsOfPlugins(loaded.plugins),
  ];
  const names = new Set(tools.map(({ definition }) => definition.name));
  const warnings = lintPolicy(loaded.policy, loaded.agents.values(), names, schemas);
  const unread = { path: 'database', message: 'no classes could be read: names were not compared with any' };
  return schemas ? warnings : [unread, ...warnings];
}

/** Null without a database to ask: an embedded one without a seed knows nothing, a real one may be down. */
async function readSchemas({ config }: LoadedConfig): Promise<SchemaSnapshot | null> {
  if (config.database.uri === 'embedded' && config.database.seed === null) return null;
  const database = await openDatabase(config.database);
  try {
    const connections = { mongo: database.connection, parse: parseConnectionOf(config.parse) };
    return await catalogueOf(connections).snapshot();
  } catch (error) {
    if (error instanceof StoreError) return null;
    throw error;
  } finally {
    await database.close();
  }
}

function describe({ faults, warnings }: CheckReport): string {
  const line = (level: string) => (fault: ConfigFault) =>
    `${oneLine(`${level} ${fault.path === '' ? '(file)' : fault.path}: ${fault.message}`)}\n`;
  return [
    ...faults.map(line('fault  ')),
    ...warnings.map(line('warning')),
    `${faults.length} faults, ${warnings.length} warnings\n`,
  ].join('');
}

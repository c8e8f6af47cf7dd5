import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { oneLine } from '#audit';
import {
  ConfigError,
  type ConfigFault,
  configPath,
  type LoadedConfig,
  loadConfig,
  withEnvironmentFiles,
  type Environment,
  readConfigFile,
  isSection,
} from '#config';
import { NEEDS_RESTART } from '../editions/needs-restart.js';
import { declarationsOf, isPluginModule, type PluginModule } from './plugin-modules.js';

/** The configuration and the code that it names. */
export interface LoadedWithPlugins extends LoadedConfig {
  readonly plugins: readonly PluginModule[];
}

/** What a service starts from, and can read again. */
export interface LoadedService extends LoadedWithPlugins {
  /** Where it came from; null: there is no file. */
  readonly file: string | null;
  /** Reads it anew, with what the plugins declared when they were imported. @throws ConfigError */
  reread(): LoadedConfig;
}

/**
 * Imports the plugins of the configuration and loads it with what they declare. They are code that the operator chose:
 * importing one runs it.
 * @throws ConfigError listing the faults of the file and of its plugins
 */
export async function loadWithPlugins(
  env: Environment = process.env,
  cwd = process.cwd(),
): Promise<LoadedService> {
  const path = configPath(env, cwd);
  const faults: ConfigFault[] = [];
  const file = existsSync(path) ? path : null;
  const paths = pathsOf(path, env);
  const plugins = await importPlugins(paths, dirname(path), faults);
  const loaded = loadFollowing(faults, env, cwd, plugins);
  if (faults.length > 0) throw new ConfigError(path, faults);
  return { ...loaded, plugins, file, reread: () => reread(path, paths, env, cwd, plugins) };
}

/** A file that is gone or empty would mean the defaults, which nobody asks for by losing what was written. */
function reread(
  path: string,
  paths: readonly string[],
  env: Environment,
  cwd: string,
  plugins: readonly PluginModule[],
): LoadedConfig {
  const read = readConfigFile(path, env);
  if (isSection(read) && Object.keys(read).length === 0)
    throw new ConfigError(path, [{ path: '', message: 'is empty' }]);
  const loaded = loadConfig({ ...env, PARLEY_CONFIG: path }, cwd, declarationsOf(plugins));
  if (isDeepStrictEqual(pathsOf(path, env), paths)) return loaded;
  throw new ConfigError(path, [{ path: 'plugins', message: NEEDS_RESTART }]);
}

function loadFollowing(
  faults: readonly ConfigFault[],
  env: Environment,
  cwd: string,
  plugins: readonly PluginModule[],
): LoadedConfig {
  try {
    return loadConfig(env, cwd, declarationsOf(plugins));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new ConfigError(error.source, [...error.faults, ...faults]);
  }
}

/** Only what looks like paths: a list of another shape is a fault of the file, told with its others. */
function pathsOf(path: string, env: Environment): readonly string[] {
  if (!existsSync(path)) return [];
  const file = readConfigFile(path, withEnvironmentFiles(env)) as { plugins?: unknown } | null;
  const listed = file?.plugins;
  return Array.isArray(listed) ? listed.filter((entry): entry is string => typeof entry === 'string') : [];
}

async function importPlugins(
  paths: readonly string[],
  base: string,
  faults: ConfigFault[],
): Promise<PluginModule[]> {
  const modules: PluginModule[] = [];
  for (const [index, path] of paths.entries()) {
    const fault = (message: string) => faults.push({ path: `plugins.${index}`, message });
    const file = resolve(base, path);
    if (!existsSync(file)) {
      fault('no such file');
      continue;
    }
    try {
      const { default: exported } = (await import(pathToFileURL(file).href)) as { default?: unknown };
      if (isPluginModule(exported)) modules.push(exported);
      else fault('must export a Nest module as its default');
    } catch (error) {
      fault(oneLine(`cannot be loaded: ${error instanceof Error ? error.message : String(error)}`));
    }
  }
  return modules;
}

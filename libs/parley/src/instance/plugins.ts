import type { DynamicModule, Type } from '@nestjs/common';
import { MODULE_METADATA } from '@nestjs/common/constants.js';
import { existsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { oneLine } from '#audit';
import {
  checkConfig,
  type ConfigCheckOptions,
  ConfigError,
  type ConfigFile,
  type ConfigIssue,
  configFile,
  configPath,
  type Environment,
  environmentFiles,
  VARIABLES_FROM_FILES,
  type LoadedConfig,
  locateIssues,
  NEEDS_RESTART,
  type StartKind,
} from '#config';
import { listPromptNames } from '#dispatcher';
import type { ClassDeclaration } from '#policy';
import {
  BUILT_IN_TOOLS,
  findClassDeclaration,
  type ToolDeclaration,
  ToolDeclarationError,
  toolDeclarations,
} from '#tools';
import { findSinkFaults } from './data/open-database.js';
import { isJsonObject } from '#core';

/** The default export of a plugin: a Nest module, with `@Tool`, `@ParseClass` and other providers in it. */
export type PluginModule = Type<unknown> | DynamicModule;

const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object';
const isClass = (value: unknown): value is Type<unknown> => typeof value === 'function';

function isPluginModule(value: unknown): value is PluginModule {
  if (isClass(value)) return Object.values(MODULE_METADATA).some((key) => Reflect.hasMetadata(key, value));
  return isObject(value) && isClass(value['module']);
}

/** The provider classes of a module and of the modules it imports. */
function* listProviders(module: unknown, seen: Set<unknown>): Generator<Type<unknown>> {
  if (seen.has(module)) return;
  seen.add(module);
  const dynamic = isObject(module) && isClass(module['module']) ? module : null;
  const type = dynamic ? dynamic['module'] : module;
  if (!isClass(type)) return;
  const listed = (key: string): unknown[] => [
    ...((Reflect.getMetadata(key, type) as unknown[] | undefined) ?? []),
    ...((dynamic?.[key] as unknown[] | undefined) ?? []),
  ];
  for (const provider of listed(MODULE_METADATA.PROVIDERS)) {
    const known = isObject(provider) ? provider['useClass'] : provider;
    if (isClass(known)) yield known;
  }
  for (const imported of listed(MODULE_METADATA.IMPORTS)) yield* listProviders(imported, seen);
}

function providerClasses(modules: readonly PluginModule[]): Type<unknown>[] {
  const seen = new Set<unknown>();
  return modules.flatMap((module) => [...listProviders(module, seen)]);
}

/** The Parse class declarations of plugin providers, before any of them is created. */
function listDeclarations(modules: readonly PluginModule[]): ClassDeclaration[] {
  return providerClasses(modules).flatMap((provider) => findClassDeclaration(provider) ?? []);
}

/** The tools of plugins, before any provider is created. @throws ToolDeclarationError */
export function toolsOfPlugins(modules: readonly PluginModule[]): ToolDeclaration[] {
  return providerClasses(modules).flatMap((provider) => toolDeclarations(provider.prototype as object));
}

/** The names of the prompts of plugins, before any provider is created. */
export function promptsOfPlugins(modules: readonly PluginModule[]): string[] {
  return providerClasses(modules).flatMap((provider) => listPromptNames(provider.prototype as object));
}

/** The configuration and the plugin code that it names. */
export interface LoadedWithPlugins extends LoadedConfig {
  readonly plugins: readonly PluginModule[];
}

/** The configuration of a service, which can be read again. */
export interface LoadedService extends LoadedWithPlugins {
  /** The path of the file; null: there is no file. */
  readonly file: string | null;
  /**
   * Reads it again, with the plugin declarations of the first import.
   * @param onRead called with all that the file holds, before any of it is checked. @throws ConfigError
   */
  reread(onRead?: (held: unknown) => void): LoadedConfig;
  /** What the configuration would be with the agents and the policy of this YAML. Nothing is kept. @throws ConfigError */
  rehearse(text: string): LoadedConfig;
  /** What the configuration was with the agents and the policy that an earlier start recorded. Nothing is kept. @throws ConfigError */
  recall(text: string): LoadedConfig;
  /** Says of issues where the file has what they are about. */
  locate(issues: readonly ConfigIssue[]): readonly ConfigIssue[];
}

/** Options of a configuration load. */
export interface LoadOptions {
  /** How the configuration is served. Default: not at all; checks of a start are skipped. */
  readonly start?: StartKind;
  /**
   * Whether the declared tools of plugins are all of their tools. A start checks the registered tools instead, because
   * a plugin may register others. Default: only where there are no plugins.
   */
  readonly declaredTools?: boolean;
}

/**
 * Imports the plugins of the configuration and loads it with their declarations. Plugins are code that the operator
 * chose: an import runs it.
 * @throws ConfigError listing the errors of the file and of its plugins
 */
export async function loadWithPlugins(
  env: Environment = process.env,
  cwd = process.cwd(),
  { start, declaredTools = false }: LoadOptions = {},
): Promise<LoadedService> {
  const path = configPath(env, cwd);
  const errors: ConfigIssue[] = [];
  const file = readFileOf(path, env);
  const paths = listPaths(file);
  const plugins = await importPlugins(paths, dirname(path), errors);
  const brought = toolErrors(plugins);
  errors.push(...brought.issues);
  const known = plugins.length === 0 || declaredTools;
  const tools = known && errors.length === 0 ? brought.tools : null;
  const read = { env, cwd, declared: listDeclarations(plugins) };
  const options = { ...read, ...(start && { start }) };
  const loaded = checkConfig({ ...options, tools, found: errors, ...(file && { file }) });
  const faults = findSinkFaults(loaded.config);
  if (faults.length > 0) throw new ConfigError(path, locateIssues(faults, env, cwd));
  return {
    ...loaded,
    plugins,
    file: file && path,
    reread: (onRead) => reread(path, paths, { ...options, tools }, onRead),
    rehearse: (tried) => checkConfig({ ...options, tools, tried }),
    recall: (recorded) => checkConfig({ ...read, tools, recorded }),
    locate: (issues) => locateIssues(issues, env, cwd),
  };
}

/** The names of all tools, and those that a registry would refuse. */
function toolErrors(plugins: readonly PluginModule[]): {
  readonly tools: ReadonlySet<string>;
  readonly issues: ConfigIssue[];
} {
  const builtIn = BUILT_IN_TOOLS.flatMap((provider) => toolDeclarations(provider.prototype));
  const names = new Set(builtIn.map(({ definition }) => definition.name));
  const brought = new Set<string>();
  const errors = plugins.flatMap((plugin, index): ConfigIssue[] => {
    const path = `plugins.${index}`;
    try {
      return toolsOfPlugins([plugin]).flatMap(({ definition: { name }, override }) => {
        const taken = brought.has(name)
          ? 'another plugin'
          : names.has(name) && !override
            ? 'a built-in one'
            : null;
        brought.add(name);
        return taken === null ? [] : [{ path, message: `its tool '${name}' has the name of ${taken}` }];
      });
    } catch (error) {
      if (!(error instanceof ToolDeclarationError)) throw error;
      return [{ path, message: oneLine(error.message) }];
    }
  });
  return { tools: new Set([...names, ...brought]), issues: errors };
}

/** A missing file is an error: the defaults would be wider than the configuration. */
function reread(
  path: string,
  paths: readonly string[],
  options: ConfigCheckOptions & { readonly env: Environment },
  onRead: (held: unknown) => void = () => {},
): LoadedConfig {
  const env = { ...options.env, PARLEY_CONFIG: path };
  const { env: resolved } = environmentFiles(env);
  const file = configFile(path, resolved);
  onRead(file.held);
  onRead(Object.fromEntries(VARIABLES_FROM_FILES.map((name) => [name, resolved[name]])));
  const moved = isDeepStrictEqual(listPaths(file), paths)
    ? []
    : [{ path: 'plugins', message: NEEDS_RESTART }];
  return checkConfig({ ...options, env, found: moved, file });
}

/** Null: there is none. */
function readFileOf(path: string, env: Environment): ConfigFile | null {
  return existsSync(path) ? configFile(path, environmentFiles(env).env) : null;
}

/** Only path-like values: the check of the file reports any other list. */
function listPaths(file: ConfigFile | null): readonly string[] {
  const listed = isJsonObject(file?.value) ? file.value['plugins'] : null;
  return Array.isArray(listed) ? listed.filter((entry): entry is string => typeof entry === 'string') : [];
}

let beforeImport: (() => Promise<void>) | null = null;

/**
 * Sets what runs before the first plugin is imported. A bundle that holds a NestJS of its own hands over to the installed one,
 * because a plugin and Parley must use the same.
 */
export function beforePlugins(run: () => Promise<void>): void {
  beforeImport = run;
}

async function importPlugins(
  paths: readonly string[],
  base: string,
  errors: ConfigIssue[],
): Promise<PluginModule[]> {
  const modules: PluginModule[] = [];
  for (const [index, path] of paths.entries()) {
    const addError = (message: string) => errors.push({ path: `plugins.${index}`, message });
    const file = resolve(base, path);
    if (!existsSync(file)) {
      addError('no such file');
      continue;
    }
    if (!statSync(file).isFile()) {
      addError('is not a file: name the module itself');
      continue;
    }
    await beforeImport?.();
    try {
      const { default: exported } = (await import(pathToFileURL(file).href)) as { default?: unknown };
      if (isPluginModule(exported)) modules.push(exported);
      else addError('must export a Nest module as its default');
    } catch (error) {
      addError(oneLine(`cannot be loaded: ${error instanceof Error ? error.message : String(error)}`));
    }
  }
  return modules;
}

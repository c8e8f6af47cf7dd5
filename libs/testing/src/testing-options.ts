import type { DynamicModule, LoggerService, ModuleMetadata, Provider, Type } from '@nestjs/common';
import type { EnvironmentGates, ParleyModuleOptions } from '@parley/server';

/**
 * Content of a seed file, or the path of one. Its member `collections` has documents by the name of their collection, stored as
 * they are: for classes with plain storage. In a file they are MongoDB Extended JSON.
 */
export type SeedSource = object | string;

/** The configuration sections that apply without a network (docs/reference/configuration.md). */
type Sections = Pick<
  ParleyModuleOptions,
  | 'policy'
  | 'classes'
  | 'agents'
  | 'server'
  | 'approvals'
  | 'tasks'
  | 'exports'
  | 'subscriptions'
  | 'embeddings'
>;

/** The options of a testing application. Every member has a default; the sections are those of `ParleyModule.forRoot`. */
export interface TestingOptions extends Sections {
  /** How classes are stored that do not say so themselves, as in `database.storage`. Default: as Parse stores them. */
  readonly database?: { readonly storage?: 'plain' | 'parse' };
  /** The content of the database at the start and after each `reset`. Default: that of `config`, or empty. */
  readonly seed?: SeedSource;
  /**
   * Path of a configuration file whose policy and agents are tested; sections of these options replace those of the
   * file. Its database, Parse Server, Redis, sink and credential settings are ignored. Default: none.
   */
  readonly config?: string;
  /** Environment variables that the file may refer to. Default: none; `process.env` is not read. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Providers with `@Tool`, `@Prompt`, `@AgentMethod` or `@ParseClass` that no module of `imports` provides. Default none. */
  readonly tools?: readonly Type[];
  /** Dependencies of the tools. Default none. */
  readonly providers?: readonly Provider[];
  /** Modules that provide tools, or whose exports `tools` and `providers` inject. Default none. */
  readonly imports?: NonNullable<ModuleMetadata['imports']> | readonly DynamicModule[];
  /** Override providers of Parley (docs/guide/module.md#overridable-providers). Default none. */
  readonly seams?: readonly Provider[];
  /** The open environment gates. Default: none; `process.env` is not read. */
  readonly gates?: 'open' | Partial<EnvironmentGates>;
  /**
   * True when the classes of the plugins of `config` are listed in `tools`: a configuration with plugins is refused
   * otherwise, because the rules of their classes would be missing. Default false.
   */
  readonly pluginsAreListed?: boolean;
  /** The logger while the application runs. Default: none. */
  readonly logger?: LoggerService;
}

const GATE_NAMES = [
  'PARSE_AGENT_ALLOW_WRITE_TOOLS',
  'PARSE_AGENT_ALLOW_SCHEMA_OPS',
  'PARSE_AGENT_ALLOW_RAW_CRUD',
  'PARSE_AGENT_ALLOW_RAW_SCHEMA',
] as const satisfies readonly (keyof EnvironmentGates)[];

/** @throws TypeError for an unknown gate */
export function readGates(given: TestingOptions['gates'] = {}): EnvironmentGates {
  const names: readonly string[] = GATE_NAMES;
  const unknown = given === 'open' ? undefined : Object.keys(given).find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new TypeError(`gates: there is no gate '${unknown}'; known: ${GATE_NAMES.join(', ')}`);
  const entries = GATE_NAMES.map((name) => [name, given === 'open' || given[name] === true] as const);
  return Object.fromEntries(entries) as unknown as EnvironmentGates;
}

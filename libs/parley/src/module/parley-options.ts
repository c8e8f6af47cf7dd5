import type { ModuleMetadata, Provider } from '@nestjs/common';
import type { AgentShapeOptions } from '#core';
import {
  type AgentConfig,
  ConfigError,
  type ConfigFault,
  type DeclaredFilters,
  isSection,
  type ParleyConfig,
} from '#config';
import type { EnvironmentGates } from '#policy';

/** What an instance serves beside MCP. What is switched off is answered with 404. */
export interface ParleyEndpoints {
  /** `/tools` below the path of MCP: the caller's tools as a list. Default true. */
  readonly tools?: boolean;
  /** `/approvals` below the path of MCP: for those who decide. Default true. */
  readonly approvals?: boolean;
  /** `/exports/<id>` below the path of MCP. Default true; without it exports are read as resources alone. */
  readonly exports?: boolean;
  /** The documents of OAuth under `/.well-known` of the host, where tokens are taken. Default true. */
  readonly documents?: boolean;
  /** `/health` and `/ready` below the path of MCP, for everybody. Default false. */
  readonly health?: boolean;
}

export const DEFAULT_ENDPOINTS: Required<ParleyEndpoints> = Object.freeze({
  tools: true,
  approvals: true,
  exports: true,
  documents: true,
  health: false,
});

/** Code without types may have given anything. */
function endpointFaults(given: unknown): ConfigFault[] {
  if (given === undefined) return [];
  if (given === null || typeof given !== 'object')
    return [{ path: 'endpoints', message: 'expected an object' }];
  return Object.entries(given).flatMap(([name, value]) => {
    const path = `endpoints.${name}`;
    if (!Object.hasOwn(DEFAULT_ENDPOINTS, name)) return [{ path, message: 'unknown option' }];
    return value === undefined || typeof value === 'boolean'
      ? []
      : [{ path, message: 'expected true or false' }];
  });
}

type Sections = Omit<ParleyConfig, 'agents' | 'console' | 'reload' | 'logging' | 'liveQuery' | 'llm'>;

/** A named agent as code may give it: a row filter may be a function of the agent (docs/guide/agents.md#filters-that-are-functions). */
export type CodeAgentConfig = Omit<AgentConfig, 'filters'> & Pick<AgentShapeOptions, 'filters'>;

/**
 * The options of the configuration file (docs/reference/configuration.md), of each section only what is not the default. Without
 * `auth` rules, an Authenticator or an AGENT_FACTORY nobody is admitted.
 */
export type ParleyModuleOptions = {
  readonly [Section in keyof Sections]?: Sections[Section] extends readonly unknown[]
    ? Sections[Section]
    : Partial<NonNullable<Sections[Section]>>;
} & {
  /** By name. Default: one named `default`, which reads everything that the policy leaves. */
  readonly agents?: Readonly<Record<string, CodeAgentConfig>>;
  /** What the environment would open. Default: what it does open. */
  readonly gates?: EnvironmentGates;
  /** What is read of the environment besides: whether it may start, and where traces go. Default `process.env`. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** What is served beside MCP. Default: everything but health. */
  readonly endpoints?: ParleyEndpoints;
};

/** Besides the options, known before any provider is made. */
export interface ParleyModuleExtras {
  /** Tells instances of one application apart. Default `default`. */
  readonly name?: string;
  /** Whether every module may inject what this one exports. Default true. */
  readonly isGlobal?: boolean;
  /** Modules whose exports `providers` inject. Default none. */
  readonly imports?: ModuleMetadata['imports'];
  /** Bind bound anew (docs/guide/module.md), with what these need. Default none. */
  readonly providers?: readonly Provider[];
  /** Version in the URL where the application has URI versioning. Default: the application's. */
  readonly version?: string;
}

/** The options in two parts: what a file could say, and the row filters that only code can give. */
interface CodeConfiguration {
  readonly configuration: Record<string, unknown>;
  readonly filters: DeclaredFilters;
  /** What only the service has, and what else no check of a file could find. */
  readonly faults: readonly ConfigFault[];
}

/** Options that no file has. */
const OF_CODE = ['gates', 'endpoints', 'environment'];

/** What the service itself serves or does, and no application with Parley in it. */
const OF_THE_SERVICE = ['console', 'reload', 'logging', 'plugins', 'llm'];

/**
 * What code gave, as a file would say it, and what only the service has.
 * @param admits whether the application itself says who is calling
 * @throws ConfigError where nothing was given
 */
export function configurationOf(
  options: ParleyModuleOptions,
  { name, admits }: { readonly name: string; readonly admits: boolean },
): CodeConfiguration {
  if (!(options as unknown))
    throw new ConfigError('options', [{ path: 'useFactory', message: 'returned no options' }]);
  const prototype: unknown = Object.getPrototypeOf(options);
  // What they inherit is read, and no check of keys would see it. A `__proto__` of JSON becomes a prototype on its way here.
  if (prototype !== null && prototype !== Object.prototype)
    return {
      configuration: { auth: [] },
      filters: {},
      faults: [
        Object.hasOwn(prototype as object, 'constructor')
          ? { path: '', message: 'must be a plain object: write { ...options } of another one' }
          : { path: '__proto__', message: "the name '__proto__' is refused everywhere" },
      ],
    };
  const written = Object.entries(options).filter(
    ([section, value]) => !OF_CODE.includes(section) && value !== undefined,
  );
  const faults: ConfigFault[] = written
    .filter(([section]) => OF_THE_SERVICE.includes(section))
    .map(([path]) => ({ path, message: 'belongs to the service; an application has its own' }));
  faults.push(...endpointFaults(options.endpoints));
  if (options.server?.path === '/exports')
    faults.push({ path: 'server.path', message: 'is where files of exports are looked for' });
  if (admits && options.auth !== undefined)
    faults.push({ path: 'auth', message: 'is given beside code that says who is calling: one must go' });
  const sections = written.filter(([section]) => !OF_THE_SERVICE.includes(section));
  // Instances of one application never meet in one place of shared state.
  const redis =
    name === 'default' || (options.redis !== undefined && !isSection(options.redis))
      ? options.redis
      : { ...options.redis, prefix: options.redis?.prefix ?? `parley-${name}` };
  const { agents, filters } = withoutFunctions(options.agents);
  return {
    configuration: {
      ...Object.fromEntries(sections),
      ...(redis !== undefined && { redis }),
      ...(agents !== undefined && { agents }),
      // In a file, no rules mean the callers of this machine; code that forgets them means nobody.
      auth: options.auth ?? [],
    },
    filters,
    faults,
  };
}

/** Separates the filters that are functions, which no file has. What is no object is left to the check of the configuration. */
function withoutFunctions(agents: ParleyModuleOptions['agents']): {
  readonly agents: unknown;
  readonly filters: DeclaredFilters;
} {
  if (!isObject(agents)) return { agents, filters: {} };
  const filters: [string, NonNullable<AgentShapeOptions['filters']>][] = [];
  const plain = Object.entries(agents).map(([name, agent]) => {
    if (!isObject(agent) || !isObject(agent.filters)) return [name, agent] as const;
    const entries = Object.entries(agent.filters);
    const functions = entries.filter(([, entry]) => typeof entry === 'function');
    if (functions.length === 0) return [name, agent] as const;
    filters.push([name, Object.fromEntries(functions)]);
    const others = entries.filter(([, entry]) => typeof entry !== 'function');
    return [name, { ...agent, filters: Object.fromEntries(others) }] as const;
  });
  return { agents: Object.fromEntries(plain), filters: Object.fromEntries(filters) };
}

const isObject = <T>(value: T): value is T & object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

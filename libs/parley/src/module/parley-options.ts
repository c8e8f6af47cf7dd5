import type { ModuleMetadata, Provider } from '@nestjs/common';
import { ConfigError, type ParleyConfig } from '#config';
import type { EnvironmentGates } from '#policy';
import { endpointFaults, type ParleyEndpoints } from './endpoints.js';

export type { ParleyEndpoints };

type Sections = Omit<ParleyConfig, 'console' | 'reload' | 'logging' | 'liveQuery' | 'llm'>;

/**
 * The options of the configuration file (docs/configuration.md), of each section only what is not the default. Without
 * `auth` rules, an Authenticator or an AGENT_FACTORY nobody is admitted.
 */
export type ParleyModuleOptions = {
  readonly [Section in keyof Sections]?: Sections[Section] extends readonly unknown[]
    ? Sections[Section]
    : Partial<NonNullable<Sections[Section]>>;
} & {
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
  /** Bind seams anew (docs/module.md), with what these need. Default none. */
  readonly providers?: readonly Provider[];
  /** Version in the URL where the application has URI versioning. Default: the application's. */
  readonly version?: string;
}

/** Options that no file has. */
const OF_CODE = ['gates', 'endpoints', 'environment'];

/** What the service itself serves or does, and no application with Parley in it. */
const OF_THE_SERVICE = ['console', 'reload', 'logging', 'plugins', 'llm'];

/**
 * What code gave, as a file would say it.
 * @param admits whether the application itself says who is calling
 * @throws ConfigError for what only the service has
 */
export function configurationOf(
  options: ParleyModuleOptions,
  { name, admits }: { readonly name: string; readonly admits: boolean },
): Record<string, unknown> {
  if (!(options as unknown))
    throw new ConfigError('options', [{ path: 'useFactory', message: 'returned no options' }]);
  const given = Object.entries(options).filter(
    ([section, value]) => !OF_CODE.includes(section) && value !== undefined,
  );
  const faults = given
    .filter(([section]) => OF_THE_SERVICE.includes(section))
    .map(([path]) => ({ path, message: 'belongs to the service; an application has its own' }));
  faults.push(...endpointFaults(options.endpoints));
  if (options.server?.path === '/exports')
    faults.push({ path: 'server.path', message: 'is where files of exports are looked for' });
  if (admits && options.auth !== undefined)
    faults.push({ path: 'auth', message: 'is given beside code that says who is calling: one must go' });
  if (faults.length > 0) throw new ConfigError('options', faults);
  // Instances of one application never meet in one place of shared state.
  const redis =
    name === 'default'
      ? options.redis
      : { ...options.redis, prefix: options.redis?.prefix ?? `parley-${name}` };
  return {
    ...Object.fromEntries(given),
    ...(redis && { redis }),
    // In a file, no rules mean the callers of this machine; code that forgets them means nobody.
    auth: options.auth ?? [],
  };
}

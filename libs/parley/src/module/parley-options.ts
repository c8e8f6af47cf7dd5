import type { ModuleMetadata, Provider } from '@nestjs/common';
import { type AgentDefinitionOptions, nameClassReferences, isJsonObject } from '#core';
import {
  type AgentConfig,
  type AuditConfig,
  type AuditSinkConfig,
  type ConsoleOidcConfig,
  ConfigError,
  type ConfigIssue,
  type DeclaredFilters,
  type FurtherDatabaseConfig,
  type ParleyConfig,
} from '#config';
import type { ApplicationConnection } from '../instance/index.js';
import { type ClassDeclaration, type EnvironmentGates, readEnvironmentGates } from '#policy';
import type { CallSteps } from './call-steps.js';
import { type GlobalEnhancers, globalEnhancerErrors } from './global-enhancers.js';

/** The endpoints of an instance beside MCP. A disabled endpoint returns 404. */
export interface ParleyEndpoints {
  /** `/tools` below the path of MCP: the caller's tools as a list. Default true. */
  readonly tools?: boolean;
  /** `/approvals` below the path of MCP: for approvers. Default true. */
  readonly approvals?: boolean;
  /** `/exports/<id>` below the path of MCP. Default true; without it exports are read as resources only. */
  readonly exports?: boolean;
  /** The documents of OAuth under `/.well-known` of the host, where tokens are accepted. Default true. */
  readonly documents?: boolean;
  /** `/health` and `/ready` below the path of MCP, without credentials. Default false. */
  readonly health?: boolean;
}

export const DEFAULT_ENDPOINTS: Required<ParleyEndpoints> = Object.freeze({
  tools: true,
  approvals: true,
  exports: true,
  documents: true,
  health: false,
});

/** Where code names gates, those that it does not name are closed. */
export const CLOSED_GATES: EnvironmentGates = readEnvironmentGates({});

/** Untyped code may pass any value. */
function switchErrors(option: string, given: unknown, known: object): ConfigIssue[] {
  if (given === undefined) return [];
  if (given === null || typeof given !== 'object') return [{ path: option, message: 'expected an object' }];
  return Object.entries(given).flatMap(([name, value]) => {
    const path = `${option}.${name}`;
    if (!Object.hasOwn(known, name))
      return [{ path, message: `unknown option; there are: ${Object.keys(known).join(', ')}` }];
    return value === undefined || typeof value === 'boolean'
      ? []
      : [{ path, message: 'expected true or false' }];
  });
}

type Sections = Omit<
  ParleyConfig,
  | 'agents'
  | 'audit'
  | 'console'
  | 'database'
  | 'databaseName'
  | 'furtherDatabases'
  | 'reload'
  | 'logging'
  | 'liveQuery'
  | 'llm'
>;

type WithDefaults<T, Given extends keyof T> = Pick<T, Given> & Partial<T>;

/** Where records are kept (docs/operations/audit.md), with only non-default values. */
export type CodeAuditSink =
  | WithDefaults<Extract<AuditSinkConfig, { kind: 'file' }>, 'kind' | 'path'>
  | WithDefaults<Extract<AuditSinkConfig, { kind: 'mongodb' }>, 'kind'>
  | WithDefaults<Extract<AuditSinkConfig, { kind: 'webhook' }>, 'kind' | 'url' | 'secret'>;

/**
 * The section `console`: the operator console at `/console` below the path of MCP (docs/guide/module.md#console). Without
 * `operators` there is none.
 */
export interface CodeConsoleConfig {
  /** Names of the agents that may open it; null: there is no console. Default null. */
  readonly operators?: readonly string[] | null;
  /** Sign-in with an issuer of OpenID Connect; `redirectUri` is the address of this console. Default null. */
  readonly oidc?: (Pick<ConsoleOidcConfig, 'clientId' | 'redirectUri'> & Partial<ConsoleOidcConfig>) | null;
}

/** The section `database`, or an open connection of the application in place of `uri`. */
export type CodeDatabaseConfig = Partial<ParleyConfig['database']> & {
  /**
   * The `MongoClient` or Mongoose connection of the application (mongodb 7, Mongoose 9). Parley never closes it and changes
   * none of its options. The default of `name` is its database.
   */
  readonly connection?: ApplicationConnection;
};

/**
 * A named agent from code: a row filter may be a function of the agent
 * (docs/guide/agents.md#filters-that-are-functions), and a class one of code.
 */
export type CodeAgentConfig = Omit<AgentConfig, 'filters' | 'classes'> &
  Pick<AgentDefinitionOptions, 'filters' | 'classes'>;

/**
 * The options of the configuration file (docs/reference/configuration.md), with only non-default values in each
 * section. Without `auth` rules, an Authenticator or an AGENT_FACTORY every caller is refused.
 */
export type ParleyModuleOptions = {
  readonly [Section in keyof Sections]?: Sections[Section] extends readonly unknown[]
    ? Sections[Section]
    : Partial<NonNullable<Sections[Section]>>;
} & {
  /** What is recorded of calls, and where. Default: on the application's log alone. */
  readonly audit?: Partial<Omit<AuditConfig, 'sinks'>> & { readonly sinks?: readonly CodeAuditSink[] };
  /** Default: the embedded database, or none beside a Parse Server. */
  readonly database?: CodeDatabaseConfig;
  /** Several databases by name, in place of `database`: the first one has users and roles (docs/guide/databases.md). */
  readonly databases?: Readonly<
    Record<string, CodeDatabaseConfig & Partial<Pick<FurtherDatabaseConfig, 'required'>>>
  >;
  /**
   * Class declarations of code, such as those of `declareClasses` of `@parley/server/mongoose`. `policy.classes` narrows them, and
   * never removes one of their rules. Default none.
   */
  readonly classes?: readonly ClassDeclaration[];
  /** The operator console. Default: none. */
  readonly console?: CodeConsoleConfig;
  /** By name. Default: one named `default`, which reads everything that the policy permits. */
  readonly agents?: Readonly<Record<string, CodeAgentConfig>>;
  /** Replaces the gates of the environment; one that is not named is closed. Default: those of the environment. */
  readonly gates?: Partial<EnvironmentGates>;
  /** The other environment variables: whether it may start, and the trace endpoint. Default `process.env`. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** The endpoints beside MCP. Default: all but health. */
  readonly endpoints?: ParleyEndpoints;
  /** Which global guards, interceptors, pipes and filters of the application run on its tools. Default: none. */
  readonly globalEnhancers?: GlobalEnhancers;
};

/** Makes the options of an instance: for `useClass` and `useExisting` of `forRootAsync`. */
export interface ParleyOptionsFactory {
  /** Called once, at the start. */
  createParleyOptions(): ParleyModuleOptions | Promise<ParleyModuleOptions>;
}

/** Options that are known before any provider is created. */
export interface ParleyModuleExtras extends CallSteps {
  /** Distinguishes the instances of one application. Default `default`. */
  readonly name?: string;
  /** Whether every module may inject the exports. Default true. */
  readonly isGlobal?: boolean;
  /** Modules whose exports `providers` inject. Default none. */
  readonly imports?: ModuleMetadata['imports'];
  /** Rebound ports (docs/guide/module.md), with their dependencies. Default none. */
  readonly providers?: readonly Provider[];
  /**
   * Whether this instance serves the tools, prompts and resources of the application that no `forFeature` names. Default: true
   * for the only instance of an application, else false.
   */
  readonly discovery?: boolean;
  /** Version in the URL where the application has URI versioning. Default: the application's. */
  readonly version?: string;
}

/** A connection of the application, and the options beside it. */
interface GivenConnection {
  readonly connection: unknown;
  readonly name: string | undefined;
  readonly readOnly: boolean;
}

/** The options in two parts: those that a file can contain, and the row filters that only code can give. */
export interface CodeConfiguration {
  readonly configuration: Record<string, unknown>;
  readonly filters: DeclaredFilters;
  /** The connections of the application, whatever was given as one, by the path of their options. */
  readonly applications: ReadonlyMap<string, GivenConnection>;
  readonly declared: readonly ClassDeclaration[];
  /** Errors of service-only options and others that no check of a file finds. */
  readonly issues: readonly ConfigIssue[];
}

/** Options that no file has. */
const OF_CODE = ['gates', 'endpoints', 'environment', 'classes', 'globalEnhancers'];

/** Options of the service that an embedded instance does not have. */
const OF_THE_SERVICE = ['reload', 'logging', 'plugins', 'llm'];

/**
 * Converts the options from code to the form of a file, and checks for service-only options.
 * @param admits whether the application itself authenticates callers
 * @throws ConfigError where nothing was given
 */
export function readConfiguration(
  options: ParleyModuleOptions,
  { name, admits }: { readonly name: string; readonly admits: boolean },
): CodeConfiguration {
  if (!(options as unknown))
    throw new ConfigError('options', [{ path: 'useFactory', message: 'returned no options' }]);
  const prototype: unknown = Object.getPrototypeOf(options);
  // Inherited members would be read without a check of their keys. A `__proto__` in JSON becomes a prototype.
  if (prototype !== null && prototype !== Object.prototype)
    return {
      configuration: { auth: [] },
      filters: {},
      applications: new Map(),
      declared: [],
      issues: [
        Object.hasOwn(prototype as object, 'constructor')
          ? { path: '', message: 'must be a plain object: write { ...options } of another one' }
          : { path: '__proto__', message: "the name '__proto__' is refused everywhere" },
      ],
    };
  const written = Object.entries(options).filter(
    ([section, value]) => !OF_CODE.includes(section) && value !== undefined,
  );
  const errors: ConfigIssue[] = written
    .filter(([section]) => OF_THE_SERVICE.includes(section))
    .map(([path]) => ({ path, message: 'belongs to the service; an application has its own' }));
  errors.push(
    ...switchErrors('gates', options.gates, CLOSED_GATES),
    ...switchErrors('endpoints', options.endpoints, DEFAULT_ENDPOINTS),
    ...globalEnhancerErrors(options.globalEnhancers),
  );
  if (options.server?.path === '/exports')
    errors.push({ path: 'server.path', message: 'is where files of exports are looked for' });
  if (options.console?.operators && String(options.server?.path).includes('//'))
    errors.push({
      path: 'server.path',
      message:
        'must not contain // where there is a console: what follows it is a host in addresses of the page',
      related: ['console.operators'],
    });
  if (admits && options.auth !== undefined)
    errors.push({ path: 'auth', message: 'is given beside code that says who is calling: one must go' });
  const sections = written.filter(([section]) => !OF_THE_SERVICE.includes(section));
  // Instances of one application never share a key space of the shared state.
  const redis =
    name === 'default' || (options.redis !== undefined && !isJsonObject(options.redis))
      ? options.redis
      : { ...options.redis, prefix: options.redis?.prefix ?? `parley-${name}` };
  const { agents, filters, unnamed } = withoutFunctions(options.agents);
  const { database, databases, applications, misplaced } = withoutConnections(options);
  errors.push(...misplaced, ...unnamed, ...declarationErrors(options.classes));
  return {
    configuration: {
      ...Object.fromEntries(sections),
      ...(database !== undefined && { database }),
      ...(databases !== undefined && { databases }),
      ...(redis !== undefined && { redis }),
      ...(agents !== undefined && { agents }),
      // In a file, no rules admit local callers; in code, missing rules admit no caller.
      auth: options.auth ?? [],
    },
    filters,
    applications,
    declared: declarationErrors(options.classes).length > 0 ? [] : (options.classes ?? []),
    issues: errors,
  };
}

/** Separates the connections of the application, which no file has. */
function withoutConnections({ database, databases }: Pick<ParleyModuleOptions, 'database' | 'databases'>) {
  const applications = new Map<string, GivenConnection>();
  const misplaced: ConfigIssue[] = [];
  const separate = (path: string, given: unknown): unknown => {
    const { section, application, issues } = withoutConnection(path, given);
    if (application) applications.set(path, application);
    misplaced.push(...issues);
    return section;
  };
  return {
    database: separate('database', database),
    databases: isObject(databases)
      ? Object.fromEntries(
          Object.entries(databases).map(([label, entry]) => [label, separate(`databases.${label}`, entry)]),
        )
      : databases,
    applications,
    misplaced,
  };
}

function withoutConnection(
  path: string,
  given: unknown,
): {
  readonly section: unknown;
  readonly application: GivenConnection | null;
  readonly issues: readonly ConfigIssue[];
} {
  // A connection that is undefined is a mistake: in its place, the embedded database would be empty.
  if (!isObject(given) || !Object.hasOwn(given, 'connection'))
    return { section: given, application: null, issues: [] };
  const { connection, uri, seed, fastReads, ...section } = given as Record<string, unknown>;
  const { name, readOnly } = section;
  // Fast reads open connections of their own, which a connection of the application is there to avoid.
  const issues = Object.entries({ uri, seed, fastReads })
    .filter(([, value]) => value !== undefined && value !== null && value !== false)
    .map(([option]) => ({
      path: `${path}.${option}`,
      message: `is given beside ${path}.connection: one of them must go`,
    }));
  return {
    section,
    application: {
      connection,
      name: typeof name === 'string' ? name : undefined,
      readOnly: readOnly === true,
    },
    issues,
  };
}

/** Untyped code may pass any value. */
function declarationErrors(given: unknown): ConfigIssue[] {
  const isDeclaration = (one: unknown) =>
    isObject(one) &&
    typeof (one as Partial<ClassDeclaration>).className === 'string' &&
    isObject((one as Partial<ClassDeclaration>).config);
  if (given === undefined || (Array.isArray(given) && given.every(isDeclaration))) return [];
  return [
    {
      path: 'classes',
      message:
        'expected a list of class declarations, such as declareClasses(connection.models); rules are policy.classes',
    },
  ];
}

/**
 * Separates what no file has: filters that are functions, and classes of code, which are named. The check of the configuration
 * handles values that are no objects.
 */
function withoutFunctions(agents: ParleyModuleOptions['agents']): {
  readonly agents: unknown;
  readonly filters: DeclaredFilters;
  readonly unnamed: readonly ConfigIssue[];
} {
  if (!isObject(agents)) return { agents, filters: {}, unnamed: [] };
  const filters: [string, NonNullable<AgentDefinitionOptions['filters']>][] = [];
  const unnamed: ConfigIssue[] = [];
  const plain = Object.entries(agents).map(([name, given]) => {
    if (!isObject(given)) return [name, given] as const;
    const agent = { ...given, ...nameClasses(name, given, unnamed) };
    if (!isObject(agent.filters)) return [name, agent] as const;
    const entries = Object.entries(agent.filters);
    const functions = entries.filter(([, entry]) => typeof entry === 'function');
    if (functions.length === 0) return [name, agent] as const;
    filters.push([name, Object.fromEntries(functions)]);
    const others = entries.filter(([, entry]) => typeof entry !== 'function');
    return [name, { ...agent, filters: Object.fromEntries(others) }] as const;
  });
  return { agents: Object.fromEntries(plain), filters: Object.fromEntries(filters), unnamed };
}

/** @param unnamed receives classes of code that stand for no class of the database */
function nameClasses(agent: string, { classes }: CodeAgentConfig, unnamed: ConfigIssue[]): object {
  if (classes === undefined) return {};
  try {
    return { classes: nameClassReferences(classes) };
  } catch (error) {
    const [, option = '', message = ''] = /^(\S+): (.*)$/s.exec((error as Error).message) ?? [];
    unnamed.push({ path: `agents.${agent}.${option}`, message });
    return { classes: null };
  }
}

const isObject = <T>(value: T): value is T & object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

import { Logger } from '@nestjs/common';
import {
  ApplicationConfig,
  ExternalContextCreator,
  type ModulesContainer,
  NestContainer,
} from '@nestjs/core';
import { ConfigError, type ConfigIssue } from '#config';
import { ToolContext } from '#dispatcher';

/**
 * Which global enhancers of the application run on its tools, by kind. What `@UseGuards`, `@UseInterceptors`, `@UsePipes`
 * and `@UseFilters` name on a tool or its class always runs.
 */
export interface GlobalEnhancers {
  /**
   * `APP_GUARD` and `useGlobalGuards`. Default false, as every kind with a warning at the start where the application has
   * tools and such enhancers. They must handle a context of type `mcp`.
   */
  readonly guards?: boolean;
  /** `APP_INTERCEPTOR` and `useGlobalInterceptors`. Default false. */
  readonly interceptors?: boolean;
  /** `APP_PIPE` and `useGlobalPipes`. They receive the arguments. Default false. */
  readonly pipes?: boolean;
  /** `APP_FILTER` and `useGlobalFilters`. Default false. */
  readonly filters?: boolean;
}

type Kind = keyof GlobalEnhancers;

const KINDS: readonly Kind[] = ['guards', 'interceptors', 'pipes', 'filters'];

const OPTION = 'globalEnhancers';

/** What runs on tools without them. */
const INSTEAD: Readonly<Record<Kind, string>> = {
  guards: "Parley's own gates apply, and the @UseGuards of the tools",
  interceptors: 'Results are those of the tools, and of their @UseInterceptors',
  pipes: 'Arguments are checked by the input schema, and by the @UsePipes of the tools',
  filters: 'Errors are answered by Parley, and by the @UseFilters of the tools',
};

/** Untyped code may pass any value. */
export function globalEnhancerErrors(given: unknown): ConfigIssue[] {
  if (given === undefined) return [];
  if (given === null || typeof given !== 'object' || Array.isArray(given))
    return [{ path: OPTION, message: `expected an object with some of ${KINDS.join(', ')}` }];
  return Object.entries(given).flatMap(([kind, value]) => {
    const path = `${OPTION}.${kind}`;
    if (!KINDS.includes(kind as Kind))
      return [{ path, message: `unknown option; there are: ${KINDS.join(', ')}` }];
    return value === undefined || typeof value === 'boolean'
      ? []
      : [{ path, message: 'expected true or false' }];
  });
}

/** The modules of the application, with a configuration for its tools alone. */
class ToolsContainer extends NestContainer {
  constructor(
    private readonly application: ModulesContainer,
    config: ApplicationConfig,
  ) {
    super(config);
  }

  override getModules(): ModulesContainer {
    return this.application;
  }
}

interface Found {
  readonly kind: Kind;
  readonly names: readonly string[];
  /** Names of those that are made for each request: a call has no Nest request to make them for. */
  readonly scoped: readonly string[];
  readonly run: boolean;
}

const nameOf = (enhancer: object): string => enhancer.constructor.name;

/** Decides which global enhancers of the application run on its tools, and says so at the start. */
export class ToolEnhancers {
  private readonly found: readonly Found[];

  /** @throws ConfigError for global guards that are to run on tools and cannot */
  constructor(
    private readonly application: ApplicationConfig,
    private readonly given: GlobalEnhancers = {},
  ) {
    const global = {
      guards: [application.getGlobalGuards(), application.getGlobalRequestGuards()],
      interceptors: [application.getGlobalInterceptors(), application.getGlobalRequestInterceptors()],
      pipes: [application.getGlobalPipes(), application.getGlobalRequestPipes()],
      filters: [application.getGlobalFilters(), application.getGlobalRequestFilters()],
    } as const;
    this.found = KINDS.map((kind) => ({
      kind,
      names: global[kind][0].map(nameOf),
      scoped: global[kind][1].map(({ name }) => String(name)),
      run: given[kind] === true,
    }));
    const [guards] = this.found;
    if (guards?.run === true && guards.scoped.length > 0)
      throw new ConfigError('options', [
        {
          path: `${OPTION}.guards`,
          message: `${guards.scoped.join(', ')} cannot run on tools: it is made for each request, and a call has none`,
        },
      ]);
  }

  /** Creates the handlers of tools, with those global enhancers that the options name. */
  contextOver(modules: ModulesContainer): ToolContext {
    const config = new ApplicationConfig();
    const { application, given } = this;
    if (given.guards === true) config.useGlobalGuards(...application.getGlobalGuards());
    if (given.interceptors === true) config.useGlobalInterceptors(...application.getGlobalInterceptors());
    if (given.pipes === true) config.useGlobalPipes(...application.getGlobalPipes());
    if (given.filters === true) config.useGlobalFilters(...application.getGlobalFilters());
    const contexts = ExternalContextCreator.fromContainer(new ToolsContainer(modules, config));
    return new ToolContext(contexts, { globalPipes: config.getGlobalPipes().length > 0 });
  }

  /** @param tools how many tools the application has itself: global enhancers never run on built-in tools */
  warn(tools: number): void {
    if (tools === 0) return;
    const log = new Logger('Parley');
    for (const { kind, names, scoped, run } of this.found) {
      const all = [...names, ...scoped];
      if (all.length > 0 && this.given[kind] === undefined)
        log.warn(
          `global ${kind} of the application do not run on its tools: ${all.join(', ')}. ${INSTEAD[kind]}. ` +
            `Set ${OPTION}.${kind} to true to run them, or to false`,
        );
      if (run && scoped.length > 0)
        log.warn(`global ${kind} that are made for each request do not run on tools: ${scoped.join(', ')}`);
    }
  }

  /** The global enhancers of the application, and whether they run on tools; empty where there are none. */
  toString(): string {
    const parts = this.found.flatMap(({ kind, names, scoped, run }) => {
      const on = run ? names : [];
      const off = run ? scoped : [...names, ...scoped];
      return [
        ...(on.length > 0 ? [`global ${kind} ${on.join(', ')} run on tools`] : []),
        ...(off.length > 0 ? [`global ${kind} ${off.join(', ')} do not run on tools`] : []),
      ];
    });
    return parts.map((part) => `; ${part}`).join('');
  }
}

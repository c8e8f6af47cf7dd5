import {
  type INestApplicationContext,
  Logger,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common';
import {
  type ApplicationConfig,
  type DiscoveryService,
  type HttpAdapterHost,
  type ModulesContainer,
  NestFactory,
} from '@nestjs/core';
import { EventEmitter2 } from '@nestjs/event-emitter';
import type { Server } from 'node:http';
import { type ConfigIssue, readConfig, ConfigVersions, consoleBase } from '#config';
import { type ApplicationSteps, listPrompts, listResources, ToolPipeline, toolsOf } from '#dispatcher';
import {
  ApplicationConnectionError,
  openConsole,
  openWithConnections,
  useApplicationConnection,
  ParleyInstance,
} from '../instance/index.js';
import type { MongoConnection } from '#data-mongo';
import type { ClassDeclaration } from '#policy';
import { CONSOLE_PATH } from '#streaming';
import { listAgentMethods, MethodRegistry } from '#tools';
import { startInside } from './inner-start.js';
import { listBases, followFurtherServers } from './mountings.js';
import { listInstances, listRepeated, listUnlisted } from './features.js';
import { type GlobalEnhancers, ToolEnhancers } from './global-enhancers.js';
import {
  CLOSED_GATES,
  type CodeConfiguration,
  readConfiguration,
  type ParleyEndpoints,
  type ParleyModuleOptions,
} from './parley-options.js';
import { Parley } from './parley.js';
import { guardedRoutes } from '../route-guard/declared-routes.js';
import type { BoundProviders } from './overridable-providers.js';
import { serveInstance } from './serve-instance.js';
import { warnOfLazyTools, warnOfRoutesBelow } from './unreached.js';

interface Emitter {
  emit(event: string | readonly string[], ...values: unknown[]): unknown;
}

const isEmitter = (value: unknown): value is Emitter =>
  typeof (value as { emit?: unknown } | null | undefined)?.emit === 'function';

/** Found by name: the application may have its own copy of the package. */
function findEmitter(discovery: DiscoveryService): Emitter | null {
  for (const { name, instance } of discovery.getProviders()) {
    const made = instance as unknown;
    if (name === EventEmitter2.name && isEmitter(made)) return made;
  }
  return null;
}

/**
 * Publishes the events of an instance (`parse.agent.*`, `parley.audit`) on the application's `EventEmitter2`, if it has
 * one: `@OnEvent` receives them. A listener that throws is logged and fails no call.
 */
function publishEvents(context: INestApplicationContext, discovery: DiscoveryService): void {
  const application = findEmitter(discovery);
  if (application === null) return;
  const logger = new Logger('Parley');
  context.get(EventEmitter2).onAny((event: string | string[], ...values: unknown[]) => {
    try {
      application.emit(event, ...values);
    } catch (error) {
      logger.error(`a listener to '${String(event)}' failed: ${String(error)}`);
    }
  });
}

interface Opening {
  readonly name: string;
  readonly declared: readonly ClassDeclaration[];
  readonly bound: BoundProviders;
}

/**
 * Opens an instance for an application before it is used. Its tasks wait until `begin`, because the application's tools
 * are registered after all of its modules are loaded.
 * @throws ConfigError listing every error of the options
 */
export async function openParley(
  options: ParleyModuleOptions,
  { name, declared, bound }: Opening,
): Promise<ParleyInstance> {
  const given = readConfiguration(options, { name, admits: bound.admits });
  const { environment = process.env, gates } = options;
  const found = [...given.issues];
  const opened = await openForApplication(given.applications, found);
  try {
    const loaded = readConfig(given.configuration, {
      declared: [...declared, ...given.declared],
      filters: given.filters,
      environment,
      found,
      inApplication: true,
      openDatabases: new Map(
        [...given.applications.keys()].map((path) => [path, opened.get(path)?.name ?? 'unknown']),
      ),
    });
    const database = opened.size > 0 ? await openWithConnections(loaded.config, opened) : null;
    const { sharedState: shared, taskQueue: queue } = bound;
    return await ParleyInstance.open(
      {
        loaded,
        environment,
        holdsTasks: true,
        console: openConsole,
        start: startInside,
        overrides: bound.providers(),
        stateOver: (state) => bound.stateOver(state),
        ...(database && { database }),
        ...(gates && { gates: { ...CLOSED_GATES, ...gates } }),
        ...(shared && { shared }),
        ...(queue && { queue }),
      },
      // The application's logger is used, and the application handles a failed start.
      (module) => startInside(() => NestFactory.createApplicationContext(module, { abortOnError: false })),
    );
  } catch (error) {
    await Promise.all([...opened.values()].map((one) => one.close()));
    throw error;
  }
}

/** @param found receives why a connection cannot be used @returns by the path of their options */
async function openForApplication(
  given: CodeConfiguration['applications'],
  found: ConfigIssue[],
): Promise<Map<string, MongoConnection>> {
  const opened = new Map<string, MongoConnection>();
  for (const [path, { connection, name, readOnly }] of given)
    try {
      opened.set(
        path,
        await useApplicationConnection(connection, {
          readOnly,
          ...(name !== undefined && { database: name }),
        }),
      );
    } catch (error) {
      if (!(error instanceof ApplicationConnectionError)) throw error;
      found.push({ path: `${path}.connection`, message: error.message });
    }
  return opened;
}

const formatCount = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

export interface HostDependencies {
  readonly name: string;
  readonly version: string | undefined;
  /** Whether it serves what no `forFeature` names. */
  readonly discovers: boolean;
  readonly endpoints: ParleyEndpoints | undefined;
  readonly globalEnhancers: GlobalEnhancers | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Whether options or bindings authenticate callers. */
  readonly admits: boolean;
  /** The module whose paths the application prefixes. */
  readonly module: object;
  readonly opened: ParleyInstance;
  readonly discovery: DiscoveryService;
  readonly http: HttpAdapterHost;
  readonly config: ApplicationConfig;
  readonly modules: ModulesContainer;
  /** The application's guards and interceptors of all calls, once they are created. */
  readonly steps: () => ApplicationSteps;
}

/** Connects one instance to the application: its tools, its paths, its shutdown. */
export class ParleyHost
  implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown
{
  readonly parley: Parley;
  private enhancers: ToolEnhancers | null = null;

  constructor(private readonly dependencies: HostDependencies) {
    this.parley = new Parley(dependencies.name, dependencies.opened.app, dependencies.environment);
  }

  /** @throws ToolDeclarationError, MethodDeclarationError. @throws ConfigError for global guards that cannot run on tools, and for routes */
  onModuleInit(): void {
    const { name, discovers, discovery, config, modules, globalEnhancers, opened, steps } = this.dependencies;
    this.checkApplication();
    opened.app.get(ToolPipeline).install(steps());
    publishEvents(opened.app, discovery);
    this.enhancers = new ToolEnhancers(config, globalEnhancers);
    const context = this.enhancers.contextOver(modules);
    const methods = opened.app.get(MethodRegistry);
    let registered = 0;
    const serving = { name, discovers };
    const instances = listInstances(serving, discovery);
    for (const line of listRepeated(serving, discovery)) new Logger('Parley').warn(line);
    for (const instance of instances) {
      const tools = toolsOf(instance, context);
      registered += tools.length;
      this.parley.tools.registerDeclared(tools);
      for (const prompt of listPrompts(instance)) this.parley.prompts.register(prompt);
      for (const { className, method } of listAgentMethods(instance)) methods.register(className, method);
    }
    for (const resources of listResources(instances)) this.parley.resources.register(resources);
    this.enhancers.warn(registered);
  }

  private listHosts(): ParleyHost[] {
    return this.dependencies.discovery
      .getProviders()
      .flatMap(({ instance }) =>
        (instance as unknown) instanceof ParleyHost ? [instance as ParleyHost] : [],
      );
  }

  /** Whether this is the first of the instances of the application. */
  private isFirst(): boolean {
    return this.listHosts()[0] === this;
  }

  /** Once, by the first of several instances. @throws ConfigError for routes whose guard or permission is missing */
  private checkApplication(): void {
    if (!this.isFirst()) return;
    const { discovery, config } = this.dependencies;
    const hosts = this.listHosts();
    guardedRoutes(discovery, config, new Set(hosts.map(({ parley }) => parley.name)));
    if (hosts.some(({ dependencies }) => dependencies.discovers)) return;
    const names = listUnlisted(discovery);
    if (names.length > 0)
      new Logger('Parley').warn(
        `tools that no ParleyModule.forFeature names are not served: ${names.join(', ')}; ` +
          'discovery: true of one instance serves them',
      );
  }

  /**
   * Runs after the application is complete: its paths and server are known only now.
   * @throws TypeError for an invalid path. @throws ConfigError
   */
  async onApplicationBootstrap(): Promise<void> {
    const paths = await this.serve();
    await this.dependencies.opened.begin();
    warnOfRoutesBelow([...paths, ...this.listConsoles(paths)], this.dependencies);
    if (this.isFirst()) warnOfLazyTools(this.dependencies.discovery);
    this.reportStart(paths);
  }

  /** @param paths of MCP */
  private listConsoles(paths: readonly string[]): string[] {
    const { hasConsole } = this.dependencies.opened;
    return hasConsole ? paths.map((path) => `${consoleBase(path)}${CONSOLE_PATH}`) : [];
  }

  /** One line for people who look where MCP is, and which global enhancers of the application run on tools. */
  private reportStart(paths: readonly string[]): void {
    const { name, opened } = this.dependencies;
    const { agents } = opened.app.get(ConfigVersions).current;
    const consoles = this.listConsoles(paths);
    const place = [
      ...(paths.length > 0 ? [` at ${paths.join(', ')}`] : []),
      ...(consoles.length > 0 ? [`, console at ${consoles.join(', ')}`] : []),
    ].join('');
    new Logger('Parley').log(
      `Parley (${name})${place}: ${formatCount(this.parley.tools.all().length, 'tool')}, ${formatCount(agents.size, 'agent')}${String(this.enhancers ?? '')}`,
    );
  }

  /** @returns the paths of MCP; none where the application has no server */
  private async serve(): Promise<readonly string[]> {
    const { http, opened, name, endpoints, ...mounted } = this.dependencies;
    // An application context without a server has no adapter, and a testing module has one without a server.
    const adapter = http.httpAdapter as HttpAdapterHost['httpAdapter'] | undefined;
    const server = adapter?.getHttpServer() as Server | undefined;
    if (!adapter || !server) return [];
    const { config } = opened.app.get(ConfigVersions).current;
    if (!this.dependencies.admits)
      new Logger('Parley').warn(
        `nobody is admitted to instance '${name}': give \`auth\`, AGENT_FACTORY or an Authenticator`,
      );
    const bases = listBases(mounted, config.server.path);
    const mountings = await serveInstance(server, { name, instance: opened, config, bases, endpoints });
    followFurtherServers({ adapter, mountings, log: new Logger('Parley') });
    return bases.map((base) => `${base}${config.server.path}`);
  }

  /** Runs before the dependencies of tools are destroyed. */
  async onModuleDestroy(): Promise<void> {
    await Promise.all([this.parley.closeListeners(), this.dependencies.opened.drain()]);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.dependencies.opened.close();
  }
}

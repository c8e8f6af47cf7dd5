import {
  Logger,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common';
import type {
  ApplicationConfig,
  DiscoveryService,
  ExternalContextCreator,
  HttpAdapterHost,
  ModulesContainer,
} from '@nestjs/core';
import type { Server } from 'node:http';
import { ConfigVersions } from '#config';
import type { ParleyInstance } from '#instance';
import { promptsOf, ToolContext, toolsOf } from '#dispatcher';
import { agentMethodsOf, MethodRegistry } from '#tools';
import { publishEvents } from './application-events.js';
import { listedInstances, unlistedTools } from './features.js';
import { followFurtherServers } from './further-servers.js';
import { basesOf } from './mount-paths.js';
import { Parley } from './parley.js';
import type { ParleyEndpoints } from './endpoints.js';
import { serveInstance } from './serve-instance.js';

export interface HostParts {
  readonly name: string;
  readonly version: string | undefined;
  readonly endpoints: ParleyEndpoints | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Whether options or seams say who may call. */
  readonly admits: boolean;
  /** Whose paths the application prefixes. */
  readonly module: object;
  readonly opened: ParleyInstance;
  readonly discovery: DiscoveryService;
  readonly contexts: ExternalContextCreator;
  readonly http: HttpAdapterHost;
  readonly config: ApplicationConfig;
  readonly modules: ModulesContainer;
}

/** Lets one instance live with the application: its tools, its paths, its end. */
export class ParleyHost
  implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown
{
  readonly parley: Parley;

  constructor(private readonly parts: HostParts) {
    this.parley = new Parley(parts.name, parts.opened.app, parts.environment);
  }

  /** @throws ToolDeclarationError, MethodDeclarationError */
  onModuleInit(): void {
    const { name, discovery, contexts, config } = this.parts;
    if (config.getGlobalRequestGuards().length > 0)
      new Logger('Parley').warn('global guards that are made for each request do not run on tools');
    this.nameUnlisted();
    publishEvents(this.parts.opened.app, discovery);
    const context = new ToolContext(contexts);
    const methods = this.parts.opened.app.get(MethodRegistry);
    for (const instance of listedInstances(name, discovery)) {
      this.parley.tools.registerDeclared(toolsOf(instance, context));
      for (const prompt of promptsOf(instance)) this.parley.prompts.register(prompt);
      for (const { className, method } of agentMethodsOf(instance)) methods.register(className, method);
    }
  }

  /** Said once, by the first of several instances. */
  private nameUnlisted(): void {
    const { discovery } = this.parts;
    const hosts = discovery.getProviders().map(({ instance }) => instance as unknown);
    if (hosts.find((instance) => instance instanceof ParleyHost) !== this) return;
    const names = unlistedTools(discovery);
    if (names.length > 0)
      new Logger('Parley').warn(
        `tools that no ParleyModule.forFeature lists are not served: ${names.join(', ')}`,
      );
  }

  /**
   * Everything of the application is in place: only now is it known where it is served, and with what.
   * @throws TypeError for a place that cannot be. @throws ConfigError
   */
  async onApplicationBootstrap(): Promise<void> {
    this.serve();
    await this.parts.opened.begin();
  }

  private serve(): void {
    const { http, opened, name, endpoints, ...mounted } = this.parts;
    // A context without a server has no adapter, and a testing module one without a server.
    const adapter = http.httpAdapter as HttpAdapterHost['httpAdapter'] | undefined;
    const server = adapter?.getHttpServer() as Server | undefined;
    if (!adapter || !server) return;
    const context = opened.app;
    const { config } = context.get(ConfigVersions).current;
    if (!this.parts.admits)
      new Logger('Parley').warn(
        `nobody is admitted to instance '${name}': give \`auth\`, AGENT_FACTORY or an Authenticator`,
      );
    const bases = basesOf(mounted, config.server.path);
    const mountings = serveInstance(server, { name, context, config, bases, endpoints });
    followFurtherServers({ adapter, mountings, log: new Logger('Parley') });
  }

  /** Before anything that tools use is taken away. */
  async onModuleDestroy(): Promise<void> {
    await Promise.all([this.parley.closeListeners(), this.parts.opened.drain()]);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.parts.opened.close();
  }
}

import type {
  OnApplicationBootstrap,
  OnApplicationShutdown,
  OnModuleDestroy,
  OnModuleInit,
} from '@nestjs/common';
import type {
  ApplicationConfig,
  DiscoveryService,
  ExternalContextCreator,
  HttpAdapterHost,
  ModulesContainer,
} from '@nestjs/core';
import type { Server } from 'node:http';
import { Editions, mountEdges } from '#composition';
import { promptsOf, ToolContext, toolsOf } from '#dispatcher';
import { McpEdge } from '#streaming';
import { agentMethodsOf, MethodRegistry } from '#tools';
import { listedInstances } from './features.js';
import { basesOf } from './mount-paths.js';
import { MountedEdge } from './mounted-edge.js';
import type { OpenParley } from './open-parley.js';
import { Parley } from './parley.js';

export interface HostParts {
  readonly name: string;
  readonly version: string | undefined;
  /** Whose paths the application prefixes. */
  readonly module: object;
  readonly opened: OpenParley;
  readonly discovery: DiscoveryService;
  readonly contexts: ExternalContextCreator;
  readonly http: HttpAdapterHost;
  readonly config: ApplicationConfig;
  readonly modules: ModulesContainer;
}

const TAKEN = new WeakMap<Server, Set<string>>();

/** @throws TypeError when another instance of the application has it */
function take(server: Server, claims: readonly string[]): void {
  const taken = TAKEN.get(server) ?? new Set();
  TAKEN.set(server, taken);
  for (const claim of claims) {
    if (taken.has(claim)) throw new TypeError(`two instances of Parley in one application: ${claim}`);
    taken.add(claim);
  }
}

/** Lets one instance live with the application: its tools, its paths, its end. */
export class ParleyHost
  implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown
{
  readonly parley: Parley;

  constructor(private readonly parts: HostParts) {
    this.parley = new Parley(parts.name, parts.opened.context);
  }

  /** @throws ToolDeclarationError, MethodDeclarationError */
  onModuleInit(): void {
    const { name, discovery, contexts } = this.parts;
    const context = new ToolContext(contexts);
    const methods = this.parley.get(MethodRegistry);
    for (const instance of listedInstances(name, discovery)) {
      for (const tool of toolsOf(instance, context)) this.parley.tools.register(tool);
      for (const prompt of promptsOf(instance)) this.parley.prompts.register(prompt);
      for (const { className, method } of agentMethodsOf(instance)) methods.register(className, method);
    }
  }

  /** Everything of the application is in place: only now is it known where it is served, and with what. */
  async onApplicationBootstrap(): Promise<void> {
    await this.parts.opened.begin();
    const { http, config, modules, module, version } = this.parts;
    const server = (http.httpAdapter as HttpAdapterHost['httpAdapter'] | undefined)?.getHttpServer() as
      Server | undefined;
    if (!server) return;
    const edge = this.parley.get(McpEdge);
    const { path } = this.parley.get(Editions).current.config.server;
    // Downloads lie beside the path, where only one instance can be.
    const only = this.parts.name === 'default' ? null : path;
    const bases = basesOf(config, modules, module, version);
    take(server, [`instance ${this.parts.name}`, ...bases.map((base) => `path ${base}${path}`)]);
    mountEdges(
      server,
      bases.map((base) => new MountedEdge(edge, base, only)),
    );
  }

  /** Before anything that tools use is taken away. */
  async onModuleDestroy(): Promise<void> {
    await this.parts.opened.drain();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.parts.opened.close();
  }
}

import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import {
  agentMethodsOf,
  BUILT_IN_TOOLS,
  MethodRegistry,
  impliesWriting,
  toolDeclarations,
  type ToolRegistration,
  ToolRegistry,
} from '#tools';
import { ToolContext } from './tool-context.js';

/** Finds `@Tool` methods on the application's providers and registers them, each in the Nest context of its own enhancers. */
@Injectable()
export class ToolExplorer implements OnModuleInit {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly context: ToolContext,
    private readonly registry: ToolRegistry,
  ) {}

  onModuleInit(): void {
    const builtIn: ToolRegistration[] = [];
    const added: ToolRegistration[] = [];
    for (const { instance } of this.discovery.getProviders()) {
      const own = isBuiltIn(instance) ? builtIn : added;
      own.push(...toolsOf(instance, this.context));
    }
    this.registry.installBuiltIns(builtIn);
    this.registry.registerDeclared(added);
  }
}

/** The `@Tool` methods of a provider, each in the Nest context of its own enhancers. */
export function toolsOf(instance: unknown, context: ToolContext): ToolRegistration[] {
  if (instance === null || typeof instance !== 'object') return [];
  const prototype = Object.getPrototypeOf(instance) as object | null;
  if (prototype === null) return [];
  return toolDeclarations(prototype).map(({ methodName, ...declared }) => ({
    ...declared,
    handler: context.handlerOf(instance, methodName),
  }));
}

/** Checks the class itself: a subclass of a built-in tool belongs to the application. */
function isBuiltIn(instance: unknown): boolean {
  const provider = (instance as { constructor?: unknown } | null | undefined)?.constructor;
  return BUILT_IN_TOOLS.some((own) => own === provider);
}

/** Finds `@AgentMethod`s on the application's `@ParseClass` providers and registers them. */
@Injectable()
export class MethodExplorer implements OnModuleInit {
  private readonly logger = new Logger(MethodExplorer.name);

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly registry: MethodRegistry,
  ) {}

  /** @throws MethodDeclarationError */
  onModuleInit(): void {
    for (const { instance } of this.discovery.getProviders()) {
      if (instance === null || typeof instance !== 'object') continue;
      for (const { className, method } of agentMethodsOf(instance as object)) {
        this.registry.register(className, method);
        if (impliesWriting(method))
          this.logger.warn(
            `${className}.${method.name} is declared readonly but its name promises a change: any agent may call it`,
          );
      }
    }
  }
}

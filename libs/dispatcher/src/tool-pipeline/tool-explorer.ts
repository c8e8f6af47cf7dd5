import { Injectable, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService, ExternalContextCreator } from '@nestjs/core';
import {
  BUILT_IN_TOOLS,
  toolDeclarations,
  type ToolHandler,
  type ToolRegistration,
  ToolRegistry,
} from '#tools';
import { TOOL_CONTEXT_TYPE } from './tool-execution.js';

/**
 * Finds `@Tool` methods on the application's providers and registers them, each behind the Nest context of its own
 * enhancers (`@UseGuards`, interceptors, filters of type `mcp`). Parley's gates are not among those: they run before.
 */
@Injectable()
export class ToolExplorer implements OnModuleInit {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly contexts: ExternalContextCreator,
    private readonly registry: ToolRegistry,
  ) {}

  onModuleInit(): void {
    const builtIn: ToolRegistration[] = [];
    const added: ToolRegistration[] = [];
    for (const { instance } of this.discovery.getProviders()) {
      const own = isBuiltIn(instance) ? builtIn : added;
      own.push(...this.registrationsOf(instance));
    }
    this.registry.installBuiltIns(builtIn);
    for (const tool of added) this.registry.register(tool);
  }

  private registrationsOf(instance: unknown): ToolRegistration[] {
    if (instance === null || typeof instance !== 'object') return [];
    const prototype = Object.getPrototypeOf(instance) as object | null;
    if (prototype === null) return [];
    return toolDeclarations(prototype).map(({ definition, override, methodName }) => ({
      definition,
      override,
      handler: this.contexts.create(
        instance,
        Reflect.get(instance, methodName) as () => unknown,
        methodName,
        undefined,
        undefined,
        undefined,
        undefined,
        { guards: true, interceptors: true, filters: true },
        TOOL_CONTEXT_TYPE,
      ) as ToolHandler,
    }));
  }
}

/** The class itself: an application's subclass of a built-in is the application's. */
function isBuiltIn(instance: unknown): boolean {
  const provider = (instance as { constructor?: unknown } | null | undefined)?.constructor;
  return BUILT_IN_TOOLS.some((own) => own === provider);
}

import { Injectable, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { BUILT_IN_TOOLS, toolDeclarations, type ToolRegistration, ToolRegistry } from '#tools';
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

/** The class itself: an application's subclass of a built-in is the application's. */
function isBuiltIn(instance: unknown): boolean {
  const provider = (instance as { constructor?: unknown } | null | undefined)?.constructor;
  return BUILT_IN_TOOLS.some((own) => own === provider);
}

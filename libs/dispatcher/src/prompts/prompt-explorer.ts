import { Injectable, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { Prompt } from './prompt.js';
import { promptDeclarations } from './prompt.decorator.js';
import { PromptRegistry } from './prompt-registry.js';

/** Finds `@Prompt` methods on the application's providers and registers them. */
@Injectable()
export class PromptExplorer implements OnModuleInit {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly registry: PromptRegistry,
  ) {}

  onModuleInit(): void {
    for (const { instance } of this.discovery.getProviders())
      for (const prompt of promptsOf(instance)) this.registry.register(prompt);
  }
}

/** The `@Prompt` methods of a provider. */
export function promptsOf(instance: unknown): Prompt[] {
  if (instance === null || typeof instance !== 'object') return [];
  const prototype = Object.getPrototypeOf(instance) as object | null;
  if (prototype === null) return [];
  return promptDeclarations(prototype).map(({ methodName, ...prompt }) => ({
    ...prompt,
    render: (call) => (Reflect.get(instance, methodName) as Prompt['render']).call(instance, call),
  }));
}

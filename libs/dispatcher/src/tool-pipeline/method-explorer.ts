import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { agentMethodsOf, MethodRegistry, soundsLikeWriting } from '#tools';

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
        if (soundsLikeWriting(method))
          this.logger.warn(
            `${className}.${method.name} is declared readonly but its name promises a change: any agent may call it`,
          );
      }
    }
  }
}

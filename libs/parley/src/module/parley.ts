import type { INestApplicationContext, Type } from '@nestjs/common';
import { Readiness, type ReadyState } from '#composition';
import { Kernel, PromptRegistry, ResourceRegistry, SubAgents } from '#dispatcher';
import { ToolRegistry, ToolRunner } from '#tools';

/** One instance of Parley in an application. */
export class Parley {
  /** @internal Made by the module. */
  constructor(
    /** Of the instance. */
    readonly name: string,
    private readonly context: INestApplicationContext,
  ) {}

  /** Answers MCP messages in process, without HTTP. */
  get kernel(): Kernel {
    return this.context.get(Kernel);
  }

  /** Its tools, which may come and go while it runs. */
  get tools(): ToolRegistry {
    return this.context.get(ToolRegistry);
  }

  /** Its prompts. */
  get prompts(): PromptRegistry {
    return this.context.get(PromptRegistry);
  }

  /** Its resources. */
  get resources(): ResourceRegistry {
    return this.context.get(ResourceRegistry);
  }

  /** Calls any tool through every gate. */
  get runner(): ToolRunner {
    return this.context.get(ToolRunner);
  }

  /** Makes agents with less rights. */
  get subAgents(): SubAgents {
    return this.context.get(SubAgents);
  }

  /** Whether calls should be sent here, and what of its dependencies answers. */
  readiness(): Promise<ReadyState> {
    return this.context.get(Readiness).look();
  }

  /** Any other part of it, by its class. */
  get<T>(token: Type<T> | (abstract new (...args: never[]) => T)): T {
    return this.context.get<T>(token as Type<T>);
  }
}

/** Token of a named instance; that of `default` is `Parley` itself. */
export function getParleyToken(name = 'default'): typeof Parley | string {
  return name === 'default' ? Parley : `parley:${name}`;
}

import type { INestApplicationContext, Type } from '@nestjs/common';
import { Readiness, UngovernedData } from '#composition';
import { RecordReader, RecordSearcher, RecordWriter, SchemaWriter } from '#data';
import { Kernel, PromptRegistry, ResourceRegistry, SubAgents } from '#dispatcher';
import { ToolRegistry, ToolRunner } from '#tools';

/** They know no policy. */
const PORTS_TO_ROWS: readonly unknown[] = [RecordReader, RecordWriter, RecordSearcher, SchemaWriter];

/** One instance of Parley in an application. */
export class Parley {
  constructor(
    readonly name: string,
    private readonly context: INestApplicationContext,
  ) {}

  /** Answers MCP messages in process, without HTTP. */
  get kernel(): Kernel {
    return this.context.get(Kernel);
  }

  get tools(): ToolRegistry {
    return this.context.get(ToolRegistry);
  }

  get prompts(): PromptRegistry {
    return this.context.get(PromptRegistry);
  }

  get resources(): ResourceRegistry {
    return this.context.get(ResourceRegistry);
  }

  /** Calls any tool through every gate. */
  get runner(): ToolRunner {
    return this.context.get(ToolRunner);
  }

  get subAgents(): SubAgents {
    return this.context.get(SubAgents);
  }

  /** Whether calls should be sent here, and what of its dependencies answers. */
  readiness(): ReturnType<Readiness['look']> {
    return this.context.get(Readiness).look();
  }

  /** Rows past the policy, under a name that the options list in `ungoverned`. */
  get ungoverned(): UngovernedData {
    return this.context.get(UngovernedData);
  }

  /**
   * Any other part of it, by its class.
   * @throws TypeError for the ports to rows: a call has governed doors, and past the policy there is `ungoverned` alone
   */
  get<T>(token: Type<T> | (abstract new (...args: never[]) => T)): T {
    if (PORTS_TO_ROWS.includes(token))
      throw new TypeError(`${token.name} knows no policy and is not handed out: see Parley.ungoverned`);
    return this.context.get<T>(token as Type<T>);
  }
}

/** Token of a named instance; that of `default` is `Parley` itself. */
export function getParleyToken(name = 'default'): typeof Parley | string {
  return name === 'default' ? Parley : `parley:${name}`;
}

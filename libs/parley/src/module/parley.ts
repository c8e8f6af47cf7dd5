import type { INestApplicationContext, Type } from '@nestjs/common';
import { ModuleRef, ModulesContainer } from '@nestjs/core';
import { type Agent, type AgentShape, type AgentShapeOptions, compileAgentShape } from '#agent';
import {
  agentWithin,
  chosenAgent,
  type CodeChoice,
  Editions,
  Readiness,
  type ReadyState,
  rehearseInstance,
  type RehearsalRoom,
  UngovernedData,
} from '#composition';
import { RecordReader, RecordSearcher, RecordWriter, SchemaWriter } from '#data';
import { Kernel, PromptRegistry, ResourceRegistry, SubAgents } from '#dispatcher';
import { ToolRegistry, ToolRunner } from '#tools';

/** They know no policy, or hand out what knows none. */
const PAST_THE_POLICY: readonly unknown[] = [
  RecordReader,
  RecordWriter,
  RecordSearcher,
  SchemaWriter,
  ModuleRef,
  ModulesContainer,
];

/** One instance of Parley in an application. */
export class Parley {
  private readonly adHoc = new WeakMap<AgentShapeOptions, AgentShape>();

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

  /**
   * The agent that a request would run as for which this is chosen: to call tools from code (`runner`, `kernel`).
   * @throws TypeError for a choice that cannot be
   */
  agentFor(choice: CodeChoice): Agent {
    const { agent, ...as } = choice;
    if (typeof agent === 'string') return chosenAgent(this.context.get(Editions), { ...as, agent });
    const shape = this.adHoc.get(agent) ?? compileAgentShape('ad hoc', agent);
    this.adHoc.set(agent, shape);
    return agentWithin(shape, as);
  }

  /**
   * A room in which calls are rehearsed as `parley explain` does: through every gate, up to the door of the store. It knows
   * configuration, tools, schema and roles as they are now, and is the caller's to close.
   */
  openRehearsals(): Promise<RehearsalRoom> {
    return rehearseInstance(this.context);
  }

  /** Whether calls should be sent here, and what of its dependencies answers. */
  readiness(): Promise<ReadyState> {
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
    if (PAST_THE_POLICY.includes(token))
      throw new TypeError(`${token.name} knows no policy and is not handed out: see Parley.ungoverned`);
    return this.context.get<T>(token as Type<T>);
  }
}

/** Token of a named instance; that of `default` is `Parley` itself. */
export function getParleyToken(name = 'default'): typeof Parley | string {
  return name === 'default' ? Parley : `parley:${name}`;
}

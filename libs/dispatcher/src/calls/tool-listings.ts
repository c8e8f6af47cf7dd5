import { Inject, Injectable, Optional } from '@nestjs/common';
import { type Agent, type AgentDefinition, Refused, Unauthorized } from '#core';
import { type ClassUses, ClassUsesSource, QueryEmbeddings, StoreError } from '#data';
import { type EnvironmentGates, mayUse, Policies } from '#policy';
import {
  callableMethods,
  CallableMethods,
  nameClasses,
  type ToolDefinition,
  ToolEnvironment,
  ToolRegistry,
} from '#tools';
import type { Awaitable } from './tool-call.js';

interface Listing {
  readonly version: number;
  readonly tools: readonly ToolDefinition[];
}

/** Milliseconds that a list waits for a database that does not answer. */
const CLASSES_TIMEOUT = 2000;

/** Which tools an agent may call, and which of them can work for it. */
@Injectable()
export class ToolListings {
  private readonly permitted = new WeakMap<AgentDefinition, Listing>();
  private readonly working = new WeakMap<ClassUses, Listing>();

  constructor(
    private readonly registry: ToolRegistry,
    @Inject(ToolEnvironment) private readonly gates: EnvironmentGates,
    private readonly classes: ClassUsesSource,
    private readonly methods: CallableMethods,
    @Inject(Policies) private readonly policies: Pick<Policies, 'of'>,
    @Optional() @Inject(QueryEmbeddings) private readonly embeddings?: QueryEmbeddings,
  ) {}

  /**
   * The tools that no gate of the agent refuses. They depend only on the agent's definition; the same array is returned
   * until a change of the registered tools.
   */
  of(agent: Agent): readonly ToolDefinition[] {
    const { registry, gates } = this;
    const known = this.permitted.get(agent.definition);
    if (known?.version === registry.version) return known.tools;
    const tools = registry
      .all()
      .map(({ definition }) => definition)
      .filter((tool) => mayUse(agent, tool, gates));
    this.permitted.set(agent.definition, { version: registry.version, tools });
    return tools;
  }

  /**
   * Those of them that can work: that some class of the agent permits, on a database that can do it. `class_name` names
   * these classes. A tool that is left out can still be called, and is refused with its reason. All of them where the
   * database does not answer.
   */
  listTools(agent: Agent): Awaitable<readonly ToolDefinition[]> {
    const permitted = this.of(agent);
    if (this.policies.of(agent).switches.listAllTools) return permitted;
    const uses = this.findUses(agent);
    if (uses === null) return permitted;
    if (!(uses instanceof Promise)) return this.keepFitting(agent, permitted, uses);
    return waitForAnswer(uses).then((known) =>
      known ? this.keepFitting(agent, permitted, known) : permitted,
    );
  }

  private findUses(agent: Agent): Awaitable<ClassUses> | null {
    try {
      return this.classes.of(agent);
    } catch (error) {
      return nullOrThrow(error);
    }
  }

  private keepFitting(agent: Agent, permitted: readonly ToolDefinition[], uses: ClassUses) {
    const { version } = this.registry;
    const known = this.working.get(uses);
    // Answers about classes are kept for a definition, and so is the list of its tools.
    if (known?.version === version) return known.tools;
    const pointer = permitted.some(({ name }) => name === 'get_all_schemas');
    const tools = permitted.flatMap((tool) => {
      if (tool.use === undefined) return [tool];
      const names = this.namesFor(tool, agent, uses);
      return names.length === 0 ? [] : [nameClasses(tool, { names, isComplete: !uses.hasOthers, pointer })];
    });
    this.working.set(uses, { version, tools });
    return tools;
  }

  private namesFor({ use }: ToolDefinition, agent: Agent, uses: ClassUses): readonly string[] {
    if (use === undefined) return [];
    if (use === 'meaning') return this.embeddings ? uses.for('vectors') : [];
    if (use !== 'method') return uses.for(use);
    return uses.classes.flatMap((known) => {
      const declared = this.methods.of(known.className);
      return callableMethods(declared, known, agent, this.gates).length > 0 ? [known.className] : [];
    });
  }
}

/** What a call would say in its answer. Any other error is one of the service, and must not look like an empty list. */
function nullOrThrow(error: unknown): null {
  if (error instanceof Refused || error instanceof Unauthorized || error instanceof StoreError) return null;
  throw error;
}

/** Null where the database does not answer in time, or refuses: then the calls say so. */
async function waitForAnswer(uses: Promise<ClassUses>): Promise<ClassUses | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => (timer = setTimeout(() => resolve(null), CLASSES_TIMEOUT)));
  try {
    return await Promise.race([uses.catch(nullOrThrow), late]);
  } finally {
    clearTimeout(timer);
  }
}

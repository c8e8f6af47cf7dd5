import type { AgentShape } from '#agent';
import type { ToolDefinition, ToolRunner } from '#tools';
import type { DispatchContext } from '../dispatch-context.js';
import type { PreparedResult } from '../kernel-reply.js';
import type { Dialect } from '../protocol-versions.js';

/** What was made of one list of tools. */
export class CatalogueEntry {
  private index: ReadonlyMap<string, ToolDefinition> | null = null;
  private readonly bodies = {
    plain: new Map<Dialect, PreparedResult>(),
    views: new Map<Dialect, PreparedResult>(),
  };

  constructor(readonly tools: readonly ToolDefinition[]) {}

  find(name: string): ToolDefinition | undefined {
    this.index ??= new Map(this.tools.map((tool) => [tool.name, tool]));
    return this.index.get(name);
  }

  /** @param views whether the client shows them */
  body(
    dialect: Dialect,
    views: boolean,
    render: (tools: readonly ToolDefinition[]) => PreparedResult,
  ): PreparedResult {
    const bodies = this.bodies[views ? 'views' : 'plain'];
    let body = bodies.get(dialect);
    if (!body) {
      body = render(this.tools);
      bodies.set(dialect, body);
    }
    return body;
  }

  describes(tools: readonly ToolDefinition[]): boolean {
    if (tools === this.tools) return true;
    return tools.length === this.tools.length && tools.every((tool, at) => tool === this.tools[at]);
  }
}

/**
 * The tools an agent may call. The runner decides anew on every call; only what was rendered from its answer is kept,
 * one entry per agent shape, and dropped as soon as the answer differs.
 */
export class ToolCatalogue {
  private readonly entries = new WeakMap<AgentShape, CatalogueEntry>();

  constructor(private readonly runner: ToolRunner) {}

  for(context: DispatchContext): CatalogueEntry {
    const tools = this.runner.list(context);
    const kept = this.entries.get(context.agent.shape);
    if (kept?.describes(tools)) return kept;
    // A copy: a runner that changes its own list in place must not change what was compared.
    const fresh = new CatalogueEntry([...tools]);
    this.entries.set(context.agent.shape, fresh);
    return fresh;
  }
}

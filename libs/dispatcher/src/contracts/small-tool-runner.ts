import { type CallContext, refusals, tierCovers } from '#agent';
import { type ToolDefinition, type ToolOutcome, ToolRunner } from '#tools';

export type SmallHandler = (
  args: Readonly<Record<string, unknown>>,
  context: CallContext,
) => ToolOutcome | Promise<ToolOutcome>;

export function succeeded(data: unknown, structured = true): ToolOutcome {
  return { ok: true, data, text: JSON.stringify(data, null, 2), structured };
}

/** A tool with the members that every definition has, and what a test adds. */
export function smallTool(name: string, more: Partial<ToolDefinition> = {}): ToolDefinition {
  return {
    name,
    description: `Does ${name}`,
    category: 'query',
    permission: 'readonly',
    timeout: 30,
    clientSafe: false,
    inputSchema: { type: 'object', properties: {}, required: [] },
    ...more,
  };
}

/** A runner with the real contract and the two gates a list depends on: tool filter and tier. */
export class SmallToolRunner extends ToolRunner {
  readonly calls: { name: string; args: unknown }[] = [];
  private readonly tools = new Map<string, { tool: ToolDefinition; handler: SmallHandler }>();

  add(tool: ToolDefinition, handler: SmallHandler): this {
    this.tools.set(tool.name, { tool, handler });
    return this;
  }

  list({ agent }: Pick<CallContext, 'agent'>): readonly ToolDefinition[] {
    return [...this.tools.values()]
      .map(({ tool }) => tool)
      .filter(
        (tool) => agent.shape.tools.permits(tool.name) && tierCovers(agent.permissions, tool.permission),
      );
  }

  has(name: string): boolean {
    return this.tools.has(name);
  }

  run(name: string, args: unknown, context: CallContext): Promise<ToolOutcome> {
    this.calls.push({ name, args });
    const { agent } = context;
    const known = this.tools.get(name);
    if (!known) {
      const refusal = refusals.unknownTool(name, agent.permissions, []);
      return Promise.resolve({ ok: false, refusal });
    }
    if (!agent.shape.tools.permits(name)) {
      return Promise.resolve({ ok: false, refusal: refusals.toolFiltered(name) });
    }
    return Promise.resolve(known.handler(args as Readonly<Record<string, unknown>>, context));
  }
}

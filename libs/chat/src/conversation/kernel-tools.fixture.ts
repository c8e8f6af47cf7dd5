import { Agent, type McpRequest, compileAgentDefinition } from '#core';
import { kernelOf, SmallRecords } from '#dispatcher/contracts';
import { type ToolDefinition, type ToolOutcome, ToolRunner } from '#tools';
import { KernelTools } from './kernel-tools.js';

type Handler = (args: Readonly<Record<string, unknown>>, context: McpRequest) => unknown;

/** A few tools behind a real kernel. */
export class SmallTools extends ToolRunner {
  readonly calls: { readonly name: string; readonly args: unknown }[] = [];
  private readonly handlers = new Map<string, Handler>();
  private readonly tools: ToolDefinition[] = [];

  add(name: string, handler: Handler, readOnly = true): this {
    this.handlers.set(name, handler);
    this.tools.push({
      name,
      description: `Does ${name}. `.repeat(200),
      category: 'query',
      permission: 'readonly',
      timeout: 30,
      clientSafe: false,
      inputSchema: { type: 'object', properties: { q: { type: 'string' } }, required: [] },
      annotations: { readOnlyHint: readOnly },
    });
    return this;
  }

  list(): readonly ToolDefinition[] {
    return this.tools;
  }

  find(name: string): ToolDefinition | undefined {
    return this.tools.find((known) => known.name === name);
  }

  async run(name: string, args: unknown, context: McpRequest): Promise<ToolOutcome> {
    this.calls.push({ name, args });
    const handler = this.handlers.get(name);
    if (!handler)
      return {
        ok: false,
        refusal: { code: 'permission_denied', gate: 'tier', message: `Tool '${name}' is not available` },
      };
    const found = await handler(args as Readonly<Record<string, unknown>>, context);
    return {
      ok: true,
      data: found,
      text: typeof found === 'string' ? found : JSON.stringify(found),
      structured: false,
    };
  }
}

export function createKernelTools(tools: SmallTools): KernelTools {
  const kernel = kernelOf({ version: '1.0.0' }, { tools, records: new SmallRecords({}) });
  const agent = new Agent({ definition: compileAgentDefinition('test'), principal: 'ada' });
  return new KernelTools({ kernel, agent: () => Promise.resolve(agent), correlationId: 'chat-1' });
}

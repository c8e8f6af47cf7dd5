import type { ToolDefinition } from '#tools';
import { pageOf } from '../cursors.js';
import type { JsonObject } from '../json-object.js';
import { PreparedResult } from '../kernel-reply.js';
import { invalidParams } from '../protocol-fault.js';
import type { CacheHint, ResultEnvelope } from '../result-envelope.js';
import type { MethodRequest } from './method.js';
import type { ToolCatalogue } from './tool-catalogue.js';
import { describeTool } from './tool-descriptor.js';
import { showsViews } from '../views-extension.js';

/** `tools/list`: what this agent may call, and nothing else. */
export class ListTools {
  constructor(
    private readonly catalogue: ToolCatalogue,
    private readonly envelope: ResultEnvelope,
    private readonly hint: CacheHint,
  ) {}

  handle(request: MethodRequest): PreparedResult | JsonObject {
    const { params, context, dialect } = request;
    const entry = this.catalogue.for(context);
    const category = params.category ?? undefined;
    if (category === undefined && (params.cursor ?? undefined) === undefined) {
      return entry.body(dialect, showsViews(context.clientCapabilities, dialect), (tools) => {
        const result = this.page(request, tools, 'tools');
        return new PreparedResult(this.envelope.complete(dialect.era, result, this.hint));
      });
    }
    if (category === undefined) return this.page(request, entry.tools, 'tools');
    if (typeof category !== 'string') throw invalidParams('category must be a string');
    const wanted = category.toLowerCase();
    const tools = entry.tools.filter((tool) => tool.category.toLowerCase() === wanted);
    return this.page(request, tools, `tools:${wanted}`);
  }

  private page(request: MethodRequest, tools: readonly ToolDefinition[], list: string): JsonObject {
    const { dialect, params, context } = request;
    const views = showsViews(context.clientCapabilities, dialect);
    const describe = (tool: ToolDefinition) => describeTool(tool, dialect, views);
    if (!dialect.additions) return { tools: tools.map(describe) };
    const { entries, nextCursor } = pageOf(list, tools, params.cursor);
    return { tools: entries.map(describe), ...(nextCursor !== undefined && { nextCursor }) };
  }
}

import type { ToolDefinition } from '#tools';
import type { JsonObject } from '../json-object.js';
import type { Dialect } from '../protocol-versions.js';

/** A tool as one revision describes it. @param views whether the client shows them */
export function describeTool(tool: ToolDefinition, dialect: Dialect, views = false): JsonObject {
  return {
    name: tool.name,
    ...(dialect.structured && tool.title !== undefined && { title: tool.title }),
    description: tool.description,
    inputSchema: tool.inputSchema,
    ...(dialect.structured && tool.outputSchema !== undefined && { outputSchema: tool.outputSchema }),
    ...(dialect.annotations && tool.annotations !== undefined && { annotations: tool.annotations }),
    _meta: { category: tool.category, ...(views && viewMeta(tool)) },
  };
}

/** Hosts of the extension's first days read the second name. */
function viewMeta({ view }: ToolDefinition): JsonObject {
  return view === undefined ? {} : { ui: { resourceUri: view }, 'ui/resourceUri': view };
}

import type { ToolDefinition } from '#tools';
import type { JsonObject } from '../json-object.js';
import type { Dialect } from '../protocol-versions.js';

/** A tool as one revision describes it. */
export function describeTool(tool: ToolDefinition, dialect: Dialect): JsonObject {
  return {
    name: tool.name,
    ...(dialect.structured && tool.title !== undefined && { title: tool.title }),
    description: tool.description,
    inputSchema: tool.inputSchema,
    ...(dialect.structured && tool.outputSchema !== undefined && { outputSchema: tool.outputSchema }),
    ...(dialect.annotations && tool.annotations !== undefined && { annotations: tool.annotations }),
    _meta: { category: tool.category },
  };
}

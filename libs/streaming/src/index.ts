export type { McpEdgeOptions } from './edge-options.js';
export * from './mcp-edge.js';

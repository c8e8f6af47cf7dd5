export * from './downloads/downloads.js';
export type { McpEdgeOptions } from './edge-options.js';
export * from './mcp-edge.js';
export type { AbandonedDispatch } from './rungs/rung.js';
export { StdioEdge, type StdioOptions } from './stdio/stdio-edge.js';
export type { ChangingList } from './wire/replicated-list-changes.js';
export { Wire, type WireParts } from './wire/wire.js';

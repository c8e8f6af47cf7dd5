export type { McpEdgeOptions } from './edge-options.js';
export * from './mcp-edge.js';
export type { AbandonedDispatch } from './rungs/rung.js';
export type { ChangingList } from './wire/list-changes.js';
export { Wire, type WireParts } from './wire/wire.js';

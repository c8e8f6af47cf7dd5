export { remoteNetwork } from '#auth';
export {
  type AbandonedDispatch,
  type Download,
  type DownloadCall,
  Downloads,
} from './http/edge-dependencies.js';
export type { McpEdgeOptions } from './http/edge-options.js';
export { trustedHeaders } from './http/http-exchange.js';
export * from './http/mcp-edge.js';
export { NotServed, notServed, readSmallJson, UnusableBody } from './http/routes.js';
export { UnreadAnswers } from './http/unread-answers.js';
export type { ChangingList } from './sessions/listening-streams.js';
export { Wire, type WireDependencies } from './sessions/wire.js';
export { EventStream } from './sse/event-stream.js';
export { StdioEdge, type StdioOptions } from './stdio/stdio-edge.js';
export { ServedAt } from './served-at.js';
export { StreamingModule, type StreamingModuleOptions, WireModule } from './streaming.module.js';

export { remoteNetwork } from '#auth';
export { type Download, type DownloadCall, Downloads } from './http/edge-dependencies.js';
export { mayLackHeaders } from './http/http-exchange.js';
export {
  mountAt,
  nameRequest,
  readMountPath,
  readPath,
  readTrustedHeaders,
  shortenTarget,
} from './http/http-exchange.js';
export * from './http/arrival.guard.js';
export {
  authenticateCaller,
  type CallerChecks,
  CallerGuard,
  CallerRateGuard,
  CurrentAgent,
  NoStoreGuard,
  scopesLacking,
  setCaller,
  toRefusal,
} from './http/caller.guard.js';
export * from './http/mcp-edge.js';
export { NodeHttpAdapter } from './http/node-http-adapter.js';
export { CONSOLE_PATH, ROUTE_PATHS } from './http/route-paths.js';
export {
  ClosedSignal,
  JsonBodyInterceptor,
  LongJsonBodyInterceptor,
  NotServed,
  notServed,
  RefusalFilter,
  sendJson,
  SharedStateFilter,
  createValidationPipe,
} from './http/routes.js';
export { onceClosed, UnreadAnswers } from './http/client-memory.js';
export type { ChangingList } from './sessions/listening-streams.js';
export { Wire } from './sessions/wire.js';
export { EventStream } from './sse/event-stream.js';
export { StdioEdge } from './stdio/stdio-edge.js';
export {
  CallerRoutesModule,
  STREAMING_OPTIONS,
  StreamingModule,
  type StreamingModuleOptions,
  WireModule,
} from './streaming.module.js';
export { ListeningStreams, ReplicatedListChanges } from './sessions/listening-streams.js';

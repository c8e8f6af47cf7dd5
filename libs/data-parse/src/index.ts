export { LiveQueryClient, type LiveQueryNews } from './live-query/live-query-client.js';
export type { LiveQueryOptions } from './live-query/live-query-options.js';
export { LiveQuerySource } from './live-query/live-query-source.js';

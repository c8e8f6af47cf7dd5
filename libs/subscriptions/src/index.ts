export { FeedSource } from './feed-source.js';
export { SubscriptionManager, type SubscriptionParts } from './subscription-manager.js';
export type { SubscriptionOptions } from './subscription-options.js';

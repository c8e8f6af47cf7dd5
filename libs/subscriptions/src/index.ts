export { FeedSource } from './feed-source.js';
export { SubscriptionManager } from './subscription-manager.js';
export { DEFAULT_SUBSCRIPTIONS, type SubscriptionOptions } from './subscription-options.js';

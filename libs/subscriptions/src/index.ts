export { FeedSource } from './feed-source.js';
export { DEFAULT_SUBSCRIPTIONS, SubscriptionManager } from './subscription-manager.js';
export { ChangeSources, SubscriptionsModule } from './subscriptions.module.js';

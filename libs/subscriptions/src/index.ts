export { ChangeSources, FeedSource } from './watching.js';
export { DEFAULT_SUBSCRIPTIONS } from './subscription-limits.js';
export { SubscriptionManager } from './subscription-manager.js';
export { SUBSCRIPTION_OPTIONS, SubscriptionsModule } from './subscriptions.module.js';

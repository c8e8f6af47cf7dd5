export { FeedSource } from './feed-source.js';
export {
  DEFAULT_SUBSCRIPTIONS,
  SubscriptionManager,
  type SubscriptionOptions,
} from './subscription-manager.js';
export { ChangeSources, SubscriptionsModule } from './subscriptions.module.js';

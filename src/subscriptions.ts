import { Logger, type OnApplicationShutdown, type Provider } from '@nestjs/common';
import { SessionStreams, type SharedState } from '#cluster';
import { ChangeFeed, type ChangeSource, GovernedRecordsSource, GovernedViews, SchemaCatalogue } from '#data';
import { MongoChangeFeed, type MongoConnection } from '#data-mongo';
import { ResourceSubscriptions } from '#dispatcher';
import { FeedSource, SubscriptionManager } from '#subscriptions';
import type { ParleyConfig } from './config/config.js';
import { liveQuerySource } from './live-query.js';

/** Ends what the subscriptions hold when the service ends. */
class SubscriptionsEnd implements OnApplicationShutdown {
  constructor(private readonly ends: () => void) {}

  onApplicationShutdown(): void {
    this.ends();
  }
}

interface Sources {
  readonly preferred: readonly ChangeSource[];
  close(): void;
}

const SOURCES = Symbol('subscription sources');

/** Who is told that resources changed, and from where it is known: LiveQuery where it is configured, else change streams. */
export function subscriptionProviders(
  { liveQuery, subscriptions }: Pick<ParleyConfig, 'liveQuery' | 'subscriptions'>,
  connection: MongoConnection,
  shared: SharedState,
): Provider[] {
  const log = new Logger('Subscriptions');
  return [
    {
      provide: ChangeFeed,
      useFactory: async (catalogue: SchemaCatalogue) => {
        const feed = new MongoChangeFeed(connection, catalogue);
        await feed.probe();
        return feed;
      },
      inject: [SchemaCatalogue],
    },
    {
      provide: SOURCES,
      useFactory: (feed: ChangeFeed): Sources => {
        const live = liveQuerySource(liveQuery, log);
        return {
          preferred: [...(live ? [live] : []), new FeedSource(feed)],
          close: () => live?.close(),
        };
      },
      inject: [ChangeFeed],
    },
    {
      provide: SubscriptionManager,
      useFactory: (records: GovernedRecordsSource, streams: SessionStreams, { preferred }: Sources) =>
        new SubscriptionManager(
          {
            views: new GovernedViews(records),
            sources: preferred,
            streams,
            book: shared.subscriptions,
            bus: shared.bus,
            log,
          },
          subscriptions,
        ),
      inject: [GovernedRecordsSource, SessionStreams, SOURCES],
    },
    { provide: ResourceSubscriptions, useExisting: SubscriptionManager },
    {
      provide: SubscriptionsEnd,
      useFactory: (manager: SubscriptionManager, sources: Sources) =>
        new SubscriptionsEnd(() => {
          manager.close();
          sources.close();
        }),
      inject: [SubscriptionManager, SOURCES],
    },
  ];
}

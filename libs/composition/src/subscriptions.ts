import { Logger, type OnApplicationShutdown, type Provider } from '@nestjs/common';
import { SessionStreams, type SharedState } from '#cluster';
import { type ChangeSource, GovernedRecordsSource, GovernedViews, SchemaCatalogue } from '#data';
import { MongoChangeFeed, type MongoConnection } from '#data-mongo';
import { ResourceRegistry, ResourceSubscriptions } from '#dispatcher';
import { FeedSource, SubscriptionManager } from '#subscriptions';
import type { ParleyConfig } from '#config';
import { Editions } from './editions/editions.js';
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

/** A server that does not answer yet is asked again later. */
async function changesOf(connection: MongoConnection, catalogue: SchemaCatalogue): Promise<FeedSource> {
  const feed = new MongoChangeFeed(connection, catalogue);
  await feed.probe();
  return new FeedSource(feed);
}

/** Who is told that resources changed, and from where it is known: LiveQuery where it is configured, else change streams, where there is a database. */
export function subscriptionProviders(
  { liveQuery, subscriptions }: Pick<ParleyConfig, 'liveQuery' | 'subscriptions'>,
  connection: MongoConnection | null,
  shared: SharedState,
): Provider[] {
  const log = new Logger('Subscriptions');
  return [
    {
      provide: SOURCES,
      useFactory: async (catalogue: SchemaCatalogue): Promise<Sources> => {
        const live = liveQuerySource(liveQuery, log);
        const feed = connection && (await changesOf(connection, catalogue));
        return {
          preferred: [...(live ? [live] : []), ...(feed ? [feed] : [])],
          close: () => live?.close(),
        };
      },
      inject: [SchemaCatalogue],
    },
    {
      provide: SubscriptionManager,
      useFactory: (
        records: GovernedRecordsSource,
        streams: SessionStreams,
        resources: ResourceRegistry,
        { preferred }: Sources,
        editions: Editions,
      ) =>
        new SubscriptionManager(
          {
            views: new GovernedViews(records),
            sources: preferred,
            provided: (uri, context) =>
              resources.providerOf(uri)?.changes?.(uri, { ...context, records: records.for(context) }),
            streams,
            book: shared.subscriptions,
            bus: shared.bus,
            asNow: (agent) => editions.asNow(agent),
            renewals: editions.successions,
            log,
          },
          subscriptions,
        ),
      inject: [GovernedRecordsSource, SessionStreams, ResourceRegistry, SOURCES, Editions],
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

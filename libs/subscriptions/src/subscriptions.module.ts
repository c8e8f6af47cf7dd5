import {
  type DynamicModule,
  Injectable,
  Logger,
  Module,
  type ModuleMetadata,
  type OnApplicationShutdown,
} from '@nestjs/common';
import { CurrentAgents } from '#core';
import { SessionStreams, SharedState } from '#state';
import { type ChangeSource, GovernedRecordsSource, GovernedViews } from '#data';
import { ResourceRegistry, ResourceSubscriptions } from '#dispatcher';
import { SubscriptionManager, type SubscriptionOptions } from './subscription-manager.js';

/** The sources of row changes, the preferred source first. The adapters of the stores provide them. */
export abstract class ChangeSources {
  abstract readonly preferred: readonly ChangeSource[];
  abstract close(): void;
}

/** Ends all subscriptions when the application ends. */
@Injectable()
class SubscriptionsShutdown implements OnApplicationShutdown {
  constructor(
    private readonly manager: SubscriptionManager,
    private readonly sources: ChangeSources,
  ) {}

  onApplicationShutdown(): void {
    this.manager.close();
    this.sources.close();
  }
}

/** Notifies clients that a resource changed. */
@Module({})
export class SubscriptionsModule {
  /** @param imports provide change sources, governed data, resources, streams of sessions, the agents and the shared state */
  static register(options: SubscriptionOptions, imports: ModuleMetadata['imports']): DynamicModule {
    return {
      module: SubscriptionsModule,
      imports: [...(imports ?? [])],
      providers: [
        {
          provide: SubscriptionManager,
          useFactory: (
            records: GovernedRecordsSource,
            streams: SessionStreams,
            resources: ResourceRegistry,
            { preferred }: ChangeSources,
            agents: CurrentAgents,
            { subscriptions, bus }: SharedState,
          ) =>
            new SubscriptionManager(
              {
                views: new GovernedViews(records),
                sources: preferred,
                provided: (uri, context) =>
                  resources.providerOf(uri)?.changes?.(uri, { ...context, records: records.for(context) }),
                streams,
                book: subscriptions,
                bus,
                asNow: (agent) => agents.asNow(agent),
                renewals: agents.changes,
                log: new Logger('Subscriptions'),
              },
              options,
            ),
          inject: [
            GovernedRecordsSource,
            SessionStreams,
            ResourceRegistry,
            ChangeSources,
            CurrentAgents,
            SharedState,
          ],
        },
        { provide: ResourceSubscriptions, useExisting: SubscriptionManager },
        SubscriptionsShutdown,
      ],
      exports: [SubscriptionManager, ResourceSubscriptions],
    };
  }
}

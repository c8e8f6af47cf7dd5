import {
  type DynamicModule,
  Injectable,
  Module,
  type ModuleMetadata,
  type OnApplicationShutdown,
} from '@nestjs/common';
import { ResourceSubscriptions } from '#dispatcher';
import { ChangeSources, WatchService } from './watching.js';
import { HeldSessions } from './held-sessions.js';
import { ReplicaMessages } from './replica-messages.js';
import { SubscriptionLimits, type SubscriptionOptions } from './subscription-limits.js';
import { SubscriptionManager } from './subscription-manager.js';

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
        { provide: SubscriptionLimits, useValue: new SubscriptionLimits(options) },
        WatchService,
        HeldSessions,
        ReplicaMessages,
        SubscriptionManager,
        { provide: ResourceSubscriptions, useExisting: SubscriptionManager },
        SubscriptionsShutdown,
      ],
      exports: [SubscriptionManager, ResourceSubscriptions],
    };
  }
}

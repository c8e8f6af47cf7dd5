import { Injectable, Module, type OnApplicationShutdown } from '@nestjs/common';
import { CoreModule, provideFromInstance } from '#core';
import { DataModule, StoresModule } from '#data';
import { DispatcherModule } from '#dispatcher';
import { SessionStreams, StateModule } from '#state';
import { ToolsModule } from '#tools';
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

export const SUBSCRIPTION_OPTIONS = Symbol('options of subscriptions');

/** Notifies clients that a resource changed. */
@Module({
  imports: [CoreModule, StateModule, StoresModule, DataModule, DispatcherModule, ToolsModule],
  providers: [
    {
      provide: SubscriptionLimits,
      useFactory: (options: SubscriptionOptions) => new SubscriptionLimits(options),
      inject: [SUBSCRIPTION_OPTIONS],
    },
    provideFromInstance(ChangeSources),
    provideFromInstance(SessionStreams),
    WatchService,
    HeldSessions,
    ReplicaMessages,
    SubscriptionManager,
    SubscriptionsShutdown,
  ],
  exports: [SubscriptionManager],
})
export class SubscriptionsModule {}

import { type FactoryProvider, Module, type OnModuleDestroy, type Type } from '@nestjs/common';
import { provideFromInstance } from '#core';
import { MessageBus, OneTimeStore } from './ports/stores.js';
import { SessionStore, StreamLog } from './ports/sessions.js';
import { SharedState } from './ports/shared-state.js';
import { LargeReads } from './large-reads.js';
import { SuspendedAgents } from './suspended-agents.js';

function providePort<T>(port: abstract new (...args: never[]) => T, read: (shared: SharedState) => T) {
  return { provide: port as Type<T>, useFactory: read, inject: [SharedState] } satisfies FactoryProvider<T>;
}

/** State that replicas share, one provider for each port. `openSharedState` has chosen between memory and Redis. */
@Module({
  providers: [
    provideFromInstance(SharedState),
    providePort(SessionStore, ({ sessions }) => sessions),
    providePort(MessageBus, ({ bus }) => bus),
    providePort(OneTimeStore, ({ oneTime }) => oneTime),
    providePort(StreamLog, ({ streams }) => streams),
    SuspendedAgents,
    LargeReads,
  ],
  exports: [SharedState, SessionStore, MessageBus, OneTimeStore, StreamLog, SuspendedAgents, LargeReads],
})
export class StateModule implements OnModuleDestroy {
  constructor(private readonly suspended: SuspendedAgents) {}

  onModuleDestroy(): void {
    this.suspended.close();
  }
}

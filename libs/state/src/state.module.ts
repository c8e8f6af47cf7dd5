import { type DynamicModule, Module } from '@nestjs/common';
import { MessageBus, OneTimeStore } from './ports/stores.js';
import { SessionStore, StreamLog } from './ports/sessions.js';
import { SharedState } from './ports/shared-state.js';

/** State that replicas share, one provider for each port. `openSharedState` has chosen between memory and Redis. */
@Module({})
export class StateModule {
  /** @param shared closed by the code that opened it */
  static register(shared: SharedState): DynamicModule {
    const providers = [
      { provide: SharedState, useValue: shared },
      { provide: SessionStore, useValue: shared.sessions },
      { provide: MessageBus, useValue: shared.bus },
      { provide: OneTimeStore, useValue: shared.oneTime },
      { provide: StreamLog, useValue: shared.streams },
    ];
    return { module: StateModule, providers, exports: providers.map(({ provide }) => provide) };
  }
}

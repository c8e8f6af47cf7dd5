import type { Provider } from '@nestjs/common';
import { MessageBus, OneTimeStore, SessionStore, SharedState, StreamLog } from '#cluster';

/** Binds each port to the one shared state of the service. */
export function sharedStateProviders(shared: SharedState): Provider[] {
  return [
    { provide: SharedState, useValue: shared },
    { provide: SessionStore, useValue: shared.sessions },
    { provide: MessageBus, useValue: shared.bus },
    { provide: OneTimeStore, useValue: shared.oneTime },
    { provide: StreamLog, useValue: shared.streams },
  ];
}

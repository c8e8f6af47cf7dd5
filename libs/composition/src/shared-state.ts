import type { Provider } from '@nestjs/common';
import { type AgentShape, countedBy } from '#agent';
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

/** Named agents whose limits all replicas count together. */
export function countedTogether(
  agents: ReadonlyMap<string, AgentShape>,
  { limiters }: SharedState,
): Map<string, AgentShape> {
  return new Map([...agents].map(([name, shape]) => [name, countedBy(shape, limiters)]));
}

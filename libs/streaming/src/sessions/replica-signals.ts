import { Injectable, Logger, Optional } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { filter, type Observable } from 'rxjs';
import { type BusMessage, MessageBus } from '#state';
import { faultLine, type WarningLog } from '#dispatcher';

/** What edges publish to each other, by topic. */
export type SignalKind =
  | 'cancel'
  | 'ended'
  | 'attached'
  | 'left'
  | 'notice'
  | 'taken'
  | 'reply'
  | 'changed'
  | 'resumed'
  | 'logged'
  | 'beat';

/** What one edge publishes to the edges of other replicas. The publisher does not receive its own. */
@Injectable()
export class ReplicaSignals {
  private readonly self = randomUUID();

  constructor(
    private readonly bus: MessageBus,
    @Optional() private readonly log: WarningLog = new Logger('Wire'),
  ) {}

  /** Never rejects: an outage is logged, and the other replicas then miss the signal. */
  async publish(kind: SignalKind, body: BusMessage): Promise<boolean> {
    try {
      await this.bus.publish(`wire.${kind}`, { ...body, from: this.self });
      return true;
    } catch (error) {
      this.log.warn(faultLine(`replicas were not told (${kind}):`, error));
      return false;
    }
  }

  listenTo(kind: SignalKind): Observable<BusMessage> {
    return this.bus.messages(`wire.${kind}`).pipe(filter(({ from }) => from !== this.self));
  }
}

/** A member that must be text. Data from outside the process is checked like any input. */
export function text(message: BusMessage, member: string): string | undefined {
  const value = message[member];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

import { Inject, Injectable } from '@nestjs/common';
import type { ChangeSet } from '#data';
import { APPROVAL_DECIDED, readPending, SharedState } from '#state';

/** The cases in which other persons are asked about sets. */
@Injectable()
export class SetCases {
  constructor(@Inject(SharedState) private readonly shared: Pick<SharedState, 'approvals' | 'bus'>) {}

  /**
   * Nobody is asked any more about a set that is over, and calls that wait for the decision end.
   * @param by who ended it
   */
  async withdraw({ id, owner }: ChangeSet, by: string, state: 'discarded' | 'expired'): Promise<void> {
    const { approvals, bus } = this.shared;
    const reason = state === 'expired' ? 'the change set has expired' : 'the change set was discarded';
    try {
      for (const opened of await this.find(id, owner)) {
        await approvals.decide(opened, { approved: false, withdrawn: true, by, reason, at: Date.now() });
        await bus.publish(APPROVAL_DECIDED, { id: opened });
      }
    } catch {
      // Without the shared state the case ends by itself, and a decision on it applies to nothing.
    }
  }

  /** However many others wait. */
  private async find(set: string, { tenant }: ChangeSet['owner']): Promise<readonly string[]> {
    const found = new Set<string>();
    for await (const { id, changeSet } of readPending(this.shared.approvals, tenant))
      if (changeSet === set) found.add(id);
    return [...found];
  }
}

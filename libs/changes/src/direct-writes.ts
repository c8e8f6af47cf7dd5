import { Inject, Injectable } from '@nestjs/common';
import { type Agent, McpRequest } from '#core';
import { type AppliedChange, type RowTransaction, WriteRecorder } from '#data';
import { ChangeSeal, nameKeys } from './change-seal.js';
import { CHANGE_SETTINGS, type ChangeSettings, OwnedSets } from './owned-sets.js';

/** Keeps every write that happens at once as a set of one row, which is applied already. */
@Injectable()
export class DirectWrites extends WriteRecorder {
  constructor(
    private readonly owned: OwnedSets,
    private readonly seal: ChangeSeal,
    @Inject(CHANGE_SETTINGS) private readonly settings: Pick<ChangeSettings, 'keep'>,
  ) {
    super();
  }

  async record(change: AppliedChange, agent: Agent, transaction: RowTransaction): Promise<void> {
    const id = this.owned.newId();
    const now = this.owned.now();
    const times = { openedAt: now, appliedAt: now, expiresAt: now, deletedAt: now + this.settings.keep };
    const entries = [{ ...(await this.seal.seal(id, 1, change)), ...nameKeys(agent) }];
    const set = { id, kind: 'direct', state: 'applied', entries, next: 2, ...times } as const;
    await this.owned.create(new McpRequest(agent), set, transaction);
  }
}

import { Inject, Injectable } from '@nestjs/common';
import { type Agent, type McpRequest, orThrow, refuse } from '#core';
import {
  type AppliedChange,
  type ChangeSet,
  ChangeSets,
  ConflictingChanges,
  type ParleyChanges,
  type StoredEntry,
  type RowTransaction,
} from '#data';
import { rowWriteGate } from '#policy';
import { ToolEnvironment } from '#tools';
import { ChangeRecords } from './change-records.js';
import { assertStorable, ChangeSeal, withoutValues } from './change-seal.js';
import { CHANGE_SETTINGS, type ChangeSettings, OwnedSets } from './owned-sets.js';
import { markUndone } from './set-undo.js';
import { nameConflicts } from './shown-sets.js';

/** Who decided on a set. */
export interface SetApproval {
  readonly approver?: string;
  readonly approval_id?: string;
}

/** Somebody has changed the set since it was read. */
class SetChanged extends Error {}

/** Applies sets that were decided on: all of a set, or nothing. */
@Injectable()
export class SetApplication {
  constructor(
    private readonly sets: ChangeSets,
    private readonly owned: OwnedSets,
    private readonly seal: ChangeSeal,
    private readonly records: ChangeRecords,
    @Inject(ToolEnvironment) private readonly gates: ToolEnvironment,
    @Inject(CHANGE_SETTINGS) private readonly settings: Pick<ChangeSettings, 'record' | 'keep'>,
  ) {}

  /** What a set does its agent has to be permitted as single writes, too. @throws Refused */
  assertPermitted(agent: Agent, changes: readonly Pick<StoredEntry, 'operation'>[]): void {
    for (const operation of new Set(changes.map((change) => change.operation)))
      orThrow(rowWriteGate(agent, operation, this.gates));
  }

  /** @param governed the access of whose changes they are. @throws Refused: nothing was applied then */
  async apply(
    set: ChangeSet,
    governed: ParleyChanges,
    request: McpRequest,
    approval: SetApproval,
  ): Promise<void> {
    this.assertPermitted(request.agent, set.entries);
    const held = await this.seal.openAll(set);
    const { approver } = approval;
    try {
      await governed.apply(held, (applied, transaction) => this.settle(set, applied, approver, transaction));
    } catch (error) {
      throw this.refuseUnapplied(error, set, request);
    }
    this.records.record(set, set.kind === 'undo' ? 'undone' : 'applied', request, approval);
  }

  /** The set says that it is applied in the transaction of its rows: whatever ends this process, both are true or neither. */
  private async settle(
    set: ChangeSet,
    applied: readonly AppliedChange[],
    approver: string | undefined,
    transaction: RowTransaction,
  ): Promise<void> {
    const { record, keep } = this.settings;
    const now = this.owned.now();
    const put = await Promise.all(
      set.entries.map(async (stored, at) => {
        const change = applied[at];
        if (!change) throw new SetChanged();
        const sealed = { ...stored, ...(await this.seal.seal(set.id, stored.entry, change)) };
        return record === 'none' ? withoutValues(sealed) : sealed;
      }),
    );
    assertStorable(put);
    const change = { state: 'applied', appliedAt: now, deletedAt: now + keep, put } as const;
    const named = approver === undefined ? change : { ...change, approver };
    if (!(await this.sets.change(set.id, set.revision, named, transaction))) throw new SetChanged();
    for (const id of set.undoes ?? []) {
      const original = await this.sets.find(id);
      const mark = original && markUndone(original, set);
      if (!original || !mark) throw new SetChanged();
      if (!(await this.sets.change(id, original.revision, mark, transaction))) throw new SetChanged();
    }
  }

  private refuseUnapplied(error: unknown, set: ChangeSet, request: McpRequest): unknown {
    if (error instanceof ConflictingChanges) {
      this.records.record(set, 'conflict', request, { rows: error.conflicts.length });
      return refuse.changesInConflict(...nameConflicts(error.conflicts));
    }
    return error instanceof SetChanged
      ? refuse.approvalDenied('the change set is no longer the one that was approved')
      : error;
  }
}

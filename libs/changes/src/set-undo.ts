import { Injectable } from '@nestjs/common';
import { type McpRequest, refuse } from '#core';
import { type AppliedChange, type ChangeSet, ChangeSets, type HeldChange, type StoredEntry } from '#data';
import { ChangeRecords } from './change-records.js';
import { ChangeSeal, nameKeys } from './change-seal.js';
import { OwnedSets } from './owned-sets.js';

/** Makes the sets that take others back. */
@Injectable()
export class SetUndo {
  constructor(
    private readonly sets: ChangeSets,
    private readonly owned: OwnedSets,
    private readonly seal: ChangeSeal,
    private readonly records: ChangeRecords,
  ) {}

  /** What sets did, the set that was applied last at the end. @throws Refused for a set that cannot be taken back */
  async openApplied(originals: readonly ChangeSet[]): Promise<readonly AppliedChange[]> {
    const applied: AppliedChange[] = [];
    for (const set of originals.toSorted((one, other) => (one.appliedAt ?? 0) - (other.appliedAt ?? 0))) {
      assertUndoable(set);
      for (const change of await this.seal.openAll(set)) if (isApplied(change)) applied.push(change);
    }
    return applied;
  }

  /** Stores a set that waits for its decision. @param request of who takes the originals back */
  async create(
    request: McpRequest,
    originals: readonly ChangeSet[],
    changes: readonly HeldChange[],
  ): Promise<ChangeSet> {
    const id = this.owned.newId();
    const entries = await Promise.all(
      changes.map(async (change, at) => ({
        ...(await this.seal.seal(id, at + 1, change)),
        ...nameKeys(request.agent),
      })),
    );
    const set = await this.owned.create(request, {
      id,
      kind: 'undo',
      state: 'submitted',
      undoes: originals.map((original) => original.id),
      entries,
      next: entries.length + 1,
      submittedAt: this.owned.now(),
    });
    this.records.record(set, 'submitted', request);
    return set;
  }

  /** Rows of the sets that an undo takes back, and that it leaves as they are. */
  async listLeftOut({ undoes = [], entries }: ChangeSet): Promise<readonly StoredEntry[]> {
    const taken = new Set(entries.map(nameRow));
    const left: StoredEntry[] = [];
    for (const id of undoes) {
      const original = await this.owned.atStore(() => this.sets.find(id));
      left.push(...(original?.entries ?? []).filter((entry) => !taken.has(nameRow(entry))));
    }
    return left;
  }
}

const nameRow = ({ className, objectId }: StoredEntry): string => JSON.stringify([className, objectId]);

const isApplied = (change: HeldChange): change is AppliedChange =>
  change.objectId !== null && change.after !== undefined;

/** @throws Refused */
function assertUndoable({ state, undoneBy, entries }: ChangeSet): void {
  const obstacle =
    undoneBy !== undefined
      ? 'this change set was taken back already'
      : state !== 'applied'
        ? `this change set is ${state}, so there is nothing to take back`
        : entries.some(({ sealed }) => sealed === undefined)
          ? 'the rows before this change set were not kept (changes.record, changes.keep)'
          : null;
  if (obstacle !== null) throw refuse.invalidArgument(obstacle);
}

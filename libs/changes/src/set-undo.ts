import { Injectable } from '@nestjs/common';
import { type McpRequest, refuse } from '#core';
import {
  type AppliedChange,
  type ChangeSet,
  ChangeSets,
  type HeldChange,
  type SetChange,
  type StoredEntry,
} from '#data';
import { ChangeRecords } from './change-records.js';
import { ChangeSeal, listKeyNames, nameKeys } from './change-seal.js';
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

  /**
   * What sets did, the set that was applied last at the end.
   * @param keyName only what the credential of this name wrote. @throws Refused for a set that cannot be taken back
   */
  async openApplied(originals: readonly ChangeSet[], keyName?: string): Promise<readonly AppliedChange[]> {
    const applied: AppliedChange[] = [];
    for (const set of originals.toSorted((one, other) => (one.appliedAt ?? 0) - (other.appliedAt ?? 0))) {
      assertUndoable(set);
      const entries = listUndoable(set, keyName);
      for (const change of await this.seal.openAll({ ...set, entries }))
        if (isApplied(change)) applied.push(change);
    }
    return applied;
  }

  /** Stores a set that waits for its decision. @param request of who takes the originals back */
  async create(
    request: McpRequest,
    {
      originals,
      changes,
      keyName,
    }: {
      readonly originals: readonly ChangeSet[];
      readonly changes: readonly HeldChange[];
      readonly keyName?: string | undefined;
    },
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
      ...(keyName !== undefined && { undoesKey: keyName }),
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
      left.push(...(original ? listUndoable(original) : []).filter((entry) => !taken.has(nameRow(entry))));
    }
    return left;
  }
}

/** Rows of a set that were not taken back alone. @param keyName by the credential of this name; null: by nobody knows which */
export const listUndoable = (
  { entries }: Pick<ChangeSet, 'entries'>,
  keyName?: string | null,
): readonly StoredEntry[] =>
  entries.filter(
    ({ keyNames = [], undoneBy }) =>
      undoneBy === undefined &&
      (keyName === undefined || (keyName === null ? keyNames.length === 0 : keyNames.includes(keyName))),
  );

/**
 * What is noted of a set that an undo takes back: of the whole set, or where the undo is of one key of those of its rows that it took
 * back, unless no other is left; null: nothing can be.
 */
export function markUndone(original: ChangeSet, { id, undoesKey, entries }: ChangeSet): SetChange | null {
  const asked = listUndoable(original, undoesKey);
  if (original.undoneBy !== undefined || asked.length === 0) return null;
  if (undoesKey === undefined) return { undoneBy: id };
  const rows = new Set(entries.map(nameRow));
  const taken = asked.filter((entry) => rows.has(nameRow(entry)));
  if (taken.length === listUndoable(original).length) return { undoneBy: id };
  return { put: taken.map((entry) => ({ ...entry, undoneBy: id })) };
}

/** Names of the credentials that wrote a row, by any of these entries. */
export function findOrigins(entries: readonly StoredEntry[]): (row: RowName) => readonly string[] {
  const byRow = new Map<string, StoredEntry[]>();
  for (const entry of entries) {
    const row = nameRow(entry);
    const known = byRow.get(row);
    if (known) known.push(entry);
    else byRow.set(row, [entry]);
  }
  return (row) => listKeyNames({ entries: byRow.get(nameRow(row)) ?? [] });
}

type RowName = Pick<StoredEntry, 'className' | 'objectId'>;

const nameRow = ({ className, objectId }: RowName): string => JSON.stringify([className, objectId]);

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

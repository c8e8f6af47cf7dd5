import type { Owner } from '#core';
import type { ProposedWrite } from '../governed-access.js';
import type { RowTransaction } from './row-transactions.js';

/**
 * `open`: takes further writes. `submitted`: waits for its approval, and takes none. `applied`: all of it happened. `denied`: an
 * approver said no. `discarded` and `expired`: nothing of it happened, and nothing will.
 */
type ChangeState = 'open' | 'submitted' | 'applied' | 'denied' | 'discarded' | 'expired';

/** `proposed`: an agent proposed it. `direct`: one write that was made at once. `undo`: takes back another one. */
type ChangeKind = 'proposed' | 'direct' | 'undo';

/** One row of a set. Values lie in `sealed`, which the store cannot read. */
export interface StoredEntry {
  /** Its number in the set, from 1 on: never given twice. */
  readonly entry: number;
  readonly operation: ProposedWrite['operation'];
  readonly className: string;
  /** Null: a row that gets its id when it is created. */
  readonly objectId: string | null;
  /** Names of the fields that it writes; empty for a row that is removed. */
  readonly fields: readonly string[];
  /** Digests of the writes that led to it, by digests of their idempotency keys. Absent: none had one. */
  readonly keys?: Readonly<Record<string, string>>;
  /** Names of the credentials by which it was written. Absent: they have none. */
  readonly keyNames?: readonly string[];
  /** The set that took it back, and not the others of its set. */
  readonly undoneBy?: string;
  /** The written values and the row before and after, sealed. Absent once they are deleted. */
  readonly sealed?: string;
}

/** Changes of rows that are reviewed, applied and undone as one. */
export interface ChangeSet {
  readonly id: string;
  readonly owner: Owner;
  readonly kind: ChangeKind;
  readonly state: ChangeState;
  /** One more with every change of the set. */
  readonly revision: number;
  /** Milliseconds since 1970, as all times here. */
  readonly openedAt: number;
  /** When it ends unless it is applied before. */
  readonly expiresAt: number;
  /** When it is deleted, with everything that it holds. */
  readonly deletedAt: number;
  /** In the order of their numbers. */
  readonly entries: readonly StoredEntry[];
  /** The number of the next entry. */
  readonly next: number;
  /** What the agent says about it when it submits it. */
  readonly title?: string;
  readonly reason?: string;
  readonly submittedAt?: number;
  readonly appliedAt?: number;
  /** The principal who approved it. */
  readonly approver?: string;
  /** The sets that this one takes back. */
  readonly undoes?: readonly string[];
  /** Of their rows it takes back only those that the credential of this name wrote. */
  readonly undoesKey?: string;
  /** The set that took this one back, and entries of it that were left out. */
  readonly undoneBy?: string;
}

/** How a set changes. Members that are absent stay as they are. */
export interface SetChange extends Partial<
  Pick<
    ChangeSet,
    | 'state'
    | 'expiresAt'
    | 'deletedAt'
    | 'title'
    | 'reason'
    | 'submittedAt'
    | 'appliedAt'
    | 'approver'
    | 'undoneBy'
    | 'next'
  >
> {
  /** Entries to store, each instead of the one with its number. */
  readonly put?: readonly StoredEntry[];
  /** Numbers of entries to delete. */
  readonly remove?: readonly number[];
}

/** Whose sets are listed, newest first. */
export interface ChangeSetQuery {
  /** Default: those of every owner. */
  readonly owner?: Owner;
  readonly states?: readonly ChangeState[];
  readonly agent?: string;
  readonly tenant?: string | number | null;
  /** With an entry that has this key. */
  readonly key?: string;
  /** With an entry that was written by the credential of this name; null: of which none is known. */
  readonly keyName?: string | null;
  /** One of their rows is of this class. */
  readonly className?: string;
  /** Whether they were taken back. */
  readonly isUndone?: boolean;
  /** Applied, or where they are not applied opened, at this time or later. */
  readonly since?: number;
  /** The same before this time. */
  readonly until?: number;
  /** Whose time is over at this one. */
  readonly expiredBy?: number;
  readonly limit: number;
}

/** Topic of messages between replicas: `{ set }` is the id of a set that has changed. */
export const CHANGED_SETS = 'change sets';

/**
 * Sets of changes, the same on every replica. The store decides nothing: who may see or change a set is asked before.
 * A set is never changed from another state than the one that its caller read. @throws StoreError
 */
export abstract class ChangeSets {
  /**
   * @param within the transaction that the set belongs to. Default: none
   * @returns false when there is a set of this id, or the owner has an open one already. @throws StoreError `duplicate` within a
   * transaction, which fails with it
   */
  abstract create(set: ChangeSet, within?: RowTransaction): Promise<boolean>;
  /** Null: there is none, or it was deleted. */
  abstract find(id: string): Promise<ChangeSet | null>;
  /** The set that takes the owner's writes; null: none. */
  abstract findOpen(owner: Owner): Promise<ChangeSet | null>;
  /** Without what is sealed. */
  abstract list(query: ChangeSetQuery): Promise<readonly ChangeSet[]>;
  /**
   * Changes a set that has this revision.
   * @param within the transaction that the change belongs to. Default: none. @returns false when the set has another revision
   */
  abstract change(id: string, revision: number, change: SetChange, within?: RowTransaction): Promise<boolean>;
}

/** A set with a change applied, as every adapter must show it. */
export function withChange(set: ChangeSet, { put = [], remove = [], ...members }: SetChange): ChangeSet {
  const gone = new Set([...remove, ...put.map(({ entry }) => entry)]);
  const entries = [...set.entries.filter(({ entry }) => !gone.has(entry)), ...put];
  return {
    ...set,
    ...members,
    entries: entries.toSorted((one, other) => one.entry - other.entry),
    revision: set.revision + 1,
  };
}

import { isSameOwner, type Owner } from '#core';
import {
  type ChangeSet,
  type ChangeSetQuery,
  ChangeSets,
  type SetChange,
  withChange,
} from './change-sets.js';

/** Sets of this process, which end with it: for tests and simulations. A transaction that fails does not take a change back. */
export class MemoryChangeSets extends ChangeSets {
  private readonly sets = new Map<string, ChangeSet>();

  constructor(private readonly now: () => number = Date.now) {
    super();
  }

  create(set: ChangeSet): Promise<boolean> {
    const taken = this.sets.has(set.id) || (set.state === 'open' && this.openOf(set.owner) !== null);
    if (!taken) this.sets.set(set.id, set);
    return Promise.resolve(!taken);
  }

  find(id: string): Promise<ChangeSet | null> {
    return Promise.resolve(this.live().find((set) => set.id === id) ?? null);
  }

  findOpen(owner: Owner): Promise<ChangeSet | null> {
    return Promise.resolve(this.openOf(owner));
  }

  list({
    owner,
    states,
    agent,
    tenant,
    key,
    keyName,
    className,
    isUndone,
    since,
    until,
    expiredBy,
    limit,
  }: ChangeSetQuery): Promise<readonly ChangeSet[]> {
    const found = this.live()
      .filter((set) => !owner || isSameOwner(set.owner, owner))
      .filter(({ state }) => states?.includes(state) ?? true)
      .filter((set) => agent === undefined || set.owner.agent === agent)
      .filter((set) => tenant === undefined || set.owner.tenant === tenant)
      .filter(({ entries }) => key === undefined || entries.some(({ keys = {} }) => Object.hasOwn(keys, key)))
      .filter(
        ({ entries }) =>
          keyName === undefined ||
          entries.some(({ keyNames = [] }) =>
            keyName === null ? keyNames.length === 0 : keyNames.includes(keyName),
          ),
      )
      .filter((set) => className === undefined || set.entries.some((one) => one.className === className))
      .filter(({ undoneBy }) => isUndone === undefined || (undoneBy !== undefined) === isUndone)
      .filter(({ appliedAt, openedAt }) => since === undefined || (appliedAt ?? openedAt) >= since)
      .filter(({ appliedAt, openedAt }) => until === undefined || (appliedAt ?? openedAt) < until)
      .filter(({ expiresAt }) => expiredBy === undefined || expiresAt <= expiredBy)
      .toSorted((one, other) => other.openedAt - one.openedAt || (one.id < other.id ? 1 : -1))
      .slice(0, limit);
    return Promise.resolve(
      found.map((set) => ({ ...set, entries: set.entries.map(({ sealed: _sealed, ...entry }) => entry) })),
    );
  }

  change(id: string, revision: number, change: SetChange): Promise<boolean> {
    const set = this.sets.get(id);
    if (set?.revision !== revision) return Promise.resolve(false);
    this.sets.set(id, withChange(set, change));
    return Promise.resolve(true);
  }

  private openOf(owner: Owner): ChangeSet | null {
    return this.live().find((set) => set.state === 'open' && isSameOwner(set.owner, owner)) ?? null;
  }

  private live(): ChangeSet[] {
    return [...this.sets.values()].filter(({ deletedAt }) => deletedAt > this.now());
  }
}

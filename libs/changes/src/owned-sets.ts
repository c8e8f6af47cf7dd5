import { randomBytes } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import {
  type Agent,
  findRootAgent,
  isSameOwner,
  type Owner,
  type McpRequest,
  Refused,
  sharesTenant,
  toOwner,
  refuse,
} from '#core';
import {
  type ChangeSet,
  type ChangeSetQuery,
  ChangeSets,
  type RowTransaction,
  type SetChange,
  StoreError,
  withChange,
} from '#data';
import { ChangeRecords } from './change-records.js';
import { SharedState } from '#state';
import { assertStorable, listClasses, withoutValues } from './change-seal.js';
import { SetCases } from './set-cases.js';

/** Injection token of the settings of change sets. */
export const CHANGE_SETTINGS = Symbol('settings of change sets');

export interface ChangeSettings {
  /** Of which writes the rows before them are kept after they were applied. */
  readonly record: 'none' | 'proposed' | 'all';
  /** Milliseconds for which a set is kept once it is over. */
  readonly keep: number;
  /** Who may take sets back. */
  readonly undo: 'operators' | 'agents' | 'nobody';
  /** Rows of a set. */
  readonly maxEntries: number;
  /** Bytes of a set. */
  readonly maxBytes: number;
  /** Milliseconds within which a set has to be applied. */
  readonly openFor: number;
}

/** Whose sets they are: those of a sub-agent are those of the agent at its root. */
const ownerOf = (agent: Agent): Owner => toOwner(findRootAgent(agent));

const ID_BYTES = 15;

/** Attempts at a change of a set while other calls change it. */
export const CONTENDED_TRIES = 10;

/** The sets of one owner: nobody else's exist for it. */
@Injectable()
export class OwnedSets {
  constructor(
    private readonly sets: ChangeSets,
    private readonly records: ChangeRecords,
    private readonly cases: SetCases,
    @Inject(CHANGE_SETTINGS) private readonly settings: ChangeSettings,
    @Inject(SharedState) private readonly shared: Pick<SharedState, 'clock'>,
  ) {}

  /** Milliseconds since 1970, on the clock of the replicas. */
  now(): number {
    return Math.floor(this.shared.clock());
  }

  /** @throws Refused for a set that there is not, or that is another owner's */
  async find(id: unknown, request: McpRequest): Promise<ChangeSet> {
    const found = typeof id === 'string' ? await this.atStore(() => this.sets.find(id)) : null;
    if (!found || !isSameOwner(found.owner, ownerOf(request.agent)))
      throw refuse.invalidArgument('there is no such change set: list_changes names yours');
    return this.expire(found, request);
  }

  async list(
    request: McpRequest,
    limit: number,
    narrow: Pick<ChangeSetQuery, 'key' | 'states' | 'since'> = {},
  ) {
    const query = { ...narrow, owner: ownerOf(request.agent), limit };
    return this.listNow(query);
  }

  /** Sets of any owner, each in the state that it has by now: none in another than is asked for. */
  async listNow(query: ChangeSetQuery): Promise<readonly ChangeSet[]> {
    if (query.states?.includes('expired')) await this.expireAll(query);
    const listed = await this.atStore(() => this.sets.list(query));
    const now = listed.map((set): ChangeSet => (this.isOver(set) ? { ...set, state: 'expired' } : set));
    return now.filter(({ state }) => query.states?.includes(state) ?? true);
  }

  /** Ends the sets whose time is over though nobody looked at them. */
  async expireAll(query: ChangeSetQuery): Promise<void> {
    const overdue = { ...query, states: ['open', 'submitted'], expiredBy: this.now() } as const;
    for (const set of await this.atStore(() => this.sets.list(overdue))) await this.expire(set, null);
  }

  /** Whether the time of a set that still waits is over. */
  isOver(set: ChangeSet): boolean {
    return isWaiting(set) && set.expiresAt <= this.now();
  }

  /** The set that takes the owner's writes; null: none does. */
  async findOpen(request: McpRequest): Promise<ChangeSet | null> {
    const found = await this.atStore(() => this.sets.findOpen(ownerOf(request.agent)));
    const now = found && (await this.expire(found, request));
    return now?.state === 'open' ? now : null;
  }

  /** The same, opened where there is none. */
  async open(request: McpRequest): Promise<ChangeSet> {
    for (let tries = 0; tries < CONTENDED_TRIES; tries += 1) {
      const found = await this.findOpen(request);
      if (found) return found;
      const set = this.createSet(request, { kind: 'proposed', state: 'open', entries: [], next: 1 });
      if (await this.atStore(() => this.sets.create(set))) return set;
    }
    throw tooContended();
  }

  /** Stores a set. @throws Refused */
  async create(
    request: McpRequest,
    members: Pick<ChangeSet, 'kind' | 'state' | 'entries' | 'next'> & Partial<ChangeSet>,
    within?: RowTransaction,
  ): Promise<ChangeSet> {
    assertStorable(members.entries);
    const set = this.createSet(request, members);
    // An error of the transaction says whether it may be tried again.
    const isStored = within
      ? await this.sets.create(set, within)
      : await this.atStore(() => this.sets.create(set));
    if (!isStored) throw tooContended();
    return set;
  }

  /** None that a command would read as one of its options. */
  newId(): string {
    const id = randomBytes(ID_BYTES).toString('base64url');
    return id.startsWith('-') ? this.newId() : id;
  }

  private createSet(
    { agent }: McpRequest,
    members: Pick<ChangeSet, 'kind' | 'state' | 'entries' | 'next'> & Partial<ChangeSet>,
  ): ChangeSet {
    const { openFor, keep } = this.settings;
    const now = this.now();
    const times = { openedAt: now, expiresAt: now + openFor, deletedAt: now + openFor + keep };
    return { id: this.newId(), owner: ownerOf(agent), revision: 1, ...times, ...members };
  }

  /** @returns false when another call has changed the set since it was read */
  change({ id, revision }: ChangeSet, change: SetChange): Promise<boolean> {
    return this.atStore(() => this.sets.change(id, revision, change));
  }

  /**
   * Changes a set as long as another call is in the way.
   * @param work returns the change, or null to leave the set as it is
   */
  async update(
    id: string,
    request: McpRequest,
    work: (set: ChangeSet) => Promise<SetChange | null> | SetChange | null,
  ): Promise<ChangeSet> {
    for (let tries = 0; tries < CONTENDED_TRIES; tries += 1) {
      const set = await this.find(id, request);
      const change = await work(set);
      if (change === null) return set;
      if (await this.change(set, change)) return this.find(id, request);
    }
    throw tooContended();
  }

  /** Ends a set that is not applied; the values of its rows are deleted. */
  async end(id: string, request: McpRequest, state: 'denied' | 'discarded'): Promise<ChangeSet> {
    for (let tries = 0; tries < CONTENDED_TRIES; tries += 1) {
      const set = await this.find(id, request);
      const ended = isWaiting(set) ? await this.endNow(set, state, request) : set;
      if (ended) return ended;
    }
    throw tooContended();
  }

  /** The same for a set that was found, whoever owns it. @returns null when another call has changed it since it was read */
  async endNow(
    set: ChangeSet,
    state: 'denied' | 'discarded',
    request: McpRequest,
  ): Promise<ChangeSet | null> {
    const deletedAt = this.now() + this.settings.keep;
    const change = { state, deletedAt, put: set.entries.map(withoutValues) };
    if (!(await this.change(set, change))) return null;
    this.records.record(set, state, request);
    if (state === 'discarded') await this.cases.withdraw(set, request.agent.principal, state);
    return withChange(set, change);
  }

  /**
   * The set as it is now: one whose time is over takes no writes, cannot be applied, and loses the values of its rows.
   * @param request that looks at it; null: none does
   */
  async expire(set: ChangeSet, request: McpRequest | null): Promise<ChangeSet> {
    if (!this.isOver(set)) return set;
    const change = {
      state: 'expired',
      deletedAt: set.expiresAt + this.settings.keep,
      put: set.entries.map(withoutValues),
    } as const;
    if (await this.change(set, change)) {
      this.records.record(set, 'expired', request);
      await this.cases.withdraw(set, request?.agent.principal ?? 'parley', 'expired');
    }
    return { ...set, ...change, entries: change.put };
  }

  /** Errors of the store of sets, which say nothing of rows. */
  async atStore<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      throw refuse.parseError('change sets cannot be reached at the moment', String(error.cause));
    }
  }
}

/** Whether a person may learn of a set: nobody of another tenant may. */
export const isOfTenant = (set: ChangeSet, viewer: Agent): boolean =>
  sharesTenant(viewer, set.owner, listClasses(set));

/** Whether a set takes writes or waits for its approval. */
export const isWaiting = ({ state }: ChangeSet): boolean => state === 'open' || state === 'submitted';

/** A set that nobody could change in all attempts. While a database that it is applied in is away, nobody knows what became of it. */
export const tooContended = (): Refused =>
  refuse.parseError(
    'other calls are changing this change set, or a database that it is applied in cannot be reached: call again later',
  );

import { Injectable } from '@nestjs/common';
import { callerKey, FairQueue, findRootAgent, type McpRequest, NoCapacityError } from '#core';
import { type ChangeSet, type SetChange, withChange } from '#data';
import { withoutValues } from './change-seal.js';
import { OwnedSets, tooContended } from './owned-sets.js';

/** A set that takes writes. */
export interface OpenSet {
  readonly set: ChangeSet;
  /** What is sealed in it. */
  readonly bytes: number;
  /** True: the set as this process left it, without its values. Another process may have changed it since. */
  readonly isKnown: boolean;
}

/** Writes of one owner and of all that wait for the one before, and milliseconds that they do. */
const TURNS = { atOnce: 1_000, perKey: 1, waitingPerKey: 1_000, waiting: 10_000, timeout: 10_000 };

/** Owners whose set is known. */
const MAX_KNOWN = 100;

/**
 * The sets that take writes. A set may hold many rows: the next write does not read them again, because a change names the revision
 * that it changes, and of a set that another process has changed there is another one.
 */
@Injectable()
export class OpenSets {
  private readonly known = new Map<string, OpenSet>();
  private readonly turns = new FairQueue(TURNS);

  constructor(private readonly owned: OwnedSets) {}

  /** One write of an owner after the other: each builds on the one before. @throws Refused */
  async inTurn<T>(request: McpRequest, propose: () => Promise<T>): Promise<T> {
    const end = await this.turns.turn(nameOwner(request), request.signal).catch((error: unknown) => {
      throw error instanceof NoCapacityError ? tooContended() : error;
    });
    try {
      return await propose();
    } finally {
      end();
    }
  }

  /** @param mayBeKnown false: as it is stored now */
  async find(request: McpRequest, mayBeKnown: boolean): Promise<OpenSet> {
    const known = mayBeKnown ? this.known.get(nameOwner(request)) : undefined;
    if (known && !this.owned.isOver(known.set)) return known;
    const set = await this.owned.open(request);
    const bytes = set.entries.reduce((sum, { sealed = '' }) => sum + sealed.length, 0);
    return { set, bytes, isKnown: false };
  }

  /** @returns false when another call has changed the set since it was read */
  async change(
    open: OpenSet,
    change: Pick<SetChange, 'put' | 'remove' | 'next'>,
    bytes: number,
    request: McpRequest,
  ): Promise<boolean> {
    const owner = nameOwner(request);
    this.known.delete(owner);
    if (!(await this.owned.change(open.set, change))) return false;
    const set = withChange(open.set, change);
    this.known.set(owner, { set: { ...set, entries: set.entries.map(withoutValues) }, bytes, isKnown: true });
    for (const oldest of this.known.keys()) if (this.known.size > MAX_KNOWN) this.known.delete(oldest);
    return true;
  }
}

const nameOwner = ({ agent }: McpRequest): string => callerKey(findRootAgent(agent));

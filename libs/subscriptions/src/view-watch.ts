import { setTimeout as delay } from 'node:timers/promises';
import type { FairQueue } from '#core';
import type { RowView } from '#data';

/** The changes after a position. */
export interface ChangesSince {
  /** Each row once, without removed entries. */
  readonly ids: readonly string[];
  /** Every change created a row, and none was removed from the log: no row can have been deleted. */
  readonly onlyCreated: boolean;
  readonly gap: boolean;
}

interface Change {
  readonly objectId: string;
  readonly created: boolean;
}

/** The last changes of a class, by number: bounded, however many come in. */
export class ChangedRows {
  private readonly changes: (Change | undefined)[];
  private count = 0;
  private lastGap = 0;

  /** @param capacity changes stored; of earlier ones only the number is known */
  constructor(private readonly capacity = 10_000) {
    this.changes = [];
  }

  /** How many changes there were: the number of the last one. */
  get last(): number {
    return this.count;
  }

  add(change: Change): void {
    this.changes[this.count % this.capacity] = change;
    this.count += 1;
  }

  /** Changes may have been missed. */
  addGap(): void {
    this.changes[this.count % this.capacity] = undefined;
    this.count += 1;
    this.lastGap = this.count;
  }

  since(number: number): ChangesSince {
    const first = Math.max(number, this.count - this.capacity);
    const ids = new Set<string>();
    let onlyCreated = first === number;
    for (let at = first; at < this.count; at += 1) {
      const change = this.changes[at % this.capacity];
      if (change) ids.add(change.objectId);
      onlyCreated &&= change?.created === true;
    }
    return { ids: [...ids], onlyCreated, gap: this.lastGap > number };
  }
}

/** Rows in one query. */
const CHUNK_ROWS = 500;

/** Queries may take at most a fourth of the time. */
const REST_FACTOR = 3;
const LONGEST_REST = 10_000;

/**
 * Determines which changes of a class are visible through one view of it. A change is visible when the changed row is in the
 * view afterwards, or when the view has lost or gained a row; a row outside, before and after, is never visible. A change
 * that the database cannot determine is not visible.
 */
export class ViewWatch {
  private lastVisible = 0;
  private size: number | null = null;
  private asking: Promise<void> | null = null;
  private restUntil = 0;

  /** @param judged changes up to this number need no check */
  constructor(
    private readonly changes: ChangedRows,
    private readonly turns: Pick<FairQueue, 'run'>,
    private judged: number,
  ) {}

  /**
   * Counts the rows, so that deleted rows are noticed later.
   * @param principal whose turn the query takes. @throws Refused
   */
  async measure(view: RowView, principal: string): Promise<void> {
    this.size ??= await this.turns.run(principal, () => view.size());
  }

  /**
   * Whether a change after `number` was visible, of all that were checked: everything that has happened by now.
   * @param principal whose turn a query takes. @throws Refused
   */
  async shows(view: RowView, number: number, principal: string): Promise<{ shown: boolean; judged: number }> {
    const now = this.changes.last;
    while (this.judged < now) {
      this.asking ??= this.judge(view, principal).finally(() => (this.asking = null));
      await this.asking;
    }
    return { shown: this.lastVisible > number, judged: this.judged };
  }

  private async judge(view: RowView, principal: string): Promise<void> {
    const rest = this.restUntil - performance.now();
    if (rest > 0) await delay(rest, undefined, { ref: false });
    await this.turns.run(principal, async () => {
      const began = performance.now();
      const upTo = this.changes.last;
      const { ids, onlyCreated, gap } = this.changes.since(this.judged);
      // After a gap every watcher is notified: that reveals nothing of any row.
      const entered = gap || (await holdsAny(view, ids));
      const moved = (entered || !onlyCreated) && (await this.sizeMoved(view));
      if (entered || moved) this.lastVisible = upTo;
      this.judged = upTo;
      const now = performance.now();
      this.restUntil = now + Math.min((now - began) * REST_FACTOR, LONGEST_REST);
    });
  }

  private async sizeMoved(view: RowView): Promise<boolean> {
    const before = this.size;
    this.size = await view.size();
    return before !== null && before !== this.size;
  }
}

async function holdsAny(view: RowView, ids: readonly string[]): Promise<boolean> {
  for (let from = 0; from < ids.length; from += CHUNK_ROWS) {
    if (await view.holdsAny(ids.slice(from, from + CHUNK_ROWS))) return true;
  }
  return false;
}

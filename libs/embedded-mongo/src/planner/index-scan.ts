import { PAUSE, STEPS_PER_PAUSE, type Step } from '../server/drain.js';
import type { Collection } from '../storage/collection.js';
import type { CollectionIndex, IndexEntry } from '../storage/collection-index.js';
import type { OrderedSet } from '../storage/ordered-set.js';
import type { StoredDocument } from '../storage/stored-document.js';
import type { IndexBounds } from './index-bounds.js';
import { contains, isPoint, type Interval } from './intervals.js';

/** What a scan looked at. */
export interface ScanCounts {
  keys: number;
  documents: number;
}

/** A stretch of the index: ranks from inclusive to exclusive. */
interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** Most stretches a scan is cut into for the second and later fields. */
const MAX_STRETCHES = 1_000;

/** The part of an index within its bounds, fixed at the moment of its making. */
export class IndexScan {
  /** Keys between the bounds: what the scan costs. */
  readonly cost: number;
  private readonly entries: OrderedSet<IndexEntry>;
  private readonly records: OrderedSet<StoredDocument>;
  private readonly stretches: readonly Stretch[];
  /** Fields whose bounds are checked key by key. */
  private readonly checked: readonly (readonly [number, readonly Interval[]])[];

  constructor(
    collection: Collection,
    private readonly index: CollectionIndex,
    bounds: IndexBounds,
  ) {
    this.entries = index.snapshotEntries();
    this.records = collection.snapshotRecords();
    const { prefixes, next } = this.listFixedPrefixes(bounds);
    const intervals = bounds[next];
    this.stretches = prefixes
      .flatMap((prefix) =>
        intervals
          ? this.inOrder(next, intervals).map((one) => this.stretch(prefix, one))
          : [this.stretch(prefix)],
      )
      .filter(({ from, to }) => from < to);
    this.checked = bounds.flatMap((one, field) => (one && field > next ? [[field, one] as const] : []));
    this.cost = this.stretches.reduce((sum, { from, to }) => sum + to - from, 0);
  }

  *run(direction: 1 | -1, counts: ScanCounts): Generator<Step<StoredDocument>> {
    const seen = this.index.multikey ? new Set<number>() : undefined;
    const reverse = direction < 0;
    let steps = 0;
    for (const { from, to } of reverse ? this.stretches.toReversed() : this.stretches) {
      for (const entry of this.entries.range(from, to, reverse)) {
        counts.keys += 1;
        steps += 1;
        if (steps % STEPS_PER_PAUSE === 0) yield PAUSE;
        if (!this.passes(entry) || seen?.has(entry.recordId)) continue;
        seen?.add(entry.recordId);
        const stored = this.records.find((record) => record.recordId - entry.recordId);
        if (!stored) continue;
        counts.documents += 1;
        yield stored;
      }
    }
  }

  private passes(entry: IndexEntry): boolean {
    return this.checked.every(([field, intervals]) =>
      contains(intervals, entry.values[field], this.index.definition.collation),
    );
  }

  /** Leading fields that are fixed to single values, as all their combinations in index order. */
  private listFixedPrefixes(bounds: IndexBounds): { prefixes: unknown[][]; next: number } {
    let prefixes: unknown[][] = [[]];
    let next = 0;
    for (; next < bounds.length; next += 1) {
      const intervals = bounds[next];
      if (!intervals?.every((one) => isPoint(one, this.index.definition.collation))) break;
      if (next > 0 && prefixes.length * intervals.length > MAX_STRETCHES) break;
      const points = this.inOrder(next, intervals);
      prefixes = prefixes.flatMap((prefix) => points.map((one) => [...prefix, one.low]));
    }
    return { prefixes, next };
  }

  private inOrder(field: number, intervals: readonly Interval[]): readonly Interval[] {
    return this.index.definition.directions[field] === -1 ? intervals.toReversed() : intervals;
  }

  private stretch(prefix: readonly unknown[], interval?: Interval): Stretch {
    if (!interval) return { from: this.rank(prefix, true), to: this.rank(prefix, false) };
    const descending = this.index.definition.directions[prefix.length] === -1;
    const low = this.rank(
      [...prefix, descending ? interval.high : interval.low],
      descending ? interval.highIn : interval.lowIn,
    );
    const high = this.rank(
      [...prefix, descending ? interval.low : interval.high],
      !(descending ? interval.lowIn : interval.highIn),
    );
    return { from: low, to: high };
  }

  /** How many entries lie before the key; keys that begin with it count when `before` is false. */
  private rank(key: readonly unknown[], before: boolean): number {
    return this.entries.rank((entry) => {
      const order = this.index.definition.compareKeys(entry.values, key);
      return order === 0 && !before ? -1 : order;
    });
  }
}

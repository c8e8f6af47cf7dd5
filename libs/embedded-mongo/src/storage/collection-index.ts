import type { Document } from '../bson/document.js';
import { IndexDefinition } from './index-definition.js';
import type { ExtractedKeys } from '../bson/index-keys.js';
import type { IndexSpec } from './index-spec.js';
import { OrderedSet } from './ordered-set.js';

/** One place in an index: the indexed values and the record they come from. */
export interface IndexEntry {
  readonly values: readonly unknown[];
  readonly recordId: number;
}

/** An index of a collection: its definition and the keys of the present documents. */
export class CollectionIndex {
  /** True once any document had several keys. */
  multikey = false;

  private constructor(
    readonly definition: IndexDefinition,
    private readonly entries: OrderedSet<IndexEntry>,
    /** How often queries used the index, and since when that is counted. */
    readonly accesses = { ops: 0, since: new Date() },
  ) {}

  static create(spec: IndexSpec): CollectionIndex {
    const definition = new IndexDefinition(spec);
    const order = (a: IndexEntry, b: IndexEntry): number =>
      definition.compareKeys(a.values, b.values) || a.recordId - b.recordId;
    return new CollectionIndex(definition, new OrderedSet(order));
  }

  get spec(): IndexSpec {
    return this.definition.spec;
  }

  get size(): number {
    return this.entries.size;
  }

  /** A record other than `own` that already has one of the keys, with that key. */
  conflict(
    keys: readonly (readonly unknown[])[],
    own?: number,
  ): { key: readonly unknown[]; recordId: number } | undefined {
    for (const key of keys) {
      const comesBefore = (entry: IndexEntry): number => this.definition.compareKeys(entry.values, key);
      let rank = this.entries.rank(comesBefore);
      for (;;) {
        const entry = this.entries.at(rank);
        if (entry === undefined || comesBefore(entry) !== 0) break;
        if (entry.recordId !== own) return { key, recordId: entry.recordId };
        rank += 1;
      }
    }
    return undefined;
  }

  listKeys(document: Document): ExtractedKeys | undefined {
    return this.definition.listKeys(document);
  }

  /** Whether two versions of a document stand at the same places of the index. */
  sameKeys(a: ExtractedKeys | undefined, b: ExtractedKeys | undefined): boolean {
    if (a === undefined || b === undefined) return a === b;
    if (a.keys.length !== b.keys.length || a.multikey !== b.multikey) return false;
    return a.keys.every((key, i) => this.definition.compareKeys(key, b.keys[i] ?? []) === 0);
  }

  add(keys: ExtractedKeys | undefined, recordId: number): void {
    if (keys === undefined) return;
    if (keys.multikey) this.multikey = true;
    for (const values of keys.keys) this.entries.insert({ values, recordId });
  }

  remove(keys: ExtractedKeys | undefined, recordId: number): void {
    for (const values of keys?.keys ?? []) this.entries.remove({ values, recordId });
  }

  /** The entries as they are now; later writes do not change them. */
  snapshotEntries(): OrderedSet<IndexEntry> {
    return this.entries.snapshot();
  }

  fork(): CollectionIndex {
    return this.copy(this.definition, this.entries.snapshot(), this.accesses);
  }

  /** The same keys under changed options, as collMod sets them. */
  withSpec(spec: IndexSpec): CollectionIndex {
    // Hiding or unhiding an index resets its $indexStats.
    const counted = spec['hidden'] === this.spec['hidden'] ? this.accesses : undefined;
    return this.copy(new IndexDefinition(spec), this.entries, counted);
  }

  private copy(
    definition: IndexDefinition,
    entries: OrderedSet<IndexEntry>,
    accesses: CollectionIndex['accesses'] | undefined,
  ): CollectionIndex {
    const copy = new CollectionIndex(definition, entries, accesses);
    copy.multikey = this.multikey;
    return copy;
  }
}

import { compileCollation, type Collation } from '../bson/collation.js';
import { compareValues } from '../bson/compare.js';
import type { Document } from '../bson/document.js';
import { toDouble } from '../bson/number.js';
import { compileFilter, type Filter } from '../query/filter.js';
import { extractKeys } from './index-keys.js';
import type { IndexSpec } from './index-spec.js';
import { OrderedSet } from './ordered-set.js';

/** One place in an index: the indexed values and the record they come from. */
export interface IndexEntry {
  readonly values: readonly unknown[];
  readonly recordId: number;
}

/** The keys a document will have in an index; undefined when the index does not cover the document. */
export interface IndexKeys {
  readonly keys: readonly (readonly unknown[])[];
  readonly multikey: boolean;
}

/** An ordered index. Text, geo and hashed indexes exist by name only: queries that need them scan. */
export class CollectionIndex {
  readonly fields: readonly string[];
  readonly directions: readonly (1 | -1)[];
  readonly collation: Collation | undefined;
  /** False for the kinds that keep no ordered keys. */
  readonly ordered: boolean;
  /** True once any document had several keys. */
  multikey = false;
  private readonly paths: readonly (readonly string[])[];
  private readonly partial: Filter | undefined;
  private entries: OrderedSet<IndexEntry>;

  constructor(readonly spec: IndexSpec) {
    this.fields = Object.keys(spec.key);
    this.paths = this.fields.map((field) => field.split('.'));
    this.ordered = Object.values(spec.key).every((kind) => typeof kind !== 'string');
    this.directions = Object.values(spec.key).map((kind) => (this.ordered && toDouble(kind) < 0 ? -1 : 1));
    const collation = spec['collation'] as Document | undefined;
    this.collation = collation && compileCollation(collation);
    const partial = spec['partialFilterExpression'] as Document | undefined;
    this.partial = partial && compileFilter(partial, { tick: () => {}, now: new Date(0) });
    this.entries = new OrderedSet((a, b) => this.compareKeys(a.values, b.values) || a.recordId - b.recordId);
  }

  get size(): number {
    return this.entries.size;
  }

  get unique(): boolean {
    return this.spec['unique'] === true || this.spec.name === '_id_';
  }

  get sparse(): boolean {
    return this.spec['sparse'] === true;
  }

  /** Compares two keys, or the common prefix of a key and a shorter bound, in index order. */
  compareKeys(a: readonly unknown[], b: readonly unknown[]): number {
    const length = Math.min(a.length, b.length);
    for (let i = 0; i < length; i += 1) {
      const order = compareValues(a[i], b[i], this.collation);
      if (order !== 0) return order * (this.directions[i] ?? 1);
    }
    return 0;
  }

  /** Errors: 171 for parallel arrays. */
  keysOf(document: Document): IndexKeys | undefined {
    if (!this.ordered || (this.partial && !this.partial.matches(document))) return undefined;
    const extracted = extractKeys(document, this.paths);
    if (!this.sparse) return extracted;
    const keys = extracted.keys.filter(
      (key) => key.some((value) => value !== null) || this.hasField(document),
    );
    return keys.length === 0 ? undefined : { keys, multikey: extracted.multikey };
  }

  /** A record other than `own` that already has one of the keys, with that key. */
  conflict(keys: IndexKeys, own?: number): { key: readonly unknown[]; recordId: number } | undefined {
    for (const key of keys.keys) {
      let rank = this.entries.rank((entry) => this.compareKeys(entry.values, key));
      for (;;) {
        const entry = this.entries.at(rank);
        if (entry === undefined || this.compareKeys(entry.values, key) !== 0) break;
        if (entry.recordId !== own) return { key, recordId: entry.recordId };
        rank += 1;
      }
    }
    return undefined;
  }

  add(keys: IndexKeys | undefined, recordId: number): void {
    if (keys === undefined) return;
    if (keys.multikey) this.multikey = true;
    for (const values of keys.keys) this.entries.insert({ values, recordId });
  }

  remove(keys: IndexKeys | undefined, recordId: number): void {
    for (const values of keys?.keys ?? []) this.entries.remove({ values, recordId });
  }

  /** The entries as they are now; later writes do not change them. */
  snapshotEntries(): OrderedSet<IndexEntry> {
    return this.entries.snapshot();
  }

  fork(): CollectionIndex {
    const copy = new CollectionIndex(this.spec);
    copy.multikey = this.multikey;
    copy.entries = this.entries.snapshot();
    return copy;
  }

  /** The same index with changed options, as collMod sets them. */
  withSpec(spec: IndexSpec): CollectionIndex {
    const copy = new CollectionIndex(spec);
    copy.multikey = this.multikey;
    copy.entries = this.entries;
    return copy;
  }

  /** A sparse index leaves out documents that have none of its fields; a stored null counts as a field. */
  private hasField(document: Document): boolean {
    return this.paths.some((path) => fieldExists(document, path));
  }
}

function fieldExists(value: unknown, path: readonly string[]): boolean {
  const [name, ...rest] = path;
  if (name === undefined) return true;
  if (Array.isArray(value)) {
    return (
      (name in value && /^\d+$/.test(name)) ||
      value.some((item) => !Array.isArray(item) && fieldExists(item, path))
    );
  }
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return false;
  return fieldExists((value as Document)[name], rest);
}

import { type Collation, compileCollation } from '../bson/collation.js';
import { compareValues } from '../bson/compare.js';
import { type Document, isDocument } from '../bson/document.js';
import { type ExtractedKeys, extractKeys } from '../bson/keys.js';
import { numberKind, toDouble } from '../bson/number.js';
import { type FieldPath, parsePath, someValue } from '../bson/path.js';
import { compileFilter, type Filter } from '../query/filter.js';
import { checkGeoKeys, type IndexKind, type PlaneLimits } from '../query/geo.js';
import { checkWildcardKeys, type IndexSpec, isWildcard } from './index-spec.js';
import { OrderedSet } from './ordered-set.js';

/** What an index is: which documents it holds, under which keys, in which order. */
export class IndexDefinition {
  readonly fields: readonly string[];
  readonly directions: readonly (1 | -1)[];
  readonly collation: Collation | undefined;
  /** False for text, geo, hashed and wildcard indexes: they exist by name only, and queries that need them scan. */
  readonly ordered: boolean;
  readonly unique: boolean;
  readonly sparse: boolean;
  private readonly paths: readonly (readonly string[])[];
  private readonly isWildcard: boolean;
  private readonly partial: Filter | undefined;
  /** Of these fields a document has one. */
  private readonly required: readonly FieldPath[];
  private readonly limits: PlaneLimits;
  /** What a geo index checks, although it orders nothing. */
  private readonly places: readonly { path: FieldPath; kind: IndexKind }[];

  constructor(readonly spec: IndexSpec) {
    this.fields = Object.keys(spec.key);
    this.paths = this.fields.map((field) => field.split('.'));
    const limit = (value: unknown, fallback: number): number =>
      numberKind(value) === undefined ? fallback : toDouble(value);
    this.limits = [limit(spec['min'], -180), limit(spec['max'], 180)];
    this.places = Object.entries(spec.key).flatMap(([field, kind]) =>
      kind === '2d' || kind === '2dsphere' ? [{ path: parsePath(field), kind }] : [],
    );
    this.isWildcard = this.fields.some(isWildcard);
    this.ordered = !this.isWildcard && Object.values(spec.key).every((kind) => typeof kind !== 'string');
    this.directions = Object.values(spec.key).map((kind) => (this.ordered && toDouble(kind) < 0 ? -1 : 1));
    this.unique = spec['unique'] === true || spec['prepareUnique'] === true || spec.name === '_id_';
    this.sparse = spec['sparse'] === true;
    const required = this.sparse ? this.fields.map(parsePath) : [];
    this.required = this.places.length > 0 ? this.places.map(({ path }) => path) : required;
    const { collation, partialFilterExpression: partial } = spec;
    this.collation = isDocument(collation) ? compileCollation(collation) : undefined;
    this.partial = isDocument(partial)
      ? compileFilter(partial, {
          tick: () => {},
          now: new Date(0),
          ...(this.collation ? { collation: this.collation } : {}),
        })
      : undefined;
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

  /** The keys of a document; undefined when the index does not hold it. Errors: 171 for parallel arrays, those of geo and wildcard keys. */
  listKeys(document: Document): ExtractedKeys | undefined {
    if (this.isWildcard && this.holds(document))
      checkWildcardKeys(
        document,
        this.paths.filter((path) => path.at(-1) !== '$**'),
      );
    if (this.places.length === 0)
      return this.ordered && this.holds(document) ? extractKeys(document, this.paths) : undefined;
    if (this.partial && !this.partial.matches(document)) return undefined;
    for (const { path, kind } of this.places) checkGeoKeys(document, path, kind, this.limits);
    return undefined;
  }

  /** False for a document outside of a partial, sparse or geo index; a stored null counts as a field. */
  holds(document: Document): boolean {
    if (this.partial && !this.partial.matches(document)) return false;
    const exists = (path: FieldPath): boolean =>
      someValue(document, path, 0, 'whole', (value) => value !== undefined);
    return this.required.length === 0 || this.required.some(exists);
  }
}

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

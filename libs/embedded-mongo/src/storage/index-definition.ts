import { compileCollation, type Collation } from '../bson/collation.js';
import { compareValues } from '../bson/compare.js';
import { isDocument, type Document } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { parsePath, someValue, type FieldPath } from '../bson/path.js';
import { compileFilter, type Filter } from '../query/filter.js';
import { checkGeoKeys, type IndexKind, type PlaneLimits } from '../query/geo.js';
import { extractKeys, type ExtractedKeys } from '../bson/index-keys.js';
import type { IndexSpec } from './index-spec.js';
import { checkWildcardKeys, isWildcard } from './wildcard-index.js';

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

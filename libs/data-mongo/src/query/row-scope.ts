import type { FieldSchema } from '#policy';
import type { StorageNames } from '../storage/storage-names.js';
import { type ColumnRef, sourceColumn } from './where-to-query.js';

/** What a name refers to between two stages. */
export interface ScopedColumn {
  readonly column: string;
  readonly field?: FieldSchema;
  /** A list of such values: what `$push` and `$addToSet` make, until `$unwind`. */
  readonly list?: boolean;
  /** Set when the name holds whole rows (a join, a pushed `$$ROOT`): how the names of these rows are stored. */
  readonly rows?: RowScope;
}

export type ScopedRef = ColumnRef & Omit<ScopedColumn, 'column'>;

/**
 * The names addressable between two stages of a pipeline. While the rows still come from a class, its fields are reached
 * through their columns; a name that an earlier stage introduced refers to that stage's output and is never renamed.
 */
export class RowScope {
  private constructor(
    private source: StorageNames | null,
    private introduced: Map<string, ScopedColumn>,
    private identity: StorageNames | null,
  ) {}

  static ofClass(names: StorageNames): RowScope {
    return new RowScope(names, new Map(), names);
  }

  static ofNames(names: Iterable<readonly [string, ScopedColumn]>): RowScope {
    return new RowScope(null, new Map(names), null);
  }

  /** The class whose columns can all be reached here, if any. */
  get sourceNames(): StorageNames | null {
    return this.source;
  }

  /** The class whose object ids `_id` holds, if any: a projection keeps it, a group does not. */
  get identityNames(): StorageNames | null {
    return this.identity;
  }

  resolve(path: string): ScopedRef {
    const dot = path.indexOf('.');
    if (dot < 0) return this.root(path);
    const root = this.root(path.slice(0, dot));
    const rest = path.slice(dot + 1);
    if (!root.rows) return { column: `${root.column}.${rest}`, nested: true, undeclared: false };
    const inner = root.rows.resolve(rest);
    return { ...inner, column: `${root.column}.${inner.column}`, undeclared: false };
  }

  private root(name: string): ScopedRef {
    const introduced = this.introduced.get(name);
    if (introduced) return { ...introduced, nested: false, undeclared: false };
    if (this.source) return sourceColumn(this.source, name);
    return { column: name, nested: false, undeclared: false };
  }

  /** Adds an output name of a stage: later stages refer to that output. */
  introduce(name: string, what?: Omit<ScopedColumn, 'column'>): void {
    this.introduced.set(name, { column: name, ...what });
  }

  /** Each row keeps only these names and is still the same row. */
  narrowTo(names: Iterable<readonly [string, ScopedColumn]>): void {
    this.source = null;
    this.introduced = new Map(names);
  }

  /** The stage created new rows that have only these names. */
  replaceBy(names: Iterable<readonly [string, ScopedColumn]>): void {
    this.source = null;
    this.identity = null;
    this.introduced = new Map(names);
  }

  /** The stage replaced these rows with others. */
  become(other: RowScope | undefined): void {
    this.source = other?.source ?? null;
    this.identity = other?.identity ?? null;
    this.introduced = new Map(other?.introduced);
  }

  /** The scope as it is now, for a branch or a snapshot of whole rows. */
  fork(): RowScope {
    return new RowScope(this.source, new Map(this.introduced), this.identity);
  }

  /** What a column of the resulting documents holds, for converting results to rows. */
  contentOf(column: string): Omit<ScopedColumn, 'column'> {
    for (const content of this.introduced.values()) if (content.column === column) return content;
    const field = this.source?.field(this.source.fieldOf(column));
    return field ? { field } : {};
  }
}

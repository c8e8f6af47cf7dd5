import type { Document } from 'mongodb';
import { type FieldSchema, takeRoot } from '#policy';
import type { ClassStorage, ColumnRef, ValueForm } from '../storage/class-storage.js';

/** What a name refers to between two stages. */
export interface ScopedColumn {
  readonly column: string;
  readonly field?: FieldSchema | undefined;
  /** A list of such values: what `$push` and `$addToSet` make, until `$unwind`. */
  readonly list?: boolean | undefined;
  /** Set when the name holds whole rows (a join, a pushed `$$ROOT`): how the names of these rows are stored. */
  readonly rows?: RowScope | undefined;
  /** Set when a projection wrote it: the names under which rows carry it, whatever the name of the column. */
  readonly written?: readonly string[] | undefined;
}

/** What a name holds, without its column. */
export type Content = Omit<ScopedColumn, 'column' | 'written'>;

export function columnWith(column: string, { field, list, rows }: Content): ScopedColumn {
  return { column, field, list, rows };
}

/** A field under the names that a projection wrote for it. @param inside the path inside it that was written, or '' */
export function writeNames(held: ScopedColumn, names: readonly string[], inside: string): ScopedColumn {
  const rows = inside === '' ? held.rows : held.rows?.withWritten(inside);
  // A stored pointer has its class in its value, and the name that says so.
  const isStoredPointer = held.field?.type === 'Pointer' && !names.includes(held.column);
  return { ...held, rows, ...(names.length > 0 && !isStoredPointer && { written: names }) };
}

export type ScopedRef = ColumnRef & Omit<ScopedColumn, 'column'>;

/**
 * The names addressable between two stages of a pipeline. While the rows still come from a class, its fields are reached
 * through their columns; a name that an earlier stage introduced refers to that stage's output and is never renamed.
 */
export class RowScope {
  /** `introduced` by columns, once it is asked for: every row of a result asks for every column. */
  private columns: ReadonlyMap<string, IntroducedColumn> | null = null;

  private constructor(
    private origin: ClassStorage,
    private source: ClassStorage | null,
    private introduced: Map<string, ScopedColumn>,
    private identity: ClassStorage | null,
  ) {}

  static ofClass(storage: ClassStorage): RowScope {
    return new RowScope(storage, storage, new Map(), storage);
  }

  /** Rows that consist of values of these rows. */
  ofNames(names: Map<string, ScopedColumn>): RowScope {
    return new RowScope(this.origin, null, names, null);
  }

  /** The form of values whose column is not known. */
  get form(): ValueForm {
    return this.origin.form;
  }

  /** The class whose object ids `_id` holds, if any: a projection keeps it, a group does not. */
  get identityClass(): ClassStorage | null {
    return this.identity;
  }

  /** A filter for rows that give one of the principals a right. */
  rightsToQuery(right: 'read' | 'write', principals: readonly string[]): Document {
    return this.origin.rightsToQuery(right, principals);
  }

  /** The columns that a projection names; an ACL is several while the rows still come from a class. */
  listColumns(path: string): readonly string[] {
    return path === 'ACL' && this.source ? this.source.rightsColumns : [this.resolve(path).column];
  }

  /** The columns that `$unset` removes for a name. */
  listRemovedColumns(path: string): readonly string[] {
    return path === 'ACL' ? this.origin.rightsColumns : [this.resolve(path).column];
  }

  resolve(path: string): ScopedRef {
    const dot = path.indexOf('.');
    if (dot < 0) return this.root(path);
    const root = this.root(path.slice(0, dot));
    const rest = path.slice(dot + 1);
    if (!root.rows && this.source && !this.introduced.has(path.slice(0, dot)))
      return this.source.resolve(path);
    if (!root.rows)
      return { column: `${root.column}.${rest}`, nested: true, undeclared: false, form: root.form };
    const inner = root.rows.resolve(rest);
    return { ...inner, column: `${root.column}.${inner.column}`, undeclared: false };
  }

  private root(name: string): ScopedRef {
    const introduced = this.introduced.get(name);
    if (introduced) return { ...introduced, nested: false, undeclared: false, form: this.form };
    if (this.source) return this.source.resolve(name);
    return { column: name, nested: false, undeclared: false, form: this.form };
  }

  /**
   * Adds an output name of a stage: later stages refer to that output.
   * @returns the column that rows carried under this name alone until now; an id stays with its row
   */
  introduce(name: string, what: Content = {}): string | undefined {
    const { written, column } = this.root(name);
    this.introduced.set(name, columnWith(name, what));
    this.columns = null;
    return written?.every((carried) => carried === name) && column !== name && column !== '_id'
      ? column
      : undefined;
  }

  /** The same rows, where a projection wrote a path of their names. */
  withWritten(path: string): RowScope {
    const root = takeRoot(path);
    const held = this.root(root);
    if (held.column === root && !held.rows) return this;
    const rows = this.fork();
    rows.introduced.set(root, writeNames(held, [root], path.slice(root.length + 1)));
    return rows;
  }

  /** Each row keeps only these names, which belong to the scope from now on, and is still the same row. */
  narrowTo(names: Map<string, ScopedColumn>): void {
    this.source = null;
    this.introduced = names;
    this.columns = null;
  }

  /** The stage created new rows that have only these names, which belong to the scope from now on. */
  replaceBy(names: Map<string, ScopedColumn>): void {
    this.source = null;
    this.identity = null;
    this.introduced = names;
    this.columns = null;
  }

  /** The stage replaced these rows with others. */
  become(other: RowScope | undefined): void {
    this.origin = other?.origin ?? this.origin;
    this.source = other?.source ?? null;
    this.identity = other?.identity ?? null;
    this.introduced = new Map(other?.introduced);
    this.columns = null;
  }

  /** The scope as it is now, for a branch or a snapshot of whole rows. */
  fork(): RowScope {
    return new RowScope(this.origin, this.source, new Map(this.introduced), this.identity);
  }

  /** The names under which rows carry a column of the resulting documents. */
  listNames(column: string): readonly string[] {
    const names = this.findIntroduced(column)?.names ?? [];
    return names.length > 0 ? names : [column];
  }

  /** What a column of the resulting documents holds, for converting results to rows. */
  findContent(column: string): Content {
    const introduced = this.findIntroduced(column);
    if (introduced) return introduced.content;
    const name = this.source?.toField(column);
    return { field: name === undefined ? undefined : this.source?.field(name) };
  }

  private findIntroduced(column: string): IntroducedColumn | undefined {
    this.columns ??= indexColumns(this.introduced.values());
    return this.columns.get(column);
  }
}

interface IntroducedColumn {
  readonly content: Content;
  /** The names that projections wrote for it. */
  readonly names: string[];
}

function indexColumns(introduced: Iterable<ScopedColumn>): ReadonlyMap<string, IntroducedColumn> {
  const columns = new Map<string, IntroducedColumn>();
  for (const content of introduced) {
    const { column, written = [] } = content;
    const known = columns.get(column);
    if (known) known.names.push(...written);
    else columns.set(column, { content, names: [...written] });
  }
  return columns;
}

/** The columns of a class: its schema's fields. */
type Columns = Pick<ReadonlyMap<string, unknown>, 'has'>;

/**
 * What the written names of one class mean. A name is the column of exactly that name; only where there is none, the column
 * that an alias declares for it, then the column of its lowerCamel form. The one place where this is decided: whoever reads
 * a name asks the `FieldNames` of the class.
 */
export class FieldNames {
  private readonly targets: ReadonlySet<string>;

  /** @param columns null: the class has no schema, and every name may be one of a column */
  constructor(
    private readonly aliases: ReadonlyMap<string, string> = new Map(),
    private readonly columns: Columns | null = null,
  ) {
    this.targets = new Set(aliases.values());
  }

  /** The column that a written name means; null when the class has none of that name. Without a schema never null. */
  column(name: string): string | null {
    const { columns } = this;
    if (columns === null) return this.likely(name);
    if (columns.has(name)) return name;
    const column = this.aliased(name) ?? toLowerCamel(name);
    return columns.has(column) ? column : null;
  }

  /** The column of a written name. A name without a column stays as it was written, or as its alias says. */
  wireName(name: string): string {
    return this.column(name) ?? this.aliased(name) ?? name;
  }

  /** The wire name of a dotted path: only its root is the name of a column. */
  wirePath(path: string): string {
    const dot = path.indexOf('.');
    if (dot < 0) return this.wireName(path);
    return this.wireName(path.slice(0, dot)) + path.slice(dot);
  }

  private aliased(name: string): string | undefined {
    return this.aliases.get(name) ?? this.aliases.get(toLowerCamel(name));
  }

  /** Nothing can be compared with: the alias, else the lowerCamel form. */
  private likely(name: string): string {
    // An aliased column keeps its own name too, capital letters and all.
    return this.aliased(name) ?? (this.targets.has(name) ? name : toLowerCamel(name));
  }
}

export function toLowerCamel(name: string): string {
  if (name.startsWith('_') || isLowerCamel(name)) return name;
  const camel = name.replace(/_+([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  return camel.charAt(0).toLowerCase() + camel.slice(1);
}

/** Asked for every key of every row, so without a pattern. */
function isLowerCamel(name: string): boolean {
  const first = name.charCodeAt(0);
  return !(first >= 65 && first <= 90) && !name.includes('_');
}

export function rootOf(path: string): string {
  const dot = path.indexOf('.');
  return dot < 0 ? path : path.slice(0, dot);
}

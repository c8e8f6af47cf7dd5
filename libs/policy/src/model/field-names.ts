/**
 * One class's spellings. Precedence: declared alias, then snake_case → lowerCamel; a leading underscore is kept,
 * a leading capital is lowered.
 */
export class FieldNames {
  private readonly columns: ReadonlySet<string>;

  constructor(private readonly aliases: ReadonlyMap<string, string> = new Map()) {
    this.columns = new Set(aliases.values());
  }

  /** The stored (wire) name of any accepted spelling of a top-level field. */
  wireName(name: string): string {
    const column = this.aliases.get(name) ?? this.aliases.get(toLowerCamel(name));
    if (column !== undefined) return column;
    // An aliased column keeps its own name too, capital letters and all.
    return this.columns.has(name) ? name : toLowerCamel(name);
  }

  /** The wire name of a dotted path: only its root has spellings. */
  wirePath(path: string): string {
    const dot = path.indexOf('.');
    if (dot < 0) return this.wireName(path);
    return this.wireName(path.slice(0, dot)) + path.slice(dot);
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

/** Which names are permitted. A list says the same as `only`; `except` wins over it. Null: all. */
export type NameFilterOptions =
  | readonly string[]
  | { readonly only?: readonly string[] | null; readonly except?: readonly string[] | null }
  | null;

/**
 * An `only` / `except` filter over names. No filter permits everything; an empty `only` permits nothing.
 * `except` wins over `only`.
 */
export class NameFilter {
  static readonly none = new NameFilter(null, null);

  constructor(
    readonly only: ReadonlySet<string> | null,
    readonly except: ReadonlySet<string> | null,
  ) {}

  permits(name: string): boolean {
    if (this.only && !this.only.has(name)) return false;
    return !this.except?.has(name);
  }

  /** What both permit, as one filter. */
  within(outer: NameFilter): NameFilter {
    const only =
      this.only && outer.only
        ? new Set([...this.only].filter((name) => outer.only?.has(name)))
        : (this.only ?? outer.only);
    const except = this.except || outer.except ? [...(this.except ?? []), ...(outer.except ?? [])] : null;
    return new NameFilter(only, except && new Set(except));
  }

  /** For a thing with several names: `only` must have one of them, `except` none. */
  permitsAny(names: readonly string[]): boolean {
    if (this.only && !names.some((name) => this.only?.has(name))) return false;
    return !names.some((name) => this.except?.has(name));
  }

  get isActive(): boolean {
    return this.only !== null || this.except !== null;
  }

  /** The same filter over other spellings of its names. */
  mapNames(spelling: (name: string) => string): NameFilter {
    const mapped = (names: ReadonlySet<string> | null) => names && new Set([...names].map(spelling));
    return new NameFilter(mapped(this.only), mapped(this.except));
  }
}

const isNameList = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((entry) => typeof entry === 'string');

/**
 * Reads `null`, `[names]` (the same as `only`) or `{ only, except }`.
 * @throws TypeError naming the accepted shapes for anything else
 */
export function parseNameFilter(value: unknown, option: string): NameFilter {
  if (value === undefined || value === null) return NameFilter.none;
  if (isNameList(value)) return new NameFilter(new Set(value), null);
  if (typeof value !== 'object' || Array.isArray(value)) {
    throw new TypeError(`${option}: expected a list of names or { only, except }`);
  }
  const { only, except, ...others } = value as Record<string, unknown>;
  const unknown = Object.keys(others);
  if (unknown.length > 0)
    throw new TypeError(`${option}: unknown key '${unknown[0]}'; accepted keys: only, except`);
  for (const [key, list] of Object.entries({ only, except })) {
    if (list !== undefined && list !== null && !isNameList(list)) {
      throw new TypeError(`${option}.${key}: expected a list of names`);
    }
  }
  const asSet = (list: unknown) => (isNameList(list) ? new Set(list) : null);
  return new NameFilter(asSet(only), asSet(except));
}

/** Replaces unknown names and names beyond the bound. */
export const OTHER_NAME = '_OTHER';

/** Bounds the number of distinct label values: clients must not create an unlimited number of time series. */
export class BoundedNames {
  private readonly known = new Set<string>();

  constructor(
    private readonly limit: number,
    private readonly exists: (name: string) => boolean = () => true,
  ) {}

  of(name: string | undefined): string {
    if (name === undefined || name === '') return OTHER_NAME;
    if (this.known.has(name)) return this.exists(name) ? name : OTHER_NAME;
    if (this.known.size >= this.limit || name.length > 128 || !this.exists(name)) return OTHER_NAME;
    this.known.add(name);
    return name;
  }
}

/** Stands for every name beyond the bound, and for names that nothing has. */
export const OTHER_NAME = '_OTHER';

/** Lets so many different names through and no more: what a client can choose must not make time series without end. */
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

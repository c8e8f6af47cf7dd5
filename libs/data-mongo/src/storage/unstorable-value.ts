/** A value that Parse's storage form cannot hold. `path` names the place inside the row. */
export class UnstorableValue extends Error {
  override readonly name = 'UnstorableValue';
  constructor(
    readonly path: string,
    readonly problem: string,
  ) {
    super(path === '' ? problem : `${path}: ${problem}`);
  }

  /** The same problem seen from one level up. */
  under(parent: string): UnstorableValue {
    return new UnstorableValue(this.path === '' ? parent : `${parent}.${this.path}`, this.problem);
  }
}

import { FieldNames } from './field-names.js';

/**
 * How often callers of one policy named a class or column that the schema snapshot does not have. It may exist since: who counts
 * before and after a question knows whether the answer rests on a name that is missing.
 */
export class MissingNames {
  count = 0;

  add(): void {
    this.count += 1;
  }
}

/** The names of a class for callers, which may be those of new columns. */
export class AskedNames extends FieldNames {
  /** @param stored columns that there are, and that the class does not have for these callers */
  constructor(
    aliases: ReadonlyMap<string, string>,
    columns: ReadonlyMap<string, unknown> | null,
    private readonly missing: MissingNames,
    private readonly stored?: ReadonlyMap<string, unknown>,
  ) {
    super(aliases, columns);
  }

  override noteMissing(written: string): void {
    if (!this.stored?.has(written)) this.missing.add();
  }
}

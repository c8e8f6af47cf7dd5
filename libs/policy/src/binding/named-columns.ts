import { Refused } from '#agent';
import type { ClassAccess } from '../model/class-access.js';
import type { DeclaredClass } from '../model/class-policy.js';
import type { SchemaSnapshot } from '../model/class-schema.js';
import { FieldNames } from '../model/field-names.js';
import type { Where } from '../model/where.js';
import { translateWhere } from '../where/translate-where.js';

/** A name that a constraint uses and no column has. */
export interface MissingColumn {
  readonly className: string;
  readonly written: string;
}

/** Tells of every name that no column has, and resolves as ever. */
class ObservedNames extends FieldNames {
  constructor(
    aliases: ReadonlyMap<string, string>,
    columns: ReadonlyMap<string, unknown> | null,
    private readonly missing: (written: string) => void,
  ) {
    super(aliases, columns);
  }

  override wireName(name: string): string {
    if (this.column(name) === null) this.missing(name);
    return super.wireName(name);
  }
}

/** Where the names of a constraint's classes are looked up. */
export interface NamedIn {
  readonly classes: ReadonlyMap<string, DeclaredClass>;
  readonly schemas: SchemaSnapshot;
}

/**
 * The names in a constraint of the operator that no column has, those in its questions to other classes included. Of a
 * class that the database does not have nothing is missed.
 * @returns `fault`: why it cannot be applied at all; null when it can
 */
export function missingColumns(
  constraint: Where,
  className: string,
  site: NamedIn,
): { readonly missing: readonly MissingColumn[]; readonly fault: string | null } {
  const missing: MissingColumn[] = [];
  const unlimited = (name: string): ClassAccess => {
    const schema = site.schemas.get(name);
    const aliases = site.classes.get(name)?.aliases ?? new Map<string, string>();
    const found = (written: string) => missing.push({ className: name, written });
    return {
      className: name,
      schema,
      names: new ObservedNames(aliases, schema?.fields ?? null, found),
      readable: null,
    };
  };
  try {
    translateWhere(
      constraint,
      unlimited(className),
      { reach: unlimited },
      { strictPointerShapes: false, checkFields: false },
    );
    return { missing, fault: null };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { missing, fault: error.refusal.cause ?? error.refusal.message };
  }
}

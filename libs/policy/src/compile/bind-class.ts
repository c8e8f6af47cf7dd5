import { isDeepStrictEqual } from 'node:util';
import { Refused } from '#agent';
import type { TierMasks } from '../masking/column-masks.js';
import { maskFault } from '../masking/compile-masks.js';
import type { ClassAccess } from '../model/class-access.js';
import type { ClassSchema, SchemaSnapshot } from '../model/class-schema.js';
import { ALWAYS_KEEP, FieldNames, isInternalField, rootOf, suggestNames } from '../model/field-names.js';
import type {
  ClassPolicy,
  DeclaredClass,
  PolicyFault,
  PropertyPolicy,
  SearchablePolicy,
} from '../model/policy.js';
import type { Where } from '../model/where.js';
import { translateWhere } from '../where/translate-where.js';

/** A declaration that does not fit the class it is made for. While there is one, the class is refused. */
export interface BindingFault extends PolicyFault {
  /** Canonical name. */
  readonly className: string;
}

export interface BoundClass {
  readonly policy: ClassPolicy;
  /** Every one, in the order of the declaration. */
  readonly faults: readonly BindingFault[];
}

/** In one line: what was written, which names are near it, and what to write. */
function missingField(written: string, { className, fields }: ClassSchema): string {
  const near = suggestNames(written, [...fields.keys()]).map((name) => `'${name}'`);
  const asked = near.length > 0 ? `did you mean ${near.join(' or ')}? Write` : 'write';
  return `the database has no field '${written}' in class '${className}'; ${asked} the field as the database names it, or leave it out`;
}

/**
 * Puts the columns of a class in the place of the names that were declared. A class without a schema has nothing to
 * protect, and its names are taken for what they most likely mean.
 */
export function bindClass(declared: DeclaredClass, site: NamedIn): BoundClass {
  return new Binding(declared, site).bound();
}

class Binding {
  private readonly faults: BindingFault[] = [];
  private readonly names: FieldNames;
  private readonly schema: ClassSchema | undefined;

  constructor(
    private readonly declared: DeclaredClass,
    private readonly site: NamedIn,
  ) {
    this.schema = site.schemas.get(declared.className);
    this.names = new FieldNames(declared.aliases, this.schema?.fields ?? null);
  }

  bound(): BoundClass {
    const { declared, names } = this;
    this.judgeAliases();
    const fields = this.columns('fields', declared.fields);
    const joinFields = this.columns('joinFields', declared.joinFields);
    const policy: ClassPolicy = Object.freeze({
      ...declared,
      names,
      fields: fields?.filter((name) => !isAlwaysKept(name)) ?? null,
      joinFields,
      largeFields: this.columns('largeFields', declared.largeFields) ?? [],
      masks: this.masks(),
      tenantScope: declared.tenantScope && {
        ...declared.tenantScope,
        field: this.column('tenantScope.field', declared.tenantScope.field),
      },
      searchable: this.searchable(fields),
      properties: this.properties(),
    });
    this.judgeWithin('joinFields', joinFields, fields);
    this.judgeFilter();
    return { policy, faults: this.faults };
  }

  private fault(option: string, message: string): void {
    const { className } = this.declared;
    this.faults.push({ className, path: `policy.classes.${className}.${option}`, message });
  }

  /** The wire path of a written one; a fault when its root is no column. */
  private column(option: string, written: string): string {
    const root = rootOf(written);
    if (this.schema && this.names.column(root) === null) this.fault(option, missingField(root, this.schema));
    return this.names.wirePath(written);
  }

  private columns<T extends readonly string[] | null>(option: string, written: T): string[] | T {
    if (written === null) return written;
    const columns = written.map((name) => this.column(option, name));
    return [...new Set(columns)].filter((name) => !isInternalField(name));
  }

  /** A spelling that is also another column would be read as that column: the alias says something that does not hold. */
  private judgeAliases(): void {
    for (const [spelling, column] of this.declared.aliases) {
      if (spelling === column || !this.schema?.fields.has(spelling)) continue;
      this.fault(
        `properties.${spelling}.field`,
        `class '${this.declared.className}' has a field '${spelling}' of its own, which this name means; ` +
          `choose another name for '${column}'`,
      );
    }
  }

  private masks(): ReadonlyMap<string, TierMasks> {
    const masks = new Map<string, TierMasks>();
    const writtenAs = new Map<string, string>();
    for (const [written, tiers] of this.declared.masks) {
      const option = `masks.${written}`;
      const path = this.column(option, written);
      const known = masks.get(path);
      const fault = maskFault(path);
      if (fault !== null) this.fault(option, fault);
      else if (known && !isDeepStrictEqual(known, tiers))
        this.fault(
          option,
          `masks the same field as '${writtenAs.get(path)}' in another way; keep one of them`,
        );
      masks.set(path, tiers);
      writtenAs.set(path, written);
    }
    return masks;
  }

  private searchable(fields: readonly string[] | null): SearchablePolicy | null {
    const { searchable } = this.declared;
    if (!searchable) return null;
    const textFields = this.columns('searchable.textFields', searchable.textFields);
    // Text that agents may not read would be read off its likeness to what they ask.
    this.judgeWithin('searchable.textFields', textFields, fields);
    return {
      ...searchable,
      field: this.column('searchable.field', searchable.field),
      filterFields: this.columns('searchable.filterFields', searchable.filterFields),
      textFields,
    };
  }

  private judgeWithin(
    option: string,
    list: readonly string[] | null,
    fields: readonly string[] | null,
  ): void {
    if (!this.schema || !fields || !list) return;
    const extras = list.filter(
      (name) => this.names.column(rootOf(name)) !== null && !fields.includes(name) && !isAlwaysKept(name),
    );
    if (extras.length > 0) this.fault(option, `not among fields: ${extras.join(', ')}`);
  }

  /** By column. Two names of one column may each say a part. */
  private properties(): ReadonlyMap<string, PropertyPolicy> {
    const properties = new Map<string, PropertyPolicy>();
    const writtenAs = new Map<string, string>();
    for (const [written, property] of this.declared.properties) {
      const column = this.names.wireName(written);
      const known = properties.get(column) ?? {};
      const contradicted = Object.entries(property).find(
        ([member, value]) =>
          member in known && !isDeepStrictEqual(known[member as keyof PropertyPolicy], value),
      );
      if (contradicted)
        this.fault(
          `properties.${written}.${contradicted[0]}`,
          `speaks of the same field as '${writtenAs.get(column)}' and says otherwise; keep one of them`,
        );
      properties.set(column, { ...known, ...property });
      writtenAs.set(column, written);
    }
    return properties;
  }

  private judgeFilter(): void {
    const { canonicalFilter, className } = this.declared;
    if (!canonicalFilter || !this.schema) return;
    for (const message of filterFaults(canonicalFilter, className, this.site))
      this.fault('canonicalFilter', message);
  }
}

/** What of a constraint of the operator does not fit the classes it speaks of. Nothing, of a class without a schema. */
export function filterFaults(
  constraint: Readonly<Record<string, unknown>>,
  className: string,
  site: NamedIn,
): string[] {
  if (!site.schemas.get(className)) return [];
  const { missing, fault } = missingColumns(constraint, className, site);
  const lines = missing.flatMap((one) => {
    const schema = site.schemas.get(one.className);
    return schema ? [missingField(one.written, schema)] : [];
  });
  return [...new Set([...lines, ...(fault === null ? [] : [fault])])];
}

function isAlwaysKept(name: string): boolean {
  return (ALWAYS_KEEP as readonly string[]).includes(name);
}

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

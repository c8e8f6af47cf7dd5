import { isDeepStrictEqual } from 'node:util';
import { type Refusal, refusals, Refused } from '#core';
import { type TierMasks, maskIssue } from '../masking/compile-masks.js';
import type { ClassAccess, ReachSite } from '../model/class-access.js';
import type { ClassSchema, SchemaSnapshot } from '../model/class-schema.js';
import {
  ALWAYS_KEEP,
  FieldNames,
  isInternalField,
  takeRoot,
  suggestNames,
  AskedNames,
  MissingNames,
} from '../model/field-names.js';
import type {
  ClassPolicy,
  DeclaredClass,
  PropertyPolicy,
  SearchablePolicy,
  TenantScope,
} from '../model/policy.js';
import type { PolicyIssue } from '../model/policy-issue.js';
import type { Where } from '../model/where.js';
import { SAMPLE, withSampleValues } from '../scope/agent-values.js';
import { translateWhere } from '../where/translate-where.js';

/** A declaration that does not match the schema of its class. The class is refused while it has any. */
export interface BindingIssue extends PolicyIssue {
  /** Canonical name. */
  readonly className: string;
}

export interface BoundClass {
  readonly policy: ClassPolicy;
  /** In the order of the declaration. */
  readonly issues: readonly BindingIssue[];
}

/** One line: the unknown name, similar names, and how to correct it. */
function describeMissingField(written: string, { className, fields }: ClassSchema): string {
  const near = suggestNames(written, [...fields.keys()]).map((name) => `'${name}'`);
  const asked = near.length > 0 ? `did you mean ${near.join(' or ')}? Write` : 'write';
  return `the database has no field '${written}' in class '${className}'; ${asked} the field as the database names it, or leave it out`;
}

/**
 * Replaces the declared names of a class by its columns. A class without a schema has no data to protect: its names are
 * resolved by their spelling alone.
 */
export function bindClass(declared: DeclaredClass, site: BindingContext): BoundClass {
  return new Binding(declared, site).bindAll();
}

class Binding {
  private readonly issues: BindingIssue[] = [];
  private readonly names: FieldNames;
  private readonly schema: ClassSchema | undefined;

  constructor(
    private readonly declared: DeclaredClass,
    private readonly site: BindingContext,
  ) {
    this.schema = site.schemas.get(declared.className);
    this.names = new FieldNames(declared.aliases, this.schema?.fields ?? null);
  }

  bindAll(): BoundClass {
    const { declared } = this;
    const { missing } = this.site;
    this.checkStorage();
    this.checkAliases();
    const fields = this.columns('fields', declared.fields);
    const joinFields = this.columns('joinFields', declared.joinFields);
    const policy: ClassPolicy = Object.freeze({
      ...declared,
      names: missing ? new AskedNames(declared.aliases, this.schema?.fields ?? null, missing) : this.names,
      fields: fields?.filter((name) => !isAlwaysKept(name)) ?? null,
      joinFields,
      largeFields: this.columns('largeFields', declared.largeFields) ?? [],
      masks: this.masks(),
      tenantScope: declared.tenantScope && this.tenantScope(declared.tenantScope),
      searchable: this.searchable(fields),
      properties: this.properties(),
    });
    this.checkWithin('joinFields', joinFields, fields);
    this.checkFilter();
    return { policy, issues: this.issues };
  }

  private report(option: string, message: string): void {
    const { className } = this.declared;
    this.issues.push({ className, path: `policy.classes.${className}.${option}`, message });
  }

  /** The wire path of a written path; reports an issue when its root is no column. */
  private column(option: string, written: string): string {
    const root = takeRoot(written);
    if (this.schema && this.names.column(root) === null)
      this.report(option, describeMissingField(root, this.schema));
    return this.names.wirePath(written);
  }

  private columns<T extends readonly string[] | null>(option: string, written: T): string[] | T {
    if (written === null) return written;
    const columns = written.map((name) => this.column(option, name));
    return [...new Set(columns)].filter((name) => !isInternalField(name));
  }

  /** A collection read in another form than the declared one would be read without the rules of that form. */
  private checkStorage(): void {
    const { schema, declared, site } = this;
    const stored = schema?.storage ?? 'parse';
    if (schema && (declared.plain === null) !== (stored === 'parse'))
      this.report(
        'storage',
        `the database has '${declared.className}' as a ${stored} class; write storage: ${stored}`,
      );
    const other = declared.plain && (site.stored ?? site.schemas).get(declared.plain.collection);
    const isHere = other?.database === (declared.database ?? undefined);
    if (other && isHere && other.storage !== 'plain' && other.className !== declared.className)
      this.report(
        'collection',
        `'${other.className}' is a class of Parse, whose ACLs protect its rows: read it by that class`,
      );
  }

  /** An alias that is also the name of another column would never apply: names of columns take precedence. */
  private checkAliases(): void {
    for (const [spelling, column] of this.declared.aliases) {
      if (spelling === column || !this.schema?.fields.has(spelling)) continue;
      this.report(
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
      const issue = maskIssue(path);
      if (issue !== null) this.report(option, issue);
      else if (known && !isDeepStrictEqual(known, tiers))
        this.report(
          option,
          `masks the same field as '${writtenAs.get(path)}' in another way; keep one of them`,
        );
      masks.set(path, tiers);
      writtenAs.set(path, written);
    }
    return masks;
  }

  private tenantScope(scope: TenantScope): TenantScope {
    const field = this.column('tenantScope.field', scope.field);
    const column = this.declared.plain ? this.schema?.fields.get(field) : undefined;
    return { ...scope, field, ...(column && { column }) };
  }

  private searchable(fields: readonly string[] | null): SearchablePolicy | null {
    const { searchable } = this.declared;
    if (!searchable) return null;
    const textFields = this.columns('searchable.textFields', searchable.textFields);
    // Vector similarity to a query would reveal text that agents may not read.
    this.checkWithin('searchable.textFields', textFields, fields);
    return {
      ...searchable,
      field: this.column('searchable.field', searchable.field),
      filterFields: this.columns('searchable.filterFields', searchable.filterFields),
      textFields,
    };
  }

  private checkWithin(
    option: string,
    list: readonly string[] | null,
    fields: readonly string[] | null,
  ): void {
    if (!this.schema || !fields || !list) return;
    const extras = list.filter(
      (name) => this.names.column(takeRoot(name)) !== null && !fields.includes(name) && !isAlwaysKept(name),
    );
    if (extras.length > 0) this.report(option, `not among fields: ${extras.join(', ')}`);
  }

  /** By column. Two names of one column may each declare a part. */
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
        this.report(
          `properties.${written}.${contradicted[0]}`,
          `speaks of the same field as '${writtenAs.get(column)}' and says otherwise; keep one of them`,
        );
      properties.set(column, { ...known, ...property });
      writtenAs.set(column, written);
    }
    return properties;
  }

  private checkFilter(): void {
    const { className } = this.declared;
    for (const option of ['canonicalFilter', 'filters'] as const) {
      const constraint = this.declared[option];
      if (!constraint || !this.schema) continue;
      for (const message of filterIssues(constraint, className, this.site)) this.report(option, message);
    }
  }
}

/** Why a constraint of the operator does not match its classes. Empty for a class without a schema. */
export function filterIssues(
  constraint: Readonly<Record<string, unknown>>,
  className: string,
  site: BindingContext,
): string[] {
  if (!site.schemas.get(className)) return [];
  const { missing, issue } = listMissingColumns(constraint, className, site);
  const lines = missing.flatMap((one) => {
    const schema = site.schemas.get(one.className);
    return schema ? [describeMissingField(one.written, schema)] : [];
  });
  return [...new Set([...lines, ...(issue === null ? [] : [issue])])];
}

function isAlwaysKept(name: string): boolean {
  return (ALWAYS_KEEP as readonly string[]).includes(name);
}

/** A name in a constraint that is no column of its class. */
export interface MissingColumn {
  readonly className: string;
  readonly written: string;
}

/** Reports every name that is no column, and resolves as usual. */
class ObservedNames extends FieldNames {
  constructor(
    aliases: ReadonlyMap<string, string>,
    columns: ReadonlyMap<string, unknown> | null,
    override readonly noteMissing: (written: string) => void,
  ) {
    super(aliases, columns);
  }
}

/** The declarations and schemas that names are resolved with. */
interface BindingContext {
  readonly classes: ReadonlyMap<string, DeclaredClass>;
  readonly schemas: SchemaSnapshot;
  /** With the classes that do not exist under the policy; absent: it has all. */
  readonly stored?: SchemaSnapshot;
  /** Classes that do not exist because the policy does not list them; absent: there are none. */
  readonly isUnlisted?: (className: string) => boolean;
  /** Receives the names of callers that are no columns. Default: nobody does. */
  readonly missing?: MissingNames;
}

/**
 * A question of the operator to a class that the policy does not list: its columns are unknown, so that the constraint could
 * match other rows than were meant. Comparing with a pointer to the class asks it nothing.
 */
export function findUnlistedQuestion(
  className: string,
  site: ReachSite,
  isUnlisted: BindingContext['isUnlisted'],
): Refusal | null {
  if (site === 'pointer' || !isUnlisted?.(className)) return null;
  const cause = `it asks class '${className}', which policy.classes does not list: list it, with hidden: true if agents may not read it`;
  return refusals.misconfiguredClass(className, cause);
}

/**
 * The names in a constraint of the operator that are no columns, including those in its cross-class queries. A class without
 * a schema has none.
 * @returns `issue`: why the constraint cannot be translated; null when it can
 */
export function listMissingColumns(
  constraint: Where,
  className: string,
  site: BindingContext,
): { readonly missing: readonly MissingColumn[]; readonly issue: string | null } {
  const missing: MissingColumn[] = [];
  const createUnlimitedAccess = (name: string): ClassAccess => {
    const schema = site.schemas.get(name);
    const declared = site.classes.get(name);
    const aliases = declared?.aliases ?? new Map<string, string>();
    const addMissing = (written: string) => missing.push({ className: name, written });
    return {
      className: name,
      database: declared?.database ?? null,
      schema,
      names: new ObservedNames(aliases, schema?.fields ?? null, addMissing),
      readable: null,
    };
  };
  try {
    translateWhere(
      withSampleValues(constraint),
      createUnlimitedAccess(className),
      {
        reach: (target, from) =>
          findUnlistedQuestion(target, from, site.isUnlisted) ?? createUnlimitedAccess(target),
      },
      { strictPointerShapes: false, checkFields: false, unchecked: SAMPLE },
    );
    return { missing, issue: null };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { missing, issue: error.refusal.cause ?? error.refusal.message };
  }
}

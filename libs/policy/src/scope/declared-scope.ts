import { type AgentDefinition, canonicalClassName, type DenialKind, filterEntries, refusals } from '#core';
import { type BindingIssue, findUnlistedQuestion } from '../compile/bind-class.js';
import type { BoundPolicy } from '../compile/bind-policy.js';
import { defaultHiding, HIDDEN_BY_DEFAULT } from '../compile/compile-class.js';
import { findMaskedColumns } from '../masking/column-masks.js';
import { isFlat, withheldNames } from '../masking/withheld-objects.js';
import type { ClassAccess, WithheldNames, WithheldObjects, WithheldTarget } from '../model/class-access.js';
import type { ClassSchema, FieldSchema, FieldType, SchemaSnapshot } from '../model/class-schema.js';
import { ALWAYS_KEEP, type FieldNames, AskedNames, isNameable } from '../model/field-names.js';
import { typeOfRows, type ValueType } from '../model/value-type.js';
import type { ClassPolicy, HiddenFrom, Policy } from '../model/policy.js';
import { type Where, listConstrainedFields } from '../model/where.js';
import { translateWhere } from '../where/translate-where.js';
import { RowFilters } from './row-filters.js';

/** The class with the columns and members that a validator or the policy names. */
function withoutSampled(schema: ClassSchema, policy: ClassPolicy): ClassSchema {
  const named = new Set([
    ...(policy.fields ?? []),
    ...(policy.joinFields ?? []),
    ...policy.properties.keys(),
    ...(policy.tenantScope ? [policy.tenantScope.field] : []),
    // It is shown to agents, which may write it themselves.
    ...[...listConstrainedFields(policy.canonicalFilter ?? {})].map((name) =>
      policy.names.resolveColumn(name),
    ),
  ]);
  const fields = [...schema.fields].flatMap(([name, field]) =>
    field.origin === 'sample' && !named.has(name) ? [] : [[name, withoutSampledParts(field)] as const],
  );
  return { ...schema, fields: new Map(fields) };
}

/** Null: there are none. */
function listUnnamed(
  stored: ClassSchema | undefined,
  { fields }: Pick<ClassPolicy, 'fields'>,
): ReadonlySet<string> | null {
  const found = [...(stored?.fields ?? [])].flatMap(([name, { origin }]) =>
    isNameable(name, origin, fields) ? [] : [name],
  );
  return found.length > 0 ? new Set(found) : null;
}

function withoutSampledParts({ members, entries, ...field }: FieldSchema): FieldSchema {
  const known = [...(members ?? [])].filter(([, { origin }]) => origin !== 'sample');
  return {
    ...field,
    ...(known.length > 0 && {
      members: new Map(known.map(([name, member]) => [name, withoutSampledParts(member)])),
    }),
    ...(entries && entries.origin !== 'sample' && { entries: withoutSampledParts(entries) }),
  };
}

/**
 * The declarations of the operator for one policy, schema snapshot and agent definition. Equal for every caller with that
 * definition, so created once and shared.
 */
export class DeclaredScope {
  private readonly accesses = new Map<string, ClassAccess>();
  private readonly issues = new Map<string, readonly BindingIssue[]>();
  private readonly rowTypes = new Map<ClassSchema, ValueType>();
  private namesWithheld: WithheldNames | null | undefined;

  readonly policy: Policy;
  readonly schemas: SchemaSnapshot;
  readonly filters: RowFilters;

  constructor(
    readonly bound: BoundPolicy,
    readonly definition: AgentDefinition,
    /** The scope of the parent of a sub-agent. */
    private readonly outer: DeclaredScope | null = null,
  ) {
    this.policy = bound.policy;
    this.schemas = bound.schemas;
    this.filters = new RowFilters(bound, definition, outer?.filters ?? null, (...asked) =>
      this.translate(...asked),
    );
  }

  /**
   * Rules of the class, and filters of the agent or its parents, that name columns which the class does not have. The class is
   * refused while there are any: it is unknown what they should protect.
   */
  listIssues(className: string): readonly BindingIssue[] {
    const known = this.issues.get(className);
    if (known) return known;
    if (!this.schemas.get(className)) return [];
    const own = this.bound.filterIssues(this.definition, className);
    const others = this.outer?.listIssues(className) ?? this.bound.listIssues(className);
    const found = own.length === 0 ? others : [...others, ...own];
    this.issues.set(className, found);
    return found;
  }

  /** Called for every class name in a row, so it compiles and caches nothing. */
  findHiding(name: string): HiddenFrom {
    return this.policy.classes.get(name)?.hiding ?? defaultHiding(name);
  }

  /** Whether the class is hidden, outside the class filter, or refused: redacted in rows and left out of listings. */
  isWithheld(className: string): boolean {
    const name = canonicalClassName(className);
    return (
      this.findHiding(name) !== 'no' ||
      this.bound.isUnlisted(name) ||
      !this.definition.classes.permits(name) ||
      this.listIssues(name).length > 0
    );
  }

  access(className: string): ClassAccess {
    const known = this.accesses.get(className);
    if (known) return known;
    const policy = this.bound.classPolicy(className);
    const stored = this.schemas.get(className);
    const schema = this.findKnownSchema(className, policy);
    const withheld = this.withheldColumns(className, policy);
    // Rows are shown with columns that only a sample knows: else they would be cut without a sign.
    const readable =
      this.listIssues(className).length > 0 ? new Set(ALWAYS_KEEP) : listReadable(policy, stored);
    const listed = stored?.storage === 'plain' ? withoutReferences(readable, stored, withheld) : readable;
    const masked =
      policy.masks.size === 0
        ? null
        : findMaskedColumns(
            {
              masks: policy.masks,
              listed,
              known: new Set([...(stored?.fields.keys() ?? []), ...ALWAYS_KEEP]),
              isWithheld: (column) => withheld.has(column),
            },
            this.definition,
          );
    const { mayHold, flat } = this.listGuarded(schema, withheld);
    const lists = findDeclaredLists(policy, schema);
    const unnamed = listUnnamed(stored, policy);
    const access: ClassAccess = {
      className,
      database: policy.database,
      schema,
      names: this.findNames(className, policy, schema),
      readable: listed,
      ...(unnamed && { unnamed }),
      withheld,
      ...(lists.size > 0 && { lists }),
      ...(mayHold && { mayHold }),
      ...(flat && { flat }),
      ...masked,
    };
    this.accesses.set(className, access);
    return access;
  }

  /** Where rows are limited, what only a sample of documents knows may stand in rows of others: it is no part of the class. */
  private findKnownSchema(className: string, policy: ClassPolicy): ClassSchema | undefined {
    const schema = this.schemas.get(className);
    return schema?.storage === 'plain' && this.limitsRows(className)
      ? withoutSampled(schema, policy)
      : schema;
  }

  /** A name means the same column whatever stands in rows of others. */
  private findNames(className: string, policy: ClassPolicy, known: ClassSchema | undefined): FieldNames {
    const stored = this.schemas.get(className);
    if (known === undefined || known === stored) return policy.names;
    return new AskedNames(policy.aliases, known.fields, this.bound.missing, stored?.fields);
  }

  private limitsRows(className: string): boolean {
    const { tenantScope, filters } = this.bound.classPolicy(className);
    const isFiltered = filterEntries(this.definition.filters, className).length > 0;
    return (
      tenantScope !== null || filters !== null || isFiltered || this.outer?.limitsRows(className) === true
    );
  }

  /** Columns that point to withheld classes: by the schema for pointers, by `targetClass` of the policy for lists of them. */
  private withheldColumns(className: string, policy: ClassPolicy): ReadonlyMap<string, WithheldTarget> {
    const targets = new Map<string, string>();
    for (const [field, { targetClass }] of policy.properties) {
      if (targetClass !== undefined) targets.set(field, targetClass);
    }
    const schema = this.schemas.get(className);
    for (const [field, { type, targetClass }] of schema?.fields ?? []) {
      if (type === 'Pointer' && targetClass !== undefined) targets.set(field, targetClass);
    }
    if (schema?.storage === 'plain') {
      for (const [field, column] of schema.fields)
        for (const target of targetsWithin(column)) if (this.isWithheld(target)) targets.set(field, target);
    }
    const withheld = new Map<string, WithheldTarget>();
    for (const [field, target] of targets) {
      const name = canonicalClassName(target);
      if (!this.isWithheld(name)) continue;
      withheld.set(field, {
        className: name,
        refusal: refusals.withheldColumn(field, this.withheldAs(name)),
      });
    }
    return withheld.size === 0 ? NONE_WITHHELD : withheld;
  }

  private withheldAs(className: string): DenialKind {
    if (this.findHiding(className) !== 'no' || this.bound.isUnlisted(className)) return 'hidden_class';
    if (!this.definition.classes.permits(className)) return 'class_filter';
    return this.policy.switches.concealHidden ? 'hidden_class' : 'misconfigured_class';
  }

  /** The columns that may hold objects of withheld classes: by their type, or against it. */
  private listGuarded(
    schema: ClassSchema | undefined,
    withheld: ReadonlyMap<string, WithheldTarget>,
  ): { readonly mayHold?: WithheldObjects; readonly flat?: ReadonlySet<string> } {
    // Documents of other programs hold ids, and no objects of Parse: their references are declared.
    if (schema?.storage === 'plain') return {};
    const names = (this.namesWithheld ??= this.withheldInSchema());
    if (!names) return {};
    const columnsThat = (isMeant: (type: FieldType) => boolean) =>
      [...(schema?.fields ?? [])]
        .filter(([field, { type }]) => isMeant(type) && !withheld.has(field))
        .map(([field]) => field);
    const columns = columnsThat((type) => HOLDS_OBJECTS.has(type));
    const flat = columnsThat(isFlat).filter((field) => !ALWAYS_KEEP.some((kept) => kept === field));
    return {
      ...(columns.length > 0 && { mayHold: { names, columns: new Set(columns) } }),
      ...(flat.length > 0 && { flat: new Set(flat) }),
    };
  }

  /** Whether the schema or the policy has the class. */
  hasClass(className: string): boolean {
    const name = canonicalClassName(className);
    return (
      this.schemas.get(name) !== undefined || this.policy.classes.has(name) || HIDDEN_BY_DEFAULT.has(name)
    );
  }

  /** What is known of the rows of a class; undefined: there is no such class. */
  rowType(className: string): ValueType | undefined {
    const schema = this.schemas.get(canonicalClassName(className));
    if (!schema) return undefined;
    let type = this.rowTypes.get(schema);
    if (!type) this.rowTypes.set(schema, (type = typeOfRows(schema)));
    return type;
  }

  /** Null while the only withheld classes of the schema are those hidden by default. */
  private withheldInSchema(): WithheldNames | null {
    const { classes, switches } = this.policy;
    const inSchema = this.schemas.classNames();
    const isChosen = (name: string) => classes.has(name) || !HIDDEN_BY_DEFAULT.has(name);
    const refusesOthers = switches.unlistedClasses === 'refuse';
    if (!refusesOthers && !inSchema.some((name) => this.isWithheld(name) && isChosen(name))) return null;
    const { only, except } = this.definition.classes;
    const known = [...inSchema, ...classes.keys(), ...HIDDEN_BY_DEFAULT, ...(only ?? []), ...(except ?? [])];
    return withheldNames(known, (name) => this.isWithheld(name), only !== null || refusesOthers);
  }

  /** With the columns of all rows. */
  private wholeAccess(className: string): ClassAccess {
    const schema = this.schemas.get(className);
    return { ...this.access(className), schema, names: this.bound.classPolicy(className).names };
  }

  /** Constraints of the operator may name fields that the agent may not, and are read by the types of all rows. */
  private translate(constraint: Where, className: string, literals?: ReadonlySet<string>): Where {
    return translateWhere(
      constraint,
      this.wholeAccess(className),
      {
        reach: (target, site) => {
          const name = canonicalClassName(target);
          return findUnlistedQuestion(name, site, this.bound.isUnlisted) ?? this.wholeAccess(name);
        },
      },
      { strictPointerShapes: false, checkFields: false, ...(literals && { literals }) },
    );
  }
}

function findDeclaredLists(
  policy: ClassPolicy,
  schema: ClassSchema | undefined,
): ReadonlyMap<string, string> {
  if (schema?.storage === 'plain') return new Map();
  return new Map(
    [...policy.properties].flatMap(([field, { targetClass }]) =>
      targetClass !== undefined && schema?.fields.get(field)?.type === 'Array' ? [[field, targetClass]] : [],
    ),
  );
}

const HOLDS_OBJECTS: ReadonlySet<FieldType> = new Set(['Object', 'Array']);

/** Of most classes: shared, because there is an access for each class and agent. */
const NONE_WITHHELD: ReadonlyMap<string, WithheldTarget> = new Map();

/** Without the columns that lead to withheld classes: a plain column may hold anything, also where references are declared. */
function withoutReferences(
  readable: Set<string> | null,
  schema: ClassSchema,
  withheld: ReadonlyMap<string, WithheldTarget>,
): Set<string> | null {
  if (withheld.size === 0) return readable;
  const all = readable ?? [...schema.fields.keys(), ...ALWAYS_KEEP];
  return new Set([...all].filter((name) => !withheld.has(name)));
}

/** The classes that a plain column refers to, at any depth. */
function targetsWithin({ targetClass, members }: FieldSchema): string[] {
  const inside = [...(members?.values() ?? [])].flatMap(targetsWithin);
  return targetClass === undefined ? inside : [canonicalClassName(targetClass), ...inside];
}

/**
 * The vector of a searchable class is large and reveals its text, so it is readable only if the allowlist names it. Without an
 * allowlist all other columns of the schema are readable.
 */
function listReadable(
  { fields, searchable }: ClassPolicy,
  schema: ClassSchema | undefined,
): Set<string> | null {
  if (fields) return new Set([...fields, ...ALWAYS_KEEP]);
  if (!searchable) return null;
  const columns = [...(schema?.fields.keys() ?? [])].filter((name) => name !== searchable.field);
  return new Set([...columns, ...ALWAYS_KEEP]);
}

import { type AgentDefinition, canonicalClassName, DEFAULT_FILTER } from '#core';
import type { SchemaSnapshot } from '../model/class-schema.js';
import { MissingNames } from '../model/field-names.js';
import type { ClassPolicy, Policy } from '../model/policy.js';
import { compileClass } from './compile-class.js';
import { type BindingIssue, bindClass, type BoundClass, filterIssues } from './bind-class.js';

/**
 * The classes of the database that exist under a policy. The catalogue reads those that the current configuration lists; a call
 * that was admitted under an earlier one has its own list.
 */
function filterExistingClasses(schemas: SchemaSnapshot, { classes, switches }: Policy): SchemaSnapshot {
  const exists = (className: string) => {
    const declared = classes.get(className);
    const schema = schemas.get(className);
    // Rules of a class are those of one database: a class of the same name in another one is not that class.
    if (schema && schema.database !== (declared?.database ?? undefined)) return false;
    return declared !== undefined || (switches.unlistedClasses === 'allow' && schema?.storage !== 'plain');
  };
  const names = schemas.classNames().filter(exists);
  if (names.length === schemas.classNames().length) return schemas;
  return {
    get: (className) => (exists(className) ? schemas.get(className) : undefined),
    classNames: () => names,
    isAway: (className) => classes.has(className) && schemas.isAway?.(className) === true,
  };
}

/** Whether two snapshots have the same classes with the same columns, which is all that a binding depends on. */
export function haveSameColumns(one: SchemaSnapshot, other: SchemaSnapshot): boolean {
  const names = one.classNames();
  if (names.length !== other.classNames().length) return false;
  return names.every((name) => {
    const [fields, others] = [one.get(name)?.fields, other.get(name)?.fields];
    if (!fields || !others || fields.size !== others.size) return false;
    if (one.get(name)?.storage !== other.get(name)?.storage) return false;
    for (const [field, { type, targetClass }] of fields) {
      const counterpart = others.get(field);
      if (counterpart?.type !== type || counterpart.targetClass !== targetClass) return false;
    }
    return true;
  });
}

const NO_ISSUES: readonly BindingIssue[] = [];

/** One policy over one schema snapshot: every declared name is resolved to its column. Created once and shared. */
export class BoundPolicy {
  private readonly classes: ReadonlyMap<string, BoundClass>;
  private readonly undeclared: Map<string, BoundClass>;
  /** The classes that exist for agents. */
  readonly schemas: SchemaSnapshot;
  /** What callers named and these classes do not have. */
  readonly missing: MissingNames;

  /**
   * @param stored the classes of the database
   * @param previous the same policy over an earlier snapshot. Its classes are taken over when no column changed: snapshots are
   * read again every few seconds, and a policy of many classes is slow to bind
   */
  constructor(
    readonly policy: Policy,
    private readonly stored: SchemaSnapshot,
    previous?: BoundPolicy,
  ) {
    this.schemas = filterExistingClasses(stored, policy);
    const known = previous?.policy === policy && haveSameColumns(previous.stored, stored) ? previous : null;
    this.missing = known?.missing ?? new MissingNames();
    this.classes =
      known?.classes ??
      new Map([...policy.classes].map(([name, declared]) => [name, bindClass(declared, this.site)]));
    this.undeclared = known?.undeclared ?? new Map();
  }

  /** @param className canonical */
  classPolicy(className: string): ClassPolicy {
    const known = this.classes.get(className) ?? this.undeclared.get(className);
    if (known) return known.policy;
    const bound = bindClass(compileClass(className, {}), this.site);
    // Callers and rows may name any class: only those of the schema are kept.
    if (this.schemas.get(className)) this.undeclared.set(className, bound);
    return bound.policy;
  }

  /** Why the class is refused to every agent. Empty: it matches its schema. @param className canonical */
  listIssues(className: string): readonly BindingIssue[] {
    return this.classes.get(className)?.issues ?? NO_ISSUES;
  }

  /** Of all declared classes. */
  get issues(): readonly BindingIssue[] {
    return [...this.classes.values()].flatMap(({ issues }) => issues);
  }

  /**
   * Why the filters of an agent do not match a class, which is then refused to it. A filter function is checked when it is
   * called.
   * @param className canonical
   */
  filterIssues(definition: AgentDefinition, className: string): readonly BindingIssue[] {
    return [...definition.filters].flatMap(([name, entry]) => {
      if ((name !== DEFAULT_FILTER && canonicalClassName(name) !== className) || typeof entry === 'function')
        return [];
      return filterIssues(entry, className, this.site).map((message) => ({
        className,
        path: `agents.${definition.name}.filters.${name}`,
        message,
      }));
    });
  }

  /** Whether the class does not exist because the policy does not list it. */
  readonly isUnlisted = (className: string): boolean =>
    this.policy.switches.unlistedClasses === 'refuse' && !this.policy.classes.has(className);

  private get site() {
    return {
      classes: this.policy.classes,
      schemas: this.schemas,
      stored: this.stored,
      isUnlisted: this.isUnlisted,
      missing: this.missing,
    };
  }
}

export interface PolicyBinding {
  /** The declared classes, by canonical name. */
  readonly classes: ReadonlyMap<string, ClassPolicy>;
  /** Declarations that name what the database does not have. A start or reload with any is refused. */
  readonly errors: readonly BindingIssue[];
}

/**
 * Compares a policy and the row filters of agents with the classes of a database. A class that does not exist is no error:
 * it has no data to protect.
 */
export function bindPolicy(
  policy: Policy,
  schemas: SchemaSnapshot,
  definitions: Iterable<AgentDefinition> = [],
): PolicyBinding {
  const bound = new BoundPolicy(policy, schemas);
  const classes = new Map([...policy.classes.keys()].map((name) => [name, bound.classPolicy(name)]));
  const errors = [...definitions].flatMap((definition) => [
    ...[...definition.filters.keys()]
      .filter((name) => name !== DEFAULT_FILTER)
      .flatMap((name) => bound.filterIssues(withoutDefault(definition), canonicalClassName(name))),
    ...defaultFilterIssues(definition, bound),
  ]);
  return { classes, errors: [...bound.issues, ...errors] };
}

const withoutDefault = (definition: AgentDefinition): AgentDefinition => ({
  ...definition,
  filters: new Map([...definition.filters].filter(([name]) => name !== DEFAULT_FILTER)),
});

/** The `default` filter is an error when it matches no class; a class that it does not match is refused to the agent. */
function defaultFilterIssues(definition: AgentDefinition, bound: BoundPolicy): readonly BindingIssue[] {
  const entry = definition.filters.get(DEFAULT_FILTER);
  if (!entry || typeof entry === 'function') return [];
  const alone = { ...definition, filters: new Map([[DEFAULT_FILTER, entry]]) };
  const [first, ...others] = bound.schemas.classNames().map((name) => bound.filterIssues(alone, name));
  const fitsNone = first && [first, ...others].every((issues) => issues.length > 0);
  return fitsNone
    ? first.slice(0, 1).map((issue) => ({ ...issue, message: `fits no class: ${issue.message}` }))
    : [];
}

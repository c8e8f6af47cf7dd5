import { type AgentShape, canonicalClassName, DEFAULT_FILTER } from '#core';
import { compileClass } from './compile-policy.js';
import type { ClassPolicy, Policy } from '../model/policy.js';
import type { SchemaSnapshot } from '../model/class-schema.js';
import { bindClass, type BindingIssue, type BoundClass, filterIssues } from './bind-class.js';

/** One policy over one schema snapshot: every declared name is resolved to its column. Created once and shared. */
export class BoundPolicy {
  private readonly classes: ReadonlyMap<string, BoundClass>;
  private readonly undeclared: Map<string, BoundClass>;

  /**
   * @param previous the same policy over an earlier snapshot. Its classes are taken over when no column changed: snapshots are
   * read again every few seconds, and a policy of many classes is slow to bind
   */
  constructor(
    readonly policy: Policy,
    readonly schemas: SchemaSnapshot,
    previous?: BoundPolicy,
  ) {
    const known = previous?.policy === policy && haveSameColumns(previous.schemas, schemas) ? previous : null;
    this.classes =
      known?.classes ??
      new Map([...policy.classes].map(([name, declared]) => [name, bindClass(declared, this.site)]));
    this.undeclared = known?.undeclared ?? new Map();
  }

  /** @param className canonical */
  classPolicy(className: string): ClassPolicy {
    return this.boundClass(className).policy;
  }

  /** Why the class is refused to every agent. Empty: it matches its schema. @param className canonical */
  issuesOf(className: string): readonly BindingIssue[] {
    return this.classes.get(className)?.issues ?? [];
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
  filterIssues(shape: AgentShape, className: string): readonly BindingIssue[] {
    return [...shape.filters].flatMap(([name, entry]) => {
      if ((name !== DEFAULT_FILTER && canonicalClassName(name) !== className) || typeof entry === 'function')
        return [];
      return filterIssues(entry, className, this.site).map((message) => ({
        className,
        path: `agents.${shape.name}.filters.${name}`,
        message,
      }));
    });
  }

  private get site() {
    return { classes: this.policy.classes, schemas: this.schemas };
  }

  private boundClass(className: string): BoundClass {
    const known = this.classes.get(className) ?? this.undeclared.get(className);
    if (known) return known;
    const bound = bindClass(compileClass(className, {}), this.site);
    // Callers and rows may name any class: only those of the schema are kept.
    if (this.schemas.get(className)) this.undeclared.set(className, bound);
    return bound;
  }
}

/** Whether two snapshots have the same classes with the same columns, which is all that a binding depends on. */
function haveSameColumns(one: SchemaSnapshot, other: SchemaSnapshot): boolean {
  const names = one.classNames();
  if (names.length !== other.classNames().length) return false;
  return names.every((name) => {
    const [fields, others] = [one.get(name)?.fields, other.get(name)?.fields];
    if (!fields || !others || fields.size !== others.size) return false;
    for (const [field, { type, targetClass }] of fields) {
      const counterpart = others.get(field);
      if (counterpart?.type !== type || counterpart.targetClass !== targetClass) return false;
    }
    return true;
  });
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
  shapes: Iterable<AgentShape> = [],
): PolicyBinding {
  const bound = new BoundPolicy(policy, schemas);
  const classes = new Map([...policy.classes.keys()].map((name) => [name, bound.classPolicy(name)]));
  const errors = [...shapes].flatMap((shape) => [
    ...[...shape.filters.keys()]
      .filter((name) => name !== DEFAULT_FILTER)
      .flatMap((name) => bound.filterIssues(withoutDefault(shape), canonicalClassName(name))),
    ...defaultFilterIssues(shape, bound),
  ]);
  return { classes, errors: [...bound.issues, ...errors] };
}

const withoutDefault = (shape: AgentShape): AgentShape => ({
  ...shape,
  filters: new Map([...shape.filters].filter(([name]) => name !== DEFAULT_FILTER)),
});

/** The `default` filter is an error when it matches no class; a class that it does not match is refused to the agent. */
function defaultFilterIssues(shape: AgentShape, bound: BoundPolicy): readonly BindingIssue[] {
  const entry = shape.filters.get(DEFAULT_FILTER);
  if (!entry || typeof entry === 'function') return [];
  const alone = { ...shape, filters: new Map([[DEFAULT_FILTER, entry]]) };
  const [first, ...others] = bound.schemas.classNames().map((name) => bound.filterIssues(alone, name));
  const fitsNone = first && [first, ...others].every((issues) => issues.length > 0);
  return fitsNone
    ? first.slice(0, 1).map((issue) => ({ ...issue, message: `fits no class: ${issue.message}` }))
    : [];
}

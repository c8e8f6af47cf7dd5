import { type Agent, canonicalClassName, filterFor, isClassName, type Refusal, refusals } from '#agent';
import type { AgentShape, ClassFilterSite } from '#agent';
import { compileClass, defaultHiding } from '../compile/compile-class.js';
import type { ClassAccess, ClassReach, ReachSite, WithheldTarget } from '../model/class-access.js';
import { ALWAYS_KEEP, type ClassPolicy, type Hiding, type Policy } from '../model/class-policy.js';
import type { SchemaSnapshot } from '../model/class-schema.js';
import { FieldNames } from '../model/field-names.js';
import type { Where } from '../model/where.js';
import { translateWhere } from '../where/translate-where.js';
import { suggestNames } from './suggest-names.js';

/** Underscore classes that may be joined; a floor below any policy. */
const JOINABLE_SYSTEM_CLASSES = new Set(['_User', '_Role', '_Installation', '_Session']);

const FILTER_SITES: Record<ReachSite, ClassFilterSite> = {
  include: 'Pointer-include target',
  pipeline: 'Pipeline target',
  constraint: 'Query class',
};

/**
 * One policy over one schema snapshot for one agent shape: everything that can be decided before a call arrives, decided
 * once. The class gate lives here and nowhere else; listing, reading, joining, including and redacting all ask it.
 */
export class AgentScope {
  private readonly accesses = new Map<string, ClassAccess>();
  private readonly policies = new Map<string, ClassPolicy>();
  private readonly filters = new Map<string, Where | null>();

  constructor(
    readonly policy: Policy,
    readonly schemas: SchemaSnapshot,
    readonly shape: AgentShape,
  ) {}

  classPolicy(className: string): ClassPolicy {
    const declared = this.policy.classes.get(className);
    if (declared) return declared;
    const known = this.policies.get(className) ?? compileClass(className, {});
    if (this.schemas.get(className)) this.policies.set(className, known);
    return known;
  }

  /** Hidden or outside the class filter; the placeholder of redaction and the silence of listings. */
  isWithheld(className: string): boolean {
    const name = canonicalClassName(className);
    return this.hiding(name) !== 'no' || !this.shape.classes.permits(name);
  }

  /** The class gate of a tool call: identifier, hidden, class filter, existence. */
  enter(agent: Agent, className: unknown): ClassAccess | Refusal {
    if (className === undefined || className === null || className === '') {
      return refusals.invalidArgument('missing required argument: class_name');
    }
    if (!isClassName(className)) {
      return refusals.invalidArgument(
        'class_name must be an identifier: letters, digits and underscores, at most 128',
        'class',
      );
    }
    const name = canonicalClassName(className);
    return (
      this.hiddenFrom(agent, name, className) ??
      this.filtered(name, className, 'Class') ??
      this.existing(name, className)
    );
  }

  /** The same gate for a class reached from another one. The master exception holds for cross-class operators only. */
  reachFor(agent: Agent): ClassReach {
    return {
      reach: (className, site) => {
        if (!isClassName(className))
          return refusals.securityBlocked(site === 'pipeline' ? 'pipeline' : 'where', 'cross_class_denied');
        const name = canonicalClassName(className);
        if (site === 'pipeline' && name.startsWith('_') && !JOINABLE_SYSTEM_CLASSES.has(name)) {
          return refusals.accessDenied(
            'class',
            `${FILTER_SITES[site]} '${className}' is not accessible to this agent`,
          );
        }
        const hidden =
          site === 'constraint'
            ? this.hiddenFrom(agent, name, className)
            : this.plainlyHidden(name, className);
        return hidden ?? this.filtered(name, className, FILTER_SITES[site]) ?? this.existing(name, className);
      },
    };
  }

  /** The verdict for a class that no gate was asked about. */
  unreachable(className: string): Refusal {
    return refusals.hiddenClass(className);
  }

  /** Operator-declared constraints, translated once per schema: they may name fields that the agent may not. */
  agentFilter(className: string): Where | null {
    return this.translated(`agent:${className}`, className, () => filterFor(this.shape, className));
  }

  canonicalFilter(className: string): Where | null {
    return this.translated(
      `canonical:${className}`,
      className,
      () => this.classPolicy(className).canonicalFilter,
    );
  }

  access(className: string): ClassAccess {
    const known = this.accesses.get(className);
    if (known) return known;
    const policy = this.classPolicy(className);
    const access: ClassAccess = {
      className,
      schema: this.schemas.get(className),
      names: new FieldNames(policy.aliases),
      readable: policy.fields && new Set([...policy.fields, ...ALWAYS_KEEP]),
      withheld: this.withheldColumns(className, policy),
    };
    this.accesses.set(className, access);
    return access;
  }

  /** Names close to one that does not exist, among those this agent may know. */
  suggestions(className: string): string[] {
    const { hasVisibleClasses } = this.policy;
    const offered = this.schemas
      .classNames()
      .filter((name) => !this.isWithheld(name) && (!hasVisibleClasses || this.classPolicy(name).visible));
    return suggestNames(className, offered);
  }

  /** By the schema for pointers, by the policy's `targetClass` for lists of them. */
  private withheldColumns(className: string, policy: ClassPolicy): Map<string, WithheldTarget> {
    const targets = new Map<string, string>();
    for (const [field, { targetClass }] of policy.properties) {
      if (targetClass !== undefined) targets.set(field, targetClass);
    }
    for (const [field, { type, targetClass }] of this.schemas.get(className)?.fields ?? []) {
      if (type === 'Pointer' && targetClass !== undefined) targets.set(field, targetClass);
    }
    const withheld = new Map<string, WithheldTarget>();
    for (const [field, target] of targets) {
      const name = canonicalClassName(target);
      const refusal = this.plainlyHidden(name, name) ?? this.filtered(name, name, FILTER_SITES.constraint);
      if (refusal) withheld.set(field, { className: name, refusal });
    }
    return withheld;
  }

  /** Asked for every class name that stands in a row, so it compiles and keeps nothing. */
  private hiding(name: string): Hiding {
    return this.policy.classes.get(name)?.hiding ?? defaultHiding(name);
  }

  private hiddenFrom(agent: Agent, name: string, asWritten: string): Refusal | null {
    const hiding = this.hiding(name);
    if (hiding === 'no' || (hiding === 'exceptMaster' && agent.usesMasterKey)) return null;
    return refusals.hiddenClass(asWritten);
  }

  private plainlyHidden(name: string, asWritten: string): Refusal | null {
    return this.hiding(name) === 'no' ? null : refusals.hiddenClass(asWritten);
  }

  private filtered(name: string, asWritten: string, site: ClassFilterSite): Refusal | null {
    return this.shape.classes.permits(name) ? null : refusals.classFiltered(asWritten, site);
  }

  private existing(name: string, asWritten: string): ClassAccess | Refusal {
    if (this.schemas.get(name)) return this.access(name);
    // With concealHidden a missing class answers exactly as a hidden one.
    if (this.policy.switches.concealHidden) return refusals.hiddenClass(asWritten);
    return refusals.unknownClass(asWritten, this.suggestions(asWritten));
  }

  private translated(key: string, className: string, constraint: () => unknown): Where | null {
    const known = this.filters.get(key);
    if (known !== undefined) return known;
    const declared = constraint();
    const where =
      declared === null || declared === undefined
        ? null
        : translateWhere(
            declared,
            this.access(className),
            { reach: (target) => this.access(canonicalClassName(target)) },
            { strictPointerShapes: false, checkFields: false },
          );
    this.filters.set(key, where);
    return where;
  }
}

/** Scopes are kept for as long as their schema snapshot lives. */
export class AgentScopes {
  private bySnapshot = new WeakMap<SchemaSnapshot, Map<AgentShape, AgentScope>>();

  constructor(readonly policy: Policy) {}

  of(schemas: SchemaSnapshot, shape: AgentShape): AgentScope {
    let scopes = this.bySnapshot.get(schemas);
    if (!scopes) this.bySnapshot.set(schemas, (scopes = new Map()));
    let scope = scopes.get(shape);
    if (!scope) scopes.set(shape, (scope = new AgentScope(this.policy, schemas, shape)));
    return scope;
  }
}

import { type AgentShape, canonicalClassName, filterFor } from '#agent';
import { compileClass, defaultHiding } from '../compile/compile-class.js';
import type { ClassAccess } from '../model/class-access.js';
import { ALWAYS_KEEP, type ClassPolicy, type Hiding, type Policy } from '../model/class-policy.js';
import type { SchemaSnapshot } from '../model/class-schema.js';
import { FieldNames } from '../model/field-names.js';
import type { Where } from '../model/where.js';
import { translateWhere } from '../where/translate-where.js';

/**
 * What the operator declared, for one policy over one schema snapshot and one agent shape: the same for every caller
 * with that shape, so it is worked out once and shared.
 */
export class DeclaredScope {
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

  /** Asked for every class name that stands in a row, so it compiles and keeps nothing. */
  hiding(name: string): Hiding {
    return this.policy.classes.get(name)?.hiding ?? defaultHiding(name);
  }

  /** Hidden or outside the class filter; the placeholder of redaction and the silence of listings. */
  isWithheld(className: string): boolean {
    const name = canonicalClassName(className);
    return this.hiding(name) !== 'no' || !this.shape.classes.permits(name);
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
    };
    this.accesses.set(className, access);
    return access;
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

import { type Agent, type AgentShape, canonicalClassName, refusals } from '#agent';
import { compileClass, defaultHiding, HIDDEN_BY_DEFAULT } from '../compile/compile-class.js';
import { maskedColumns } from '../masking/column-masks.js';
import type { ClassAccess, WithheldObjects, WithheldTarget } from '../model/class-access.js';
import { ALWAYS_KEEP, type ClassPolicy, type Hiding, type Policy } from '../model/class-policy.js';
import type { ClassSchema, SchemaSnapshot } from '../model/class-schema.js';
import { FieldNames } from '../model/field-names.js';
import { allOf, type Where } from '../model/where.js';
import { translateWhere } from '../where/translate-where.js';
import { evaluateFilter, fixedFilter, untranslatable } from './filter-evaluation.js';

/**
 * What the operator declared, for one policy over one schema snapshot and one agent shape: the same for every caller
 * with that shape, so it is worked out once and shared.
 */
export class DeclaredScope {
  private readonly accesses = new Map<string, ClassAccess>();
  private readonly policies = new Map<string, ClassPolicy>();
  private readonly filters = new Map<string, Where | null>();
  private withheldNames: readonly string[] | null = null;

  constructor(
    readonly policy: Policy,
    readonly schemas: SchemaSnapshot,
    readonly shape: AgentShape,
    /** Of the agent that a sub-agent was made by. */
    private readonly outer: DeclaredScope | null = null,
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
    const schema = this.schemas.get(className);
    const listed = readableOf(policy, schema);
    const withheld = this.withheldColumns(className, policy);
    const masked =
      policy.masks.size === 0
        ? null
        : maskedColumns(
            {
              masks: policy.masks,
              listed,
              known: new Set([...(schema?.fields.keys() ?? []), ...ALWAYS_KEEP]),
              isWithheld: (column) => withheld.has(column),
            },
            this.shape,
          );
    const mayHold = this.mayHold(schema, withheld);
    const access: ClassAccess = {
      className,
      schema,
      names: new FieldNames(policy.aliases),
      readable: listed,
      withheld,
      ...(mayHold && { mayHold }),
      ...masked,
    };
    this.accesses.set(className, access);
    return access;
  }

  /**
   * What every read of a class carries for this agent and, when it is a sub-agent, for those above it. A constraint is
   * translated once per schema; a function is asked each time, for the agent that it was given to.
   * @throws Refused when a function gives no usable constraint
   */
  async agentFilter(agent: Agent, className: string): Promise<Where | null> {
    const fixed = this.ownFixedFilter(className);
    const own = fixed === undefined ? await this.ownAskedFilter(agent, className) : fixed;
    if (!this.outer) return own;
    return allOf(await this.outer.agentFilter(agent.parent ?? agent, className), own);
  }

  canonicalFilter(className: string): Where | null {
    return this.remembered(`canonical:${className}`, () =>
      this.translated(this.classPolicy(className).canonicalFilter, className),
    );
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
      if (!this.isWithheld(name)) continue;
      const kind = this.hiding(name) === 'no' ? 'class_filter' : 'hidden_class';
      withheld.set(field, { className: name, refusal: refusals.withheldColumn(field, kind) });
    }
    return withheld;
  }

  private mayHold(
    schema: ClassSchema | undefined,
    withheld: ReadonlyMap<string, WithheldTarget>,
  ): WithheldObjects | null {
    const classes = (this.withheldNames ??= this.withheldInSchema());
    const columns = [...(schema?.fields ?? [])]
      .filter(([field, { type }]) => (type === 'Object' || type === 'Array') && !withheld.has(field))
      .map(([field]) => field);
    return classes.length > 0 && columns.length > 0 ? { classes, columns: new Set(columns) } : null;
  }

  /** Nothing points to those that are hidden without anybody's word. A system class may be named without its underscore. */
  private withheldInSchema(): readonly string[] {
    return this.schemas
      .classNames()
      .filter(
        (name) => this.isWithheld(name) && (this.policy.classes.has(name) || !HIDDEN_BY_DEFAULT.has(name)),
      )
      .flatMap((name) => (name.startsWith('_') ? [name, name.slice(1)] : [name]));
  }

  /** Undefined when it takes a function to know it. */
  private ownFixedFilter(className: string): Where | null | undefined {
    const fixed = fixedFilter(this.shape.filters, className);
    if (fixed === undefined) return undefined;
    return this.remembered(`agent:${className}`, () => this.translated(fixed, className));
  }

  private async ownAskedFilter(agent: Agent, className: string): Promise<Where> {
    const constraint = await evaluateFilter(this.shape.filters, agent, className);
    try {
      return this.translate(constraint, className);
    } catch (error) {
      throw untranslatable(error, className);
    }
  }

  private remembered(key: string, work: () => Where | null): Where | null {
    const known = this.filters.get(key);
    if (known !== undefined) return known;
    const where = work();
    this.filters.set(key, where);
    return where;
  }

  private translated(constraint: Where | null, className: string): Where | null {
    return constraint && this.translate(constraint, className);
  }

  /** The operator's own constraints may name fields that the agent may not. */
  private translate(constraint: Where, className: string): Where {
    return translateWhere(
      constraint,
      this.access(className),
      { reach: (target) => this.access(canonicalClassName(target)) },
      { strictPointerShapes: false, checkFields: false },
    );
  }
}

/**
 * The vector of a searchable class is large and tells of its text, so it is read only where the allowlist names it;
 * without an allowlist the declared columns are one.
 */
function readableOf(
  { fields, searchable }: ClassPolicy,
  schema: ClassSchema | undefined,
): Set<string> | null {
  if (fields) return new Set([...fields, ...ALWAYS_KEEP]);
  if (!searchable) return null;
  const columns = [...(schema?.fields.keys() ?? [])].filter((name) => name !== searchable.field);
  return new Set([...columns, ...ALWAYS_KEEP]);
}

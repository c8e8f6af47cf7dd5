import {
  type Agent,
  type AgentDefinition,
  canonicalClassName,
  type ClassFilterSite,
  isClassName,
  MASTER_PRINCIPALS,
  type Principals,
  type Refusal,
  refusals,
} from '#core';
import type { BindingIssue } from '../compile/bind-class.js';
import { BoundPolicy } from '../compile/bind-policy.js';
import { withoutColumns } from '../masking/column-masks.js';
import { type ClassAccess, JOINABLE_SYSTEM_CLASSES, type ReachSite } from '../model/class-access.js';
import type { SchemaSnapshot } from '../model/class-schema.js';
import { ALWAYS_KEEP, suggestNames, type MissingNames } from '../model/field-names.js';
import { nameTenantDatabase } from '../model/tenant-database.js';
import type { ClassPolicy, Policies, Policy } from '../model/policy.js';
import type { Where } from '../model/where.js';
import {
  AccessRights,
  type ClassOperation,
  type ProtectedColumns,
  type ReadOperation,
} from '../rights/class-permissions.js';
import type { Withholding } from '../masking/redact.js';
import { DeclaredScope } from './declared-scope.js';

const FILTER_SITES: Record<ReachSite, ClassFilterSite> = {
  include: 'Pointer-include target',
  pipeline: 'Pipeline target',
  constraint: 'Query class',
  owner: 'Query class',
  pointer: 'Pointer target',
};

/** The class-level permission that is needed; a pointer that is only compared reads nothing. */
const SITE_OPERATIONS: Record<ReachSite, ReadOperation | null> = {
  include: 'get',
  pipeline: 'find',
  constraint: 'find',
  owner: 'get',
  pointer: null,
};

const MASTER_EXCEPTION: ReadonlySet<ReachSite> = new Set(['constraint', 'owner', 'pointer']);

/**
 * What one caller may reach: the declarations of the operator, narrowed by the rights of its identity in the database. The only
 * implementation of the class gate: listing, reading, joining, including and redacting use it.
 */
export class AgentScope {
  private readonly accesses = new Map<string, ClassAccess>();

  readonly policy: Policy;
  readonly schemas: SchemaSnapshot;
  readonly definition: AgentDefinition;
  /** What callers named and the snapshot does not have. */
  readonly missing: MissingNames;
  /** What redaction asks. */
  readonly withholding: Withholding;

  constructor(
    /** The same for every caller with this definition: it knows no rights of the caller. */
    private readonly declared: DeclaredScope,
    readonly rights: AccessRights,
  ) {
    this.policy = declared.policy;
    this.schemas = declared.schemas;
    this.definition = declared.definition;
    this.missing = declared.bound.missing;
    this.withholding = declared;
  }

  classPolicy(className: string): ClassPolicy {
    return this.declared.bound.classPolicy(className);
  }

  /** Whether listings contain the class: it is not withheld, and the caller may `find` or `get`. */
  isListed(className: string): boolean {
    return !this.declared.isWithheld(className) && this.rights.gate(className, 'describe') === null;
  }

  /**
   * The class gate of a tool call: identifier, hidden, class filter, configuration, existence, class-level permission.
   * @param operation the class-level permission that the tool needs; null: the caller of this method checks it
   */
  enter(
    agent: Agent,
    className: unknown,
    operation: ClassOperation | 'describe' | null = 'find',
  ): ClassAccess | Refusal {
    const name = this.admit(agent, className);
    if (typeof name !== 'string') return name;
    return this.findPermitted(agent, name, className as string, operation);
  }

  /** The class gate for a class that may not exist yet. @returns its canonical name */
  admit(agent: Agent, className: unknown): string | Refusal {
    const name = this.resolveName(className);
    if (typeof name !== 'string') return name;
    const written = className as string;
    return (
      this.refuseHiddenFrom(agent, name, written) ??
      this.refuseFilter(name, written, 'Class') ??
      this.refuseMisconfigured(name, written) ??
      name
    );
  }

  /** The refusal of a change of rows or columns where the database of the class is only read; null: it is not. */
  refuseReadOnly(className: string): Refusal | null {
    const { policy } = this;
    const database = policy.classes.get(className)?.database ?? null;
    const isReadOnly = database === null ? policy.readOnly : policy.databases.get(database)?.readOnly;
    return isReadOnly === false ? null : refusals.readOnlyDatabase(className);
  }

  /** Validates `class_name` without checking the class. @returns its canonical name */
  resolveName(className: unknown): string | Refusal {
    if (className === undefined || className === null || className === '') {
      return refusals.invalidArgument('missing required argument: class_name');
    }
    if (!isClassName(className)) {
      return refusals.invalidArgument(
        'class_name must be an identifier: letters, digits and underscores, at most 128',
        'class',
      );
    }
    return canonicalClassName(className);
  }

  /** Whether the policy hides the class from this agent, regardless of other refusals. */
  hides(agent: Agent, className: string): boolean {
    return this.refuseHiddenFrom(agent, className, className) !== null;
  }

  /** The same gate for a class reached from another one. `exceptMaster` applies to constraints, owners and pointers. */
  reach(agent: Agent, className: string, site: ReachSite): ClassAccess | Refusal {
    if (!isClassName(className))
      return refusals.securityBlocked(site === 'pipeline' ? 'pipeline' : 'where', 'cross_class_denied');
    const name = canonicalClassName(className);
    if (site === 'pipeline' && name.startsWith('_') && !this.isJoinable(name)) {
      return refusals.accessDenied(
        'class',
        `${FILTER_SITES[site]} '${className}' is not accessible to this agent`,
      );
    }
    const hidden = MASTER_EXCEPTION.has(site)
      ? this.refuseHiddenFrom(agent, name, className)
      : this.plainlyHidden(name, className);
    return (
      hidden ??
      this.refuseFilter(name, className, FILTER_SITES[site]) ??
      this.refuseMisconfigured(name, className) ??
      this.findPermitted(agent, name, className, SITE_OPERATIONS[site])
    );
  }

  /** The refusal for a class that was not checked. */
  unreachable(className: string): Refusal {
    return refusals.hiddenClass(className);
  }

  /** @throws Refused when a filter function returns no usable constraint */
  agentFilter(agent: Agent, className: string): Promise<Where | null> {
    return this.declared.filters.find(agent, this.rights.principals.userId, className);
  }

  /** The same where no function has to be called; undefined where one has: then `agentFilter` calls it. */
  findFixedAgentFilter(className: string): Where | null | undefined {
    return this.declared.filters.findFixed(className);
  }

  /** @throws Refused when it compares with a value that the agent does not have */
  canonicalFilter(agent: Agent, className: string): Where | null {
    return this.declared.filters.fill('canonicalFilter', agent, this.rights.principals.userId, className);
  }

  /** The columns of a class: the allowlist of the operator without columns that class-level permissions protect. */
  access(className: string): ClassAccess {
    const declared = this.declared.access(className);
    if (this.rights.unlimited) return declared;
    const known = this.accesses.get(className);
    if (known) return known;
    const access = this.guardAccess(declared);
    this.accesses.set(className, access);
    return access;
  }

  /** Names similar to an unknown one, among those that this agent may know. */
  suggestions(className: string): string[] {
    const { hasVisibleClasses } = this.policy;
    const offered = this.schemas
      .classNames()
      .filter((name) => this.isListed(name) && (!hasVisibleClasses || this.classPolicy(name).visible));
    return suggestNames(className, offered);
  }

  private guardAccess(declared: ClassAccess): ClassAccess {
    const columns = this.rights.findProtectedColumns(declared.className);
    if (!columns) return declared;
    // Where no row decides, the access depends on the hidden columns alone: callers share it, and what is made for it.
    return columns.perRow
      ? this.without(declared, columns)
      : shareAccess(declared, columns, () => this.without(declared, columns));
  }

  private without(declared: ClassAccess, columns: ProtectedColumns): ClassAccess {
    const all = declared.readable ?? new Set([...(declared.schema?.fields.keys() ?? []), ...ALWAYS_KEEP]);
    const readable = new Set([...all].filter((name) => !columns.hidden.has(name)));
    const fetchable = columns.perRow ? declared.readable : readable;
    const guarded = { ...columns, fetchable };
    if (!declared.masks) return { ...declared, readable, guarded };
    // The stricter rule applies: a masked column that is also protected is not returned in masked form.
    return { ...declared, readable, guarded, masks: withoutColumns(declared.masks, columns) };
  }

  private isJoinable(name: string): boolean {
    return JOINABLE_SYSTEM_CLASSES.has(name) || this.schemas.get(name)?.storage === 'plain';
  }

  private refuseHiddenFrom(agent: Agent, name: string, asWritten: string): Refusal | null {
    const hiding = this.declared.findHiding(name);
    if (hiding === 'no' || (hiding === 'exceptMaster' && agent.usesMasterKey)) return null;
    return this.refuseHidden(asWritten);
  }

  private plainlyHidden(name: string, asWritten: string): Refusal | null {
    return this.declared.findHiding(name) === 'no' ? null : this.refuseHidden(asWritten);
  }

  private refuseFilter(name: string, asWritten: string, site: ClassFilterSite): Refusal | null {
    return this.definition.classes.permits(name) ? null : refusals.classFiltered(asWritten, site);
  }

  /** With `concealHidden` a hidden class is looked for as long as one that does not exist. */
  private refuseHidden(asWritten: string): Refusal {
    if (this.policy.switches.concealHidden) this.missing.add();
    return refusals.hiddenClass(asWritten);
  }

  /** The configuration does not match the class, so it is unknown what should be protected: the class is refused. */
  private refuseMisconfigured(name: string, asWritten: string): Refusal | null {
    const issues = this.declared.listIssues(name);
    if (issues.length === 0) return null;
    const cause = issues.map(({ path, message }) => `${path}: ${message}`).join('; ');
    if (this.policy.switches.concealHidden) return { ...this.refuseHidden(asWritten), cause };
    return refusals.misconfiguredClass(asWritten, cause);
  }

  /** A class that exists, and whose class-level permissions permit the operation. The master key passes these. */
  private findPermitted(
    agent: Agent,
    name: string,
    asWritten: string,
    operation: ClassOperation | 'describe' | null,
  ): ClassAccess | Refusal {
    const { classes, databases } = this.policy;
    const tenants = databases.get(classes.get(name)?.database ?? '')?.tenants;
    if (tenants && nameTenantDatabase(tenants, agent.tenantId) === null)
      return refusals.withoutTenantDatabase(asWritten);
    if (this.schemas.get(name)) {
      const isOpen = operation === null || this.rights.unlimited;
      const refusal = isOpen ? null : this.rights.gate(name, operation);
      return refusal ?? this.access(name);
    }
    if (this.schemas.isAway?.(name)) return refusals.databaseAway(asWritten);
    // With concealHidden a missing class is refused exactly like a hidden one.
    if (this.policy.switches.concealHidden) return this.refuseHidden(asWritten);
    if (!this.declared.bound.isUnlisted(name)) this.missing.add();
    return refusals.unknownClass(asWritten, this.suggestions(asWritten));
  }
}

/** Lists of hidden columns of a class whose access is kept: one for each combination of roles. A full map starts again. */
const MAX_SHARED = 64;

/** By the declared access: it ends with its agent definition, policy version and schema snapshot. */
const shared = new WeakMap<ClassAccess, Map<string, ClassAccess>>();

function shareAccess(
  declared: ClassAccess,
  { hidden }: ProtectedColumns,
  made: () => ClassAccess,
): ClassAccess {
  let byColumns = shared.get(declared);
  if (!byColumns) shared.set(declared, (byColumns = new Map()));
  const name = JSON.stringify([...hidden].sort());
  let access = byColumns.get(name);
  if (!access) {
    if (byColumns.size >= MAX_SHARED) byColumns.clear();
    byColumns.set(name, (access = made()));
  }
  return access;
}

/** Receives the issues of a policy that does not match a schema snapshot: the refused classes and the reasons. */
export type ReportBindingIssues = (issues: readonly BindingIssue[]) => void;

/** Creates scopes. Master scopes are cached per schema snapshot and agent definition; those of a user or role serve one call. */
export class AgentScopes {
  private readonly bySnapshot = new WeakMap<SchemaSnapshot, WeakMap<AgentDefinition, MasterScope>>();
  private readonly bound = new WeakMap<SchemaSnapshot, WeakMap<Policy, BoundPolicy>>();
  private readonly latest = new WeakMap<Policy, BoundPolicy>();
  private readonly rights = new WeakMap<SchemaSnapshot, AccessRights>();

  /** @param report default: does nothing */
  constructor(
    private readonly policies: Pick<Policies, 'of'>,
    private readonly report: ReportBindingIssues = () => undefined,
  ) {}

  of(schemas: SchemaSnapshot, agent: Agent, principals: Principals): AgentScope {
    const { declared, scope } = this.master(schemas, agent.definition, this.policies.of(agent));
    if (principals.strings === null) return scope;
    return new AgentScope(declared, new AccessRights(declared.schemas, principals));
  }

  private master(schemas: SchemaSnapshot, definition: AgentDefinition, policy: Policy): MasterScope {
    let scopes = this.bySnapshot.get(schemas);
    // Weak keys for definitions, too: sub-agents create new ones with every call.
    if (!scopes) this.bySnapshot.set(schemas, (scopes = new WeakMap()));
    const known = scopes.get(definition);
    // A configured definition has one policy; agents with any other may have been admitted under several.
    if (known?.declared.policy === policy) return known;
    const outer = definition.outer && this.master(schemas, definition.outer, policy).declared;
    const declared = new DeclaredScope(this.bindPolicyTo(schemas, policy), definition, outer);
    const scope = new AgentScope(declared, this.masterRights(declared.schemas));
    const made = { declared, scope };
    scopes.set(definition, made);
    return made;
  }

  /** The same for every definition: kept once, however many agents there are. */
  private masterRights(schemas: SchemaSnapshot): AccessRights {
    let rights = this.rights.get(schemas);
    if (!rights) this.rights.set(schemas, (rights = new AccessRights(schemas, MASTER_PRINCIPALS)));
    return rights;
  }

  private bindPolicyTo(schemas: SchemaSnapshot, policy: Policy): BoundPolicy {
    let policies = this.bound.get(schemas);
    if (!policies) this.bound.set(schemas, (policies = new WeakMap()));
    const known = policies.get(policy);
    if (known) return known;
    const bound = new BoundPolicy(policy, schemas, this.latest.get(policy));
    policies.set(policy, bound);
    this.latest.set(policy, bound);
    this.report(bound.issues);
    return bound;
  }
}

interface MasterScope {
  readonly declared: DeclaredScope;
  readonly scope: AgentScope;
}

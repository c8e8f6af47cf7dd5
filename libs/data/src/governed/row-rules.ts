import { isDeepStrictEqual } from 'node:util';
import {
  type CallTrace,
  type LimitOrigin,
  orThrow,
  type Refusal,
  refusals,
  Refused,
  type MissingRowReason,
  type Tier,
} from '#core';
import {
  mergeFilters,
  hasCrossClassQuery,
  type ClassAccess,
  type ClassReach,
  type ClassOperation,
  type ClassSchema,
  describeMasks,
  type IndexSchema,
  isRefusal,
  isTenantRefusal,
  mapCrossClass,
  type ReadOperation,
  type RowOperation,
  type TenantBinding,
  tenantBinding,
  tenantConflict,
  tenantOperand,
  tenantWhere,
  translateWhere,
  type Where,
} from '#policy';
import type { Metering, Run } from '../metering/metered-stores.js';
import type { OperationContext, Reads, StoreCall } from '../record-store.js';
import { type Asker, CrossClassAnswers } from './cross-class-answers.js';
import { atStore } from './store-refusals.js';

/**
 * The common base of every governed access of one call: the call itself, its limits at the database, and its ways to rows, where
 * errors of the store are refusals.
 */
export interface GovernedCall extends StoreCall {
  readonly operation: OperationContext;
  /** Reads on behalf of the caller. */
  readonly read: Run<Reads>;
  /** Reads with the operator's authority, limited only by the constraint: for the operator's own predicates. */
  readonly readAsOperator: Run<Reads>;
  /** Every index of a class of the scope's snapshot. @throws StoreError */
  readonly listIndexes: (schema: ClassSchema) => Promise<readonly IndexSchema[]>;
  /** Whether the database has other classes or columns than the scope's snapshot. @throws Refused when it cannot be read */
  readonly lookAgain: () => Promise<boolean>;
  readonly trace?: CallTrace | undefined;
  /** Takes remarks for the answer. */
  readonly note?: ((text: string) => void) | undefined;
  /** Counts and schedules every operation of the call. */
  readonly metering: Metering;
}

/** What the gates of a class need of a call. They read no row. */
export type ClassGate = Pick<GovernedCall, 'agent' | 'scope' | 'trace'>;

interface ReachingCall extends ClassGate {
  readonly metering?: Pick<Metering, 'meter'>;
}

/** The gate of classes that a call reaches from another one. Those that it passes are reported to the meter of the call. */
export function createReach({ agent, scope, metering }: ReachingCall): ClassReach {
  const gate = scope.reachFor(agent);
  const meter = metering?.meter;
  if (!meter?.reaches) return gate;
  return {
    reach: (className, site) => {
      const access = gate.reach(className, site);
      if (!isRefusal(access)) meter.reaches?.(access.className);
      return access;
    },
  };
}

/** The refusal of a class that a pointer names, by the same gate; null for one that the call reaches. */
export function pointerGate(call: ReachingCall): (className: string) => Refusal | null {
  const gate = createReach(call);
  return (className) => {
    const judged = gate.reach(className, 'pointer');
    return isRefusal(judged) ? judged : null;
  };
}

/** The rows of a class that exist for an agent: the predicates that every read of the class carries, on every path to it. */
interface RowPredicate {
  readonly tenant: TenantBinding | null;
  /** The operator's predicates: tenant and agent filter; also the canonical filter when requested. */
  readonly declared: Where;
  /** All predicates: the caller's rights in the database and `declared`. It contains no subquery any more. */
  readonly where: Where;
  /** Subqueries of `declared` are replaced by their results at that moment. */
  readonly asked: boolean;
}

export interface PredicateOptions {
  readonly canonical: boolean;
  /** The operation on the rows, as class-level permissions name it. */
  readonly operation: RowOperation;
}

/** Callers may leave the canonical filter out of their queries. */
const EVERY_ROW: PredicateOptions = { canonical: false, operation: 'find' };

/** Whether the index may refuse a row because of another one. Ids are chosen by the store. */
const isTelling = ({ unique, uniquenessUnknown, fields }: IndexSchema): boolean =>
  (unique || uniquenessUnknown === true) && !(fields.length === 1 && fields[0] === 'objectId');

/** The row limits of one call. */
export class RowRules {
  /** A filter that is a function is called once for each class within one call. */
  private agentFilters: Map<string, Promise<Where | null>> | null = null;

  private readonly answers: CrossClassAnswers;

  constructor(private readonly call: GovernedCall) {
    this.answers = new CrossClassAnswers(call, (className, options) => this.predicate(className, options));
  }

  get trace(): CallTrace | undefined {
    return this.call.trace;
  }

  /** @throws Refused when the agent has no tenant on a scoped class, or a filter function gives no constraint */
  async predicate(className: string, options: PredicateOptions): Promise<RowPredicate> {
    const { scope, agent } = this.call;
    const tenant = this.tenant(className);
    const fixed = scope.findFixedAgentFilter(className);
    const agentFilter = fixed === undefined ? await this.findComputedFilter(className) : fixed;
    const canonicalFilter = options.canonical ? scope.canonicalFilter(agent, className) : null;
    const filters = mergeFilters(agentFilter, canonicalFilter);
    const answered = this.answerCrossClass(filters, 'operator');
    const ofTenant = tenantWhere(tenant);
    const declared = mergeFilters(ofTenant, answered instanceof Promise ? await answered : answered);
    const rights = scope.rights.rows(className, options.operation);
    if (this.trace) {
      report(this.trace, className, [
        ['tenant', ofTenant],
        ['agent filter', agentFilter],
        ['canonical filter', canonicalFilter],
        ['row rights', rights],
      ]);
    }
    return { tenant, declared, where: mergeFilters(rights, declared), asked: answered instanceof Promise };
  }

  /** Whether the caller may read every row of the class, so that whether there is a row tells it nothing new. */
  async readsEveryRow(className: string): Promise<boolean> {
    if (this.call.scope.rights.gate(className, 'find') !== null) return false;
    const { where } = await this.predicate(className, EVERY_ROW);
    return Object.keys(where).length === 0;
  }

  /**
   * Whether the caller may read every row with which a row that it writes may collide: every row, or those of its tenant where
   * every unique index contains the column of the tenant.
   */
  async readsEveryRowOfIndexes(className: string, schema: ClassSchema | null | undefined): Promise<boolean> {
    if (await this.readsEveryRow(className)) return true;
    const { listIndexes: indexesOf, operation, scope } = this.call;
    if (!schema || scope.rights.gate(className, 'find') !== null) return false;
    const { tenant, where } = await this.predicate(className, EVERY_ROW);
    if (!tenant || !isDeepStrictEqual(where, tenantWhere(tenant))) return false;
    const indexes = await atStore(operation, () => indexesOf(schema));
    return indexes.every(
      (index) => !isTelling(index) || (!index.uniquenessUnknown && index.fields.includes(tenant.field)),
    );
  }

  private findComputedFilter(className: string): Promise<Where | null> {
    const { agent, scope } = this.call;
    const known = this.agentFilters?.get(className);
    if (known) return known;
    const asked = scope.agentFilter(agent, className);
    this.agentFilters ??= new Map();
    this.agentFilters.set(className, asked);
    return asked;
  }

  /** @throws Refused when the agent has no tenant on a scoped class */
  tenant(className: string): TenantBinding | null {
    const { agent, scope } = this.call;
    const tenant = tenantBinding(agent, scope.classPolicy(className));
    if (isTenantRefusal(tenant)) throw new Refused(tenant);
    this.call.trace?.notePassed('tenant', className);
    return tenant;
  }

  /**
   * The refusal for an id that matches no row that exists for the agent: in a tenant's class it names the ids, not the
   * reason.
   */
  async noSuchRow(className: string, ids: readonly string[]): Promise<Refusal> {
    const tenant = this.tenant(className);
    if (tenant) return refusals.notTenantsRows(className, ids, await this.strayRows(tenant, className, ids));
    return refusals.objectNotFound(className, String(ids[0]));
  }

  /** A count and not a read: budgets show how many rows the call read. */
  private async strayRows(
    tenant: TenantBinding,
    className: string,
    ids: readonly string[],
  ): Promise<MissingRowReason | undefined> {
    const where = { objectId: { $in: ids }, [tenant.field]: { $ne: tenantOperand(tenant) } };
    try {
      const foreign = await this.call.readAsOperator({ kind: 'count', className, where });
      if (foreign === 0) return 'missing';
      return foreign < ids.length ? 'foreign and missing' : 'foreign';
    } catch {
      // The refusal does not depend on it.
      return undefined;
    }
  }

  /**
   * The constraint with the result of a bounded query in place of every subquery on another class; at once where it contains
   * none.
   */
  answerCrossClass(where: Where, asker: Asker): Where | Promise<Where> {
    return hasCrossClassQuery(where)
      ? mapCrossClass(where, (query) => this.answers.answer(query, asker))
      : where;
  }
}

function report(
  trace: CallTrace,
  className: string,
  limits: readonly (readonly [LimitOrigin, Where | null])[],
): void {
  for (const [origin, where] of limits) if (where) trace.noteLimit(className, origin, where);
}

/** The class gate of a call. @throws Refused */
export function enterClass(
  { scope, agent, trace }: ClassGate,
  className: unknown,
  operation: ReadOperation | 'describe',
): ClassAccess {
  const entered = scope.enter(agent, className, operation);
  if (isRefusal(entered)) throw new Refused(entered);
  tracePassed(trace, 'class', entered);
  return entered;
}

/** A class that the call may use, and the masks of its fields. */
export function tracePassed(trace: CallTrace | undefined, gate: string, access: ClassAccess): void {
  trace?.notePassed(gate, access.className);
  if (trace && access.masks) trace.noteMasks(access.className, describeMasks(access.masks));
}

/** The class permission that a call of a declared method needs. */
export const OPERATION_OF_TIER: Readonly<Record<Tier, ClassOperation>> = {
  readonly: 'find',
  write: 'update',
  admin: 'delete',
};

/**
 * Whether class-level permissions permit the operation to this call's agent. The master key passes.
 * @throws Refused `access_denied`, kind `clp_denied`
 */
export function assertClassPermits({ scope }: ClassGate, className: string, operation: ClassOperation): void {
  orThrow(scope.rights.gate(className, operation));
}

/**
 * Constraints as callers write them: checked, translated to wire names, and narrowed to the rows that exist for the agent.
 */
export class CallerConstraints {
  constructor(
    private readonly call: GovernedCall,
    private readonly rules: RowRules,
  ) {}

  /** Only the caller's own part; nothing is read. @throws Refused */
  judgeWhere(access: ClassAccess, where: unknown): Where {
    const { scope, trace } = this.call;
    const tenant = this.rules.tenant(access.className);
    const conflict = tenant && tenantConflict(tenant, where, access.names, access.className);
    if (conflict) throw new Refused(conflict);
    const judged = translateWhere(where, access, createReach(this.call), {
      strictPointerShapes: scope.policy.switches.strictPointerShapes,
      note: this.call.note,
    });
    trace?.notePassed('where', access.className);
    return judged;
  }

  /** Combined with every predicate of the class for this agent, subqueries replaced by their results. */
  async composePredicate(
    access: ClassAccess,
    where: unknown,
    options: PredicateOptions,
  ): Promise<ComposedWhere> {
    const judged = this.judgeWhere(access, where);
    const limits = await this.rules.predicate(access.className, options);
    const subqueries = this.rules.answerCrossClass(judged, 'caller');
    const answered = subqueries instanceof Promise ? await subqueries : subqueries;
    return {
      limits: limits.where,
      where: mergeFilters(limits.where, answered),
      asked: mergeFilters(limits.declared, answered),
    };
  }
}

interface ComposedWhere {
  /** Every predicate of the class for this agent, without the constraint of the caller. */
  readonly limits: Where;
  readonly where: Where;
  /** Without the rights that every caller except the master key carries: the part that is reported as narrowed. */
  readonly asked: Where;
}

import { isDeepStrictEqual } from 'node:util';
import {
  type CallTrace,
  type LimitOrigin,
  type MissingRowReason,
  type Refusal,
  refusals,
  Refused,
} from '#core';
import {
  type ClassAccess,
  type ClassSchema,
  hasCrossClassQuery,
  type IndexSchema,
  isTenantRefusal,
  mapCrossClass,
  mergeFilters,
  type TenantBinding,
  tenantBinding,
  tenantConflict,
  tenantOperand,
  tenantWhere,
  translateWhere,
  type Where,
} from '#policy';
import { type Asker, CrossClassAnswers } from './cross-class-answers.js';
import { createReach, type GovernedCall, type PredicateOptions } from './governed-call.js';
import { atStore } from './store-refusals.js';

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

/** Callers may leave the canonical filter out of their queries. */
const EVERY_ROW: PredicateOptions = { canonical: false, operation: 'find' };

/** Whether the index may refuse a row because of another one. Ids are chosen by the store. */
const isTelling = ({ unique, uniquenessUnknown, fields }: IndexSchema): boolean =>
  (unique || uniquenessUnknown === true) && !(fields.length === 1 && fields[0] === 'objectId');

/** The rows of one call: those that exist for the agent, and those of them that the caller's constraint names. */
export class RowRules {
  /** A filter that is a function is called once for each class within one call. */
  private agentFilters: Map<string, Promise<Where | null>> | null = null;

  private answers: CrossClassAnswers | null = null;

  constructor(private readonly call: GovernedCall) {}

  /** @throws Refused when the agent has no tenant on a scoped class, or a filter function gives no constraint */
  async predicate(className: string, options: PredicateOptions): Promise<RowPredicate> {
    return this.limitRows(className, this.tenant(className), options);
  }

  private async limitRows(
    className: string,
    tenant: TenantBinding | null,
    options: PredicateOptions,
  ): Promise<RowPredicate> {
    const { scope, agent, trace } = this.call;
    const fixed = scope.findFixedAgentFilter(className);
    const agentFilter = fixed === undefined ? await this.findComputedFilter(className) : fixed;
    const canonicalFilter = options.canonical ? scope.canonicalFilter(agent, className) : null;
    const filters = mergeFilters(agentFilter, canonicalFilter);
    const answered = this.answerCrossClass(filters, 'operator');
    const ofTenant = tenant && tenantWhere(tenant);
    const declared = mergeFilters(ofTenant, answered instanceof Promise ? await answered : answered);
    const rights = scope.rights.rows(className, options.operation);
    if (trace) {
      report(trace, className, [
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
      (index) =>
        !isTelling(index) ||
        (!index.uniquenessUnknown && !index.collated && index.fields.includes(tenant.field)),
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

  /** What the filters of the class and of the agent admit, without the tenant. @throws Refused as `predicate` */
  async filter(className: string): Promise<Where> {
    const fixed = this.call.scope.findFixedAgentFilter(className);
    const filter = fixed === undefined ? await this.findComputedFilter(className) : fixed;
    return this.answerCrossClass(filter ?? {}, 'operator');
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
    if (!hasCrossClassQuery(where)) return where;
    const answers = (this.answers ??= new CrossClassAnswers(this.call, (className, options) =>
      this.predicate(className, options),
    ));
    return mapCrossClass(where, (query) => answers.answer(query, asker));
  }

  /** The constraint that a caller wrote: checked, and translated to wire names. Nothing is read. @throws Refused */
  judgeWhere(access: ClassAccess, where: unknown): Where {
    return this.judgeOwnWhere(access, this.tenant(access.className), where);
  }

  private judgeOwnWhere(access: ClassAccess, tenant: TenantBinding | null, where: unknown): Where {
    const { scope, trace } = this.call;
    const conflict = tenant && tenantConflict(tenant, where, access.names, access.className);
    if (conflict) throw new Refused(conflict);
    const judged = translateWhere(where, access, createReach(this.call), {
      strictPointerShapes: scope.policy.switches.strictPointerShapes,
      note: this.call.note,
    });
    trace?.notePassed('where', access.className);
    return judged;
  }

  /** The constraint that a caller wrote, combined with every predicate of the class for this agent, subqueries replaced by their results. */
  async composePredicate(
    access: ClassAccess,
    where: unknown,
    options: PredicateOptions,
  ): Promise<ComposedWhere> {
    const tenant = this.tenant(access.className);
    const judged = this.judgeOwnWhere(access, tenant, where);
    const limits = await this.limitRows(access.className, tenant, options);
    const subqueries = this.answerCrossClass(judged, 'caller');
    const answered = subqueries instanceof Promise ? await subqueries : subqueries;
    return {
      limits: limits.where,
      where: mergeFilters(limits.where, answered),
      asked: mergeFilters(limits.declared, answered),
    };
  }
}

function report(
  trace: CallTrace,
  className: string,
  limits: readonly (readonly [LimitOrigin, Where | null])[],
): void {
  for (const [origin, where] of limits) if (where) trace.noteLimit(className, origin, where);
}

interface ComposedWhere {
  /** Every predicate of the class for this agent, without the constraint of the caller. */
  readonly limits: Where;
  readonly where: Where;
  /** Without the rights that every caller except the master key carries: the part that is reported as narrowed. */
  readonly asked: Where;
}

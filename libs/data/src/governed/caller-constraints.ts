import { Refused } from '#agent';
import { allOf, type ClassAccess, tenantConflict, translateWhere, type Where } from '#policy';
import type { PredicateOptions, RecordsParts, RowRules } from './row-rules.js';

/** Constraints as callers write them: judged, put in wire names, and narrowed to the rows that exist for the agent. */
export class CallerConstraints {
  constructor(
    private readonly parts: RecordsParts,
    private readonly rules: RowRules,
  ) {}

  /** The caller's own part alone; nothing is read. @throws Refused */
  judged(access: ClassAccess, where: unknown): Where {
    const { scope, agent, trace } = this.parts;
    const tenant = this.rules.tenant(access.className);
    const conflict = tenant && tenantConflict(tenant, where, access.names, access.className);
    if (conflict) throw new Refused(conflict);
    const judged = translateWhere(where, access, scope.reachFor(agent), {
      strictPointerShapes: scope.policy.switches.strictPointerShapes,
    });
    trace?.passed('where', access.className);
    return judged;
  }

  /** Under every predicate that the class carries for this agent, questions to other classes answered. */
  async composed(access: ClassAccess, where: unknown, options: PredicateOptions): Promise<ComposedWhere> {
    const judged = this.judged(access, where);
    const limits = await this.rules.predicate(access.className, options);
    const answered = await this.rules.answered(judged, 'caller');
    return { where: allOf(limits.where, answered), asked: allOf(limits.declared, answered) };
  }
}

export interface ComposedWhere {
  readonly where: Where;
  /** Without the rights that every caller but the master key carries: what can be told to be narrowed. */
  readonly asked: Where;
}

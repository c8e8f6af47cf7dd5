import { type Agent, type Refusal, Refused } from '#agent';
import {
  type AgentScope,
  type ClassAccess,
  type GovernedPipeline,
  governPipeline,
  isRefusal,
  type JoinScope,
  joinTargets,
  type Pipeline,
  validatePipeline,
  type Where,
} from '#policy';
import type { AggregateOptions } from '../governed-records.js';
import type { RowRules } from './row-rules.js';

export interface GovernedStages {
  readonly stages: GovernedPipeline;
  /** The leading filter, when the caller's pipeline begins with one: what a collection-scan check looks at. */
  readonly scanned: Where | null;
  readonly autoLimited: boolean;
}

/** Validation, access walk and injection of a caller's pipeline, in that order. */
export class GovernedAggregation {
  constructor(
    private readonly agent: Agent,
    private readonly scope: AgentScope,
    private readonly rules: RowRules,
  ) {}

  async govern(
    access: ClassAccess,
    pipeline: unknown,
    options: AggregateOptions & { readonly canonical: boolean },
  ): Promise<GovernedStages> {
    const valid = validatePipeline(pipeline);
    const { where } = await this.rules.predicate(access.className, { canonical: options.canonical });
    const joins = await this.joinScopes(valid);
    const reach = this.scope.reachFor(this.agent);
    const governed = governPipeline(
      valid,
      { access, where },
      (className) => joins.get(className) ?? this.scope.unreachable(className),
      {
        strictPointerShapes: this.scope.policy.switches.strictPointerShapes,
        judgeClass: (className) => {
          const judged = reach.reach(className, 'constraint');
          return isRefusal(judged) ? judged : null;
        },
      },
    );
    const leading = '$match' in (valid[0] ?? {}) ? governed[0]?.['$match'] : undefined;
    const last = valid.at(-1) ?? {};
    const autoLimited = options.autoLimit !== undefined && !('$limit' in last) && !('$count' in last);
    return {
      stages: autoLimited ? [...governed, { $limit: options.autoLimit }] : governed,
      scanned: leading === undefined ? null : (leading as Where),
      autoLimited,
    };
  }

  /** Every class the pipeline joins, each with its gate's verdict and its own row limits, asked before the walk. */
  private async joinScopes(pipeline: Pipeline): Promise<ReadonlyMap<string, JoinScope | Refusal>> {
    const scopes = new Map<string, JoinScope | Refusal>();
    for (const className of joinTargets(pipeline)) {
      scopes.set(className, await this.joinScope(className));
    }
    return scopes;
  }

  private async joinScope(className: string): Promise<JoinScope | Refusal> {
    const access = this.scope.reachFor(this.agent).reach(className, 'pipeline');
    if (isRefusal(access)) return access;
    try {
      const { where } = await this.rules.predicate(access.className, { canonical: false });
      return { access, where };
    } catch (error) {
      if (error instanceof Refused) return error.refusal;
      throw error;
    }
  }
}

import { type Agent, type Refusal } from '#agent';
import {
  type AgentScope,
  type ClassAccess,
  type GovernedPipeline,
  governPipeline,
  isRefusal,
  type JoinScope,
  validatePipeline,
  walkPipeline,
  type Where,
} from '#policy';
import type { AggregateOptions } from '../governed-records.js';
import { rowPredicate, rowPredicateOrThrow } from './row-predicate.js';

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
  ) {}

  govern(access: ClassAccess, pipeline: unknown, options: AggregateOptions & { canonical: boolean }): GovernedStages {
    const valid = validatePipeline(pipeline);
    walkPipeline(valid, access, this.scope.reachFor(this.agent));
    const { where } = rowPredicateOrThrow(this.agent, this.scope, access.className, { canonical: options.canonical });
    const governed = governPipeline(valid, { access, where }, (className) => this.joinScope(className));
    const startsWithMatch = '$match' in (valid[0] ?? {});
    const leading = governed[0]?.['$match'];
    const last = valid.at(-1) ?? {};
    const autoLimited = options.autoLimit !== undefined && !('$limit' in last) && !('$count' in last);
    return {
      stages: autoLimited ? [...governed, { $limit: options.autoLimit }] : governed,
      scanned: startsWithMatch && leading !== undefined ? (leading as Where) : null,
      autoLimited,
    };
  }

  private joinScope(className: string): JoinScope | Refusal {
    const target = this.scope.reachFor(this.agent).reach(className, 'pipeline');
    if (isRefusal(target)) return target;
    const predicate = rowPredicate(this.agent, this.scope, target.className, { canonical: false });
    return 'gate' in predicate ? predicate : { access: target, where: predicate.where };
  }
}


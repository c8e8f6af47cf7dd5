import { type Refusal, Refused } from '#core';
import {
  ALL_TEXT,
  type ClassAccess,
  type GovernedPipeline,
  governPipeline,
  isRefusal,
  type JoinScope,
  joinTargets,
  type Pipeline,
  validatePipeline,
  type ValueType,
  type WalkOptions,
  walkPipeline,
  type Where,
} from '#policy';
import type { AggregateOptions } from '../governed-access.js';
import { readOptOut } from './read-plan.js';
import { type GovernedCall, pointerGate, createReach, tracePassed } from './governed-call.js';
import type { RowRules } from './row-rules.js';

interface GovernedStages {
  readonly stages: GovernedPipeline;
  /** The leading filter: the input of the collection-scan check. */
  readonly leading: Where;
  readonly autoLimited: boolean;
  /** What is known of the resulting rows. */
  readonly results: ValueType | undefined;
}

/** Validation, access walk and injection of a caller's pipeline, in that order. */
export class GovernedAggregation {
  constructor(
    private readonly call: GovernedCall,
    private readonly rules: RowRules,
  ) {}

  async govern(access: ClassAccess, pipeline: unknown, options: AggregateOptions): Promise<GovernedStages> {
    const canonical = !readOptOut(options.applyCanonicalFilter);
    const valid = validatePipeline(pipeline);
    const { asked, stages } = beganWith(valid, options.where);
    const { where } = await this.rules.composePredicate(access, asked, {
      canonical,
      operation: 'find',
    });
    const joins = await this.joinScopes(valid);
    let results: ValueType | undefined;
    const governed = governPipeline(
      stages,
      { access, where },
      (className) => joins.get(className) ?? this.call.scope.unreachable(className),
      { ...this.walkOptions, results: (documents) => (results = documents) },
    );
    this.call.trace?.notePassed('pipeline', access.className);
    const last = valid.at(-1) ?? {};
    const { autoLimit, atMost } = options;
    const autoLimited = autoLimit !== undefined && !('$limit' in last) && !('$count' in last);
    return {
      stages: [
        ...governed,
        ...(autoLimited ? [{ $limit: autoLimit }] : []),
        ...(atMost !== undefined ? [{ $limit: atMost }] : []),
      ],
      leading: (governed[0]?.['$match'] ?? {}) as Where,
      autoLimited,
      results: isAllText(access, joins) ? ALL_TEXT : results,
    };
  }

  /** Reads nothing from the store. @throws Refused as `govern` does */
  check(access: ClassAccess, pipeline: unknown, options: Pick<AggregateOptions, 'where'>): void {
    const { asked, stages } = beganWith(validatePipeline(pipeline), options.where);
    this.rules.judgeWhere(access, asked);
    walkPipeline(stages, access, createReach(this.call), this.walkOptions);
    this.call.trace?.notePassed('pipeline', access.className);
  }

  private get walkOptions(): WalkOptions {
    const { scope } = this.call;
    return {
      strictPointerShapes: scope.policy.switches.strictPointerShapes,
      judgeClass: pointerGate(this.call),
      note: this.call.note,
    };
  }

  /** Every class that the pipeline joins, with the result of its gate and its own row limits, resolved before the walk. */
  private async joinScopes(pipeline: Pipeline): Promise<ReadonlyMap<string, JoinScope | Refusal>> {
    const scopes = new Map<string, JoinScope | Refusal>();
    for (const className of joinTargets(pipeline)) {
      scopes.set(className, await this.joinScope(className));
    }
    return scopes;
  }

  private async joinScope(className: string): Promise<JoinScope | Refusal> {
    const access = createReach(this.call).reach(className, 'pipeline');
    if (isRefusal(access)) return access;
    tracePassed(this.call.trace, 'joined class', access);
    try {
      const { where } = await this.rules.predicate(access.className, {
        canonical: false,
        operation: 'find',
      });
      return { access, where };
    } catch (error) {
      if (error instanceof Refused) return error.refusal;
      throw error;
    }
  }
}

/** Rows of plain classes hold no pointers as text. */
function isAllText(access: ClassAccess, joins: ReadonlyMap<string, JoinScope | Refusal>): boolean {
  const isPlain = ({ schema }: ClassAccess) => schema?.storage === 'plain';
  return isPlain(access) && [...joins.values()].every((join) => !isRefusal(join) && isPlain(join.access));
}

interface Beginning {
  /** Parse constraint, checked as `where` is. */
  readonly asked: unknown;
  readonly stages: Pipeline;
}

/**
 * A first `$match` whose operators only constraints support, such as a subquery on another class, is treated as a constraint:
 * a simulation of a grouping shows its `where` there.
 */
function beganWith(pipeline: Pipeline, where: unknown): Beginning {
  const lead = pipeline[0]?.['$match'];
  if (where !== undefined || !isConstraint(lead)) return { asked: where, stages: pipeline };
  const rest = pipeline.slice(1);
  return { asked: lead, stages: rest.length > 0 ? rest : [{ $match: {} }] };
}

const CONSTRAINTS_ONLY = new Set(
  [
    '$inQuery $notInQuery $select $dontSelect $relatedTo $containedIn $containedBy $containsAll $within $point $term',
    '$near $nearSphere $maxDistance $maxDistanceInMiles $maxDistanceInKilometers $maxDistanceInRadians',
  ].flatMap((names) => names.split(' ')),
);

function isConstraint(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(isConstraint);
  return (
    value !== null &&
    typeof value === 'object' &&
    Object.entries(value).some(([key, member]) => CONSTRAINTS_ONLY.has(key) || isConstraint(member))
  );
}

import {
  type Agent,
  type AgentDefinition,
  type ClassFilters,
  type FilterConstraint,
  filterEntries,
  type FilterEntry,
  type FilterSubject,
  isConstraint,
  Refused,
  refuse,
} from '#core';
import { listMissingColumns, type MissingColumn } from '../compile/bind-class.js';
import type { BoundPolicy } from '../compile/bind-policy.js';
import { mergeFilters, type Where } from '../model/where.js';
import { namesAgentValues, withAgentValues } from './agent-values.js';

/** Translates a constraint of the operator. @param literals texts that are never read as a form of something else */
type Translate = (constraint: Where, className: string, literals?: ReadonlySet<string>) => Where;

/** The filters of the operator on rows, for one policy, schema snapshot and agent definition. */
export class RowFilters {
  /** Undefined: a function or a value of the agent decides. */
  private readonly fixed = new Map<string, Where | null | undefined>();
  /** Constraints without values of the agent, translated once for each class. */
  private readonly translated = {
    own: new Map<string, Where | null>(),
    filters: new Map<string, Where | null>(),
    canonicalFilter: new Map<string, Where | null>(),
  };

  /** @param outer those of the parent of a sub-agent */
  constructor(
    private readonly bound: BoundPolicy,
    private readonly definition: AgentDefinition,
    private readonly outer: RowFilters | null,
    private readonly translate: Translate,
  ) {}

  /**
   * The filters of this agent and its parents that are added to every read of a class. A function is called each time with the agent
   * that declares it.
   * @throws Refused when a function returns no usable constraint
   */
  async find(agent: Agent, userId: string | null, className: string): Promise<Where | null> {
    const fixed = findFixedFilter(this.definition.filters, className);
    const isComputed = fixed === undefined || namesAgentValues(fixed);
    const own = isComputed
      ? await this.compute(agent, userId, className)
      : this.keep('own', fixed, className);
    // What the policy says for every agent is the same for a sub-agent, but for values of the agent.
    const isInherited = this.outer && !namesAgentValues(this.bound.classPolicy(className).filters);
    const shared = isInherited ? null : this.fill('filters', agent, userId, className);
    const both = bothFilters(shared, own);
    if (!this.outer) return both;
    const parent = agent.parent ?? agent;
    // Only a parent of the same identity is known to be the same user.
    const parentUser = parent.identity === agent.identity ? userId : findAssumedUser(parent);
    return mergeFilters(await this.outer.find(parent, parentUser, className), both);
  }

  /** The same where no function has to be called; undefined where one has. */
  findFixed(className: string): Where | null | undefined {
    if (!this.fixed.has(className)) this.fixed.set(className, this.joinFixed(className));
    return this.fixed.get(className);
  }

  private joinFixed(className: string): Where | null | undefined {
    const fixed = findFixedFilter(this.definition.filters, className);
    const { filters } = this.bound.classPolicy(className);
    if (fixed === undefined || namesAgentValues([fixed, filters])) return undefined;
    const own = this.keep('own', fixed, className);
    if (!this.outer) return bothFilters(this.keep('filters', filters, className), own);
    const inherited = this.outer.findFixed(className);
    return inherited === undefined ? undefined : mergeFilters(inherited, own);
  }

  private keep(
    source: keyof typeof this.translated,
    constraint: Where | null,
    className: string,
  ): Where | null {
    const translated = this.translated[source];
    let where = translated.get(className);
    if (where === undefined)
      translated.set(className, (where = constraint && this.translate(constraint, className)));
    return where;
  }

  /** A filter of the policy. @throws Refused when it compares with a value that the agent does not have */
  fill(
    option: 'filters' | 'canonicalFilter',
    agent: Agent,
    userId: string | null,
    className: string,
  ): Where | null {
    const known = this.translated[option].get(className);
    if (known !== undefined) return known;
    const constraint = this.bound.classPolicy(className)[option];
    return constraint && namesAgentValues(constraint)
      ? this.withValues(constraint, agent, userId, className)
      : this.keep(option, constraint, className);
  }

  private async compute(agent: Agent, userId: string | null, className: string): Promise<Where> {
    const constraint = await evaluateFilter(this.definition.filters, agent, className);
    const { policy, schemas } = this.bound;
    const { missing } = listMissingColumns(constraint, className, { classes: policy.classes, schemas });
    const [first] = missing;
    if (first && schemas.get(className)) throw unknownColumn(first, className);
    return this.withValues(constraint, agent, userId, className);
  }

  /** A constraint with the values of one agent, so it is not kept. */
  private withValues(constraint: Where, agent: Agent, userId: string | null, className: string): Where {
    try {
      const { where, literals } = withAgentValues(constraint, agent, userId, className);
      return this.translate(where, className, literals);
    } catch (error) {
      throw untranslatable(error, className);
    }
  }
}

/** The user that an identity names; the owner of a session is not known here. */
function findAssumedUser({ identity, impersonatedUserId }: Agent): string | null {
  return identity.kind === 'aclUser' ? identity.userId : impersonatedUserId;
}

/** Null where there is neither. */
function bothFilters(one: Where | null, other: Where | null): Where | null {
  return one && other ? mergeFilters(one, other) : (one ?? other);
}

const isFixed = (entry: FilterEntry): entry is FilterConstraint => typeof entry !== 'function';

/** The constraint on a class; null when there is none, undefined when a function computes it. */
function findFixedFilter(filters: ClassFilters, className: string): FilterConstraint | null | undefined {
  const entries = filterEntries(filters, className);
  if (entries.length === 0) return null;
  return entries.every(isFixed) ? entries.reduce<FilterConstraint>(overlayFilter, {}) : undefined;
}

/** Replaces what `below` says of the same columns. `$or` and the like are no columns: both hold. */
function overlayFilter(below: FilterConstraint, entry: FilterConstraint): FilterConstraint {
  const both = Object.keys(entry).filter((key) => key.startsWith('$') && key in below);
  const all = both.map((key) => ({ [key]: below[key] }));
  const merged = { ...below, ...entry };
  return all.length > 0
    ? { ...merged, $and: [...all, ...(Array.isArray(merged.$and) ? merged.$and : [])] }
    : merged;
}

/** @throws Refused when a function throws, or does not return a constraint object */
async function evaluateFilter(
  filters: ClassFilters,
  subject: FilterSubject,
  className: string,
): Promise<FilterConstraint> {
  let merged: FilterConstraint = {};
  for (const entry of filterEntries(filters, className)) {
    const constraint = isFixed(entry) ? entry : await callFilter(entry, subject, className);
    merged = overlayFilter(merged, constraint);
  }
  return merged;
}

async function callFilter(
  filter: Exclude<FilterEntry, FilterConstraint>,
  subject: FilterSubject,
  className: string,
): Promise<FilterConstraint> {
  let constraint: unknown;
  try {
    constraint = await filter(subject);
  } catch (error) {
    throw createFilterFailure(
      className,
      error instanceof Error ? `${error.name}: ${error.message}` : 'it threw',
    );
  }
  if (isConstraint(constraint)) return constraint;
  throw createFilterFailure(className, 'it returned no constraint object');
}

/** The error of translating a constraint that a function returned is logged for the operator and not sent to the caller. */
function untranslatable(error: unknown, className: string): unknown {
  if (!(error instanceof Refused) || error.refusal.details?.kind === 'agent_value') return error;
  return createFilterFailure(className, error.refusal.cause ?? error.refusal.message);
}

/** A filter on an unknown column would match all rows or none. */
function unknownColumn({ className, written }: MissingColumn, filtered: string): Refused {
  return createFilterFailure(filtered, `it names '${written}', which is no field of '${className}'`);
}

function createFilterFailure(className: string, cause: string): Refused {
  return refuse.agentFilterFailed(className, cause);
}

import { type Refusal, refusals, Refused } from '#agent';
import { inexactColumns, noneWithheldWithin } from '../masking/withheld-objects.js';
import type { ClassAccess } from '../model/class-access.js';
import { rootOf } from '../model/field-names.js';
import { allOf, type GovernedPipeline, isPlainObject, type PlainObject, type Where } from '../model/where.js';
import { asksOtherClasses } from '../where/cross-class.js';
import { readsWholeDocument } from './expression.js';
import { hasExpression, hasMemberCondition } from './match.js';
import { seenColumns, shownFields, sourceProjection, takenColumns, withoutStored } from './source-stages.js';
import { joinedClass, openStage, type Pipeline, type Stage, subPipelines } from './stages.js';
import { validatePipeline } from './validate-pipeline.js';
import { type WalkOptions, walkPipeline } from './walk-pipeline.js';

/** A class as this call may read it. */
export interface JoinScope {
  readonly access: ClassAccess;
  /** Everything that limits its rows for this call (rights, tenant, filters), translated, no question to another class left. */
  readonly where: Where;
}

/**
 * The pipeline that may run: the caller's, validated and judged, with each class's row limits and column limits in
 * front of everything that reads it, at any depth.
 * @throws Refused
 */
export function governPipeline(
  pipeline: unknown,
  source: JoinScope,
  reachJoin: (className: string) => JoinScope | Refusal,
  options: WalkOptions = {},
): GovernedPipeline {
  const scopes = new Map<string, JoinScope>();
  const scopeOf = (className: string): JoinScope => {
    const scope = scopes.get(className) ?? reachJoin(className);
    if (isRefused(scope)) throw new Refused(scope);
    scopes.set(className, scope);
    return scope;
  };
  const reach = { reach: (className: string) => scopeOf(className).access };
  const stages = walkPipeline(validatePipeline(pipeline), source.access, reach, options);
  // Its own rows are filtered in the first stage, where text and distance searches may stand.
  if (asksOtherClasses(source.where)) {
    throw new Refused(
      refusals.accessDenied(
        'filters',
        `A constraint on '${source.access.className}' cannot be applied in a pipeline`,
      ),
    );
  }
  return limited(stages, source, scopeOf, columnsNamedIn(stages));
}

/** The classes a validated pipeline joins, canonical names, so that their scopes can be prepared beforehand. */
export function joinTargets(pipeline: Pipeline): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (stages: Pipeline): void => {
    for (const stage of stages) {
      const { name, value } = openStage(stage);
      const className = joinedClass(name, value);
      if (className !== null) found.add(className);
      for (const [, inner] of subPipelines(name, value)) visit(inner);
    }
  };
  visit(pipeline);
  return found;
}

type ScopeOf = (className: string) => JoinScope;

/**
 * Row limits, then column limits, then the caller's stages. A leading `$match` of the caller's is ANDed with the row
 * limits, where an index can serve both and `$text` may stand; not so a filter that could see columns which the next
 * stage takes away.
 */
function limited(
  stages: Pipeline,
  scope: JoinScope,
  scopeOf: ScopeOf,
  isRead?: (column: string) => boolean,
): Stage[] {
  const [first, ...rest] = stages;
  const lead = first?.['$match'];
  const merges = isPlainObject(lead) && !readsTakenColumns(lead, scope.access);
  const where = merges ? allOf(scope.where, lead) : scope.where;
  return [
    ...(Object.keys(where).length > 0 ? [{ $match: where }] : []),
    ...sourceProjection(scope.access, isRead),
    ...withLimitedJoins(merges ? rest : stages, scopeOf),
  ];
}

/**
 * Stages of a single document name what they look into, or the document as a whole, which `$redact` does by itself. A
 * `$facet` makes lists of whole documents.
 */
function columnsNamedIn(stages: Pipeline): (column: string) => boolean {
  const text = JSON.stringify(stages);
  const wholly = /\$\$(ROOT|CURRENT)|"\$(redact|facet)"/.test(text);
  return (column) => wholly || text.includes(column);
}

/**
 * Whole documents hold them all; an expression may name a pointer whose value only the projection withholds, and what is asked
 * of whole objects, or with `$elemMatch` of the members of a list, nobody has judged.
 */
function readsTakenColumns(match: PlainObject, access: ClassAccess): boolean {
  const { withheld, mayHold } = access;
  if (readsWholeDocument(match)) return true;
  const takesPointers = withheld !== undefined && withheld.size > 0;
  if (mayHold && (hasMemberCondition(match) || inexactColumns(match, access).size > 0)) return true;
  return (takesPointers || mayHold !== undefined) && hasExpression(match);
}

function withLimitedJoins(stages: Pipeline, scopeOf: ScopeOf): Stage[] {
  return stages.flatMap((stage) => {
    const { name, value } = openStage(stage);
    if (name === '$facet') {
      return [
        {
          $facet: mapValues(value as PlainObject, (branch) => withLimitedJoins(branch as Pipeline, scopeOf)),
        },
      ];
    }
    const className = joinedClass(name, value);
    if (className === null) return [stage];
    const scope = scopeOf(className);
    if (!isCarriable(scope.where)) throw new Refused(refusals.tenantJoinDenied(className));
    const join = value as PlainObject;
    if (name === '$graphLookup') return limitedGraph(join, scope);
    const inner = limited((join['pipeline'] ?? []) as Pipeline, joined(join, scope), scopeOf);
    return [{ [name]: { ...join, pipeline: inner } }];
  });
}

/** A join by fields compares rows as they are stored, with whatever value somebody wrote. */
function joined({ foreignField }: PlainObject, { access, where }: JoinScope): JoinScope {
  if (typeof foreignField !== 'string') return { access, where };
  return { access, where: allOf(where, noneWithheldWithin(rootOf(foreignField), access)) };
}

/** A graph search has a filter but no pipeline, so what its rows must not show is taken from them afterwards. */
function limitedGraph(join: PlainObject, scope: JoinScope): Stage[] {
  const restrict = allOf(scope.where, join['restrictSearchWithMatch'] as Where | undefined);
  const search = { ...join, ...(Object.keys(restrict).length > 0 && { restrictSearchWithMatch: restrict }) };
  const as = String(join['as']);
  const depth = join['depthField'];
  // A depth may borrow the name of a column.
  const seen = Object.fromEntries(
    Object.entries(seenColumns(scope.access, () => true, '$$row.')).filter(([column]) => column !== depth),
  );
  const rows = (row: unknown): Stage => ({
    $addFields: { [as]: { $map: { input: `$${as}`, as: 'row', in: row } } },
  });
  const shown = shownFields(scope.access);
  if (shown === null)
    return [
      { $graphLookup: search },
      { $unset: takenColumns(scope.access).map((name) => `${as}.${name}`) },
      ...(Object.keys(seen).length > 0 ? [rows({ $mergeObjects: ['$$row', seen] })] : []),
      ...withoutStored(scope.access, `${as}.`),
    ];
  const kept = typeof depth === 'string' ? [...shown, depth] : shown;
  const row = Object.fromEntries(kept.map((name) => [name, seen[name] ?? `$$row.${name}`]));
  return [{ $graphLookup: search }, rows(row)];
}

/** What a `$match` inside a join cannot say: text and distance searches, and questions not yet answered. */
function isCarriable(where: Where): boolean {
  return !asksOtherClasses(where) && !holdsOperator(where, new Set(['$text', '$near', '$nearSphere']));
}

function holdsOperator(value: unknown, operators: ReadonlySet<string>): boolean {
  if (Array.isArray(value)) return value.some((element) => holdsOperator(element, operators));
  return (
    isPlainObject(value) &&
    Object.entries(value).some(([key, member]) => operators.has(key) || holdsOperator(member, operators))
  );
}

function isRefused(answer: JoinScope | Refusal): answer is Refusal {
  return 'gate' in answer;
}

function mapValues(object: PlainObject, map: (value: unknown) => unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value)]));
}

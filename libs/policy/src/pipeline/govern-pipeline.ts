import { type Refusal, Refused, refuse } from '#core';
import { inexactColumns, noneWithheldWithin } from '../masking/withheld-objects.js';
import { type ClassAccess, isRefusal } from '../model/class-access.js';
import { takeRoot } from '../model/field-names.js';
import {
  mergeFilters,
  type GovernedPipeline,
  hasCrossClassQuery,
  isPlainObject,
  type PlainObject,
  type Where,
} from '../model/where.js';
import { mapMembers, readsWholeDocument } from './expression.js';
import { hasExpression, hasMemberCondition } from './match.js';
import {
  describeSeenColumns,
  listShownFields,
  sourceProjection,
  listTakenColumns,
  type Use,
  withoutStored,
  withStored,
} from './source-stages.js';
import {
  readJoinedClass,
  openStage,
  type Pipeline,
  type Stage,
  type StageName,
  subPipelines,
} from './stages.js';
import { type WalkOptions, walkPipeline } from './walk-pipeline.js';

/** What this call may read of a class: columns and rows. */
export interface JoinScope {
  readonly access: ClassAccess;
  /** The row limits of this call (rights, tenant, filters), translated, without cross-class queries. */
  readonly where: Where;
}

/**
 * The pipeline that may run: checked, with the row and column limits of each class in front of every stage that reads it, at any
 * depth.
 * @param pipeline as `validatePipeline` returned it
 * @throws Refused
 */
export function governPipeline(
  pipeline: Pipeline,
  source: JoinScope,
  reachJoin: (className: string) => JoinScope | Refusal,
  options: WalkOptions = {},
): GovernedPipeline {
  const scopes = new Map<string, JoinScope>();
  const findScope = (className: string): JoinScope => {
    const scope = scopes.get(className) ?? reachJoin(className);
    if (isRefusal(scope)) throw new Refused(scope);
    scopes.set(className, scope);
    return scope;
  };
  const reach = { reach: (className: string) => findScope(className).access };
  const stages = walkPipeline(pipeline, source.access, reach, options);
  // The source may have text and distance searches: its filter is the first stage.
  if (hasCrossClassQuery(source.where)) {
    throw refuse.accessDenied(
      'filters',
      `A constraint on '${source.access.className}' cannot be applied in a pipeline`,
    );
  }
  return restrictStages(stages, source, { scopeOf: findScope, use: findUse(stages) });
}

/** The canonical names of the classes that a validated pipeline joins, to prepare their scopes. */
export function joinTargets(pipeline: Pipeline): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (stages: Pipeline): void => {
    for (const stage of stages) {
      const { name, value } = openStage(stage);
      const className = readJoinedClass(name, value);
      if (className !== null) found.add(className);
      for (const [, inner] of subPipelines(name, value)) visit(inner);
    }
  };
  visit(pipeline);
  return found;
}

interface Governing {
  readonly scopeOf: (className: string) => JoinScope;
  /** What the whole pipeline uses. */
  readonly use: Use;
}

/**
 * Row limits, then column limits, then the stages of the caller. A leading `$match` of the caller is merged into the row limits,
 * so that an index can serve both and `$text` is possible, unless it could read columns that the next stage removes.
 */
function restrictStages(stages: Pipeline, scope: JoinScope, governing: Governing): Stage[] {
  const [first, ...rest] = stages;
  const lead = first?.['$match'];
  const merges = isPlainObject(lead) && !readsTakenColumns(lead, scope.access);
  const where = merges ? mergeFilters(scope.where, lead) : scope.where;
  return [
    ...(Object.keys(where).length > 0 ? [{ $match: where }] : []),
    ...sourceProjection(scope.access, governing.use),
    ...withLimitedJoins(merges ? rest : stages, governing),
  ];
}

const WHOLE_DOCUMENT = /\$\$(ROOT|CURRENT)|"\$(redact|facet)"/;

/**
 * Stages name the columns that they read, or the whole document as `$$ROOT`; `$redact` and `$facet` use whole documents without
 * naming them.
 */
function findUse(stages: Pipeline): Use {
  let text: string | undefined;
  // Written at the first question: most classes have no column to ask about.
  const write = () => (text ??= JSON.stringify(stages));
  const writes = (name: string) => write().includes(name);
  return { writes, reads: (column) => writes(column) || WHOLE_DOCUMENT.test(write()) };
}

/** Joined rows are used as whole documents. */
const useAll = ({ writes }: Use): Use => ({ writes, reads: () => true });

/**
 * Whether a filter may read columns that the projection removes: through whole documents, through an expression on a withheld
 * pointer, or through conditions on objects and list members, which are not checked.
 */
function readsTakenColumns(match: PlainObject, access: ClassAccess): boolean {
  const { withheld, mayHold } = access;
  if (readsWholeDocument(match)) return true;
  const takesPointers = withheld !== undefined && withheld.size > 0;
  if (mayHold && (hasMemberCondition(match) || inexactColumns(match, access).size > 0)) return true;
  return (takesPointers || mayHold !== undefined) && hasExpression(match);
}

function withLimitedJoins(stages: Pipeline, governing: Governing): Stage[] {
  const all: Stage[] = [];
  for (const stage of stages) {
    const { name, value } = openStage(stage);
    const className = readJoinedClass(name, value);
    if (className !== null) all.push(...restrictJoin(name, value as PlainObject, className, governing));
    else if (name === '$facet') all.push({ $facet: withLimitedBranches(value as PlainObject, governing) });
    else all.push(stage);
  }
  return all;
}

function withLimitedBranches(branches: PlainObject, governing: Governing): PlainObject {
  return mapMembers(branches, (_, branch) => withLimitedJoins(branch as Pipeline, governing));
}

function restrictJoin(
  name: StageName,
  join: PlainObject,
  className: string,
  { scopeOf, use }: Governing,
): Stage[] {
  const scope = scopeOf(className);
  const joined = { scopeOf, use: useAll(use) };
  if (!isCarriable(scope.where)) throw refuse.tenantJoinDenied(className);
  if (name === '$graphLookup') return restrictGraph(join, scope, joined.use);
  const inner = restrictStages((join['pipeline'] ?? []) as Pipeline, restrictJoined(join, scope), joined);
  return [{ [name]: { ...join, pipeline: inner } }];
}

/** A join by fields compares stored values: rows with objects of withheld classes in that column are excluded. */
function restrictJoined({ foreignField }: PlainObject, { access, where }: JoinScope): JoinScope {
  if (typeof foreignField !== 'string') return { access, where };
  return { access, where: mergeFilters(where, noneWithheldWithin(takeRoot(foreignField), access)) };
}

/** `$graphLookup` has a filter but no pipeline: hidden columns are removed from its rows afterwards. */
function restrictGraph(join: PlainObject, scope: JoinScope, use: Use): Stage[] {
  const restrict = mergeFilters(scope.where, join['restrictSearchWithMatch'] as Where | undefined);
  const search = { ...join, ...(Object.keys(restrict).length > 0 && { restrictSearchWithMatch: restrict }) };
  const as = String(join['as']);
  const depth = join['depthField'];
  // The depth field may have the name of a column.
  const seen = Object.fromEntries(
    Object.entries(describeSeenColumns(scope.access, use, '$$row.')).filter(([column]) => column !== depth),
  );
  const rows = (row: unknown): Stage => ({
    $addFields: { [as]: { $map: { input: `$${as}`, as: 'row', in: row } } },
  });
  const shown = listShownFields(scope.access);
  if (shown === null)
    return [
      { $graphLookup: search },
      { $unset: listTakenColumns(scope.access).map((name) => `${as}.${name}`) },
      ...(Object.keys(seen).length > 0 ? [rows({ $mergeObjects: ['$$row', seen] })] : []),
      ...withoutStored(scope.access, use, `${as}.`),
    ];
  const fields = withStored(shown, seen);
  const kept = typeof depth === 'string' ? [...fields, depth] : fields;
  const row = Object.fromEntries(kept.map((name) => [name, seen[name] ?? `$$row.${name}`]));
  return [{ $graphLookup: search }, rows(row)];
}

/** A `$match` inside a join cannot contain text and distance searches or cross-class queries. */
function isCarriable(where: Where): boolean {
  return !hasCrossClassQuery(where) && !holdsOperator(where, new Set(['$text', '$near', '$nearSphere']));
}

function holdsOperator(value: unknown, operators: ReadonlySet<string>): boolean {
  if (Array.isArray(value)) return value.some((element) => holdsOperator(element, operators));
  return (
    isPlainObject(value) &&
    Object.entries(value).some(([key, member]) => operators.has(key) || holdsOperator(member, operators))
  );
}

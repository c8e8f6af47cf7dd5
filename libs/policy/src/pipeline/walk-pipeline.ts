import { canonicalClassName, Refused } from '#agent';
import { inexactColumns, noneWithheldWithin } from '../masking/withheld-objects.js';
import { type ClassAccess, type ClassReach, isRefusal, withheldTarget } from '../model/class-access.js';
import { rootOf } from '../model/field-names.js';
import { allOf, isPlainObject, type PlainObject } from '../model/where.js';
import { documentIn, resolveExpression } from './expression.js';
import { Frame, type Introduced } from './frame.js';
import { hasExpression, hasMemberCondition, type MatchRules, resolveMatch } from './match.js';
import { keepsSource, newRootOf, projectedNames, resolveProject } from './project.js';
import { sourceProjection } from './source-stages.js';
import {
  joinedClass,
  openStage,
  type Pipeline,
  pipelineBlocked,
  type Stage,
  type StageName,
} from './stages.js';

/** What the stages of one pipeline share. */
export interface Walk {
  readonly match: MatchRules;
  /** @throws Refused when the class may not be joined */
  join(className: string): ClassAccess;
  stages(pipeline: Pipeline, frame: Frame): Stage[];
}

interface StageRule {
  /** Judges every name the stage reads; answers its value in wire names. */
  readonly check: (value: unknown, frame: Frame, walk: Walk) => unknown;
  /** Names that later stages may use. */
  readonly introduces: (value: unknown, frame: Frame) => Introduced;
  /** The documents of the class are gone afterwards; only what was introduced can be named. */
  readonly replacesSource: (value: unknown) => boolean;
  /** The documents afterwards hold names that the stage does not write out. Default: never. */
  readonly opens?: (value: unknown) => boolean;
}

const nothing = (): Introduced => new Map();
const never = (): boolean => false;
const always = (): boolean => true;
const verbatim = (value: unknown): unknown => value;
const expression = (value: unknown, frame: Frame): unknown => resolveExpression(value, frame);
const members = (value: unknown): PlainObject => value as PlainObject;
const text = (value: unknown): string => value as string;

/** The roots of output names, each written and held alike. */
const outputs = (...paths: readonly string[]): Introduced =>
  new Map(paths.map((path) => [rootOf(path), rootOf(path)] as const));

/** The whole access policy of pipelines: what each stage reads, what it adds, whether the class's columns survive it. */
const RULES: Readonly<Record<StageName, StageRule>> = {
  $match: {
    check: (value, frame, walk) => resolveMatch(value, frame, walk.match),
    introduces: nothing,
    replacesSource: never,
  },
  $project: {
    check: (value, frame) => resolveProject(members(value), frame),
    introduces: (value, frame) => (keepsSource(value) ? nothing() : projectedNames(members(value), frame)),
    replacesSource: (value) => !keepsSource(value),
  },
  $addFields: { check: expression, introduces: outputKeys, replacesSource: never },
  $set: { check: expression, introduces: outputKeys, replacesSource: never },
  $unset: {
    // Two spellings of one column would be a path collision.
    check: (value, frame) => [
      ...new Set((Array.isArray(value) ? value : [value]).map((path) => frame.spell(text(path)))),
    ],
    introduces: nothing,
    replacesSource: never,
  },
  $group: { check: expression, introduces: outputKeys, replacesSource: always },
  $bucket: { check: expression, introduces: bucketNames, replacesSource: always },
  $bucketAuto: { check: expression, introduces: bucketNames, replacesSource: always },
  $sortByCount: { check: expression, introduces: () => outputs('_id', 'count'), replacesSource: always },
  $count: { check: verbatim, introduces: (value) => outputs(text(value)), replacesSource: always },
  $sort: {
    check: (value, frame) =>
      Object.fromEntries(
        Object.entries(members(value)).map(([path, how]) => [frame.resolve(path, '$sort key'), how]),
      ),
    introduces: nothing,
    replacesSource: never,
  },
  $unwind: {
    check: (value, frame) =>
      typeof value === 'string'
        ? resolveExpression(value, frame)
        : { ...members(value), path: resolveExpression(members(value)['path'], frame) },
    introduces: (value) =>
      typeof value !== 'string' && members(value)['includeArrayIndex'] !== undefined
        ? outputs(text(members(value)['includeArrayIndex']))
        : nothing(),
    replacesSource: never,
  },
  $replaceRoot: newRoot((value) => members(value)['newRoot']),
  $replaceWith: newRoot((value) => value),
  $lookup: { check: resolveLookup, introduces: joinOutput, replacesSource: never },
  $graphLookup: { check: resolveGraphLookup, introduces: joinOutput, replacesSource: never },
  $unionWith: { check: resolveUnion, introduces: nothing, replacesSource: never },
  $facet: {
    // Every branch starts from the same documents, and none sees another's names.
    check: (value, frame, walk) =>
      Object.fromEntries(
        Object.entries(members(value)).map(([name, branch]) => [
          name,
          walk.stages(branch as Pipeline, frame),
        ]),
      ),
    introduces: outputKeys,
    replacesSource: always,
  },
  $redact: { check: expression, introduces: nothing, replacesSource: never },
  $limit: { check: verbatim, introduces: nothing, replacesSource: never },
  $skip: { check: verbatim, introduces: nothing, replacesSource: never },
  $sample: { check: verbatim, introduces: nothing, replacesSource: never },
};

/** What its documents hold came out of columns that were judged, or were taken away before the caller's first stage. */
function newRoot(of: (value: unknown) => unknown): StageRule {
  return {
    check: expression,
    introduces: (value) => outputs(...newRootOf(of(value)).names),
    replacesSource: (value) => !newRootOf(of(value)).same,
    opens: (value) => newRootOf(of(value)).open,
  };
}

function outputKeys(value: unknown): Introduced {
  return outputs(...Object.keys(members(value)));
}

function bucketNames(value: unknown): Introduced {
  const output = members(value)['output'];
  return output === undefined ? outputs('_id', 'count') : outputs('_id', ...Object.keys(members(output)));
}

function joinOutput(value: unknown): Introduced {
  return outputs(text(members(value)['as']));
}

export interface WalkOptions {
  /** Default true: a bare id on a pointer column of unknown class is refused. */
  readonly strictPointerShapes?: boolean;
  /** The class gate for pointers that a `$match` compares with; default: such pointers pass. */
  readonly judgeClass?: MatchRules['judgeClass'];
}

/**
 * A validated pipeline with every name it reads judged against the class it belongs to, in wire names.
 * @throws Refused `access_denied`, and what the gate says of a joined class
 */
export function walkPipeline(
  pipeline: Pipeline,
  access: ClassAccess,
  reach: ClassReach,
  options: WalkOptions = {},
): Stage[] {
  const walk: Walk = {
    match: {
      strictPointerShapes: options.strictPointerShapes ?? true,
      judgeClass: options.judgeClass ?? (() => null),
    },
    join(className) {
      const answer = reach.reach(canonicalClassName(className), 'pipeline');
      if (isRefusal(answer)) throw new Refused(answer);
      return answer;
    },
    stages: (stages, frame) => walkStages(stages, frame, walk),
  };
  return walk.stages(pipeline, Frame.atSource(access));
}

function walkStages(pipeline: Pipeline, start: Frame, walk: Walk): Stage[] {
  let frame = start;
  return pipeline.map((stage) => {
    const { name, value } = openStage(stage);
    const rule = RULES[name];
    const checked = { [name]: rule.check(value, frame, walk) };
    const opens = rule.opens?.(value) ?? false;
    frame = frame.after(rule.introduces(value, frame), rule.replacesSource(value), opens);
    return checked;
  });
}

export function resolveLookup(value: unknown, frame: Frame, walk: Walk): unknown {
  const join = value as PlainObject;
  const target = Frame.atSource(walk.join(joinTarget('$lookup', value)), frame);
  const { localField, foreignField, let: variables, pipeline, as } = join;
  const bindings = isPlainObject(variables) ? variables : {};
  const inner = target.bind(
    Object.entries(bindings).map(([name, bound]) => [name, documentIn(bound, frame)] as const),
  );
  const foreign =
    localField === undefined ? undefined : joinField(foreignField, target, '$lookup foreignField');
  const stages = pipeline === undefined ? undefined : walk.stages(pipeline as Pipeline, inner);
  return {
    from: target.access.className,
    ...(localField !== undefined && {
      localField: joinField(localField, frame, '$lookup localField'),
      foreignField: foreign,
    }),
    ...(variables !== undefined && { let: resolveExpression(bindings, frame) }),
    ...(stages && { pipeline: stages }),
    as,
  };
}

export function resolveGraphLookup(value: unknown, frame: Frame, walk: Walk): unknown {
  const join = value as PlainObject;
  const target = Frame.atSource(walk.join(joinTarget('$graphLookup', value)), frame);
  const { startWith, connectFromField, connectToField, restrictSearchWithMatch, ...rest } = join;
  // The filter runs on documents before anything is taken from them: plain conditions only.
  if (hasExpression(restrictSearchWithMatch)) throw pipelineBlocked('denied_operator', '$graphLookup $expr');
  if (target.access.mayHold && hasMemberCondition(restrictSearchWithMatch))
    throw pipelineBlocked('denied_operator', '$graphLookup $elemMatch');
  const from = joinField(connectFromField, target, '$graphLookup connectFromField');
  const to = joinField(connectToField, target, '$graphLookup connectToField');
  const asked =
    restrictSearchWithMatch === undefined ? null : resolveMatch(restrictSearchWithMatch, target, walk.match);
  // Rows are compared and followed as they are stored.
  const compared = new Set([rootOf(from), rootOf(to), ...inexactColumns(asked, target.access)]);
  const restrict = allOf(...[...compared].map((column) => noneWithheldWithin(column, target.access)), asked);
  return {
    ...rest,
    from: target.access.className,
    startWith: resolveExpression(startWith, frame),
    connectFromField: from,
    connectToField: to,
    ...(Object.keys(restrict).length > 0 && { restrictSearchWithMatch: restrict }),
  };
}

/**
 * Rows of a union stand beside rows of the class, so while those are whole documents both allowlists hold for them.
 */
export function resolveUnion(value: unknown, frame: Frame, walk: Walk): unknown {
  const foreign = walk.join(joinTarget('$unionWith', value));
  const access = frame.sourceAddressable ? withinBoth(foreign, frame.access) : foreign;
  const asked =
    isPlainObject(value) && value['pipeline'] !== undefined ? (value['pipeline'] as Pipeline) : [];
  const stages = walk.stages(asked, Frame.atSource(access, frame));
  return {
    coll: foreign.className,
    pipeline: access === foreign ? stages : afterLeadingMatch(stages, sourceProjection(access)),
  };
}

function withinBoth(foreign: ClassAccess, local: ClassAccess): ClassAccess {
  const { readable } = local;
  if (readable === null) return foreign;
  const both =
    foreign.readable === null ? readable : [...foreign.readable].filter((name) => readable.has(name));
  return { ...foreign, readable: new Set(both) };
}

function afterLeadingMatch(stages: readonly Stage[], projection: readonly Stage[]): Stage[] {
  const lead = stages[0] !== undefined && '$match' in stages[0] ? 1 : 0;
  return [...stages.slice(0, lead), ...projection, ...stages.slice(lead)];
}

function joinTarget(name: StageName, value: unknown): string {
  const className = joinedClass(name, value);
  if (className === null) throw pipelineBlocked('denied_internal_collection', name);
  return className;
}

/** Joins are written with `_id` as often as with `objectId`, and mean the same column. */
function joinField(path: unknown, frame: Frame, context: string): string {
  const isId = path === '_id' && frame.sourceAddressable && !frame.isIntroduced('_id');
  const resolved = frame.resolve(isId ? 'objectId' : String(path), context);
  const fromSource = frame.sourceAddressable && !frame.isIntroduced(rootOf(String(path)));
  const withheld = fromSource ? withheldTarget(resolved, frame.access) : undefined;
  // A join compares columns before anything is taken from the joined rows.
  if (withheld) throw new Refused(withheld.refusal);
  return resolved;
}

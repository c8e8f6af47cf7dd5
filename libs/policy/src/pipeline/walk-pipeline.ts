import { canonicalClassName, Refused } from '#core';
import { assertOneDatabase, type ClassAccess, type ClassReach, isRefusal } from '../model/class-access.js';
import type { Note, ValueType } from '../model/value-type.js';
import type { PlainObject } from '../model/where.js';
import { checkAccumulators, convertBoundaries } from './compared-operands.js';
import { resolveExpression } from './expression.js';
import { Frame } from './frame.js';
import { noteConstant } from './unlikely-operands.js';
import {
  openJoined,
  resolveGraphLookup,
  resolveLookup,
  resolveUnion,
  type PipelineWalk,
} from './join-stages.js';
import { type MatchRules, resolveMatch } from './match.js';
import { resolveProject } from './project-stage.js';
import { findOutcome } from './stage-outcomes.js';
import { openStage, type Pipeline, type Stage, type StageName } from './stages.js';

/** Checks every name that the stage reads. @returns its value in wire names */
type Check = (value: unknown, frame: Frame, context: PipelineWalk) => unknown;

const verbatim: Check = (value) => value;
const expression: Check = (value, frame) => resolveExpression(value, frame);
const members = (value: unknown): PlainObject => value as PlainObject;

/** The access rules of pipelines: what each stage reads. */
const CHECKS: Readonly<Record<StageName, Check>> = {
  $match: (value, frame, { match }) => resolveMatch(value, frame, match),
  $project: (value, frame) => resolveProject(members(value), frame),
  $addFields: resolveAdded,
  $set: resolveAdded,
  // Two spellings of one column would be a path collision in MongoDB.
  $unset: (value, frame) => [...new Set([value].flat().map((path) => frame.resolveUnchecked(String(path))))],
  $group: resolveGroup,
  $bucket: resolveBucket,
  $bucketAuto: resolveEvenBuckets,
  $sortByCount: expression,
  $count: verbatim,
  $sort: (value, frame) =>
    Object.fromEntries(
      Object.entries(members(value)).map(([path, how]) => [frame.resolve(path, '$sort key'), how]),
    ),
  $unwind: (value, frame) =>
    typeof value === 'string'
      ? resolveExpression(value, frame)
      : { ...members(value), path: resolveExpression(members(value)['path'], frame) },
  $replaceRoot: expression,
  $replaceWith: expression,
  $lookup: resolveLookup,
  $graphLookup: resolveGraphLookup,
  $unionWith: resolveUnion,
  // Every branch starts from the same documents and does not see the names of other branches.
  $facet: (value, frame, context) =>
    Object.fromEntries(
      Object.entries(members(value)).map(([name, branch]) => [
        name,
        context.stages(branch as Pipeline, frame),
      ]),
    ),
  $redact: expression,
  $limit: verbatim,
  $skip: verbatim,
  $sample: verbatim,
};

function resolveAdded(value: unknown, frame: Frame): unknown {
  noteConstant(value, frame);
  return resolveExpression(value, frame);
}

function resolveGroup(value: unknown, frame: Frame): unknown {
  const { _id, ...accumulators } = members(value);
  noteConstant(_id, frame);
  checkAccumulators(accumulators, frame);
  return resolveExpression(value, frame);
}

function resolveEvenBuckets(value: unknown, frame: Frame): unknown {
  checkAccumulators(members(value)['output'], frame);
  return resolveExpression(value, frame);
}

/** The default is a group of its own, of any type. */
function resolveBucket(value: unknown, frame: Frame): unknown {
  const { groupBy, boundaries, output } = members(value);
  checkAccumulators(output, frame);
  const compared = convertBoundaries(boundaries as readonly unknown[], groupBy, frame);
  return resolveExpression({ ...members(value), boundaries: compared }, frame);
}

export interface WalkOptions {
  /** Default true: a bare id on a pointer column of unknown class is refused. */
  readonly strictPointerShapes?: boolean;
  /** The class gate for pointers that a `$match` compares with; default: such pointers pass. */
  readonly judgeClass?: MatchRules['judgeClass'];
  /** Takes remarks for the answer. Default: none are made. */
  readonly note?: Note | undefined;
  /** Takes what is known of the resulting documents. */
  readonly results?: (documents: ValueType) => void;
}

/**
 * Checks every name in a validated pipeline against its class. @returns the pipeline in wire names
 * @throws Refused `access_denied`, and the refusals of the class gate for joined classes
 */
export function walkPipeline(
  pipeline: Pipeline,
  access: ClassAccess,
  reach: ClassReach,
  options: WalkOptions = {},
): Stage[] {
  // The frames behind the inner pipelines of a stage.
  const ends = new WeakMap<object, Frame>();
  const context: PipelineWalk = {
    match: {
      strictPointerShapes: options.strictPointerShapes ?? true,
      judgeClass: options.judgeClass ?? (() => null),
    },
    join(className) {
      const answer = reach.reach(canonicalClassName(className), 'pipeline');
      if (isRefusal(answer)) throw new Refused(answer);
      assertOneDatabase(access, answer);
      return answer;
    },
    stages: (stages, frame) => walkStages(stages, frame, context, ends),
  };
  const stages = context.stages(pipeline, Frame.atSource(access, undefined, options.note));
  const end = ends.get(pipeline);
  if (end) options.results?.(end.documentType);
  return stages;
}

function walkStages(
  pipeline: Pipeline,
  start: Frame,
  context: PipelineWalk,
  ends: WeakMap<object, Frame>,
): Stage[] {
  let frame = start;
  const checked = pipeline.map((stage) => {
    const { name, value } = openStage(stage);
    const resolved = { [name]: CHECKS[name](value, frame, context) };
    const outcome = findOutcome(name, value, frame, {
      end: (inner) => ends.get(inner),
      source: () => openJoined(name, value, frame, context),
    });
    frame = frame.after(outcome);
    return resolved;
  });
  ends.set(pipeline, frame);
  return checked;
}

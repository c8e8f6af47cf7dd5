import { Refused } from '#agent';
import { type ClassAccess, withheldTarget } from '../model/class-access.js';
import { rootOf } from '../model/field-names.js';
import { isPlainObject, type PlainObject } from '../model/plain-object.js';
import { documentIn, resolveExpression } from './expression.js';
import { Frame } from './frame.js';
import { allOf } from '../model/where.js';
import { inexactColumns, noneWithheldWithin } from '../redaction/withheld-inside.js';
import { hasExpression, hasMemberCondition, resolveMatch } from './match.js';
import { sourceProjection } from './source-stages.js';
import { joinedClass } from './stage-shape.js';
import { type Pipeline, pipelineBlocked, type Stage, type StageName } from './stages.js';
import type { Walk } from './walk-pipeline.js';

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

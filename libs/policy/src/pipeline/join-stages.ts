import { Refused } from '#core';
import { inexactColumns, noneWithheldWithin } from '../masking/withheld-objects.js';
import { type ClassAccess, withheldTarget } from '../model/class-access.js';
import { takeRoot } from '../model/field-names.js';
import { isPlainObject, mergeFilters, type PlainObject } from '../model/where.js';
import { readBindings, resolveExpression } from './expression.js';
import { Frame } from './frame.js';
import { noteOtherJoin, noteStoredPointer } from './unlikely-operands.js';
import { hasExpression, hasMemberCondition, type MatchRules, resolveMatch } from './match.js';
import { sourceProjection, type Use } from './source-stages.js';
import { type Pipeline, pipelineBlocked, readJoinedClass, type Stage, type StageName } from './stages.js';

/** What the stages of one pipeline share. */
export interface PipelineWalk {
  readonly match: MatchRules;
  /** @throws Refused when the class may not be joined */
  join(className: string): ClassAccess;
  /** Checks an inner pipeline. */
  stages(pipeline: Pipeline, frame: Frame): Stage[];
}

/** The documents of the class that a stage joins. @throws Refused when the class may not be joined */
export function openJoined(name: StageName, value: unknown, frame: Frame, context: PipelineWalk): Frame {
  return Frame.atSource(context.join(joinTarget(name, value)), frame);
}

export function resolveLookup(value: unknown, frame: Frame, context: PipelineWalk): unknown {
  const join = value as PlainObject;
  const target = openJoined('$lookup', value, frame, context);
  const { localField, foreignField, let: variables, pipeline, as } = join;
  const bindings = isPlainObject(variables) ? variables : {};
  const inner = target.bind(readBindings(bindings, frame));
  noteStoredPointer(localField, foreignField, frame);
  const foreign =
    localField === undefined ? undefined : joinField(foreignField, target, '$lookup foreignField');
  const stages = pipeline === undefined ? undefined : context.stages(pipeline as Pipeline, inner);
  const local = localField === undefined ? undefined : joinField(localField, frame, '$lookup localField');
  if (local !== undefined && foreign !== undefined) {
    noteOtherJoin(foreign, target, local, frame);
    noteOtherJoin(local, frame, foreign, target);
  }
  return {
    from: target.access.className,
    ...(local !== undefined && { localField: local, foreignField: foreign }),
    ...(variables !== undefined && { let: resolveExpression(bindings, frame) }),
    ...(stages && { pipeline: stages }),
    as,
  };
}

export function resolveGraphLookup(value: unknown, frame: Frame, context: PipelineWalk): unknown {
  const join = value as PlainObject;
  const target = openJoined('$graphLookup', value, frame, context);
  const { startWith, connectFromField, connectToField, restrictSearchWithMatch, ...rest } = join;
  // The filter runs on complete documents: plain conditions only.
  if (hasExpression(restrictSearchWithMatch)) throw pipelineBlocked('denied_operator', '$graphLookup $expr');
  if (target.access.mayHold && hasMemberCondition(restrictSearchWithMatch))
    throw pipelineBlocked('denied_operator', '$graphLookup $elemMatch');
  const from = joinField(connectFromField, target, '$graphLookup connectFromField');
  const to = joinField(connectToField, target, '$graphLookup connectToField');
  const asked =
    restrictSearchWithMatch === undefined
      ? null
      : resolveMatch(restrictSearchWithMatch, target, context.match);
  // Stored values are compared and followed.
  const compared = new Set([takeRoot(from), takeRoot(to), ...inexactColumns(asked, target.access)]);
  const restrict = mergeFilters(
    ...[...compared].map((column) => noneWithheldWithin(column, target.access)),
    asked,
  );
  return {
    ...rest,
    from: target.access.className,
    startWith: resolveExpression(startWith, frame),
    connectFromField: from,
    connectToField: to,
    ...(Object.keys(restrict).length > 0 && { restrictSearchWithMatch: restrict }),
  };
}

/** Rows of a union are mixed with rows of the class: while those are source documents, both allowlists apply to them. */
export function resolveUnion(value: unknown, frame: Frame, context: PipelineWalk): unknown {
  const foreign = context.join(joinTarget('$unionWith', value));
  const access = frame.sourceAddressable ? withinBoth(foreign, frame.access) : foreign;
  const asked =
    isPlainObject(value) && value['pipeline'] !== undefined ? (value['pipeline'] as Pipeline) : [];
  const stages = context.stages(asked, Frame.atSource(access, frame));
  return {
    coll: foreign.className,
    pipeline: access === foreign ? stages : afterLeadingMatch(stages, sourceProjection(access, EVERY_USE)),
  };
}

/** Of rows that a union mixes with those of another class. */
const EVERY_USE: Use = { reads: () => true, writes: () => false };

function withinBoth(foreign: ClassAccess, local: ClassAccess): ClassAccess {
  const { readable } = local;
  if (readable === null) return foreign;
  const both =
    foreign.readable === null ? readable : [...foreign.readable].filter((name) => readable.has(name));
  const unnamed = new Set([...(foreign.unnamed ?? []), ...(local.unnamed ?? [])]);
  return { ...foreign, readable: new Set(both), unnamed };
}

function afterLeadingMatch(stages: readonly Stage[], projection: readonly Stage[]): Stage[] {
  const lead = stages[0] !== undefined && '$match' in stages[0] ? 1 : 0;
  return [...stages.slice(0, lead), ...projection, ...stages.slice(lead)];
}

function joinTarget(name: StageName, value: unknown): string {
  const className = readJoinedClass(name, value);
  if (className === null) throw pipelineBlocked('denied_internal_collection', name);
  return className;
}

/** `_id` means `objectId` in joins. */
function joinField(path: unknown, frame: Frame, context: string): string {
  const isId = path === '_id' && frame.sourceAddressable && !frame.isIntroduced('_id');
  const resolved = frame.resolve(isId ? 'objectId' : String(path), context);
  const fromSource = frame.sourceAddressable && !frame.isIntroduced(takeRoot(String(path)));
  const withheld = fromSource ? withheldTarget(resolved, frame.access) : undefined;
  // A join compares columns before they are removed from the joined rows.
  if (withheld) throw new Refused(withheld.refusal);
  return resolved;
}

import { canonicalClassName, Refused } from '#core';
import { inexactColumns, noneWithheldWithin } from '../masking/withheld-objects.js';
import {
  assertOneDatabase,
  type ClassAccess,
  type ClassReach,
  isRefusal,
  withheldTarget,
} from '../model/class-access.js';
import { takeRoot } from '../model/field-names.js';
import type { Note, ValueType } from '../model/value-type.js';
import { mergeFilters, isPlainObject, type PlainObject } from '../model/where.js';
import { readBindings, resolveExpression } from './expression.js';
import { checkAccumulators, convertBoundaries } from './compared-operands.js';
import { type AddedFields, Frame } from './frame.js';
import { hasExpression, hasMemberCondition, type MatchRules, resolveMatch } from './match.js';
import { nameAsWritten } from './projected-names.js';
import { sourceProjection, type Use } from './source-stages.js';
import { typesAfter } from './stage-types.js';
import {
  readJoinedClass,
  openStage,
  type Pipeline,
  pipelineBlocked,
  type Stage,
  type StageName,
} from './stages.js';

/** The context shared by the stages of one pipeline. */
interface Walk {
  readonly match: MatchRules;
  /** The frames behind the inner pipelines of a stage. */
  readonly ends: WeakMap<object, Frame>;
  /** @throws Refused when the class may not be joined */
  join(className: string): ClassAccess;
  stages(pipeline: Pipeline, frame: Frame): Stage[];
}

interface StageRule {
  /** Checks every name that the stage reads. @returns its value in wire names */
  readonly check: (value: unknown, frame: Frame, walk: Walk) => unknown;
  /** Names that later stages may use. */
  readonly introduces: (value: unknown, frame: Frame) => AddedFields;
  /** Whether the stage replaces the source documents: later stages can only use introduced names. */
  readonly replacesSource: (value: unknown) => boolean;
  /** Whether the new documents have fields that the stage does not list. Default: never. */
  readonly opens?: (value: unknown) => boolean;
}

const NO_NAMES: AddedFields = new Map();
const addNothing = (): AddedFields => NO_NAMES;
const never = (): boolean => false;
const always = (): boolean => true;
const verbatim = (value: unknown): unknown => value;
const expression = (value: unknown, frame: Frame): unknown => resolveExpression(value, frame);
const members = (value: unknown): PlainObject => value as PlainObject;
const text = (value: unknown): string => value as string;

/** The roots of output names, spelled as in the document. */
function outputs(...paths: readonly string[]): AddedFields {
  const roots = new Map<string, string>();
  for (const path of paths) {
    const root = takeRoot(path);
    roots.set(root, root);
  }
  return roots;
}

/** The access rules of pipelines: what each stage reads, what it introduces, whether the source documents remain. */
const RULES: Readonly<Record<StageName, StageRule>> = {
  $match: {
    check: (value, frame, walk) => resolveMatch(value, frame, walk.match),
    introduces: addNothing,
    replacesSource: never,
  },
  $project: {
    check: (value, frame) => resolveProject(members(value), frame),
    introduces: (value, frame) => (keepsSource(value) ? addNothing() : listKeptNames(members(value), frame)),
    replacesSource: (value) => !keepsSource(value),
  },
  $addFields: { check: expression, introduces: outputKeys, replacesSource: never },
  $set: { check: expression, introduces: outputKeys, replacesSource: never },
  $unset: {
    // Two spellings of one column would be a path collision in MongoDB.
    check: (value, frame) => [
      ...new Set((Array.isArray(value) ? value : [value]).map((path) => frame.resolveUnchecked(text(path)))),
    ],
    introduces: addNothing,
    replacesSource: never,
  },
  $group: { check: resolveGroup, introduces: outputKeys, replacesSource: always },
  $bucket: { check: resolveBucket, introduces: bucketNames, replacesSource: always },
  $bucketAuto: { check: resolveEvenBuckets, introduces: bucketNames, replacesSource: always },
  $sortByCount: { check: expression, introduces: () => outputs('_id', 'count'), replacesSource: always },
  $count: { check: verbatim, introduces: (value) => outputs(text(value)), replacesSource: always },
  $sort: {
    check: (value, frame) =>
      Object.fromEntries(
        Object.entries(members(value)).map(([path, how]) => [frame.resolve(path, '$sort key'), how]),
      ),
    introduces: addNothing,
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
        : addNothing(),
    replacesSource: never,
  },
  $replaceRoot: newRoot((value) => members(value)['newRoot']),
  $replaceWith: newRoot((value) => value),
  $lookup: { check: resolveLookup, introduces: joinOutput, replacesSource: never },
  $graphLookup: { check: resolveGraphLookup, introduces: joinOutput, replacesSource: never },
  $unionWith: { check: resolveUnion, introduces: addNothing, replacesSource: never },
  $facet: {
    // Every branch starts from the same documents and does not see the names of other branches.
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
  $redact: { check: expression, introduces: addNothing, replacesSource: never },
  $limit: { check: verbatim, introduces: addNothing, replacesSource: never },
  $skip: { check: verbatim, introduces: addNothing, replacesSource: never },
  $sample: { check: verbatim, introduces: addNothing, replacesSource: never },
};

/** The new documents contain checked columns only: others were removed before the first stage of the caller. */
function newRoot(of: (value: unknown) => unknown): StageRule {
  return {
    check: expression,
    introduces: (value) => outputs(...readNewRoot(of(value)).names),
    replacesSource: (value) => !readNewRoot(of(value)).same,
    opens: (value) => readNewRoot(of(value)).open,
  };
}

function resolveGroup(value: unknown, frame: Frame): unknown {
  const { _id, ...accumulators } = members(value);
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

function outputKeys(value: unknown): AddedFields {
  return outputs(...Object.keys(members(value)));
}

function bucketNames(value: unknown): AddedFields {
  const output = members(value)['output'];
  return output === undefined ? outputs('_id', 'count') : outputs('_id', ...Object.keys(members(output)));
}

function joinOutput(value: unknown): AddedFields {
  return outputs(text(members(value)['as']));
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
  const walk: Walk = {
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
    ends: new WeakMap(),
    stages: (stages, frame) => walkStages(stages, frame, walk),
  };
  const stages = walk.stages(pipeline, Frame.atSource(access, undefined, options.note));
  const end = walk.ends.get(pipeline);
  if (end) options.results?.(end.documentType);
  return stages;
}

function walkStages(pipeline: Pipeline, start: Frame, walk: Walk): Stage[] {
  let frame = start;
  const checked = pipeline.map((stage) => {
    const { name, value } = openStage(stage);
    const rule = RULES[name];
    const resolved = { [name]: rule.check(value, frame, walk) };
    frame = frame.after({
      introduces: rule.introduces(value, frame),
      replacesSource: rule.replacesSource(value),
      opens: rule.opens?.(value) ?? false,
      ...typesAfter(name, value, frame, {
        end: (inner) => walk.ends.get(inner),
        source: () => Frame.atSource(walk.join(joinTarget(name, value)), frame),
      }),
    });
    return resolved;
  });
  walk.ends.set(pipeline, frame);
  return checked;
}

function resolveLookup(value: unknown, frame: Frame, walk: Walk): unknown {
  const join = value as PlainObject;
  const target = Frame.atSource(walk.join(joinTarget('$lookup', value)), frame);
  const { localField, foreignField, let: variables, pipeline, as } = join;
  const bindings = isPlainObject(variables) ? variables : {};
  const inner = target.bind(readBindings(bindings, frame));
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

function resolveGraphLookup(value: unknown, frame: Frame, walk: Walk): unknown {
  const join = value as PlainObject;
  const target = Frame.atSource(walk.join(joinTarget('$graphLookup', value)), frame);
  const { startWith, connectFromField, connectToField, restrictSearchWithMatch, ...rest } = join;
  // The filter runs on complete documents: plain conditions only.
  if (hasExpression(restrictSearchWithMatch)) throw pipelineBlocked('denied_operator', '$graphLookup $expr');
  if (target.access.mayHold && hasMemberCondition(restrictSearchWithMatch))
    throw pipelineBlocked('denied_operator', '$graphLookup $elemMatch');
  const from = joinField(connectFromField, target, '$graphLookup connectFromField');
  const to = joinField(connectToField, target, '$graphLookup connectToField');
  const asked =
    restrictSearchWithMatch === undefined ? null : resolveMatch(restrictSearchWithMatch, target, walk.match);
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
function resolveUnion(value: unknown, frame: Frame, walk: Walk): unknown {
  const foreign = walk.join(joinTarget('$unionWith', value));
  const access = frame.sourceAddressable ? withinBoth(foreign, frame.access) : foreign;
  const asked =
    isPlainObject(value) && value['pipeline'] !== undefined ? (value['pipeline'] as Pipeline) : [];
  const stages = walk.stages(asked, Frame.atSource(access, frame));
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
  return { ...foreign, readable: new Set(both) };
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

/** What the database does with one member of a `$project`. */
type Member = 'include' | 'exclude' | 'nested' | 'compute';

function findKind(value: unknown): Member {
  if (value === false || value === 0) return 'exclude';
  if (value === true || typeof value === 'number') return 'include';
  if (!isPlainObject(value) || Object.keys(value).length === 0) return 'compute';
  return Object.keys(value).some((key) => key.startsWith('$')) ? 'compute' : 'nested';
}

function excludesOnly(project: PlainObject): boolean {
  return Object.values(project).every((value) => {
    const kind = findKind(value);
    return kind === 'exclude' || (kind === 'nested' && excludesOnly(value as PlainObject));
  });
}

/** Whether a `$project` only excludes columns and so keeps the source documents. */
function keepsSource(project: unknown): boolean {
  return isPlainObject(project) && excludesOnly(project);
}

/** Checks inclusions by their root and computed values as expressions; exclusions need no check. */
function resolveProject(project: PlainObject, frame: Frame): Record<string, unknown> {
  const resolved = Object.entries(project).map(([path, value]): [string, unknown] => {
    const kind = findKind(value);
    if (kind === 'include') return [frame.resolve(path, '$project key'), value];
    if (kind === 'exclude') return [frame.resolveUnchecked(path), value];
    if (kind === 'compute') return [path, resolveExpression(value, frame)];
    if (excludesOnly(value as PlainObject)) return [frame.resolveUnchecked(path), value];
    return [resolveNestedKey(path, value as PlainObject, frame), resolveNested(value as PlainObject, frame)];
  });
  const roots = Object.keys(project).map((path, index) => {
    const [field = ''] = resolved[index] ?? [];
    return [takeRoot(path), takeRoot(field)] as const;
  });
  return nameAsWritten(Object.fromEntries(resolved), new Map(roots));
}

/** The roots that a `$project` leaves in the document, in the spelling of the caller and as in the document. */
function listKeptNames(project: PlainObject, frame: Frame): AddedFields {
  const names = new Map<string, string>();
  for (const [path, value] of Object.entries(project)) {
    const kind = findKind(value);
    if (kind === 'exclude' || (kind === 'nested' && excludesOnly(value as PlainObject))) continue;
    const root = takeRoot(path);
    const included = kind === 'include' || (kind === 'nested' && includesSomething(value as PlainObject));
    const held = included ? frame.resolve(root, '$project key') : root;
    names.set(root, held);
    names.set(held, held);
  }
  return names;
}

/** `{ profile: { city: 1 } }` reads the column `profile`; `{ stats: { total: "$x" } }` creates a field. */
function resolveNestedKey(path: string, value: PlainObject, frame: Frame): string {
  return includesSomething(value) ? frame.resolve(path, '$project key') : path;
}

function includesSomething(value: PlainObject): boolean {
  return Object.values(value).some((member) => {
    const kind = findKind(member);
    return kind === 'include' || (kind === 'nested' && includesSomething(member as PlainObject));
  });
}

function resolveNested(value: PlainObject, frame: Frame): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => {
      const kind = findKind(member);
      if (kind === 'compute') return [key, resolveExpression(member, frame)];
      return [key, kind === 'nested' ? resolveNested(member as PlainObject, frame) : member];
    }),
  );
}

/** The documents after `$replaceRoot` or `$replaceWith`. */
interface NewRoot {
  /** The documents are unchanged. */
  readonly same: boolean;
  /** The fields that the expression lists. */
  readonly names: readonly string[];
  /** Whether further fields come from a value: a column, a joined row, pairs. */
  readonly open: boolean;
}

const OPEN: NewRoot = { same: false, names: [], open: true };

/** Determined from the expression alone; its references are checked by `resolveExpression`. */
export function readNewRoot(expression: unknown): NewRoot {
  if (expression === '$$ROOT' || expression === '$$CURRENT') return { same: true, names: [], open: false };
  if (!isPlainObject(expression)) return OPEN;
  const keys = Object.keys(expression);
  if (!keys.some((key) => key.startsWith('$')))
    return { same: false, names: keys.map(takeRoot), open: false };
  const merged = keys.length === 1 ? expression['$mergeObjects'] : undefined;
  if (!Array.isArray(merged)) return OPEN;
  const parts = merged.map(readNewRoot);
  return {
    same: false,
    names: parts.flatMap(({ names }) => names),
    open: parts.some(({ same, open }) => same || open),
  };
}

import { type Document, firstKey, getField, isDocument } from '../bson/document.js';
import { createParseError, mongoError, notImplemented, typeMismatch } from '../errors.js';
import type { QueryContext } from '../query/context.js';
import { listSearches } from '../query/text.js';
import { searchStages } from '../search/search-stage.js';
import { PAUSE, type Step } from '../server/steps.js';
import { StageMemory } from './memory.js';
import type { StageBuilder, StageRun, StageTable } from './stage.js';
import { densifyStages } from './stages/densify.js';
import { fieldStages } from './stages/fields.js';
import { flowStages } from './stages/flow.js';
import { geoStages, nearFound } from './stages/geo-near.js';
import { groupStages, handOver } from './stages/group.js';
import { joinStages } from './stages/lookup.js';
import { windowStages } from './stages/window.js';

export { splitWriteStage, type WriteStage } from './write-stage.js';

const stages: StageTable = Object.assign(
  Object.create(null) as StageTable,
  fieldStages,
  flowStages,
  geoStages,
  groupStages,
  densifyStages,
  joinStages,
  searchStages,
  windowStages,
);

/** Stages that keep all of their input before they give anything. */
const COLLECTING = new Set(
  '$sort $sortByCount $bucketAuto $setWindowFields $densify $fill $facet'.split(' '),
);

/** Stages whose results are no document that was found. */
const MAKING = new Set('$group $bucket $bucketAuto $sortByCount $count $facet'.split(' '));

/** Stages in front of a group that leave it to the engine whose values `handOver` changes. */
const LEADING = new Set(['$match', '$sort', '$lookup', '$group']);

const firstOnly = new Set(['$geoNear', '$documents', ...Object.keys(searchStages)]);
/** Stages of MongoDB that this server has not, or that its commands answer before a pipeline runs. */
export const elsewhere: ReadonlySet<string> = new Set(
  (
    '$changeStream $changeStreamSplitLargeEvent $collStats $currentOp $indexStats $listLocalSessions $listSampledQueries ' +
    '$listSessions $planCacheStats $querySettings $queryStats $shardedDataDistribution $listSearchIndexes $rankFusion $scoreFusion $score'
  ).split(' '),
);

/**
 * Compiles a pipeline once for many lazy runs. Errors: 40323 for a malformed stage, 40324 for an unknown one, 31082 for search
 * where there is none, 238 for what this server lacks, and the codes of each stage.
 */
export function compilePipeline(pipeline: readonly unknown[], ctx: QueryContext): StageRun {
  if (pipeline.length > 1000) throw mongoError(7749501, 'A pipeline has at most 1000 stages');
  let stageCtx: QueryContext = { ...ctx, metadata: ctx.metadata ?? new WeakMap() };
  const names = pipeline.map((stage) => (isDocument(stage) ? (firstKey(stage) ?? '') : ''));
  // In front of a pipeline an empty $match is as if it were not there.
  const isGrouped = (i: number): boolean => ['$group', '$lookup'].includes(names[i] ?? '$group');
  const runs = pipeline.flatMap((stage, i) => {
    const run = compileStage(stage, pipeline.slice(0, i), i === pipeline.length - 1, stageCtx);
    const { found, ...rest } = stageCtx;
    if (found && MAKING.has(names[i] ?? '')) stageCtx = rest;
    if (names[i] === '$geoNear') stageCtx = { ...rest, found: nearFound };
    const handsOver =
      names[i] === '$group' && !isGrouped(i + 1) && names.slice(0, i).every((name) => LEADING.has(name));
    return handsOver ? [run, handOver(stageCtx)] : [run];
  });
  return (source) => {
    let current = source;
    for (const run of runs) current = run(current);
    return current;
  };
}

const isEmptyMatch = (stage: unknown): boolean => {
  const filter = isDocument(stage) ? getField(stage, '$match') : undefined;
  return isDocument(filter) && firstKey(filter) === undefined;
};

function compileStage(
  stage: unknown,
  before: readonly unknown[],
  last: boolean,
  ctx: QueryContext,
): StageRun {
  if (!isDocument(stage)) throw typeMismatch("Each element of the 'pipeline' array must be an object");
  const names = Object.keys(stage);
  const [name] = names;
  if (names.length !== 1 || name === undefined)
    throw mongoError(40323, 'A pipeline stage specification object must contain exactly one field.');
  if (name === '$out' || name === '$merge')
    throw last
      ? mongoError(51047, `${name} is not allowed within this pipeline`)
      : mongoError(40601, `${name} can only be the final stage in the pipeline`);
  if (elsewhere.has(name)) throw notImplemented(`the stage ${name} in this place`);
  const compile = stages[name];
  if (!compile) throw mongoError(40324, `Unrecognized pipeline stage name: '${name}'`);
  if (name === '$match' && before.length > 0 && listSearches(getField(stage, name)).length > 0)
    throw mongoError(17313, '$match with $text is only allowed as the first pipeline stage');
  // MongoDB looks for it once the empty filters are gone.
  const behind = name === '$geoNear' ? before.filter((one) => !isEmptyMatch(one)) : before;
  if (firstOnly.has(name) && behind.length > 0)
    throw mongoError(40602, `${name} is only valid as the first stage in a pipeline.`);
  const run = compile(getField(stage, name), builderFor(ctx), name);
  return COLLECTING.has(name) ? (source) => run(holdWithinMemory(source, name)) : run;
}

function* holdWithinMemory(source: Iterable<Step<Document>>, name: string): Iterable<Step<Document>> {
  const memory = new StageMemory(name);
  for (const doc of source) {
    if (doc !== PAUSE) memory.hold(doc);
    yield doc;
  }
}

const builderFor = (ctx: QueryContext): StageBuilder => ({
  ctx,
  pipeline: (inner, innerCtx) => {
    if (!Array.isArray(inner)) throw createParseError("'pipeline' must be an array of stages");
    return compilePipeline(inner, innerCtx);
  },
});

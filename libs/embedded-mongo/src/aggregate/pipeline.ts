import { type Document, firstKey, getField, isDocument } from '../bson/document.js';
import { createParseError, mongoError, notImplemented, typeMismatch } from '../errors.js';
import type { QueryContext } from '../query/context.js';
import { listSearches } from '../query/text.js';
import { compileSearchStage, SEARCH_STAGES, type SearchStage } from '../search/search-stage.js';
import { PAUSE, type Step } from '../server/steps.js';
import { StageMemory } from './memory.js';
import type { StageBuilder, StageRun, StageTable } from './stage.js';
import { densifyStages } from './stages/densify.js';
import { fieldStages } from './stages/fields.js';
import { flowStages } from './stages/flow.js';
import { geoStages } from './stages/geo-near.js';
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
  windowStages,
);

/** Stages that keep all of their input before they give anything. */
const COLLECTING = new Set(
  '$sort $sortByCount $bucketAuto $setWindowFields $densify $fill $facet'.split(' '),
);

/** Stages in front of a group that leave it to the engine whose values `handOver` changes. */
const LEADING = new Set(['$match', '$sort', '$lookup', '$group']);

const firstOnly = new Set(['$geoNear', '$documents']);
/** Stages of MongoDB that this server has not, or that its commands answer before a pipeline runs. */
const elsewhere = new Set(
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
  const isGrouped = (i: number): boolean => ['$group', '$lookup'].includes(names[i] ?? '$group');
  const runs = pipeline.flatMap((stage, i) => {
    const searching = readSearch(stage, i, stageCtx);
    if (searching) {
      if (searching.found) stageCtx = { ...stageCtx, found: searching.found };
      return searching.run;
    }
    const run = compileStage(stage, i, pipeline.length, stageCtx);
    // A score belongs to the stored document; once a stage gives it another shape the score is gone.
    if ((stageCtx.textScore ?? stageCtx.found) && !keepsDocuments(stage)) {
      const { textScore: _gone, found: _lost, ...rest } = stageCtx;
      stageCtx = rest;
    }
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

const keepsDocuments = (stage: unknown): boolean =>
  isDocument(stage) && ['$match', '$sort', '$limit', '$skip', '$sample'].includes(firstKey(stage) ?? '');

function readSearch(stage: unknown, position: number, ctx: QueryContext): SearchStage | undefined {
  const name = isDocument(stage) ? firstKey(stage) : undefined;
  if (!isDocument(stage) || name === undefined || !SEARCH_STAGES.has(name)) return undefined;
  if (Object.keys(stage).length !== 1) return undefined;
  return compileSearchStage(name, getField(stage, name), position, ctx);
}

function compileStage(stage: unknown, position: number, length: number, ctx: QueryContext): StageRun {
  if (!isDocument(stage)) throw typeMismatch("Each element of the 'pipeline' array must be an object");
  const names = Object.keys(stage);
  const [name] = names;
  if (names.length !== 1 || name === undefined)
    throw mongoError(40323, 'A pipeline stage specification object must contain exactly one field.');
  if (name === '$out' || name === '$merge')
    throw position < length - 1
      ? mongoError(40601, `${name} can only be the final stage in the pipeline`)
      : mongoError(51047, `${name} is not allowed within this pipeline`);
  if (elsewhere.has(name)) throw notImplemented(`the stage ${name} in this place`);
  const compile = stages[name];
  if (!compile) throw mongoError(40324, `Unrecognized pipeline stage name: '${name}'`);
  if (name === '$match' && position > 0 && listSearches(getField(stage, name)).length > 0)
    throw mongoError(17313, '$match with $text is only allowed as the first pipeline stage');
  if (firstOnly.has(name) && position > 0)
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

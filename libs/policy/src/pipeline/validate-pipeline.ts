import { isPlainObject } from '../model/plain-object.js';
import { assertNothingDenied, DENIED_OPERATORS } from './deny-rules.js';
import { assertStageShape, subPipelines } from './stage-shape.js';
import { isStageName, type Pipeline, pipelineBlocked, type Stage } from './stages.js';

const MAX_CALLER_STAGES = 20;
/** The caller's stages and those of every sub-pipeline together. */
const MAX_ALL_STAGES = 60;

/** Atlas stages must come first and see every indexed column: only the server itself builds them. */
const ATLAS_STAGES = new Set([
  '$search',
  '$searchMeta',
  '$listSearchIndexes',
  '$vectorSearch',
  '$rankFusion',
]);

/**
 * A caller's pipeline, when it consists of known stages in known shapes and nothing in it is denied at any depth.
 * @throws Refused `security_blocked`; the reason and the place are in its private cause
 */
export function validatePipeline(pipeline: unknown): Pipeline {
  if (!Array.isArray(pipeline)) throw pipelineBlocked('invalid_type');
  if (pipeline.length === 0) throw pipelineBlocked('empty_pipeline');
  if (pipeline.length > MAX_CALLER_STAGES) throw pipelineBlocked('too_many_stages');
  assertStages(pipeline, '', { left: MAX_ALL_STAGES });
  return pipeline as Pipeline;
}

function assertStages(stages: readonly unknown[], within: string, budget: { left: number }): void {
  stages.forEach((stage, index) => {
    const at = `${within}stage ${index}`;
    if (--budget.left < 0) throw pipelineBlocked('too_many_stages', at);
    const name = assertStage(stage, at, within === '');
    // The whole of a top-level stage is looked through once; what is in its sub-pipelines is part of it.
    if (within === '') assertNothingDenied(stage, at);
    const value = (stage as Stage)[name];
    assertStageShape(name, value, at);
    for (const [place, sub] of subPipelines(name, value)) assertStages(sub, `${at} ${place} `, budget);
  });
}

function assertStage(stage: unknown, at: string, topLevel: boolean) {
  if (!isPlainObject(stage)) throw pipelineBlocked('invalid_stage_type', at);
  const [name, ...others] = Object.keys(stage);
  if (name === undefined || others.length > 0) throw pipelineBlocked('invalid_stage_type', at);
  if (DENIED_OPERATORS.has(name)) {
    throw pipelineBlocked(topLevel ? 'denied_operator' : 'nested_denied_operator', `${at} ${name}`);
  }
  if (ATLAS_STAGES.has(name)) throw pipelineBlocked('stage0_only_atlas_stage', at);
  if (!isStageName(name)) throw pipelineBlocked('unknown_stage', `${at} ${name}`);
  return name;
}

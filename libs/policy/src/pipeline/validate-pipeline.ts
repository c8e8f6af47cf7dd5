import { Refused, refusals } from '#agent';
import { isPlainObject } from '../model/plain-object.js';
import { suggestNames } from '../scope/suggest-names.js';
import { assertNothingForbidden } from './denied-stages.js';
import { assertStageShape, subPipelines } from './stage-shape.js';
import {
  isStageName,
  type Pipeline,
  pipelineSlip,
  type Stage,
  STAGE_NAMES,
  type StageName,
} from './stages.js';

const MAX_CALLER_STAGES = 20;
/** The caller's stages and those of every sub-pipeline together. */
const MAX_ALL_STAGES = 60;

const EXAMPLE = '[{"$match":{"FIELD":VALUE}},{"$limit":10}]';

/**
 * A caller's pipeline, when it consists of known stages in known shapes and nothing in it is denied at any depth. What is denied
 * is looked for first and in all of it, so that the text about a slip never stands in for a refusal that tells nothing.
 * @throws Refused `security_blocked`, opaque, the reason and the place in its private cause; `invalid_argument` for a slip
 */
export function validatePipeline(pipeline: unknown): Pipeline {
  assertNothingForbidden(pipeline);
  if (!Array.isArray(pipeline)) throw slip(`pipeline is a list of stages, such as ${EXAMPLE}`);
  if (pipeline.length === 0)
    throw slip(
      `pipeline is empty: write one stage at least, such as ${EXAMPLE}; to read rows use query_class`,
    );
  if (pipeline.length > MAX_CALLER_STAGES)
    throw slip(`pipeline has ${pipeline.length} stages; at most ${MAX_CALLER_STAGES}`);
  assertStages(pipeline, '', { left: MAX_ALL_STAGES });
  return pipeline as Pipeline;
}

function assertStages(stages: readonly unknown[], within: string, budget: { left: number }): void {
  stages.forEach((stage, index) => {
    const at = `${within}stage ${index}`;
    if (--budget.left < 0)
      throw slip(`pipeline has more than ${MAX_ALL_STAGES} stages, those inside other stages included`);
    const name = assertStage(stage, at);
    const value = (stage as Stage)[name];
    assertStageShape(name, value, at);
    for (const [place, sub] of subPipelines(name, value)) assertStages(sub, `${at} ${place} `, budget);
  });
}

function assertStage(stage: unknown, at: string): StageName {
  if (!isPlainObject(stage)) throw pipelineSlip(at, 'a stage is an object such as {"$limit":10}');
  const [name, ...others] = Object.keys(stage);
  if (name === undefined)
    throw pipelineSlip(at, 'the stage is empty; write one such as {"$limit":10}, or leave it out');
  if (others.length > 0)
    throw pipelineSlip(at, 'a stage has one key; write each of several stages as an object of its own');
  if (isStageName(name)) return name;
  const near = suggestNames(name, STAGE_NAMES).map((stageName) => `'${stageName}'`);
  const meant = near.length > 0 ? ` Did you mean ${near.join(' or ')}?` : '';
  throw pipelineSlip(
    at,
    `'${name.slice(0, 64)}' is no stage that can be used.${meant} Stages: ${STAGE_NAMES.join(', ')}`,
  );
}

function slip(what: string): Refused {
  return new Refused(refusals.invalidArgument(what));
}

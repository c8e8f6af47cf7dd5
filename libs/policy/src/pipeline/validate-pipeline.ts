import { isClassName, refusals, Refused } from '#agent';
import { suggestNames } from '../model/field-names.js';
import { isPlainObject, type PlainObject } from '../model/where.js';
import { assertNothingForbidden } from './deny-rules.js';
import {
  isStageName,
  type Pipeline,
  pipelineSlip,
  type Stage,
  STAGE_NAMES,
  type StageName,
  subPipelines,
} from './stages.js';

const MAX_CALLER_STAGES = 20;
/** The caller's stages and those of every sub-pipeline together. */
const MAX_ALL_STAGES = 60;

const EXAMPLE = '[{"$match":{"FIELD":VALUE}},{"$limit":10}]';

/**
 * A caller's pipeline, when it consists of known stages in known shapes and nothing in it is denied at any depth. What is denied
 * is looked for first and in all of it, so that the text about a invalidPipeline never stands in for a refusal that tells nothing.
 * @throws Refused `security_blocked`, opaque, the reason and the place in its private cause; `invalid_argument` for a invalidPipeline
 */
export function validatePipeline(pipeline: unknown): Pipeline {
  assertNothingForbidden(pipeline);
  if (!Array.isArray(pipeline)) throw invalidPipeline(`pipeline is a list of stages, such as ${EXAMPLE}`);
  if (pipeline.length === 0)
    throw invalidPipeline(
      `pipeline is empty: write one stage at least, such as ${EXAMPLE}; to read rows use query_class`,
    );
  if (pipeline.length > MAX_CALLER_STAGES)
    throw invalidPipeline(`pipeline has ${pipeline.length} stages; at most ${MAX_CALLER_STAGES}`);
  assertStages(pipeline, '', { left: MAX_ALL_STAGES });
  return pipeline as Pipeline;
}

function assertStages(stages: readonly unknown[], within: string, budget: { left: number }): void {
  stages.forEach((stage, index) => {
    const at = `${within}stage ${index}`;
    if (--budget.left < 0)
      throw invalidPipeline(
        `pipeline has more than ${MAX_ALL_STAGES} stages, those inside other stages included`,
      );
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

function invalidPipeline(what: string): Refused {
  return new Refused(refusals.invalidArgument(what));
}

/** @throws Refused `invalid_argument` */
type Shape = (value: unknown, at: string) => void;

interface StageForm {
  /** What the value must look like, so that the access walk reads it as the database will. */
  readonly shape: Shape;
  /** An example of the stage, for whoever wrote it wrong. */
  readonly form: string;
}

const FORMS: Readonly<Record<StageName, StageForm>> = {
  $match: { shape: object, form: '{"$match":{"FIELD":VALUE}}' },
  $group: { shape: grouping, form: '{"$group":{"_id":"$FIELD","n":{"$sum":1}}}' },
  $sort: { shape: sorting, form: '{"$sort":{"FIELD":-1}}' },
  $project: { shape: filled, form: '{"$project":{"FIELD":1}}' },
  $addFields: { shape: filled, form: '{"$addFields":{"NAME":EXPRESSION}}' },
  $set: { shape: filled, form: '{"$set":{"NAME":EXPRESSION}}' },
  $redact: { shape: anything, form: '{"$redact":EXPRESSION}' },
  $replaceWith: { shape: anything, form: '{"$replaceWith":{"NAME":EXPRESSION}}' },
  $sortByCount: { shape: anything, form: '{"$sortByCount":"$FIELD"}' },
  $limit: { shape: count, form: '{"$limit":10}' },
  $skip: { shape: count, form: '{"$skip":10}' },
  $sample: {
    shape: (value, at) => count(members(value, ['size'], at)['size'], at, 'size'),
    form: '{"$sample":{"size":10}}',
  },
  $replaceRoot: {
    shape: (value, at) => needed(members(value, ['newRoot'], at), ['newRoot'], at),
    form: '{"$replaceRoot":{"newRoot":{"NAME":EXPRESSION}}}',
  },
  $bucket: {
    shape: (value, at) => {
      const bucket = members(value, ['groupBy', 'boundaries', 'default', 'output'], at);
      needed(bucket, ['groupBy', 'boundaries'], at);
      if (!Array.isArray(bucket['boundaries'])) slip(at, 'boundaries is a list');
      if (bucket['output'] !== undefined) object(bucket['output'], at, 'output');
    },
    form: '{"$bucket":{"groupBy":"$FIELD","boundaries":[0,10,20],"default":"other"}}',
  },
  $bucketAuto: {
    shape: (value, at) => {
      const bucket = members(value, ['groupBy', 'buckets', 'granularity', 'output'], at);
      needed(bucket, ['groupBy', 'buckets'], at);
      count(bucket['buckets'], at, 'buckets');
      if (bucket['output'] !== undefined) object(bucket['output'], at, 'output');
    },
    form: '{"$bucketAuto":{"groupBy":"$FIELD","buckets":5}}',
  },
  $count: { shape: (value, at) => fieldName(value, at, 'the value'), form: '{"$count":"NAME"}' },
  $unset: {
    shape: (value, at) => {
      for (const name of Array.isArray(value) ? value : [value]) fieldName(name, at, 'each entry');
    },
    form: '{"$unset":["FIELD"]}',
  },
  $unwind: {
    shape: (value, at) => {
      if (typeof value === 'string') return reference(value, at);
      const unwind = members(value, ['path', 'includeArrayIndex', 'preserveNullAndEmptyArrays'], at);
      reference(unwind['path'], at);
      optionalFieldName(unwind, 'includeArrayIndex', at);
    },
    form: '{"$unwind":"$FIELD"}',
  },
  $facet: {
    shape: (value, at) => {
      filled(value, at);
      for (const [branch, stages] of Object.entries(value as PlainObject)) stageList(stages, at, branch);
    },
    form: '{"$facet":{"NAME":[{"$count":"n"}]}}',
  },
  $lookup: {
    shape: (value, at) => {
      const names = ['from', 'localField', 'foreignField', 'let', 'pipeline', 'as'];
      const join = members(value, names, at);
      joinTarget(join['from'], at, 'from');
      fieldName(join['as'], at, 'as');
      optionalFieldName(join, 'localField', at);
      optionalFieldName(join, 'foreignField', at);
      const paired = (join['localField'] === undefined) === (join['foreignField'] === undefined);
      const joined = join['foreignField'] !== undefined || join['pipeline'] !== undefined;
      if (!paired) slip(at, 'localField and foreignField stand together');
      if (!joined) slip(at, 'localField and foreignField are required, or a pipeline');
      if (join['let'] !== undefined) object(join['let'], at, 'let');
      if (join['pipeline'] !== undefined) stageList(join['pipeline'], at, 'pipeline');
    },
    form: '{"$lookup":{"from":"CLASS","localField":"FIELD","foreignField":"FIELD","as":"NAME"}}',
  },
  $graphLookup: {
    shape: (value, at) => {
      const fields = ['connectFromField', 'connectToField', 'as'];
      const others = ['from', 'startWith', 'maxDepth', 'depthField', 'restrictSearchWithMatch'];
      const join = members(value, [...fields, ...others], at);
      joinTarget(join['from'], at, 'from');
      needed(join, ['startWith'], at);
      for (const field of fields) fieldName(join[field], at, field);
      optionalFieldName(join, 'depthField', at);
      // Its rows are projected afterwards under these names, which a dotted path would spread over other values.
      for (const field of ['as', 'depthField'])
        if (String(join[field]).includes('.')) slip(at, `${field} is one name, no path`);
      if (join['maxDepth'] !== undefined) count(join['maxDepth'], at, 'maxDepth');
      if (join['restrictSearchWithMatch'] !== undefined)
        object(join['restrictSearchWithMatch'], at, 'restrictSearchWithMatch');
    },
    form:
      '{"$graphLookup":{"from":"CLASS","startWith":"$FIELD","connectFromField":"FIELD","connectToField":"FIELD",' +
      '"as":"NAME"}}',
  },
  $unionWith: {
    shape: (value, at) => {
      if (typeof value === 'string') return joinTarget(value, at, 'the value');
      const join = members(value, ['coll', 'from', 'pipeline'], at);
      if (join['coll'] !== undefined && join['from'] !== undefined) slip(at, 'it names one class, in coll');
      joinTarget(join['coll'] ?? join['from'], at, 'coll');
      if (join['pipeline'] !== undefined) stageList(join['pipeline'], at, 'pipeline');
    },
    form: '{"$unionWith":{"coll":"CLASS","pipeline":[…]}}',
  },
};

/**
 * What the value of a stage has to look like; what no caller may ask was refused before.
 * @throws Refused `invalid_argument` that tells the form of the stage
 */
export function assertStageShape(name: StageName, value: unknown, at: string): void {
  const { shape, form } = FORMS[name];
  try {
    shape(value, `${at} ${name}`);
  } catch (error) {
    throw error instanceof Refused ? withForm(error, form) : error;
  }
}

function withForm({ refusal }: Refused, form: string): Refused {
  return new Refused({ ...refusal, message: `${refusal.message}. Write ${form}` });
}

function joinTarget(target: unknown, at: string, member: string): void {
  if (!isClassName(target)) slip(at, `${member} is the name of a class`);
}

function fieldName(name: unknown, at: string, member: string): void {
  if (typeof name !== 'string' || name === '' || name.startsWith('$') || /\0|__proto__|_bsontype/.test(name))
    slip(at, `${member} is a name without $`);
}

function optionalFieldName(of: PlainObject, member: string, at: string): void {
  if (of[member] !== undefined) fieldName(of[member], at, member);
}

function reference(path: unknown, at: string): void {
  if (typeof path !== 'string' || !/^\$[^$]/.test(path)) slip(at, 'the path is a field with $ in front');
}

function members(value: unknown, names: readonly string[], at: string): PlainObject {
  object(value, at);
  const other = Object.keys(value as PlainObject).find((name) => !names.includes(name));
  if (other !== undefined) slip(at, `it does not take '${cut(other)}'; it takes ${names.join(', ')}`);
  return value as PlainObject;
}

function needed(of: PlainObject, names: readonly string[], at: string): void {
  const missing = names.filter((name) => of[name] === undefined);
  if (missing.length > 0) slip(at, `${missing.join(' and ')} missing`);
}

function object(value: unknown, at: string, member = 'its value'): void {
  if (!isPlainObject(value)) slip(at, `${member} is an object`);
}

function filled(value: unknown, at: string): void {
  object(value, at);
  if (Object.keys(value as PlainObject).length === 0) slip(at, 'it is empty');
}

function grouping(value: unknown, at: string): void {
  object(value, at);
  const { _id: key, ...accumulated } = value as PlainObject;
  if (key === undefined) slip(at, '_id is missing; null makes one group of all');
  for (const [name, accumulator] of Object.entries(accumulated)) {
    const [operator] = isPlainObject(accumulator) ? Object.keys(accumulator) : [];
    if (!operator?.startsWith('$')) slip(at, `'${cut(name)}' is no accumulator such as {"$sum":1}`);
  }
}

function sorting(value: unknown, at: string): void {
  filled(value, at);
  for (const [name, direction] of Object.entries(value as PlainObject))
    if (direction !== 1 && direction !== -1 && !isPlainObject(direction))
      slip(at, `'${cut(name)}' is sorted by 1 (ascending) or -1 (descending)`);
}

function stageList(value: unknown, at: string, member: string): void {
  if (!Array.isArray(value)) slip(at, `'${cut(member)}' is a list of stages`);
}

function count(value: unknown, at: string, member = 'its value'): void {
  if (!Number.isSafeInteger(value) || Number(value) < 0) slip(at, `${member} is a whole number, 0 or more`);
}

function slip(at: string, what: string): never {
  throw pipelineSlip(at, what);
}

const cut = (name: string): string => name.slice(0, 64);

function anything(): void {}

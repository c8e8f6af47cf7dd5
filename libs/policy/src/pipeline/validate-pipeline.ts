import { cutText, isClassName, Refused, refuse } from '#core';
import { suggestNames } from '../model/field-names.js';
import { isPlainObject, type PlainObject } from '../model/where.js';
import { readExtendedJson, readObjectText, refuseTornText } from '../model/written-values.js';
import { assertNothingForbidden } from './deny-rules.js';
import {
  isStageName,
  type Pipeline,
  invalidPipeline,
  type Stage,
  STAGE_NAMES,
  type StageName,
  subPipelines,
} from './stages.js';

const MAX_CALLER_STAGES = 20;
/** The stages of the caller including those of all sub-pipelines. */
const MAX_ALL_STAGES = 60;

/** Fields and operators of all stages together: each is a column of the rows, or part of an expression on each of them. */
const MAX_MEMBERS = 3_000;

const EXAMPLE = '[{"$match":{"FIELD":VALUE}},{"$limit":10}]';

/**
 * Validates the pipeline of a caller: known stages in known forms, and nothing denied at any depth. The deny rules run first over
 * the whole pipeline, so that an opaque refusal is never replaced by a text about a malformed stage.
 * @throws Refused `security_blocked`, opaque, with the reason and the place in its private cause; `invalid_argument` when malformed
 */
export function validatePipeline(written: unknown): Pipeline {
  const pipeline = readExtendedJson(readObjectText(written));
  refuseTornText(pipeline, 'pipeline');
  assertNothingForbidden(pipeline);
  if (countMembers(pipeline) > MAX_MEMBERS)
    throw refuse.invalidArgument(`pipeline exceeds ${MAX_MEMBERS} fields and operators`);
  if (!Array.isArray(pipeline))
    throw refuse.invalidArgument(`pipeline is a list of stages, such as ${EXAMPLE}`);
  if (pipeline.length === 0)
    throw refuse.invalidArgument(
      `pipeline is empty: write one stage at least, such as ${EXAMPLE}; to read rows use query_class`,
    );
  if (pipeline.length > MAX_CALLER_STAGES)
    throw refuse.invalidArgument(`pipeline has ${pipeline.length} stages; at most ${MAX_CALLER_STAGES}`);
  assertStages(pipeline, '', { left: MAX_ALL_STAGES });
  return pipeline as Pipeline;
}

function countMembers(value: unknown): number {
  if (Array.isArray(value)) return value.reduce<number>((sum, one) => sum + countMembers(one), 0);
  if (!isPlainObject(value)) return 0;
  return Object.values(value).reduce<number>((sum, one) => sum + 1 + countMembers(one), 0);
}

function assertStages(stages: readonly unknown[], within: string, budget: { left: number }): void {
  for (let index = 0; index < stages.length; index += 1) {
    const at = `${within}stage ${index}`;
    if (--budget.left < 0)
      throw refuse.invalidArgument(
        `pipeline has more than ${MAX_ALL_STAGES} stages, those inside other stages included`,
      );
    const stage = stages[index];
    const name = assertStage(stage, at);
    const value = (stage as Stage)[name];
    assertStageForm(name, value, at);
    for (const [place, sub] of subPipelines(name, value)) assertStages(sub, `${at} ${place} `, budget);
  }
}

function assertStage(stage: unknown, at: string): StageName {
  if (!isPlainObject(stage)) throw invalidPipeline(at, 'a stage is an object such as {"$limit":10}');
  const [name, ...others] = Object.keys(stage);
  if (name === undefined)
    throw invalidPipeline(at, 'the stage is empty; write one such as {"$limit":10}, or leave it out');
  if (others.length > 0)
    throw invalidPipeline(at, 'a stage has one key; write each of several stages as an object of its own');
  if (isStageName(name)) return name;
  const near = suggestNames(name, STAGE_NAMES).map((stageName) => `'${stageName}'`);
  const meant = near.length > 0 ? ` Did you mean ${near.join(' or ')}?` : '';
  throw invalidPipeline(
    at,
    `'${cutText(name, 64)}' is no stage that can be used.${meant} Stages: ${STAGE_NAMES.join(', ')}`,
  );
}

/** @throws Refused `invalid_argument` */
type CheckValue = (value: unknown, at: string) => void;

interface StageForm {
  /** Checks the form of the value, so that `walkPipeline` reads it as the database does. */
  readonly check: CheckValue;
  readonly example: string;
}

const STAGE_FORMS: Readonly<Record<StageName, StageForm>> = {
  $match: { check: object, example: '{"$match":{"FIELD":VALUE}}' },
  $group: { check: checkGrouping, example: '{"$group":{"_id":"$FIELD","n":{"$sum":1}}}' },
  $sort: { check: checkSorting, example: '{"$sort":{"FIELD":-1}}' },
  $project: { check: requireFilled, example: '{"$project":{"FIELD":1}}' },
  $addFields: { check: requireFilled, example: '{"$addFields":{"NAME":EXPRESSION}}' },
  $set: { check: requireFilled, example: '{"$set":{"NAME":EXPRESSION}}' },
  $redact: { check: acceptAnything, example: '{"$redact":EXPRESSION}' },
  $replaceWith: { check: acceptAnything, example: '{"$replaceWith":{"NAME":EXPRESSION}}' },
  $sortByCount: { check: acceptAnything, example: '{"$sortByCount":"$FIELD"}' },
  $limit: { check: (value, at) => count(value, at, 'its value', 1), example: '{"$limit":10}' },
  $skip: { check: count, example: '{"$skip":10}' },
  $sample: {
    check: (value, at) => count(members(value, ['size'], at)['size'], at, 'size'),
    example: '{"$sample":{"size":10}}',
  },
  $replaceRoot: {
    check: (value, at) => requireMembers(members(value, ['newRoot'], at), ['newRoot'], at),
    example: '{"$replaceRoot":{"newRoot":{"NAME":EXPRESSION}}}',
  },
  $bucket: {
    check: (value, at) => {
      const bucket = members(value, ['groupBy', 'boundaries', 'default', 'output'], at);
      requireMembers(bucket, ['groupBy', 'boundaries'], at);
      if (!Array.isArray(bucket['boundaries'])) reject(at, 'boundaries is a list');
      if (bucket['output'] !== undefined) object(bucket['output'], at, 'output');
    },
    example: '{"$bucket":{"groupBy":"$FIELD","boundaries":[0,10,20],"default":"other"}}',
  },
  $bucketAuto: {
    check: (value, at) => {
      const bucket = members(value, ['groupBy', 'buckets', 'granularity', 'output'], at);
      requireMembers(bucket, ['groupBy', 'buckets'], at);
      count(bucket['buckets'], at, 'buckets');
      if (bucket['output'] !== undefined) object(bucket['output'], at, 'output');
    },
    example: '{"$bucketAuto":{"groupBy":"$FIELD","buckets":5}}',
  },
  $count: { check: (value, at) => fieldName(value, at, 'the value'), example: '{"$count":"NAME"}' },
  $unset: {
    check: (value, at) => {
      for (const name of Array.isArray(value) ? value : [value]) fieldName(name, at, 'each entry');
    },
    example: '{"$unset":["FIELD"]}',
  },
  $unwind: {
    check: (value, at) => {
      if (typeof value === 'string') return reference(value, at);
      const unwind = members(value, ['path', 'includeArrayIndex', 'preserveNullAndEmptyArrays'], at);
      reference(unwind['path'], at);
      optionalFieldName(unwind, 'includeArrayIndex', at);
    },
    example: '{"$unwind":"$FIELD"}',
  },
  $facet: {
    check: (value, at) => {
      requireFilled(value, at);
      for (const [branch, stages] of Object.entries(value as PlainObject)) stageList(stages, at, branch);
    },
    example: '{"$facet":{"NAME":[{"$count":"n"}]}}',
  },
  $lookup: {
    check: (value, at) => {
      const names = ['from', 'localField', 'foreignField', 'let', 'pipeline', 'as'];
      const join = members(value, names, at);
      joinTarget(join['from'], at, 'from');
      fieldName(join['as'], at, 'as');
      optionalFieldName(join, 'localField', at);
      optionalFieldName(join, 'foreignField', at);
      const paired = (join['localField'] === undefined) === (join['foreignField'] === undefined);
      const joined = join['foreignField'] !== undefined || join['pipeline'] !== undefined;
      if (!paired) reject(at, 'localField and foreignField stand together');
      if (!joined) reject(at, 'localField and foreignField are required, or a pipeline');
      if (join['let'] !== undefined) object(join['let'], at, 'let');
      if (join['pipeline'] !== undefined) stageList(join['pipeline'], at, 'pipeline');
    },
    example: '{"$lookup":{"from":"CLASS","localField":"FIELD","foreignField":"FIELD","as":"NAME"}}',
  },
  $graphLookup: {
    check: (value, at) => {
      const fields = ['connectFromField', 'connectToField', 'as'];
      const others = ['from', 'startWith', 'maxDepth', 'depthField', 'restrictSearchWithMatch'];
      const join = members(value, [...fields, ...others], at);
      joinTarget(join['from'], at, 'from');
      requireMembers(join, ['startWith'], at);
      for (const field of fields) fieldName(join[field], at, field);
      optionalFieldName(join, 'depthField', at);
      // Its rows are projected under these names later; a dotted path would reach into other values.
      for (const field of ['as', 'depthField'])
        if (String(join[field]).includes('.')) reject(at, `${field} is one name, no path`);
      if (join['maxDepth'] !== undefined) count(join['maxDepth'], at, 'maxDepth');
      if (join['restrictSearchWithMatch'] !== undefined)
        object(join['restrictSearchWithMatch'], at, 'restrictSearchWithMatch');
    },
    example:
      '{"$graphLookup":{"from":"CLASS","startWith":"$FIELD","connectFromField":"FIELD","connectToField":"FIELD",' +
      '"as":"NAME"}}',
  },
  $unionWith: {
    check: (value, at) => {
      if (typeof value === 'string') return joinTarget(value, at, 'the value');
      const join = members(value, ['coll', 'from', 'pipeline'], at);
      if (join['coll'] !== undefined && join['from'] !== undefined) reject(at, 'it names one class, in coll');
      joinTarget(join['coll'] ?? join['from'], at, 'coll');
      if (join['pipeline'] !== undefined) stageList(join['pipeline'], at, 'pipeline');
    },
    example: '{"$unionWith":{"coll":"CLASS","pipeline":[…]}}',
  },
};

/**
 * Checks the form of a stage that passed the deny rules.
 * @throws Refused `invalid_argument` with an example of the stage
 */
function assertStageForm(name: StageName, value: unknown, at: string): void {
  const { check, example } = STAGE_FORMS[name];
  try {
    check(value, `${at} ${name}`);
  } catch (error) {
    throw error instanceof Refused ? withExample(error, example) : error;
  }
}

function withExample({ refusal }: Refused, example: string): Refused {
  return new Refused({ ...refusal, message: `${refusal.message}. Write ${example}` });
}

function joinTarget(target: unknown, at: string, member: string): void {
  if (!isClassName(target)) reject(at, `${member} is the name of a class`);
}

function fieldName(name: unknown, at: string, member: string): void {
  if (typeof name !== 'string' || name === '' || name.startsWith('$') || /\0|__proto__|_bsontype/.test(name))
    reject(at, `${member} is a name without $`);
}

function optionalFieldName(of: PlainObject, member: string, at: string): void {
  if (of[member] !== undefined) fieldName(of[member], at, member);
}

function reference(path: unknown, at: string): void {
  if (typeof path !== 'string' || !/^\$[^$]/.test(path)) reject(at, 'the path is a field with $ in front');
}

function members(value: unknown, names: readonly string[], at: string): PlainObject {
  object(value, at);
  const other = Object.keys(value as PlainObject).find((name) => !names.includes(name));
  if (other !== undefined) reject(at, `it does not take '${cut(other)}'; it takes ${names.join(', ')}`);
  return value as PlainObject;
}

function requireMembers(of: PlainObject, names: readonly string[], at: string): void {
  const missing = names.filter((name) => of[name] === undefined);
  if (missing.length > 0) reject(at, `${missing.join(' and ')} missing`);
}

function object(value: unknown, at: string, member = 'its value'): void {
  if (!isPlainObject(value)) reject(at, `${member} is an object`);
}

function requireFilled(value: unknown, at: string): void {
  object(value, at);
  if (Object.keys(value as PlainObject).length === 0) reject(at, 'it is empty');
}

function checkGrouping(value: unknown, at: string): void {
  object(value, at);
  const group = value as PlainObject;
  if (group['_id'] === undefined) reject(at, '_id is missing; null makes one group of all');
  for (const name of Object.keys(group)) {
    if (name === '_id') continue;
    const accumulator = group[name];
    const [operator] = isPlainObject(accumulator) ? Object.keys(accumulator) : [];
    if (!operator?.startsWith('$')) reject(at, `'${cut(name)}' is no accumulator such as {"$sum":1}`);
  }
}

function checkSorting(value: unknown, at: string): void {
  requireFilled(value, at);
  for (const [name, direction] of Object.entries(value as PlainObject))
    if (direction !== 1 && direction !== -1 && !isPlainObject(direction))
      reject(at, `'${cut(name)}' is sorted by 1 (ascending) or -1 (descending)`);
}

function stageList(value: unknown, at: string, member: string): void {
  if (!Array.isArray(value)) reject(at, `'${cut(member)}' is a list of stages`);
}

function count(value: unknown, at: string, member = 'its value', least = 0): void {
  if (!Number.isSafeInteger(value) || Number(value) < least)
    reject(at, `${member} is a whole number, ${least} or more`);
}

function reject(at: string, what: string): never {
  throw invalidPipeline(at, what);
}

const cut = (name: string): string => cutText(name, 64);

function acceptAnything(): void {}

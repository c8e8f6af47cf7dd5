import { canonicalClassName, isClassName } from '#agent';
import { hasInternalSegment } from '../model/internal-fields.js';
import { isPlainObject, type PlainObject } from '../model/plain-object.js';
import { pipelineBlocked, type Stage, type StageName } from './stages.js';

/** System classes that a join may reach, before any policy is asked. */
const JOINABLE_SYSTEM_CLASSES = new Set(['_User', '_Role', '_Installation', '_Session']);

type Shape = (value: unknown, at: string) => void;

/** What each stage's value must look like, so that the access walk reads it as the database will. */
const SHAPES: Readonly<Record<StageName, Shape>> = {
  $match: object,
  $group: object,
  $sort: object,
  $project: object,
  $addFields: object,
  $set: object,
  $redact: anything,
  $replaceWith: anything,
  $sortByCount: anything,
  $limit: count,
  $skip: count,
  $sample: (value, at) => count(members(value, ['size'], at)['size'], at),
  $replaceRoot: (value, at) => members(value, ['newRoot'], at),
  $bucket: (value, at) => members(value, ['groupBy', 'boundaries', 'default', 'output'], at),
  $bucketAuto: (value, at) => members(value, ['groupBy', 'buckets', 'granularity', 'output'], at),
  $count: fieldName,
  $unset: (value, at) => {
    for (const name of Array.isArray(value) ? value : [value]) fieldName(name, at);
  },
  $unwind: (value, at) => {
    if (typeof value === 'string') return reference(value, at);
    const unwind = members(value, ['path', 'includeArrayIndex', 'preserveNullAndEmptyArrays'], at);
    reference(unwind['path'], at);
    optionalFieldName(unwind['includeArrayIndex'], at);
  },
  $facet: (value, at) => {
    object(value, at);
    for (const branch of Object.values(value as PlainObject)) stageList(branch, at);
  },
  $lookup: (value, at) => {
    const names = ['from', 'localField', 'foreignField', 'let', 'pipeline', 'as'];
    const join = members(value, names, at);
    joinTarget(join['from'], at);
    fieldName(join['as'], at);
    optionalFieldName(join['localField'], at);
    optionalFieldName(join['foreignField'], at);
    const paired = (join['localField'] === undefined) === (join['foreignField'] === undefined);
    const joined = join['foreignField'] !== undefined || join['pipeline'] !== undefined;
    if (!paired || !joined) throw pipelineBlocked('invalid_stage_value', at);
    if (join['let'] !== undefined) object(join['let'], at);
    if (join['pipeline'] !== undefined) stageList(join['pipeline'], at);
  },
  $graphLookup: (value, at) => {
    const fields = ['connectFromField', 'connectToField', 'as'];
    const others = ['from', 'startWith', 'maxDepth', 'depthField', 'restrictSearchWithMatch'];
    const join = members(value, [...fields, ...others], at);
    joinTarget(join['from'], at);
    for (const field of fields) fieldName(join[field], at);
    optionalFieldName(join['depthField'], at);
    // Its rows are projected afterwards under these names, which a dotted path would spread over other values.
    if ([join['as'], join['depthField']].some((name) => String(name).includes('.'))) {
      throw pipelineBlocked('invalid_stage_value', at);
    }
    if (join['maxDepth'] !== undefined) count(join['maxDepth'], at);
    if (join['restrictSearchWithMatch'] !== undefined) object(join['restrictSearchWithMatch'], at);
  },
  $unionWith: (value, at) => {
    if (typeof value === 'string') return joinTarget(value, at);
    const join = members(value, ['coll', 'from', 'pipeline'], at);
    if (join['coll'] !== undefined && join['from'] !== undefined)
      throw pipelineBlocked('invalid_stage_value', at);
    joinTarget(join['coll'] ?? join['from'], at);
    if (join['pipeline'] !== undefined) stageList(join['pipeline'], at);
  },
};

/** @throws Refused `security_blocked` (invalid_stage_value, denied_internal_field, denied_internal_collection) */
export function assertStageShape(name: StageName, value: unknown, at: string): void {
  SHAPES[name](value, at);
}

/** The pipelines inside a stage of valid shape, each with its place. */
export function subPipelines(name: StageName, value: unknown): [string, readonly Stage[]][] {
  if (!isPlainObject(value)) return [];
  if (name === '$facet') return Object.entries(value).map(([branch, stages]) => [branch, stages as Stage[]]);
  const inner = name === '$lookup' || name === '$unionWith' ? value['pipeline'] : undefined;
  return inner === undefined ? [] : [[name, inner as Stage[]]];
}

/** The class a join stage of valid shape reads from, else null. */
export function joinedClass(name: StageName, value: unknown): string | null {
  if (name !== '$lookup' && name !== '$graphLookup' && name !== '$unionWith') return null;
  const target = isPlainObject(value) ? (value['coll'] ?? value['from']) : value;
  return typeof target === 'string' ? canonicalClassName(target) : null;
}

/** A class by its name: no other database, no system collection, no join table of relations. */
function joinTarget(target: unknown, at: string): void {
  if (!isClassName(target)) throw pipelineBlocked('denied_internal_collection', at);
  const className = canonicalClassName(target);
  if (className.startsWith('_') && !JOINABLE_SYSTEM_CLASSES.has(className)) {
    throw pipelineBlocked('denied_internal_collection', `${at} ${className}`);
  }
}

function fieldName(name: unknown, at: string): void {
  if (
    typeof name !== 'string' ||
    name === '' ||
    name.startsWith('$') ||
    /\0|__proto__|_bsontype/.test(name)
  ) {
    throw pipelineBlocked('invalid_stage_value', at);
  }
  if (hasInternalSegment(name)) throw pipelineBlocked('denied_internal_field', at);
}

function optionalFieldName(name: unknown, at: string): void {
  if (name !== undefined) fieldName(name, at);
}

function reference(path: unknown, at: string): void {
  if (typeof path !== 'string' || !/^\$[^$]/.test(path)) throw pipelineBlocked('invalid_stage_value', at);
}

function members(value: unknown, names: readonly string[], at: string): PlainObject {
  if (isPlainObject(value) && Object.keys(value).every((name) => names.includes(name))) return value;
  throw pipelineBlocked('invalid_stage_value', at);
}

function object(value: unknown, at: string): void {
  if (!isPlainObject(value)) throw pipelineBlocked('invalid_stage_value', at);
}

function stageList(value: unknown, at: string): void {
  if (!Array.isArray(value)) throw pipelineBlocked('invalid_stage_value', at);
}

function count(value: unknown, at: string): void {
  if (!Number.isSafeInteger(value) || Number(value) < 0) throw pipelineBlocked('invalid_stage_value', at);
}

function anything(): void {}

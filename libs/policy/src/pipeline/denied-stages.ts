import { canonicalClassName, isClassName } from '#agent';
import { hasInternalSegment } from '../model/internal-fields.js';
import { isPlainObject } from '../model/plain-object.js';
import { assertNothingDenied, DENIED_OPERATORS } from './deny-rules.js';
import { pipelineBlocked } from './stages.js';

/** System classes that a join may reach, before any policy is asked. */
const JOINABLE_SYSTEM_CLASSES = new Set(['_User', '_Role', '_Installation', '_Session']);

/** Atlas stages must come first and see every indexed column: only the server itself builds them. */
const ATLAS_STAGES = /^\$(search|listSearchIndexes|vectorSearch|rankFusion|scoreFusion)/;

/** Stages that tell of the server, its sessions and its other queries, and the database's own. */
const SERVER_STAGES =
  /^\$(_|list|changeStream|currentOp|collStats|indexStats|planCache|queryS|operationMetrics|shardedData|backup|mergeCursors)/;

/** Members of stages that name columns without `$`. */
const NAMES_A_COLUMN = [
  'localField',
  'foreignField',
  'connectFromField',
  'connectToField',
  'depthField',
  'as',
];

/**
 * Refuses what no caller may ask, wherever it stands and whatever else is wrong with the pipeline: only then may be told what
 * is wrong.
 * @throws Refused `security_blocked`, opaque; the reason and the place are in its private cause
 */
export function assertNothingForbidden(pipeline: unknown): void {
  assertNoDeniedStages(pipeline, '');
  if (Array.isArray(pipeline))
    pipeline.forEach((stage, index) => assertNothingDenied(stage, `stage ${index}`));
  else assertNothingDenied(pipeline, 'pipeline');
}

function assertNoDeniedStages(stages: unknown, within: string): void {
  const list = Array.isArray(stages) ? stages : [stages];
  list.forEach((stage: unknown, index) => {
    if (!isPlainObject(stage)) return;
    for (const [name, value] of Object.entries(stage)) {
      const at = `${within}stage ${index} ${name}`;
      assertAllowed(name, at, within === '');
      assertMembers(name, value, at);
      for (const [place, inner] of innerStages(name, value)) assertNoDeniedStages(inner, `${at} ${place} `);
    }
  });
}

function assertAllowed(name: string, at: string, topLevel: boolean): void {
  if (DENIED_OPERATORS.has(name))
    throw pipelineBlocked(topLevel ? 'denied_operator' : 'nested_denied_operator', at);
  if (ATLAS_STAGES.test(name)) throw pipelineBlocked('stage0_only_atlas_stage', at);
  if (SERVER_STAGES.test(name)) throw pipelineBlocked('unknown_stage', at);
}

function assertMembers(name: string, value: unknown, at: string): void {
  const isJoin = name === '$lookup' || name === '$graphLookup' || name === '$unionWith';
  if (isJoin && isPlainObject(value))
    for (const target of [value['from'], value['coll']]) assertTarget(target, at);
  if (name === '$unionWith') assertTarget(isPlainObject(value) ? undefined : value, at);
  const names: unknown[] = name === '$count' ? [value] : name === '$unset' ? [value].flat() : [];
  if (isPlainObject(value))
    names.push(...NAMES_A_COLUMN.map((member) => value[member]), value['includeArrayIndex']);
  if (names.some((path) => typeof path === 'string' && hasInternalSegment(path)))
    throw pipelineBlocked('denied_internal_field', at);
}

/** A class by its name: no other database, no system collection, no join table of relations. */
function assertTarget(target: unknown, at: string): void {
  if (typeof target !== 'string' && !isPlainObject(target)) return;
  if (!isClassName(target)) throw pipelineBlocked('denied_internal_collection', at);
  const className = canonicalClassName(target);
  if (className.startsWith('_') && !JOINABLE_SYSTEM_CLASSES.has(className))
    throw pipelineBlocked('denied_internal_collection', `${at} ${className}`);
}

/** The stages inside a stage of any shape. */
function innerStages(name: string, value: unknown): [string, unknown][] {
  if (!isPlainObject(value)) return [];
  if (name === '$facet') return Object.entries(value);
  return name === '$lookup' || name === '$unionWith' ? [['pipeline', value['pipeline']]] : [];
}

import { canonicalClassName, isClassName, refuse } from '#core';
import { JOINABLE_SYSTEM_CLASSES } from '../model/class-access.js';
import { hasInternalSegment, hasMagicSegment, takeRoot } from '../model/field-names.js';
import { isPlainObject } from '../model/where.js';
import { PATTERN_EXPRESSIONS } from '../model/written-values.js';
import { NO_PATTERN, regexIssue } from '../where/regex-safety.js';
import { pipelineBlocked } from './stages.js';

/** Atlas stages must come first and see every indexed column: only the server builds them. */
const ATLAS_STAGES = /^\$(search|listSearchIndexes|vectorSearch|rankFusion|scoreFusion)/;

/** Stages that read server state, sessions and other queries, and internal stages of the database. */
const SERVER_STAGES =
  /^\$(_|list|changeStream|currentOp|collStats|indexStats|planCache|queryS|operationMetrics|shardedData|backup|mergeCursors)/;

/** Stage members that name columns without `$`. */
const NAMES_A_COLUMN = [
  'localField',
  'foreignField',
  'connectFromField',
  'connectToField',
  'depthField',
  'includeArrayIndex',
  'as',
];

/**
 * Refuses what no caller may use, at any depth and before any other check: the texts about invalid stages are only sent for a
 * pipeline that passed.
 * @throws Refused `security_blocked`, opaque; the reason and the place are in its private cause
 */
export function assertNothingForbidden(pipeline: unknown): void {
  assertNoDeniedStages(pipeline, '');
  if (Array.isArray(pipeline))
    pipeline.forEach((stage, index) => assertNothingDenied(stage, `stage ${index}`));
  else assertNothingDenied(pipeline, 'pipeline');
}

function assertNoDeniedStages(stages: unknown, within: string): void {
  const list: readonly unknown[] = Array.isArray(stages) ? stages : [stages];
  for (let index = 0; index < list.length; index += 1) assertNoDeniedStage(list[index], index, within);
}

function assertNoDeniedStage(stage: unknown, index: number, within: string): void {
  if (!isPlainObject(stage)) return;
  for (const name of Object.keys(stage)) {
    const value = stage[name];
    const at = `${within}stage ${index} ${name}`;
    assertAllowed(name, at, within === '');
    assertMembers(name, value, at);
    for (const [place, inner] of innerStages(name, value)) assertNoDeniedStages(inner, `${at} ${place} `);
  }
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
  if (name === '$count') assertNamed(value, at);
  if (name === '$unset') for (const path of [value].flat()) assertNamed(path, at);
  if (isPlainObject(value)) for (const member of NAMES_A_COLUMN) assertNamed(value[member], at);
}

function assertNamed(path: unknown, at: string): void {
  if (typeof path === 'string' && hasInternalSegment(path))
    throw pipelineBlocked('denied_internal_field', at);
}

/** The target must be a class name: no other database, system collection or join table of a relation. */
function assertTarget(target: unknown, at: string): void {
  if (typeof target !== 'string' && !isPlainObject(target)) return;
  if (!isClassName(target)) throw pipelineBlocked('denied_internal_collection', at);
  const className = canonicalClassName(target);
  if (className.startsWith('_') && !JOINABLE_SYSTEM_CLASSES.has(className))
    throw pipelineBlocked('denied_internal_collection', `${at} ${className}`);
}

/** The pipelines inside a stage, which may be malformed. */
function innerStages(name: string, value: unknown): [string, unknown][] {
  if (!isPlainObject(value)) return [];
  if (name === '$facet') return Object.entries(value);
  return name === '$lookup' || name === '$unionWith' ? [['pipeline', value['pipeline']]] : [];
}

const MAX_DEPTH = 20;
const MAX_REGEX_BYTES = 512;

/** Code, writes, administration, and `$jsonSchema`, whose keys name columns that `walkPipeline` would not see. */
const DENIED_OPERATORS: ReadonlySet<string> = new Set(
  [
    '$where $function $accumulator $out $merge $jsonSchema',
    '$collMod $createIndex $dropIndex $planCacheSetFilter $planCacheClear',
  ].flatMap((group) => group.split(' ')),
);

/** Inside `$expr` these allow a value to be read character by character. */
const FORENSIC_OPERATORS = new Set(
  [
    '$regexMatch $regexFind $regexFindAll $substr $substrBytes $substrCP',
    '$indexOfBytes $indexOfCP $strLenBytes $strLenCP $strcasecmp',
  ].flatMap((group) => group.split(' ')),
);

const FIELD_BY_NAME = new Set(['$getField', '$setField', '$unsetField']);
const SYSTEM_VARIABLES = new Set(['ROOT', 'CURRENT', 'NOW', 'REMOVE', 'DESCEND', 'PRUNE', 'KEEP']);

interface Place {
  readonly at: string;
  /** The number of containers around this one, without the stage itself. */
  readonly depth: number;
  readonly inExpr: boolean;
}

/**
 * The rules that apply at any depth of a stage or of a filter in pipeline form.
 * @throws Refused `security_blocked`
 */
export function assertNothingDenied(value: unknown, at: string): void {
  inspect(value, { at, depth: 0, inExpr: false });
}

function inspect(value: unknown, place: Place): void {
  if (typeof value === 'string') return inspectText(value, place.at);
  if (value === null || typeof value === 'boolean' || typeof value === 'number' || value instanceof Date)
    return;
  if (place.depth >= MAX_DEPTH) throw pipelineBlocked('max_depth_exceeded', place.at);
  if (Array.isArray(value)) {
    value.forEach((element, index) => inspect(element, inside(place, String(index))));
  } else if (isPlainObject(value)) {
    for (const key of Object.keys(value)) {
      const member = value[key];
      inspectKey(key, member, place);
      if (key === '$regex') inspectRegex(member, constantText(value['$options'] ?? ''), `${place.at}.${key}`);
      inspect(member, inside(place, key));
    }
  } else {
    throw pipelineBlocked('invalid_value', place.at);
  }
}

function inside(place: Place, key: string): Place {
  return { at: `${place.at}.${key}`, depth: place.depth + 1, inExpr: place.inExpr || key === '$expr' };
}

function inspectKey(key: string, member: unknown, place: Place): void {
  const at = `${place.at}.${key}`;
  if (!key.startsWith('$')) {
    if (hasInternalSegment(key)) throw pipelineBlocked('denied_internal_field', at);
    if (hasMagicSegment(key) || key.includes('\0')) throw pipelineBlocked('invalid_key', at);
    return;
  }
  // `$_internal…` operators are for the database itself.
  if (DENIED_OPERATORS.has(key) || key.startsWith('$_')) throw pipelineBlocked('nested_denied_operator', at);
  // Other metadata than the score of the caller's own search tells columns of an index, or how many rows others wrote.
  if (key === '$meta' && member !== 'textScore') throw pipelineBlocked('nested_denied_operator', at);
  if (place.inExpr && FORENSIC_OPERATORS.has(key)) throw pipelineBlocked('forensic_operator_in_expr', at);
  if (PATTERN_EXPRESSIONS.has(key)) inspectRegexExpression(member, at);
  if (FIELD_BY_NAME.has(key)) inspectFieldByName(member, at);
}

/** Any text that the database could read as a reference: `$a.b`, `$$var.b`. Also checked inside `$literal`. */
function inspectText(text: string, at: string): void {
  if (!text.startsWith('$')) return;
  const variable = text.startsWith('$$');
  const path = text.slice(variable ? 2 : 1);
  if (hasInternalSegment(path)) throw pipelineBlocked('denied_field_ref_in_expr', at);
  const name = takeRoot(path);
  if (variable && !/^[a-z]/.test(name) && !SYSTEM_VARIABLES.has(name)) {
    throw pipelineBlocked('denied_system_variable', at);
  }
}

function inspectRegexExpression(argument: unknown, at: string): void {
  if (!isPlainObject(argument)) throw pipelineBlocked('invalid_regex', at);
  const options = constantText(argument['options'] ?? '');
  for (const name of ['regex', 'pattern']) {
    if (argument[name] !== undefined) inspectRegex(constantText(argument[name]), options, at);
  }
}

/** The pattern must be constant: one from data cannot be checked. */
function inspectRegex(pattern: unknown, options: string | null, at: string): void {
  if (typeof pattern !== 'string' || options === null) throw pipelineBlocked('invalid_regex', at);
  if (Buffer.byteLength(pattern) > MAX_REGEX_BYTES) throw pipelineBlocked('regex_pattern_too_long', at);
  const issue = regexIssue(pattern, options);
  if (issue === 'invalid_regex') throw refuse.invalidQuery(NO_PATTERN);
  if (issue) throw pipelineBlocked(issue, at);
}

function inspectFieldByName(argument: unknown, at: string): void {
  const name = constantText(isPlainObject(argument) && 'field' in argument ? argument['field'] : argument);
  if (name === null || name.startsWith('$') || hasInternalSegment(name))
    throw pipelineBlocked('denied_field_ref_in_expr', at);
}

/** The text when it is constant, else null. */
export function constantText(value: unknown): string | null {
  const text = isPlainObject(value) && Object.keys(value).length === 1 ? value['$literal'] : value;
  return typeof text === 'string' && (text !== value || !text.startsWith('$')) ? text : null;
}

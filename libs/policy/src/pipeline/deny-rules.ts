import { rootOf } from '../model/field-names.js';
import { hasInternalSegment } from '../model/internal-fields.js';
import { isMagicName } from '../model/magic-names.js';
import { isPlainObject } from '../model/plain-object.js';
import { regexFault } from '../regex-safety.js';
import { pipelineBlocked } from './stages.js';

const MAX_DEPTH = 20;
const MAX_REGEX_BYTES = 512;

/** Code, writes, administration, and schema matching, whose keys name columns that no walk would see. */
export const DENIED_OPERATORS: ReadonlySet<string> = new Set(
  [
    '$where $function $accumulator $out $merge $jsonSchema',
    '$collMod $createIndex $dropIndex $planCacheSetFilter $planCacheClear',
  ].flatMap((group) => group.split(' ')),
);

/** Inside `$expr` these turn a filter into a way to read a value character by character. */
const FORENSIC_OPERATORS = new Set(
  [
    '$regexMatch $regexFind $regexFindAll $substr $substrBytes $substrCP',
    '$indexOfBytes $indexOfCP $strLenBytes $strLenCP $strcasecmp',
  ].flatMap((group) => group.split(' ')),
);

const REGEX_EXPRESSIONS = new Set(['$regexMatch', '$regexFind', '$regexFindAll']);
const FIELD_BY_NAME = new Set(['$getField', '$setField', '$unsetField']);
const SYSTEM_VARIABLES = new Set(['ROOT', 'CURRENT', 'NOW', 'REMOVE', 'DESCEND', 'PRUNE', 'KEEP']);

interface Place {
  readonly at: string;
  /** Containers around this one, the stage itself not counted. */
  readonly depth: number;
  readonly inExpr: boolean;
}

/**
 * The rules that hold at any depth of a stage or of a filter in pipeline form.
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
    for (const [key, member] of Object.entries(value)) {
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
    if (key.split('.').some(isMagicName) || key.includes('\0')) throw pipelineBlocked('invalid_key', at);
    return;
  }
  // `$_internal…` operators exist for the database's own use.
  if (DENIED_OPERATORS.has(key) || key.startsWith('$_')) throw pipelineBlocked('nested_denied_operator', at);
  if (place.inExpr && FORENSIC_OPERATORS.has(key)) throw pipelineBlocked('forensic_operator_in_expr', at);
  if (REGEX_EXPRESSIONS.has(key)) inspectRegexExpression(member, at);
  if (FIELD_BY_NAME.has(key)) inspectFieldByName(member, at);
}

/** Any text that the database could read as a reference: `$a.b`, `$$var.b`. Literals are not spared. */
function inspectText(text: string, at: string): void {
  if (!text.startsWith('$')) return;
  const variable = text.startsWith('$$');
  const path = text.slice(variable ? 2 : 1);
  if (hasInternalSegment(path)) throw pipelineBlocked('denied_field_ref_in_expr', at);
  const name = rootOf(path);
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

/** A pattern taken from data could not be judged, so it must be written out. */
function inspectRegex(pattern: unknown, options: string | null, at: string): void {
  if (typeof pattern !== 'string' || options === null) throw pipelineBlocked('invalid_regex', at);
  if (Buffer.byteLength(pattern) > MAX_REGEX_BYTES) throw pipelineBlocked('regex_pattern_too_long', at);
  const fault = regexFault(pattern, options);
  if (fault) throw pipelineBlocked(fault, at);
}

function inspectFieldByName(argument: unknown, at: string): void {
  const name = constantText(isPlainObject(argument) && 'field' in argument ? argument['field'] : argument);
  if (name === null || name.startsWith('$') || hasInternalSegment(name))
    throw pipelineBlocked('denied_field_ref_in_expr', at);
}

/** Text known before the pipeline runs, else null. */
export function constantText(value: unknown): string | null {
  const text = isPlainObject(value) && Object.keys(value).length === 1 ? value['$literal'] : value;
  return typeof text === 'string' && (text !== value || !text.startsWith('$')) ? text : null;
}

import { listConjuncts } from '../aggregate/reorder/filter-paths.js';
import { compileCollation } from '../bson/collation.js';
import { compareValues } from '../bson/compare.js';
import { type Document, isDocument } from '../bson/document.js';
import { expandKeys, keyOfAll, toKey } from '../bson/keys.js';
import { numberKind, toDouble } from '../bson/number.js';
import { shellText } from '../bson/text.js';
import { badValue, createParseError, mongoError, notImplemented, typeMismatch } from '../errors.js';
import { compileProjection } from '../projection/projection.js';
import { holdsOperators } from '../query/field-predicate.js';
import { isRegex } from '../query/regex.js';
import { isTextLanguage } from '../query/text.js';
import { truthy } from '../aggregate/evaluate.js';

const WILDCARD = '$**';

export const isWildcard = (field: string): boolean => field.includes(WILDCARD);

/**
 * Checks the key and the options of a wildcard index. Errors: 67 for a place, kind or option that such an index cannot have, 7246201 for
 * two wildcards; of `wildcardProjection` 2, 9, 14, 51271, 7246209 and those of a projection. 238 for
 * a text index over all fields.
 */
function checkWildcard(spec: Document & { readonly key: Document }, version: unknown): void {
  const fields = Object.keys(spec.key);
  const [wildcard, second] = fields.filter(isWildcard);
  const projection = spec['wildcardProjection'];
  if (projection !== undefined && !isDocument(projection))
    throw typeMismatch("The field 'wildcardProjection' must be an object");
  if (wildcard === undefined) {
    if (projection === undefined) return;
    throw badValue("The field 'wildcardProjection' is only allowed in an index with a '$**' key");
  }
  if (second !== undefined) throw mongoError(7246201, 'an index has at most one wildcard field');
  if (!/^(?:[^$]+\.)?\$\*\*$/.test(wildcard))
    throw mongoError(67, `the wildcard must be the last part of a field: ${wildcard}`);
  if (spec.key[WILDCARD] === 'text') throw notImplemented('a text index over all fields');
  if (Object.values(spec.key).some((kind) => typeof kind === 'string'))
    throw mongoError(67, 'an index with a wildcard has no keys of a plugin');
  const foreign = ['unique', 'sparse', 'expireAfterSeconds'].find((option) => spec[option] !== undefined);
  if (foreign !== undefined) throw mongoError(67, `an index with a wildcard cannot have '${foreign}'`);
  if (version !== undefined && Number(version) < 2)
    throw mongoError(67, 'an index with a wildcard has version 2');
  const beside = fields.filter((field) => field !== wildcard);
  if (projection !== undefined) checkProjection(projection, wildcard);
  else if (beside.length === 0 || wildcard !== WILDCARD) return;
  const within = (field: string): boolean =>
    projection?.[field] === undefined ? !isInclusion(projection) : keeps(projection[field]);
  const overlapping = beside.find(within);
  if (overlapping !== undefined)
    throw mongoError(7246209, `wildcardProjection must exclude '${overlapping}', which is a key of its own`);
}

const keeps = (value: unknown): boolean => value === true || isDocument(value) || Number(value) !== 0;

const isInclusion = (projection: Document | undefined): boolean =>
  projection !== undefined &&
  Object.entries(projection).some(([field, value]) => field !== '_id' && keeps(value));

function checkProjection(projection: Document, wildcard: string): void {
  if (Object.keys(projection).length === 0) throw createParseError("'wildcardProjection' must not be empty");
  if (wildcard !== WILDCARD)
    throw createParseError("'wildcardProjection' is only allowed where the wildcard is '$**'");
  checkFlags(projection);
  compileProjection(projection, { tick: () => {}, now: new Date(0) });
}

function checkFlags(projection: Document): void {
  for (const [field, value] of Object.entries(projection)) {
    if (isDocument(value) && !Object.keys(value).some((key) => key.startsWith('$'))) checkFlags(value);
    else if (typeof value !== 'boolean' && numberKind(value) === undefined)
      throw mongoError(51271, `a wildcardProjection has no computed fields: ${field}`);
  }
}

/** Errors: 7246301 where a field beside the wildcard reaches an array. */
export function checkWildcardKeys(document: Document, beside: readonly (readonly string[])[]): void {
  if (expandKeys(document, beside).multikey)
    throw mongoError(7246301, 'a field beside the wildcard of an index must not be an array');
}

/** An index as listIndexes shows it: `key`, `name` and the options that were set. */
export interface IndexSpec extends Document {
  v: number;
  key: Document;
  name: string;
}

const options = new Set(
  'v key name ns background unique sparse hidden prepareUnique expireAfterSeconds partialFilterExpression collation weights default_language language_override textIndexVersion 2dsphereIndexVersion bits min max wildcardProjection'.split(
    ' ',
  ),
);
const kinds = new Set(['text', '2d', '2dsphere', 'hashed']);
const flags = ['unique', 'sparse', 'hidden', 'prepareUnique'];
const texts = ['default_language', 'language_override'];
const numbers = ['textIndexVersion', '2dsphereIndexVersion', 'bits', 'min', 'max'];
/** Checks a requested index and brings it into stored form. Errors: 9, 14, 67, 197. */
export function normaliseIndex(request: unknown): IndexSpec {
  if (!isDocument(request)) throw typeMismatch('an index specification must be an object');
  const { key, name } = request;
  if (key !== undefined && !isDocument(key)) throw typeMismatch("The field 'key' must be an object");
  if (key === undefined)
    throw createParseError(
      "Error in specification: the 'key' field is a required property of an index specification",
    );
  if (name === undefined)
    throw createParseError(
      "Error in specification: the 'name' field is a required property of an index specification",
    );
  if (typeof name !== 'string') throw typeMismatch("The field 'name' must be a string");
  if (name === '') throw mongoError(67, 'index name cannot be empty');
  for (const option of Object.keys(request)) {
    if (options.has(option)) continue;
    throw mongoError(
      197,
      `The field '${option}' is not valid for an index specification. Specification: ${shellText(request)}`,
    );
  }
  checkKey(key);
  const spec: IndexSpec = { v: 2, key, name };
  for (const option of Object.keys(request)) {
    if (['v', 'key', 'name', 'ns', 'background'].includes(option)) continue;
    checkType(option, request[option]);
    if (flags.includes(option) && !truthy(request[option])) continue;
    spec[option] = flags.includes(option) ? true : request[option];
  }
  checkWildcard(spec, request['v']);
  checkOptions(spec);
  checkText(spec);
  if (Object.values(key).includes('text')) return textForm(spec);
  if (Object.values(key).includes('2dsphere')) spec['2dsphereIndexVersion'] ??= 3;
  return spec;
}

/** Errors: 14. */
function checkType(option: string, value: unknown): void {
  const number = numberKind(value) !== undefined;
  const fits = texts.includes(option)
    ? typeof value === 'string'
    : numbers.includes(option)
      ? number
      : !flags.includes(option) || typeof value === 'boolean' || (number && option !== 'hidden');
  if (!fits)
    throw typeMismatch(`The field '${option}' has the wrong type. Specification: ${shellText(value)}`);
}

function checkKey(key: Document): void {
  const fields = Object.entries(key);
  if (fields.length === 0) throw mongoError(67, 'Index keys cannot be an empty field.');
  if (fields.length > 32) throw mongoError(13103, 'too many compound keys');
  if (fields.filter(([, kind]) => kind === 'hashed').length > 1)
    throw mongoError(31303, 'A maximum of one index field is allowed to be hashed');
  for (const [field, kind] of fields) {
    if (field === '' || field.startsWith('.') || field.endsWith('.') || field.includes('..'))
      throw mongoError(67, 'Index keys cannot contain an empty field.');
    if (
      !isWildcard(field) &&
      field.split('.').some((part) => part.startsWith('$') && !['$id', '$ref', '$db'].includes(part))
    )
      throw mongoError(67, `Index key contains an illegal field name: field name starts with '$': ${field}`);
    if (typeof kind === 'string') {
      if (!kinds.has(kind)) throw mongoError(67, `Unknown index plugin '${kind}'`);
    } else if (numberKind(kind) === undefined) {
      throw mongoError(67, `Values in v:2 index key pattern cannot be of type ${typeof kind}.`);
    } else if (
      isWildcard(field) ? !toDouble(kind) : !Number.isFinite(toDouble(kind)) || toDouble(kind) === 0
    ) {
      throw mongoError(67, 'Values in the index key pattern cannot be 0.');
    }
  }
}

function checkOptions(spec: IndexSpec): void {
  const kinds = Object.values(spec.key);
  checkRange(spec, 'textIndexVersion', 1, 3, 67);
  checkRange(spec, '2dsphereIndexVersion', 1, 3, 67);
  checkRange(spec, 'bits', 1, 32, 72);
  if (kinds.includes('2d') && toDouble(spec['min'] ?? -180) >= toDouble(spec['max'] ?? 180))
    throw mongoError(72, 'the min of a 2d index must be less than its max');
  const seconds = spec['expireAfterSeconds'];
  if (seconds !== undefined) {
    const value = numberKind(seconds) === undefined ? NaN : toDouble(seconds);
    if (!(value >= 0 && value <= 2_147_483_647))
      throw mongoError(67, 'TTL index expireAfterSeconds must be within the range 0 to 2147483647');
    if (Object.keys(spec.key).length !== 1)
      throw mongoError(67, 'TTL indexes are single-field indexes, compound indexes do not support TTL');
    spec['expireAfterSeconds'] = Math.trunc(toDouble(seconds));
  }
  const partial = spec['partialFilterExpression'];
  if (partial !== undefined) {
    if (!isDocument(partial)) throw typeMismatch("The field 'partialFilterExpression' must be an object");
    if (spec['sparse'] === true)
      throw mongoError(67, 'cannot mix "partialFilterExpression" and "sparse" options');
    checkPartialFilter(partial);
  }
  if (spec['unique'] === true && kinds.includes('hashed'))
    throw mongoError(16764, 'Currently hashed indexes cannot guarantee uniqueness. Use a regular index.');
  const onId = Object.keys(spec.key).join() === '_id' && !kinds.includes('hashed');
  const foreign = ['expireAfterSeconds', 'hidden', 'partialFilterExpression', 'sparse'].find(
    (option) => onId && spec[option] !== undefined,
  );
  if (foreign !== undefined)
    throw mongoError(197, `The field '${foreign}' is not valid for an _id index specification.`);
  if (onId && toDouble(spec.key['_id']) !== 1)
    throw badValue(`The field 'key' for an _id index must be {_id: 1}, but got ${shellText(spec.key)}`);
  if (spec.name === '_id_' && !onId)
    throw badValue(`The index name '_id_' is reserved for the _id index, but got ${shellText(spec.key)}`);
  if (spec['collation'] !== undefined) {
    if (!isDocument(spec['collation'])) throw typeMismatch('collation must be an object');
    if (Object.keys(spec['collation']).length === 0)
      throw badValue('the collation of an index must not be empty');
    spec['collation'] = compileCollation(spec['collation'])?.spec ?? { locale: 'simple' };
  }
}

const partialOperators = '$eq $gt $gte $lt $lte $in $all $exists $type $geoWithin $geoIntersects'.split(' ');

/** Errors: 67 for an operator that no partial index knows, 224 for `$expr`. Whether they are well formed shows the index. */
function checkPartialFilter(filter: Document): void {
  for (const [key, argument] of Object.entries(filter)) {
    if (key === '$and' || key === '$or') {
      if (Array.isArray(argument)) argument.filter(isDocument).forEach(checkPartialFilter);
      continue;
    }
    if (key === '$expr') throw mongoError(224, '$expr is not allowed in the query predicate for an index');
    if (key === '$where' || key === '$text') throw mongoError(2, `${key} is not allowed in a partial index`);
    const operators = holdsOperators(argument) ? Object.entries(argument) : [];
    const unknown = operators.find(
      ([name, value]) => !partialOperators.includes(name) || (name === '$exists' && !truthy(value)),
    );
    if (unknown || key.startsWith('$') || isRegex(argument))
      throw mongoError(67, `Expression not supported in partial index: ${shellText({ [key]: argument })}`);
  }
}

function checkRange(spec: IndexSpec, option: string, least: number, most: number, code: number): void {
  const value = toDouble(spec[option] ?? least);
  if (!(value >= least && value <= most))
    throw mongoError(code, `${option} must be from ${least} to ${most}, not ${value}`);
}

/** Errors: 67 for weights, languages and other keys that a text index cannot have, 14. */
function checkText({ key, ...spec }: IndexSpec): void {
  const kinds = Object.values(key);
  const {
    weights = {},
    default_language: language = 'english',
    language_override: override = 'language',
  } = spec;
  if (!kinds.includes('text')) {
    if (spec['weights'] === undefined) return;
    throw mongoError(67, 'the index plugin of a text index is needed for weights');
  }
  if (kinds.lastIndexOf('text') - kinds.indexOf('text') >= kinds.filter((kind) => kind === 'text').length)
    throw mongoError(67, 'the text fields of an index must stand side by side');
  if (kinds.some((kind) => typeof kind === 'string' && kind !== 'text'))
    throw mongoError(67, 'a text index has no keys of another plugin');
  if (!isDocument(weights)) throw typeMismatch("The field 'weights' must be an object");
  for (const weight of Object.values(weights)) {
    const value = numberKind(weight) === undefined ? NaN : toDouble(weight);
    if (!(value >= 1 && value < 100_000)) throw mongoError(67, 'text index weights must be from 1 to 99999');
  }
  if (!isTextLanguage(String(language)))
    throw mongoError(67, `default_language '${String(language)}' is not a language of text indexes`);
  if (override === '' || String(override).startsWith('$'))
    throw mongoError(67, 'language_override must be the name of a field');
}

/** MongoDB stores a text index under the fields `_fts` and `_ftsx`, with the searched fields as weights. */
function textForm(spec: IndexSpec): IndexSpec {
  const key: Document = {};
  const weights: Document = {};
  for (const [field, kind] of Object.entries(spec.key)) {
    if (kind !== 'text') {
      key[field] = kind;
      continue;
    }
    key['_fts'] = 'text';
    key['_ftsx'] = 1;
    if (field !== '_fts') weights[field] = 1;
  }
  const { v, name, key: _, ...rest } = spec;
  return {
    v,
    key,
    name,
    ...rest,
    weights: { ...weights, ...(isDocument(spec['weights']) ? spec['weights'] : {}) },
    default_language: spec['default_language'] ?? 'english',
    language_override: spec['language_override'] ?? 'language',
    textIndexVersion: spec['textIndexVersion'] ?? 3,
  };
}

const identity = [
  'key',
  'collation',
  'partialFilterExpression',
  'wildcardProjection',
  'weights',
  'unique',
  'sparse',
];
const behaviour = ['expireAfterSeconds', 'hidden'];

const agree = (a: IndexSpec, b: IndexSpec, fields: readonly string[]): boolean =>
  fields.every((field) =>
    field === 'partialFilterExpression'
      ? conjunctionKey(a[field]) === conjunctionKey(b[field])
      : compareValues(a[field], b[field]) === 0,
  );

/** The order of conditions makes no other filter. */
const conjunctionKey = (filter: unknown): string =>
  isDocument(filter)
    ? keyOfAll(
        listConjuncts(filter)
          .map((one) => toKey(one))
          .sort(),
      )
    : '';

/**
 * Whether `wanted` is already there. Errors: 86 when its name belongs to another key, 85 when an equivalent index
 * has another name or other options.
 */
export function indexExists(existing: readonly IndexSpec[], wanted: IndexSpec): boolean {
  const requested = `Requested index: ${shellText(wanted)}, existing index: `;
  if (wanted['weights'] !== undefined) {
    const other = existing.find((index) => index['weights'] !== undefined && !agree(index, wanted, identity));
    if (other)
      throw mongoError(
        85,
        `only one text index per collection allowed, found existing text index "${other.name}"`,
      );
  }
  for (const index of existing) {
    const sameKey = agree(index, wanted, identity);
    const sameOptions = agree(index, wanted, behaviour);
    if (index.name === wanted.name) {
      if (!sameKey)
        throw mongoError(
          86,
          'An existing index has the same name as the requested index. When index names are not specified, ' +
            'they are auto generated and can cause conflicts. Please refer to our documentation. ' +
            requested +
            shellText(index),
        );
      if (sameOptions || index.name === '_id_') return true;
      throw mongoError(
        85,
        `An equivalent index already exists with the same name but different options. ${requested}${shellText(index)}`,
      );
    }
    if (!sameKey) continue;
    if (index.name === '_id_') return true;
    throw mongoError(
      85,
      sameOptions
        ? `Index already exists with a different name: ${index.name}`
        : `An equivalent index already exists with a different name and options. ${requested}${shellText(index)}`,
    );
  }
  return false;
}

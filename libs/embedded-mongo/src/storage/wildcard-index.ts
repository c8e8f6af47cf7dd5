import { isDocument, type Document } from '../bson/document.js';
import { expandKeys } from '../bson/index-keys.js';
import { numberKind } from '../bson/number.js';
import { badValue, createParseError, mongoError, notImplemented, typeMismatch } from '../errors.js';
import { compileProjection } from '../projection/projection.js';

const WILDCARD = '$**';

export const isWildcard = (field: string): boolean => field.includes(WILDCARD);

/**
 * Checks the key and the options of a wildcard index. Errors: 67 for a place, kind or option that such an index cannot have, 7246201 for
 * two wildcards; of `wildcardProjection` 2, 9, 14, 51271, 7246209 and those of a projection. 238 for
 * a text index over all fields.
 */
export function checkWildcard(spec: Document & { readonly key: Document }, version: unknown): void {
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

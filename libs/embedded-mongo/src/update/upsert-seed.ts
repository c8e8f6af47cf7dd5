import { mongoError } from '../errors.js';
import { firstKey, getField, isDocument, type Document } from '../bson/document.js';
import { isRegex } from '../query/regex.js';
import { holdsOperators } from '../query/field-predicate.js';
import { readChild, withValue } from './path-copy.js';

/**
 * The document an upsert starts from: every field the filter fixes to one value.
 * Errors: 54 when two equalities fix the same path.
 */
export function seedFromFilter(filter: Document): Document {
  const equalities: [string, unknown][] = [];
  collect(filter, equalities);
  let seed: Document = {};
  for (const [path, value] of equalities) {
    const parts = path.split('.');
    let existing: unknown = seed;
    for (const [i, part] of parts.entries()) {
      existing = readChild(existing, part);
      const leafBelow = existing !== undefined && !isDocument(existing);
      if (existing !== undefined && (i === parts.length - 1 || leafBelow)) {
        throw mongoError(54, `cannot infer query fields to set, path '${path}' is matched twice`);
      }
    }
    seed = withValue(seed, parts, value);
  }
  return seed;
}

function collect(filter: Document, found: [string, unknown][]): void {
  for (const key of Object.keys(filter)) {
    const argument = getField(filter, key);
    if (key === '$and' || (key === '$or' && Array.isArray(argument) && argument.length === 1)) {
      for (const part of argument as unknown[]) if (isDocument(part)) collect(part, found);
    } else if (!key.startsWith('$') && !isRegex(argument)) {
      if (!holdsOperators(argument)) found.push([key, argument]);
      else collectOperators(key, argument, found);
    }
  }
}

function collectOperators(path: string, argument: Document, found: [string, unknown][]): void {
  if (Object.hasOwn(argument, '$eq')) found.push([path, argument['$eq']]);
  for (const name of ['$in', '$all']) {
    const items = getField(argument, name);
    if (!Array.isArray(items) || items.length !== 1 || isRegex(items[0])) continue;
    if (isDocument(items[0]) && firstKey(items[0]) === '$elemMatch') continue;
    found.push([path, items[0]]);
  }
}

import { compilePipeline } from '../aggregate/pipeline.js';
import { withoutPauses } from '../aggregate/stage.js';
import { identical, valuesEqual } from '../bson/compare.js';
import { type Document, firstKey, getField, idFirst, isDocument } from '../bson/document.js';
import { withServerTimes } from '../bson/times.js';
import { typeName } from '../bson/type-name.js';
import { badValue, createParseError, mongoError, createIdError } from '../errors.js';
import type { Filter, QueryContext } from '../query/context.js';
import { holdsOperators } from '../query/field-predicate.js';
import { compilePredicate } from '../query/filter.js';
import { isRegex } from '../query/regex.js';
import { compileModifiers } from './modifiers.js';
import { readChild, withValue } from './path.js';

const allowed = new Set(['$addFields', '$set', '$project', '$unset', '$replaceRoot', '$replaceWith']);

/** An update written as a pipeline over the one document. Errors: 72 for a stage that is no update. */
function compileUpdatePipeline(stages: readonly unknown[], ctx: QueryContext): (doc: Document) => Document {
  for (const stage of stages) {
    if (!isDocument(stage)) throw mongoError(14, 'Each element of the pipeline must be an object');
    const name = firstKey(stage) ?? '';
    if (!allowed.has(name)) throw mongoError(72, `${name} is not allowed to be used within an update`);
  }
  const run = compilePipeline(stages as Document[], ctx);
  return (doc) => {
    const [result] = withoutPauses(run([doc]));
    if (!result) throw badValue('The update pipeline gave no document');
    const id = getField(doc, '_id');
    return id === undefined || Object.hasOwn(result, '_id') ? result : { _id: id, ...result };
  };
}

/**
 * The document an upsert starts from: every field the filter fixes to one value.
 * Errors: 54 when two equalities fix the same path.
 */
function seedFromFilter(filter: Document): Document {
  const equalities: [string, unknown][] = [];
  collect(filter, equalities);
  let seed: Document = {};
  for (const [path, value] of equalities) {
    const parts = path.split('.');
    let existing: unknown = seed;
    for (const [i, part] of parts.entries()) {
      existing = readChild(existing, part);
      const leafBelow = existing !== undefined && !isDocument(existing);
      if (existing !== undefined && (i === parts.length - 1 || leafBelow))
        throw mongoError(54, `cannot infer query fields to set, path '${path}' is matched twice`);
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

interface UpdateOptions {
  readonly arrayFilters?: Document[];
  readonly ctx: QueryContext;
}

interface UpdateResult {
  readonly doc: Document;
  /** False when the stored bytes would not change. */
  readonly modified: boolean;
}

/** A compiled update. */
export interface Update {
  /** True for a whole new document instead of modifiers or a pipeline. */
  readonly replacement: boolean;
  /**
   * The document after the update; the input is never changed. `filter` locates positional `$`; `onInsert`
   * applies `$setOnInsert`. Errors: 66 when `_id` would change, 28 and 2 and 14 as the modifiers say.
   */
  apply(doc: Document, filter?: Filter, onInsert?: boolean): UpdateResult;
  /** The document an upsert starts from: the equalities of the filter, of `_id` alone for a replacement. */
  upsertSeed(filter: Document): Document;
}

type Change = (doc: Document, filter: Filter | undefined, onInsert: boolean) => Document;

/** Compiles modifiers, a replacement or a pipeline. Errors: 9 for unknown modifiers, 40 for conflicting ones. */
export function compileUpdate(update: Document | Document[], options: UpdateOptions): Update {
  const { ctx, arrayFilters = [] } = options;
  if (Array.isArray(update)) {
    if (arrayFilters.length > 0)
      throw createParseError('arrayFilters may not be specified for pipeline-style updates');
    return finish(compileUpdatePipeline(update, ctx), false);
  }
  if (!isDocument(update)) throw createParseError('Update argument must be either an object or an array');
  if (firstKey(update)?.startsWith('$'))
    return finish(
      compileModifiers(update, arrayFilters, {
        ctx,
        compileFilter: (filter) => compilePredicate(filter, ctx),
      }),
      false,
    );
  if (arrayFilters.length > 0)
    throw createParseError('arrayFilters may not be specified for replacement-style updates');
  return finish(replacement(update), true, !Object.hasOwn(update, '_id'));
}

function replacement(update: Document): Change {
  for (const key of Object.keys(update)) {
    if (key.startsWith('$'))
      throw mongoError(52, `The dollar ($) prefixed field '${key}' is not allowed in a replacement`);
  }
  return (doc) => {
    const id = getField(doc, '_id');
    const after = withServerTimes(update);
    return id === undefined || Object.hasOwn(after, '_id') ? after : { _id: id, ...after };
  };
}

/** `always` counts a document as changed whatever it was, as MongoDB does with a replacement that names no `_id`. */
function finish(change: Change, isReplacement: boolean, always = false): Update {
  return {
    replacement: isReplacement,
    apply: (doc, filter, onInsert = false) => {
      const changed = keepId(doc, idFirst(change(doc, filter, onInsert)));
      if (!always && (changed === doc || identical(changed, doc))) return { doc, modified: false };
      return { doc: changed, modified: true };
    },
    upsertSeed: (filter) => {
      const seed = seedFromFilter(filter);
      if (!isReplacement) return seed;
      return Object.hasOwn(seed, '_id') ? { _id: seed['_id'] } : {};
    },
  };
}

/** An `_id` that compares equal is accepted, and the stored one kept. */
function keepId(before: Document, after: Document): Document {
  const old = getField(before, '_id');
  const id = getField(after, '_id');
  if (Array.isArray(id) || typeName(id) === 'regex')
    throw mongoError(53, `The '_id' value cannot be of type ${typeName(id)}`);
  if (old === undefined || identical(old, id)) return after;
  if (id !== undefined && valuesEqual(old, id)) return { ...after, _id: old };
  throw createIdError();
}

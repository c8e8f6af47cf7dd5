import { compareStrings, identical } from '../bson/compare.js';
import { type Document, getField, isDocument } from '../bson/document.js';
import { arrayIndex } from '../bson/path.js';
import { typeName } from '../bson/type-name.js';
import { badValue, createParseError, mongoError, createIdError } from '../errors.js';
import type { Filter } from '../query/context.js';
import { arrayModifiers } from './array-modifiers.js';
import type { Modifier, ModifierContext } from './field-modifiers.js';
import { absent, fieldModifiers, renameTarget, unchanged } from './field-modifiers.js';
import type { ArrayFilters, UpdatePath } from './path.js';
import {
  compileArrayFilters,
  parseUpdatePath,
  readChild,
  requireViable,
  resolvePath,
  TouchedPaths,
  valueAt,
  withoutValue,
  withValue,
} from './path.js';

interface Change {
  readonly path: UpdatePath;
  readonly onInsertOnly: boolean;
  apply(current: Document, place: string[], original: Document): Document;
}

const compilers = { ...fieldModifiers, ...arrayModifiers };

/** Compiles `{$set: {…}, $inc: {…}, …}` to one function over documents. */
export function compileModifiers(
  update: Document,
  arrayFilters: readonly unknown[],
  context: ModifierContext,
): (doc: Document, filter: Filter | undefined, onInsert: boolean) => Document {
  const filters = compileArrayFilters(arrayFilters, (filter) => context.compileFilter(filter));
  const changes: Change[] = [];
  for (const name of Object.keys(update))
    changes.push(...listChanges(name, getField(update, name), filters, context));
  const touched = new TouchedPaths();
  for (const change of changes) touched.add(change.path.text.split('.'));
  checkFiltersUsed(filters, changes);
  changes.sort((a, b) => comparePaths(a.path.text.split('.'), b.path.text.split('.')));
  const dynamic = changes.some((change) => change.path.dynamic);

  return (doc, filter, onInsert) => {
    const matched = dynamic ? filter?.findMatchedPosition(doc) : undefined;
    const concrete = dynamic ? new TouchedPaths() : undefined;
    let result = doc;
    for (const change of changes) {
      if (change.onInsertOnly && !onInsert) continue;
      context.ctx.tick();
      for (const place of resolvePath(change.path, doc, matched)) {
        concrete?.add(place);
        result = change.apply(result, place, doc);
      }
    }
    return result;
  };
}

function listChanges(
  name: string,
  fields: unknown,
  filters: ArrayFilters,
  context: ModifierContext,
): Change[] {
  const compile = Object.hasOwn(compilers, name) ? compilers[name] : undefined;
  if (!compile && name !== '$rename') throw createParseError(`Unknown modifier: ${name}`);
  if (!isDocument(fields)) throw createParseError(`${name} operates on fields, not on a ${typeName(fields)}`);
  return Object.keys(fields).flatMap((field): Change[] => {
    const argument = getField(fields, field);
    const path = parseUpdatePath(field, filters);
    // Below the top a name may begin with a dollar, and in a new document.
    if (/^\$(?!(ref|id|db)(\.|$))/.test(field) && !['$setOnInsert', '$rename', '$unset'].includes(name))
      throw mongoError(52, `The dollar ($) prefixed field '${field}' is not valid for storage.`);
    if (!compile) return renameChanges(path, renameTarget(field, argument), filters);
    const modifier = compile(argument, field, context);
    return [
      {
        path,
        onInsertOnly: name === '$setOnInsert',
        apply: (doc, place, original) => applyAt(doc, place, original, modifier),
      },
    ];
  });
}

function applyAt(doc: Document, place: string[], original: Document, modifier: Modifier): Document {
  const current = valueAt(doc, place);
  const next = modifier(current, { path: place.join('.'), doc: original });
  if (next === unchanged) return doc;
  if (next === absent) return withoutValue(doc, place);
  return current !== undefined && identical(current, next) ? doc : withValue(doc, place, next);
}

/** The value travels from the original document, so that a rename sees what was there before the update. */
function renameChanges(from: UpdatePath, target: string, filters: ArrayFilters): Change[] {
  const source = from.text.split('.');
  const to = parseUpdatePath(target, filters);
  return [
    {
      path: from,
      onInsertOnly: false,
      apply: (doc, place, original) => {
        refuseArrays(original, source, 'source', from.text);
        if (valueAt(original, source) === undefined) requireViable(original, source);
        return withoutValue(doc, place);
      },
    },
    {
      path: to,
      onInsertOnly: false,
      apply: (doc, place, original) => {
        const value = valueAt(original, source);
        if (value === undefined) return doc;
        if (place[0] === '_id') throw createIdError();
        refuseArrays(original, place, 'destination', target);
        return withValue(doc, place, value);
      },
    },
  ];
}

function refuseArrays(doc: Document, parts: readonly string[], role: string, text: string): void {
  let value: unknown = doc;
  for (const [i, part] of parts.entries()) {
    if (Array.isArray(value))
      throw badValue(`The ${role} of $rename, '${text}', is in the array '${parts[i - 1]}'`);
    value = readChild(value, part);
  }
}

function checkFiltersUsed(filters: ArrayFilters, changes: readonly Change[]): void {
  const used = new Set<string>();
  for (const change of changes) {
    for (const step of change.path.steps) if (step.kind === 'filtered') used.add(step.identifier);
  }
  for (const identifier of filters.keys()) {
    if (!used.has(identifier))
      throw createParseError(`The array filter for identifier '${identifier}' was not used`);
  }
}

/** Modifiers run in the order of their paths: names as strings, positions as numbers. */
function comparePaths(a: readonly string[], b: readonly string[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const [x, y] = [a[i] as string, b[i] as string];
    if (x === y) continue;
    const [m, n] = [arrayIndex(x), arrayIndex(y)];
    return m >= 0 && n >= 0 ? m - n : compareStrings(x, y);
  }
  return a.length - b.length;
}

import { getField, isDocument, type Document } from '../bson/document.js';
import { leafValues, parsePath } from '../bson/path.js';
import { searchFault } from './faults.js';

/** Wildcards of one path; more would make matching a name costly. */
const MAX_WILDCARDS = 4;

/** Where a search looks: one path, or all paths that a wildcard names. */
export interface SearchPath {
  /** As written; a key for what is remembered about it. */
  readonly name: string;
  values(doc: Document): unknown[];
}

/** A path, a list of paths, `{value}` or `{wildcard}`. Errors: 8 for anything else, and for other analyzers. */
export function searchPaths(spec: unknown, operator: string): SearchPath[] {
  if (spec === undefined) throw searchFault(`"${operator}.path" is required`);
  const list: readonly unknown[] = Array.isArray(spec) ? spec : [spec];
  if (list.length === 0) throw searchFault(`"${operator}.path" cannot be empty`);
  return list.map((path) => searchPath(path, operator));
}

function searchPath(spec: unknown, operator: string): SearchPath {
  if (typeof spec === 'string') return plain(spec, operator);
  if (isDocument(spec) && Object.keys(spec).length === 1) {
    const value = getField(spec, 'value');
    if (typeof value === 'string') return plain(value, operator);
    const wildcard = getField(spec, 'wildcard');
    if (typeof wildcard === 'string') return wild(wildcard, operator);
  }
  throw searchFault(`"${operator}.path" must be a string, {value} or {wildcard}`);
}

function plain(text: string, operator: string): SearchPath {
  if (text === '' || text.startsWith('$')) throw searchFault(`"${operator}.path" is no field path`);
  const path = parsePath(text);
  return { name: text, values: (doc) => leafValues(doc, path) };
}

function wild(text: string, operator: string): SearchPath {
  const parts = text.split('*');
  if (text === '' || text.includes('**') || parts.length - 1 > MAX_WILDCARDS) {
    throw searchFault(`"${operator}.path.wildcard" holds at most ${MAX_WILDCARDS} single asterisks`);
  }
  const pattern = new RegExp(`^${parts.map(escapeText).join('.*')}$`, 'su');
  return { name: `*:${text}`, values: (doc) => [...leavesWithin(doc, '', pattern)] };
}

const escapeText = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');

function* leavesWithin(value: unknown, path: string, pattern: RegExp): Iterable<unknown> {
  if (Array.isArray(value)) for (const item of value) yield* leavesWithin(item, path, pattern);
  else if (isDocument(value)) {
    for (const [name, member] of Object.entries(value))
      yield* leavesWithin(member, path === '' ? name : `${path}.${name}`, pattern);
  } else if (pattern.test(path)) yield value;
}

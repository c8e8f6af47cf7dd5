import { type Document, getField, isDocument } from '../bson/document.js';
import { leafValues, parsePath } from '../bson/path.js';
import { searchFault, searchLack } from '../errors.js';
import { enableLinearEngine } from '../query/regex.js';

/** A word of a text, and where it stands in it. */
interface Word {
  /** Lower case, as it is compared. */
  readonly term: string;
  readonly start: number;
  readonly end: number;
}

/** Words as the standard analyzer of Atlas Search makes them: split where no letter or digit is, lower case, none dropped. */
export function splitWords(text: string): Word[] {
  return [...text.matchAll(/[\p{L}\p{N}_][\p{L}\p{N}\p{M}_\u00ad\u200c-\u200f\u2060\ufeff]*/gu)].map(
    (match) => ({
      term: match[0].toLowerCase(),
      start: match.index,
      end: match.index + match[0].length,
    }),
  );
}

export const listTerms = (text: string): string[] => splitWords(text).map(({ term }) => term);

/**
 * How many letters must be inserted, deleted, replaced or swapped with their neighbour to make one word the other; more
 * than `most` when it takes more.
 */
export function editDistance(left: string, right: string, most: number): number {
  if (Math.abs(left.length - right.length) > most) return most + 1;
  let before: number[] = [];
  let above = Array.from({ length: right.length + 1 }, (_, at) => at);
  for (let i = 1; i <= left.length; i++) {
    const row = [i];
    for (let j = 1; j <= right.length; j++) {
      const same = left[i - 1] === right[j - 1];
      const replaced = (above[j - 1] as number) + (same ? 0 : 1);
      let best = Math.min(replaced, (above[j] as number) + 1, (row[j - 1] as number) + 1);
      const swapped = i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1];
      if (swapped) best = Math.min(best, (before[j - 2] as number) + 1);
      row.push(best);
    }
    if (Math.min(...row) > most) return most + 1;
    before = above;
    above = row;
  }
  return above[right.length] as number;
}

/** The usual constants of BM25: how soon repetition stops to count, and how much long texts are held back. */
const K1 = 1.2;
const B = 0.75;

interface PathStatistics {
  readonly terms: ReadonlyMap<Document, readonly string[]>;
  /** In how many documents a term stands. */
  readonly documents: ReadonlyMap<string, number>;
  readonly averageLength: number;
}

/** The documents of one search, and what is known of their words. */
export class Corpus {
  private readonly statistics = new Map<string, PathStatistics>();

  constructor(
    readonly documents: readonly Document[],
    private readonly tick: () => void,
  ) {}

  terms(doc: Document, path: SearchPath): readonly string[] {
    return this.of(path).terms.get(doc) ?? [];
  }

  /** BM25 of one term that stands `count` times in the document. */
  score(doc: Document, path: SearchPath, term: string, count: number): number {
    const { documents, averageLength } = this.of(path);
    const holding = documents.get(term) ?? 0;
    const rarity = Math.log(1 + (this.documents.length - holding + 0.5) / (holding + 0.5));
    const length = this.terms(doc, path).length;
    const held = count + K1 * (1 - B + (B * length) / (averageLength || 1));
    return (rarity * count) / held;
  }

  private of(path: SearchPath): PathStatistics {
    const known = this.statistics.get(path.name);
    if (known) return known;
    const terms = new Map<Document, string[]>();
    const documents = new Map<string, number>();
    let length = 0;
    for (const doc of this.documents) {
      this.tick();
      const own = path.values(doc).flatMap((value) => (typeof value === 'string' ? listTerms(value) : []));
      if (own.length === 0) continue;
      terms.set(doc, own);
      length += own.length;
      for (const term of new Set(own)) documents.set(term, (documents.get(term) ?? 0) + 1);
    }
    const statistics = { terms, documents, averageLength: terms.size === 0 ? 0 : length / terms.size };
    this.statistics.set(path.name, statistics);
    return statistics;
  }
}

/** Wildcards of one path; more would make matching a name costly. */
const MAX_WILDCARDS = 4;

/** Where a search looks: one path, or all paths that a wildcard names. */
export interface SearchPath {
  /** As written; a key for what is remembered about it. */
  readonly name: string;
  values(doc: Document): unknown[];
}

/** A path, a list of paths, `{value}` or `{wildcard}`. Errors: 238 for other analyzers, 8 for anything else. */
export function searchPaths(spec: unknown, operator: string): SearchPath[] {
  if (spec === undefined) throw searchFault(`"${operator}.path" is required`);
  const list: readonly unknown[] = Array.isArray(spec) ? spec : [spec];
  if (list.length === 0) throw searchFault(`"${operator}.path" cannot be empty`);
  return list.map((path) => searchPath(path, operator));
}

function searchPath(spec: unknown, operator: string): SearchPath {
  if (typeof spec === 'string') return plainPath(spec);
  if (isDocument(spec) && Object.hasOwn(spec, 'multi')) throw searchLack('the analyzer of a path');
  if (isDocument(spec) && Object.keys(spec).length === 1) {
    const value = getField(spec, 'value');
    if (typeof value === 'string') return plainPath(value);
    const wildcard = getField(spec, 'wildcard');
    if (typeof wildcard === 'string') return wild(wildcard, operator);
  }
  throw searchFault(`"${operator}.path" must be a string, {value} or {wildcard}`);
}

/** The path of an operator that takes one field. Errors: 8. */
export function onePath(spec: Document, operator: string): SearchPath {
  const path = getField(spec, 'path');
  if (typeof path === 'string') return plainPath(path);
  throw searchFault(`"${operator}.path" must be a string`);
}

function plainPath(text: string): SearchPath {
  const path = parsePath(text);
  return { name: text, values: (doc) => leafValues(doc, path) };
}

function wild(text: string, operator: string): SearchPath {
  const parts = text.split('*');
  if (text === '' || text.includes('**') || parts.length - 1 > MAX_WILDCARDS)
    throw searchFault(`"${operator}.path.wildcard" holds at most ${MAX_WILDCARDS} single asterisks`);
  enableLinearEngine();
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

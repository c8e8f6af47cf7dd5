import { Long } from 'bson';
import type { StageCompiler, StageRun, StageTable } from '../aggregate/stage.js';
import { gather, sortWithinMemory, visitAll } from '../aggregate/stage.js';
import { compareValues } from '../bson/compare.js';
import { type Document, getField, isDocument, setField } from '../bson/document.js';
import { numberKind } from '../bson/number.js';
import { searchFault, searchLack, searchNotEnabled } from '../errors.js';
import type { QueryContext } from '../query/context.js';
import type { PAUSE, Step } from '../server/steps.js';
import { Corpus, searchPaths, splitWords } from './corpus.js';
import type { FoundDocument, HitTest, SearchOperator } from './operator.js';
import { checkPreference, onlyMembers, wholeMember } from './operator.js';
import { compileOperator } from './text-operators.js';
import { compileVectorSearch } from './vector-search.js';

/** Counts one facet over the documents that were found. */
type FacetCounter = (documents: readonly Document[]) => Document[];

/** Errors: 8 for a malformed facet. */
function compileFacets(spec: unknown): (documents: readonly Document[]) => Document {
  if (!isDocument(spec) || Object.keys(spec).length === 0)
    throw searchFault('"facet.facets" must hold at least one facet');
  const counters = Object.keys(spec).map((name): [string, FacetCounter] => {
    const facet = getField(spec, name);
    if (!isDocument(facet)) throw searchFault(`"facet.facets.${name}" must be a document`);
    return [name, compileFacet(facet, `facet.facets.${name}`)];
  });
  return (documents) => {
    const result: Document = {};
    for (const [name, counter] of counters) setField(result, name, { buckets: counter(documents) });
    return result;
  };
}

function compileFacet(facet: Document, at: string): FacetCounter {
  const type = getField(facet, 'type');
  const path = getField(facet, 'path');
  onlyMembers(facet, at, [
    'type',
    'path',
    ...(type === 'string' ? ['numBuckets'] : ['boundaries', 'default']),
  ]);
  if (typeof path !== 'string') throw searchFault(`"${at}.path" must be a string`);
  const [field] = searchPaths(path, at);
  const values = (doc: Document): unknown[] => field?.values(doc) ?? [];
  if (type === 'string') return stringFacet(values, wholeMember(facet, 'numBuckets', at, 10, [1, 1000]));
  const fits = type === 'number' ? isNumber : type === 'date' ? isDate : undefined;
  if (fits) return rangeFacet(values, readBoundaries(facet, at, fits), facet, fits);
  throw searchFault(`"${at}.type" must be one of [string, number, date]`);
}

const isNumber = (value: unknown): boolean => numberKind(value) !== undefined;
const isDate = (value: unknown): boolean => value instanceof Date;

function readBoundaries(facet: Document, at: string, fits: (value: unknown) => boolean): readonly unknown[] {
  const given = getField(facet, 'boundaries');
  if (!Array.isArray(given) || given.length < 2 || given.length > 1000 || !given.every(fits))
    throw searchFault(`"${at}.boundaries" must hold 2 to 1000 values of the facet's type`);
  const boundaries: readonly unknown[] = given;
  const ascending = boundaries.every((value, i) => i === 0 || compareValues(boundaries[i - 1], value) < 0);
  if (!ascending) throw searchFault(`"${at}.boundaries" must be in ascending order`);
  return boundaries;
}

/** Most frequent first; a value counts once per document. */
function stringFacet(values: (doc: Document) => unknown[], most: number): FacetCounter {
  return (documents) => {
    const counts = new Map<string, number>();
    for (const doc of documents) {
      const own = new Set(values(doc).filter((value): value is string => typeof value === 'string'));
      for (const value of own) counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    return [...counts]
      .sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))
      .slice(0, most)
      .map(([value, count]) => bucket(value, count));
  };
}

/** Every range has its bucket, empty ones too; `default` names one for what lies outside. */
function rangeFacet(
  values: (doc: Document) => unknown[],
  boundaries: readonly unknown[],
  facet: Document,
  fits: (value: unknown) => boolean,
): FacetCounter {
  const other = getField(facet, 'default');
  if (other !== undefined && typeof other !== 'string')
    throw searchFault('the "default" of a facet must be a string');
  const findRange = (value: unknown): number => {
    const above = boundaries.findIndex((boundary) => compareValues(value, boundary) < 0);
    return above <= 0 ? -1 : above - 1;
  };
  return (documents) => {
    const counts = boundaries.slice(1).map(() => 0);
    let outside = 0;
    for (const doc of documents) {
      const ranges = new Set(values(doc).filter(fits).map(findRange));
      for (const range of ranges) {
        if (range < 0) outside += 1;
        else counts[range] = (counts[range] ?? 0) + 1;
      }
    }
    const buckets = counts.map((count, i) => bucket(boundaries[i], count));
    return other === undefined ? buckets : [...buckets, bucket(other, outside)];
  };
}

const bucket = (id: unknown, count: number): Document => ({ _id: id, count: Long.fromNumber(count) });

/** The passages of one document that hold what was looked for. */
type Highlighter = (doc: Document) => Document[];

/** Errors: 8 for a malformed `highlight`. */
function compileHighlight(spec: unknown, isHit: HitTest): Highlighter {
  if (!isDocument(spec)) throw searchFault('"highlight" must be a document');
  const paths = searchPaths(getField(spec, 'path'), 'highlight');
  const examined = wholeMember(spec, 'maxCharsToExamine', 'highlight', 500_000, [1, Infinity]);
  const passages = wholeMember(spec, 'maxNumPassages', 'highlight', 5, [1, Infinity]);
  onlyMembers(spec, 'highlight', ['path', 'maxCharsToExamine', 'maxNumPassages']);
  return (doc) =>
    paths.flatMap((path) => {
      const found = path
        .values(doc)
        .filter((value): value is string => typeof value === 'string')
        .flatMap((value) => value.slice(0, examined).match(sentence) ?? [])
        .map((text) => passage(text, (term) => isHit(path.name, term)))
        .filter(({ hits }) => hits > 0)
        .sort((a, b) => b.hits - a.hits);
      return found
        .slice(0, passages)
        .map(({ texts, hits }) => ({ score: hits, path: path.name.replace(/^\*:/, ''), texts }));
    });
}

const sentence = /[^.!?\n]+[.!?\n]*\s*|[.!?\n]+/gu;

function passage(text: string, isHit: (term: string) => boolean): { texts: Document[]; hits: number } {
  const texts: Document[] = [];
  let at = 0;
  let hits = 0;
  const plain = (end: number): void => {
    if (end > at) texts.push({ value: text.slice(at, end), type: 'text' });
  };
  for (const { term, start, end } of splitWords(text)) {
    if (!isHit(term)) continue;
    plain(start);
    texts.push({ value: text.slice(start, end), type: 'hit' });
    at = end;
    hits += 1;
  }
  plain(text.length);
  return { texts, hits };
}

/** Members of the stage beside its operator. */
const STAGE_MEMBERS =
  'index highlight count returnStoredSource scoreDetails concurrent searchNodePreference'.split(' ');
const LACKING = ['sort', 'searchAfter', 'searchBefore', 'tracking', 'returnScope'];

/** Errors: 31082 where search is off, 8 for a malformed search, 238 for what is not here. */
const compileSearchStage: StageCompiler = (spec, { ctx }, name) => {
  if (!ctx.search) throw searchNotEnabled(name);
  if (name === '$vectorSearch') return vectorStage(spec, ctx);
  if (!isDocument(spec)) throw searchFault(`${name} must be a document`);
  checkPreference(spec);
  for (const member of LACKING) {
    if ((getField(spec, member) ?? null) !== null) throw searchLack(`the option ${member}`);
  }
  for (const flag of ['returnStoredSource', 'scoreDetails', 'concurrent'])
    if (Object.hasOwn(spec, flag) && typeof spec[flag] !== 'boolean')
      throw searchFault(`"${flag}" must be a boolean`);
  const kind = countKind(getField(spec, 'count') ?? undefined);
  if (getField(spec, 'returnStoredSource') === true || getField(spec, 'scoreDetails') === true)
    throw searchLack('stored source and score details');
  const index = getField(spec, 'index') ?? 'default';
  if (typeof index !== 'string' || index === '') throw searchFault('"index" must be a string');
  const run = name === '$search' ? textStage(spec, ctx) : metaStage(spec, ctx, kind);
  if (!ctx.search.misses?.(index, 'search')) return run;
  return () => (name === '$search' ? [] : [{ count: { total: Long.ZERO } }]);
};

export const searchStages: StageTable = {
  $search: compileSearchStage,
  $searchMeta: compileSearchStage,
  $vectorSearch: compileSearchStage,
};

function textStage(spec: Document, ctx: QueryContext): StageRun {
  const operator = compileOperator(spec, [...STAGE_MEMBERS, ...LACKING]);
  const wanted = getField(spec, 'highlight') ?? undefined;
  const highlighter = wanted === undefined ? undefined : compileHighlight(wanted, operator.hits);
  return function* (source) {
    const matches = yield* searchMatching(operator, source, ctx);
    for (const { doc, score } of yield* sortWithinMemory(ctx, matches, (a, b) => b.score - a.score)) {
      const marks = highlighter && { searchHighlights: highlighter(doc) };
      ctx.metadata?.set(doc, { searchScore: score, ...marks });
      yield doc;
    }
  };
}

function vectorStage(spec: unknown, ctx: QueryContext): StageRun {
  const find = compileVectorSearch(spec, ctx);
  return function* (source) {
    for (const { doc, score } of yield* find(source)) {
      ctx.metadata?.set(doc, { vectorSearchScore: score });
      yield doc;
    }
  };
}

/** One document: how many there are, and the facets. */
function metaStage(spec: Document, ctx: QueryContext, kind: 'total' | 'lowerBound'): StageRun {
  const facet = getField(spec, 'facet');
  if (facet !== undefined && !isDocument(facet)) throw searchFault('"facet" must be a document');
  onlyMembers(facet ?? {}, 'facet', ['operator', 'facets']);
  if (facet) onlyMembers(spec, '$searchMeta', ['facet', ...STAGE_MEMBERS, ...LACKING]);
  const inner = facet === undefined ? undefined : getField(facet, 'operator');
  if (inner !== undefined && !isDocument(inner)) throw searchFault('"facet.operator" must be a document');
  const operator =
    facet === undefined
      ? compileOperator(spec, [...STAGE_MEMBERS, ...LACKING])
      : inner && compileOperator(inner);
  const counted = facet === undefined ? undefined : compileFacets(getField(facet, 'facets'));
  return function* (source) {
    if (ctx.search?.exists === false) return;
    const documents = operator
      ? (yield* searchMatching(operator, source, ctx)).map(({ doc }) => doc)
      : yield* gather(ctx, source);
    yield {
      count: { [kind]: Long.fromNumber(documents.length) },
      ...(counted && { facet: counted(documents) }),
    };
  };
}

function countKind(count: unknown): 'total' | 'lowerBound' {
  if (count === undefined) return 'lowerBound';
  if (!isDocument(count)) throw searchFault('"count" must be a document');
  onlyMembers(count, 'count', ['type', 'threshold']);
  wholeMember(count, 'threshold', 'count', 1000, [0, 0x7fffffff]);
  const type = getField(count, 'type') ?? 'lowerBound';
  if (type === 'total' || type === 'lowerBound') return type;
  throw searchFault('"count.type" must be one of [lowerBound, total]');
}

function* searchMatching(
  operator: SearchOperator,
  source: Iterable<Step<Document>>,
  ctx: QueryContext,
): Generator<typeof PAUSE, FoundDocument[]> {
  const documents = yield* gather(ctx, source);
  const match = operator.over(new Corpus(documents, ctx.tick));
  const found: FoundDocument[] = [];
  yield* visitAll(ctx, documents, (doc) => {
    const score = match(doc);
    if (score !== null) found.push({ doc, score });
  });
  return found;
}

import { Long } from 'bson';
import { getField, isDocument, type Document } from '../bson/document.js';
import { mongoError } from '../errors.js';
import type { QueryContext, SearchMetadata } from '../query/context.js';
import { gather, sortWithinMemory, visitAll, type StageRun } from '../aggregate/stage.js';
import type { PAUSE, Step } from '../server/drain.js';
import { compileOperator } from './compile-search.js';
import { Corpus } from './corpus.js';
import { compileFacets } from './facets.js';
import { searchFault, searchLack, searchNotEnabled } from './faults.js';
import { compileHighlight, type Highlighter } from './highlight.js';
import type { FoundDocument, SearchOperator } from './operator.js';
import { compileVectorSearch } from './vector-search.js';

/** A compiled search, and what later stages can ask of the documents it finds. */
export interface SearchStage {
  readonly run: StageRun;
  readonly found?: SearchMetadata;
}

/** Members of the stage beside its operator. */
const STAGE_MEMBERS = ['index', 'highlight', 'count', 'returnStoredSource', 'scoreDetails', 'concurrent'];
const LACKING = ['sort', 'searchAfter', 'searchBefore', 'tracking', 'returnScope'];

export const SEARCH_STAGES: ReadonlySet<string> = new Set(['$search', '$searchMeta', '$vectorSearch']);

/** Errors: 31082 where search is off, 40602 behind other stages, 8 for a malformed search, 238 for what is not here. */
export function compileSearchStage(
  name: string,
  spec: unknown,
  position: number,
  ctx: QueryContext,
): SearchStage {
  if (!ctx.search) throw searchNotEnabled(name);
  if (position > 0) throw mongoError(40602, `${name} is only valid as the first stage in a pipeline.`);
  if (name === '$vectorSearch') return vectorStage(spec, ctx);
  if (!isDocument(spec)) throw searchFault(`${name} must be a document`);
  for (const member of LACKING) {
    if (Object.hasOwn(spec, member)) throw searchLack(`the option ${member}`);
  }
  if (getField(spec, 'returnStoredSource') === true || getField(spec, 'scoreDetails') === true)
    throw searchLack('stored source and score details');
  const index = getField(spec, 'index') ?? 'default';
  if (typeof index !== 'string' || index === '') throw searchFault('"index" must be a string');
  return name === '$search' ? textStage(spec, ctx) : metaStage(spec, ctx);
}

function textStage(spec: Document, ctx: QueryContext): SearchStage {
  const operator = compileOperator(spec, STAGE_MEMBERS);
  const wanted = getField(spec, 'highlight');
  const highlighter = wanted === undefined ? undefined : compileHighlight(wanted, operator.hits);
  const scores = new WeakMap<Document, number>();
  return {
    found: metadata('searchScore', scores, highlighter),
    run: function* (source) {
      const matches = yield* searchMatching(operator, source, ctx);
      yield* rememberScores(yield* sortWithinMemory(ctx, matches, (a, b) => b.score - a.score), scores);
    },
  };
}

function vectorStage(spec: unknown, ctx: QueryContext): SearchStage {
  const find = compileVectorSearch(spec, ctx);
  const scores = new WeakMap<Document, number>();
  return {
    found: metadata('vectorSearchScore', scores),
    run: function* (source) {
      yield* rememberScores(yield* find(source), scores);
    },
  };
}

/** One document: how many there are, and the facets. */
function metaStage(spec: Document, ctx: QueryContext): SearchStage {
  const facet = getField(spec, 'facet');
  if (facet !== undefined && !isDocument(facet)) throw searchFault('"facet" must be a document');
  const inner = facet === undefined ? undefined : getField(facet, 'operator');
  if (inner !== undefined && !isDocument(inner)) throw searchFault('"facet.operator" must be a document');
  const operator =
    facet === undefined ? compileOperator(spec, STAGE_MEMBERS) : inner && compileOperator(inner);
  const counted = facet === undefined ? undefined : compileFacets(getField(facet, 'facets'));
  const kind = countKind(getField(spec, 'count'));
  return {
    run: function* (source) {
      if (ctx.search?.exists === false) return;
      const documents = operator
        ? (yield* searchMatching(operator, source, ctx)).map(({ doc }) => doc)
        : yield* gather(ctx, source);
      yield {
        count: { [kind]: Long.fromNumber(documents.length) },
        ...(counted && { facet: counted(documents) }),
      };
    },
  };
}

function countKind(count: unknown): 'total' | 'lowerBound' {
  if (count === undefined) return 'lowerBound';
  const type = isDocument(count) ? (getField(count, 'type') ?? 'lowerBound') : undefined;
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

function* rememberScores(
  found: readonly FoundDocument[],
  scores: WeakMap<Document, number>,
): Iterable<Document> {
  for (const { doc, score } of found) {
    scores.set(doc, score);
    yield doc;
  }
}

function metadata(
  scoreName: 'searchScore' | 'vectorSearchScore',
  scores: WeakMap<Document, number>,
  highlighter?: Highlighter,
): SearchMetadata {
  return {
    read: (name) => {
      if (name === scoreName) return (doc) => scores.get(doc);
      if (name === 'searchHighlights' && highlighter)
        return (doc) => (scores.has(doc) ? highlighter(doc) : undefined);
      return undefined;
    },
  };
}

import { Binary } from 'bson';
import { sortWithinMemory, visitAll } from '../aggregate/stage.js';
import { type Document, getField, isDocument } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { parsePath, readNested } from '../bson/path.js';
import { searchFault, searchLack } from '../errors.js';
import type { QueryContext } from '../query/context.js';
import { compileFilter } from '../query/filter.js';
import type { PAUSE, Step } from '../server/steps.js';
import { checkPreference, type FoundDocument, wholeMember } from './operator.js';
import type { SearchIndex, Similarity, VectorField } from './search-index.js';
import { indexedFilter } from './vector-filter.js';

const MAX_CANDIDATES = 10_000;
const MAX_LIMIT = 2_147_483_630;
/** Options that narrow or change what is found. Others that are not read here change nothing, or are no options of Atlas either. */
const LACKING = 'parentFilter nestedOptions returnStoredSource explainOptions query model'.split(' ');

type Found = (documents: Iterable<Step<Document>>) => Generator<typeof PAUSE, FoundDocument[]>;

/**
 * Compares the query with every stored vector: exact, whatever `numCandidates` says. Without an index of that name the
 * similarity is the cosine. Errors: 8 for a search that Atlas would refuse, 238 for options that are not here.
 */
export function compileVectorSearch(spec: unknown, ctx: QueryContext): Found {
  if (!isDocument(spec)) throw searchFault('$vectorSearch must be a document');
  for (const name of LACKING) {
    if (getField(spec, name) ?? false) throw searchLack(`the option ${name}`);
  }
  checkPreference(spec);
  const index = getField(spec, 'index');
  if (typeof index !== 'string' || index === '') throw searchFault('"index" is required');
  const path = getField(spec, 'path');
  if (typeof path !== 'string' || path === '') throw searchFault('"path" is required');
  const query = readVector(getField(spec, 'queryVector'));
  if (!query) throw searchFault('"queryVector" must be an array of numbers and cannot be empty');
  const limit = wholeMember(spec, 'limit', '$vectorSearch', NaN, [1, MAX_LIMIT]);
  checkCandidates(spec, limit);
  const declared = ctx.search?.vectorIndex?.(index);
  const field = declared?.vectors.find((one) => one.path === path);
  if (declared) checkField(declared, path, field, query);
  const similarity = field?.similarity ?? 'cosine';
  if (query.kind === 'bits' && similarity !== 'euclidean')
    throw searchFault(`vectors of bits have no ${similarity} similarity`);
  const filter = getField(spec, 'filter');
  if (filter !== undefined && !isDocument(filter)) throw searchFault('"filter" must be a document');
  const admitted =
    filter && compileFilter(filter, ctx) && compileFilter(indexedFilter(filter, declared), ctx);
  return function* (documents) {
    if (ctx.search?.misses?.(index, 'vectorSearch')) return [];
    const target = { path, query, similarity };
    const found = yield* nearest(documents, target, (doc) => admitted?.matches(doc) ?? true, ctx);
    return found.slice(0, limit);
  };
}

/** Errors: 8 for what the index does not hold, 238 for an index of nested documents. */
function checkField(index: SearchIndex, path: string, field: VectorField | undefined, query: Vector): void {
  if (getField(index.definition, 'nestedRoot') !== undefined)
    throw searchLack('a vector index of nested documents');
  if (!field) throw searchFault(`the path ${path} is not indexed as a vector`);
  const { numbers } = query;
  if (field.dimensions !== numbers.length) throw wrongDimensions(field.dimensions, numbers.length);
  if (field.similarity === 'cosine' && numbers.every((one) => Math.fround(one) === 0))
    throw searchFault('a vector of zeros has no cosine');
}

function checkCandidates(spec: Document, limit: number): void {
  const exact = getField(spec, 'exact') ?? false;
  if (typeof exact !== 'boolean') throw searchFault('"exact" must be a boolean');
  if (exact) {
    if ((getField(spec, 'numCandidates') ?? null) === null) return;
    throw searchFault('"numCandidates" must be omitted for exact search');
  }
  const count = wholeMember(spec, 'numCandidates', '$vectorSearch', NaN, [1, MAX_CANDIDATES]);
  if (count < limit) throw searchFault('"numCandidates" must be greater than or equal to "limit"');
}

interface Target {
  readonly path: string;
  readonly query: Vector;
  readonly similarity: Similarity;
}

function* nearest(
  documents: Iterable<Step<Document>>,
  { path, query, similarity }: Target,
  admits: (doc: Document) => boolean,
  ctx: QueryContext,
): Generator<typeof PAUSE, FoundDocument[]> {
  const { parts } = parsePath(path);
  const rate = SCORES[similarity];
  const found: FoundDocument[] = [];
  let other: number | undefined;
  yield* visitAll(ctx, documents, (doc) => {
    const stored = readVector(readNested(doc, parts));
    if (stored?.kind !== query.kind) return;
    if (stored.numbers.length !== query.numbers.length) other = stored.numbers.length;
    else if (admits(doc)) found.push({ doc, score: rate(query.numbers, stored.numbers) });
  });
  // An index knows its dimensions; here only what is stored does.
  if (found.length === 0 && other !== undefined) throw wrongDimensions(other, query.numbers.length);
  const finite = found.filter(({ score }) => Number.isFinite(score));
  return yield* sortWithinMemory(ctx, finite, (a, b) => b.score - a.score);
}

const wrongDimensions = (indexed: number, queried: number) =>
  searchFault(`vector field is indexed with ${indexed} dimensions but queried with ${queried}`);

/** Vectors of one kind are compared, and no others. */
interface Vector {
  readonly kind: 'floats' | 'bytes' | 'bits';
  readonly numbers: readonly number[];
}

/** Numbers in an array, or in the binary form that MongoDB has for vectors. */
function readVector(value: unknown): Vector | null {
  if (value instanceof Binary) return readBinaryVector(value);
  if (!Array.isArray(value) || value.length === 0) return null;
  const numbers = value.map((entry) =>
    [undefined, 'decimal'].includes(numberKind(entry)) ? NaN : toDouble(entry),
  );
  return numbers.map(Math.fround).every(Number.isFinite) ? { kind: 'floats', numbers } : null;
}

function readBinaryVector(value: Binary): Vector | null {
  const { Float32, Int8 } = Binary.VECTOR_TYPE;
  const kind = value.buffer[0];
  try {
    if (kind === Float32) return { kind: 'floats', numbers: [...value.toFloat32Array()] };
    if (kind === Int8) return { kind: 'bytes', numbers: [...value.toInt8Array()] };
    return { kind: 'bits', numbers: [...value.toBits()] };
  } catch {
    // It is no vector, or a malformed one.
    return null;
  }
}

type Numbers = readonly number[];

const dot = (a: Numbers, b: Numbers): number =>
  a.reduce((sum, value, i) => sum + value * (b[i] as number), 0);

/** Between 0 and 1 for cosine and euclidean, as Atlas normalises them. */
const SCORES: Readonly<Record<Similarity, (a: Numbers, b: Numbers) => number>> = {
  cosine: (a, b) => (1 + dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))) / 2,
  dotProduct: (a, b) => (1 + dot(a, b)) / 2,
  euclidean: (a, b) => 1 / (1 + a.reduce((sum, value, i) => sum + (value - (b[i] as number)) ** 2, 0)),
};

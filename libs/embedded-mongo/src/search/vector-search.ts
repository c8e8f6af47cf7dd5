import { Binary } from 'bson';
import { sortWithinMemory, visitAll } from '../aggregate/stage.js';
import { type Document, getField, isDocument } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { parsePath, readNested } from '../bson/path.js';
import { searchFault, searchLack } from '../errors.js';
import type { QueryContext } from '../query/context.js';
import { compileFilter } from '../query/filter.js';
import type { PAUSE, Step } from '../server/steps.js';
import { type FoundDocument, wholeMember } from './operator.js';
import type { VectorField, Similarity } from './search-index.js';

const MAX_CANDIDATES = 10_000;
/** Options that narrow or change what is found. Others that are not read here change nothing, or are no options of Atlas either. */
const LACKING = 'parentFilter nestedOptions returnStoredSource searchNodePreference query model'.split(' ');

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
  const index = getField(spec, 'index');
  if (typeof index !== 'string' || index === '') throw searchFault('"index" is required');
  const path = getField(spec, 'path');
  if (typeof path !== 'string' || path === '') throw searchFault('"path" is required');
  const query = readVector(getField(spec, 'queryVector'));
  if (!query) throw searchFault('"queryVector" must be an array of numbers and cannot be empty');
  const limit = wholeMember(spec, 'limit', '$vectorSearch', NaN, [1, Infinity]);
  checkCandidates(spec, limit);
  const field = ctx.search?.vectorField(index, path);
  if (field && field.dimensions !== query.length) throw wrongDimensions(field.dimensions, query.length);
  const filter = getField(spec, 'filter');
  if (filter !== undefined && !isDocument(filter)) throw searchFault('"filter" must be a document');
  const admitted = filter === undefined ? undefined : compileFilter(filter, ctx);
  return function* (documents) {
    if (ctx.search?.misses?.(index, 'vectorSearch')) return [];
    const target = { path, query, field };
    const found = yield* nearest(documents, target, (doc) => admitted?.matches(doc) ?? true, ctx);
    return found.slice(0, limit);
  };
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
  readonly query: readonly number[];
  readonly field: VectorField | undefined;
}

function* nearest(
  documents: Iterable<Step<Document>>,
  { path, query, field }: Target,
  admits: (doc: Document) => boolean,
  ctx: QueryContext,
): Generator<typeof PAUSE, FoundDocument[]> {
  const { parts } = parsePath(path);
  const similarity = SCORES[field?.similarity ?? 'cosine'];
  const found: FoundDocument[] = [];
  let others = 0;
  let other = 0;
  yield* visitAll(ctx, documents, (doc) => {
    const stored = readVector(readNested(doc, parts));
    if (!stored) return;
    if (stored.length !== query.length) {
      others += 1;
      other = stored.length;
    } else if (admits(doc)) found.push({ doc, score: similarity(query, stored) });
  });
  // An index knows its dimensions; here only what is stored does.
  if (found.length === 0 && others > 0) throw wrongDimensions(other, query.length);
  const finite = found.filter(({ score }) => Number.isFinite(score));
  return yield* sortWithinMemory(ctx, finite, (a, b) => b.score - a.score);
}

const wrongDimensions = (indexed: number, queried: number) =>
  searchFault(`vector field is indexed with ${indexed} dimensions but queried with ${queried}`);

/** Numbers in an array, or in the binary form that MongoDB has for vectors. */
function readVector(value: unknown): number[] | null {
  if (value instanceof Binary) return readBinaryVector(value);
  if (!Array.isArray(value) || value.length === 0) return null;
  const numbers = value.map((entry) => (numberKind(entry) === undefined ? NaN : toDouble(entry)));
  return numbers.every(Number.isFinite) ? numbers : null;
}

function readBinaryVector(value: Binary): number[] | null {
  const { Float32, Int8 } = Binary.VECTOR_TYPE;
  const kind = value.buffer[0];
  try {
    if (kind === Float32) return [...value.toFloat32Array()];
    return kind === Int8 ? [...value.toInt8Array()] : [...value.toBits()];
  } catch {
    // It is no vector, or a malformed one.
    return null;
  }
}

type Vector = readonly number[];

const dot = (a: Vector, b: Vector): number => a.reduce((sum, value, i) => sum + value * (b[i] as number), 0);

/** Between 0 and 1 for cosine and euclidean, as Atlas normalises them. */
const SCORES: Readonly<Record<Similarity, (a: Vector, b: Vector) => number>> = {
  cosine: (a, b) => (1 + dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))) / 2,
  dotProduct: (a, b) => (1 + dot(a, b)) / 2,
  euclidean: (a, b) => 1 / (1 + a.reduce((sum, value, i) => sum + (value - (b[i] as number)) ** 2, 0)),
};

import { Injectable } from '@nestjs/common';
import type { Document } from 'mongodb';
import {
  answerLeft,
  type Facet,
  type FacetBucket,
  type FacetCounts,
  type FacetQuery,
  type OperationContext,
  type Passage,
  RecordSearcher,
  SchemaCatalogue,
  type SearchHit,
  type TextMatch,
  type TextSearchQuery,
  type VectorSearchQuery,
} from '#data';
import { type Where, isPlainObject } from '#policy';
import { readBoundedRows } from '../storage/documents.js';
import { openRead } from '../connection/document-reads.js';
import { hasSearch } from '../connection/inspect-mongo.js';
import { MongoConnection } from '../connection/mongo-connection.js';
import { asSearchOperation } from '../errors.js';
import { classWhereToQuery } from '../query/where-to-query.js';
import { listWantedFields } from '../read/mongo-record-reader.js';
import type { ClassStorage } from '../storage/class-storage.js';
import { valueFromStorage } from '../storage/parse-values.js';
import { StoredClasses } from '../storage/stored-classes.js';

/** Clauses of one search that count words; the last one stands for every further word. */
const MAX_CLAUSES = 50;

const CONSTANT = { constant: { value: 1 } };

/**
 * The operator of a `$search`, in storage paths.
 * @param ranksByIndex see `TextSearchQuery`
 */
function searchOperator(match: TextMatch, storage: ClassStorage, ranksByIndex = false): Document {
  switch (match.kind) {
    case 'text': {
      const path = match.paths.map((name) => storage.path(name));
      if (ranksByIndex) return { text: { query: match.query, path } };
      const words = [...new Set(match.query.split(/\s+/).filter((word) => word !== ''))];
      const last = words.slice(MAX_CLAUSES - 1).join(' ');
      const queries = [...words.slice(0, MAX_CLAUSES - 1), ...(last === '' ? [] : [last])];
      const should = queries.map((query) => ({ text: { query, path, score: CONSTANT } }));
      return { compound: { should, minimumShouldMatch: 1 } };
    }
    case 'autocomplete':
      return {
        autocomplete: {
          query: match.query,
          path: storage.path(match.path),
          ...(match.fuzzy && { fuzzy: { maxEdits: 1 } }),
          ...(!ranksByIndex && { score: CONSTANT }),
        },
      };
    case 'everything':
      return { exists: { path: '_id' } };
  }
}

/**
 * Candidates examined per requested row, which determines the recall of the vector index. A search may examine at most 10
 * 000.
 */
const NEIGHBOURS = { perCandidate: 10, most: 10_000 };

/** Milliseconds after which it is asked again whether the database can search, and that the question may take. */
const RENEWED_AFTER = 60_000;
const SEARCH_TIMEOUT = 2000;

/** Bytes that are reserved for an answer before it arrives. */
const EXPECTED_BYTES = 1024 * 1024;

const asItIs = (document: Document): Document => document;

/** Searches with Atlas Search (`$search`, `$searchMeta`, `$vectorSearch`), one command per call. */
@Injectable()
export class MongoRecordSearcher extends RecordSearcher {
  private available: { readonly known: boolean | null; readonly at: number } | null = null;
  private asking: Promise<boolean | null> | null = null;

  constructor(
    private readonly connection: MongoConnection,
    private readonly catalogue: SchemaCatalogue,
  ) {
    super();
  }

  /** Asked once, and again in the background when the answer is old: a search process may be added or removed. */
  override canSearch(): boolean | null | Promise<boolean | null> {
    const { available } = this;
    if (!available) return this.askForSearch();
    if (performance.now() - available.at > RENEWED_AFTER) void this.askForSearch();
    return available.known;
  }

  private askForSearch(): Promise<boolean | null> {
    this.asking ??= this.askAll()
      .then((known) => {
        this.available = { known, at: performance.now() };
        return known;
      })
      .finally(() => (this.asking = null));
    return this.asking;
  }

  /** Whether any of the databases can search: a search of a class in another one is refused by it. */
  private async askAll(): Promise<boolean | null> {
    const signal = AbortSignal.timeout(SEARCH_TIMEOUT);
    const all = [this.connection, ...this.connection.further.values()];
    const apart = all.filter(({ isPerTenant }) => !isPerTenant);
    const known = await Promise.all(apart.map((one) => hasSearch(one, signal)));
    // What the databases of tenants can is known to their calls.
    if (apart.length < all.length) return known.includes(true) || null;
    return known.includes(true) ? true : known.includes(null) ? null : false;
  }

  text(query: TextSearchQuery, operation: OperationContext): Promise<SearchHit[]> {
    return asSearchOperation(operation, async () => {
      const storage = (await StoredClasses.read(this.catalogue, operation)).storage(query.className);
      const { index, match, highlight, keys, ranksByIndex } = query;
      const request: FoundRequest = {
        score: 'searchScore',
        ...(keys && { keys }),
        ...(highlight !== undefined && { highlight }),
      };
      const search = {
        index,
        ...searchOperator(match, storage, ranksByIndex),
        ...(highlight !== undefined && { highlight: { path: storage.path(highlight) } }),
      };
      return this.search(query, { $search: search }, request, storage, operation);
    });
  }

  nearest(query: VectorSearchQuery, operation: OperationContext): Promise<SearchHit[]> {
    return asSearchOperation(operation, async () => {
      const storage = (await StoredClasses.read(this.catalogue, operation)).storage(query.className);
      const { index, field, vector, filter, candidates, keys } = query;
      const inside = classWhereToQuery(filter, storage, true);
      const search = {
        index,
        path: storage.path(field),
        queryVector: [...vector],
        numCandidates: Math.min(candidates * NEIGHBOURS.perCandidate, NEIGHBOURS.most),
        limit: candidates,
        ...(Object.keys(inside).length > 0 && { filter: inside }),
      };
      const request: FoundRequest = { score: 'vectorSearchScore', ...(keys && { keys }) };
      return this.search(query, { $vectorSearch: search }, request, storage, operation);
    });
  }

  facets(query: FacetQuery, operation: OperationContext): Promise<FacetCounts> {
    return asSearchOperation(operation, async () => {
      const storage = (await StoredClasses.read(this.catalogue, operation)).storage(query.className);
      const { index, match, facets, where } = query;
      const operator = match.kind === 'everything' ? undefined : searchOperator(match, storage);
      if (Object.keys(where).length === 0) {
        const facet = { ...(operator && { operator }), facets: buildSearchedFacets(facets, storage) };
        const stage = { $searchMeta: { index, facet, count: { type: 'total' } } };
        return readSearchedCounts((await this.readSearch(storage, [stage], operation, asItIs))[0], facets);
      }
      const pipeline = [
        { $search: { index, ...searchOperator(match, storage) } },
        { $match: classWhereToQuery(where, storage, true) },
        { $facet: buildFilteredFacets(facets, storage) },
      ];
      return readFilteredCounts((await this.readSearch(storage, pipeline, operation, asItIs))[0], facets);
    });
  }

  /** The search stage must be first; then every stage that limits its rows; then the limit. */
  private async search(
    { where, limit }: { where: Where; limit: number },
    search: Document,
    request: FoundRequest,
    storage: ClassStorage,
    operation: OperationContext,
  ): Promise<SearchHit[]> {
    if (!(limit > 0)) return [];
    const admitted = classWhereToQuery(where, storage, true);
    const pipeline = [
      search,
      ...(Object.keys(admitted).length > 0 ? [{ $match: admitted }] : []),
      { $limit: limit },
      ...buildFoundStages(request, storage),
    ];
    return this.readSearch(storage, pipeline, operation, (document) =>
      toFoundRow(document, request, storage),
    );
  }

  private readSearch<Row>(
    storage: ClassStorage,
    pipeline: Document[],
    operation: OperationContext,
    toRow: (document: Document) => Row,
  ): Promise<Row[]> {
    const { collection, bson } = storage;
    const found = openRead(
      this.connection.holding(storage, operation.tenant),
      { collection, pipeline },
      operation,
    );
    return readBoundedRows(found, { operation, expected: EXPECTED_BYTES, left: answerLeft(), bson }, toRow);
  }
}

/** Fields beside the columns of a found row; a leading underscore keeps them out of every answer. */
const SCORE = '_i_score';
const HIGHLIGHTS = '_i_highlights';

interface FoundRequest {
  readonly keys?: readonly string[];
  readonly score: 'searchScore' | 'vectorSearchScore';
  /** Wire path of the passages to return. */
  readonly highlight?: string;
}

/** The stages after the selection of rows: score and passages of the search, then the columns. */
function buildFoundStages({ keys, score, highlight }: FoundRequest, storage: ClassStorage): Document[] {
  const metadata = {
    [SCORE]: { $meta: score },
    ...(highlight !== undefined && { [HIGHLIGHTS]: { $meta: 'searchHighlights' } }),
  };
  const projection = storage.projection(keys);
  const inclusion = projection && keys !== undefined;
  return [
    { $addFields: metadata },
    ...(projection
      ? [{ $project: inclusion ? { ...projection, [SCORE]: 1, [HIGHLIGHTS]: 1 } : projection }]
      : []),
  ];
}

function toFoundRow(document: Document, request: FoundRequest, storage: ClassStorage): SearchHit {
  const { [SCORE]: score, [HIGHLIGHTS]: passages, ...columns } = document;
  return {
    row: storage.toRow(columns, listWantedFields(request.keys)),
    score: Number(score ?? 0),
    highlights: request.highlight === undefined ? [] : readPassages(passages, request.highlight, storage),
  };
}

/** Only passages of the requested path, whatever the search process returns. */
function readPassages(value: unknown, path: string, storage: ClassStorage): Passage[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isPlainObject).flatMap((passage) => {
    const { texts } = passage;
    if (passage['path'] !== storage.path(path) || !Array.isArray(texts)) return [];
    return [
      {
        path,
        texts: texts.filter(isPlainObject).map((text) => ({
          value: String(text['value']),
          type: text['type'] === 'hit' ? ('hit' as const) : ('text' as const),
        })),
      },
    ];
  });
}

type Facets = ReadonlyMap<string, Facet>;

const DEFAULT_BUCKETS = 10;
/** The caller chooses the names of facets; the database receives generated names. */
const alias = (index: number) => `f${index}`;
const OUTSIDE = 'outside';

const listBoundaries = ({ type, boundaries = [] }: Facet): (number | Date)[] =>
  boundaries.map((value) => (type === 'date' ? new Date(value) : Number(value)));

/** Facets for the search process to count. */
function buildSearchedFacets(facets: Facets, storage: ClassStorage): Document {
  return Object.fromEntries(
    [...facets.values()].map((facet, index) => {
      const path = storage.path(facet.path);
      const shape =
        facet.type === 'string'
          ? { numBuckets: facet.buckets ?? DEFAULT_BUCKETS }
          : { boundaries: listBoundaries(facet) };
      return [alias(index), { type: facet.type, path, ...shape }];
    }),
  );
}

/** The result of `$searchMeta`. */
function readSearchedCounts(answer: Document | undefined, facets: Facets): FacetCounts {
  const counted: unknown = answer?.['facet'];
  const branches = isPlainObject(counted) ? counted : {};
  return {
    total: Number(answer?.['count']?.['total'] ?? 0),
    facets: new Map(
      [...facets.keys()].map((name, index) => {
        const branch = branches[alias(index)];
        return [name, readBuckets(isPlainObject(branch) ? branch['buckets'] : [])];
      }),
    ),
  };
}

/** The same facets over rows that a filter selected: one branch for each, and one for the total. */
function buildFilteredFacets(facets: Facets, storage: ClassStorage): Document {
  const branches = [...facets.values()].map((facet, index) => [
    alias(index),
    facet.type === 'string' ? valueBranch(facet, storage) : rangeBranch(facet, storage),
  ]);
  return { ...Object.fromEntries(branches), total: [{ $count: 'count' }] };
}

function valueBranch(facet: Facet, storage: ClassStorage): Document[] {
  const field = `$${storage.path(facet.path)}`;
  return [
    { $unwind: field },
    { $group: { _id: { value: field, row: '$_id' } } },
    { $group: { _id: '$_id.value', count: { $sum: 1 } } },
    { $match: { _id: { $type: 'string' } } },
    { $sort: { count: -1, _id: 1 } },
    { $limit: facet.buckets ?? DEFAULT_BUCKETS },
  ];
}

function rangeBranch(facet: Facet, storage: ClassStorage): Document[] {
  const path = storage.path(facet.path);
  return [
    { $match: { [path]: { $type: facet.type } } },
    {
      $bucket: {
        groupBy: `$${path}`,
        boundaries: listBoundaries(facet),
        default: OUTSIDE,
        output: { count: { $sum: 1 } },
      },
    },
    { $match: { _id: { $ne: OUTSIDE } } },
  ];
}

/** The result of `$facet`; ranges without rows are returned as the search process returns them. */
function readFilteredCounts(answer: Document | undefined, facets: Facets): FacetCounts {
  const total: unknown = answer?.['total']?.[0]?.count;
  return {
    total: Number(total ?? 0),
    facets: new Map(
      [...facets].map(([name, facet], index) => {
        const found = readBuckets(answer?.[alias(index)]);
        return [name, facet.type === 'string' ? found : everyRange(facet, found)];
      }),
    ),
  };
}

function everyRange({ boundaries = [] }: Facet, found: readonly FacetBucket[]): FacetBucket[] {
  const counts = new Map(found.map(({ _id, count }) => [_id, count]));
  return boundaries.slice(0, -1).map((_id) => ({ _id, count: counts.get(_id) ?? 0 }));
}

function readBuckets(value: unknown): FacetBucket[] {
  if (!Array.isArray(value)) return [];
  return value
    .filter(isPlainObject)
    .map(({ _id, count }) => ({ _id: valueFromStorage(_id, 'text'), count: Number(count ?? 0) }));
}

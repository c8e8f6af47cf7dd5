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
import type { Where } from '#policy';
import { boundedRows } from '../answers/bounded-rows.js';
import { MongoConnection } from '../connection/mongo-connection.js';
import { asSearchOperation } from '../errors.js';
import { classWhereToQuery } from '../query/where-to-query.js';
import { projectionOf, wantedFields } from '../read/includes.js';
import { documentToRow, valueFromStorage } from '../storage/stored-values.js';
import { isPlainObject } from '../storage/own-property.js';
import { type StorageNames, StoredClasses } from '../storage/storage-names.js';

/** The operator of a `$search`, in storage paths. */
function searchOperator(match: TextMatch, names: StorageNames): Document {
  switch (match.kind) {
    case 'text':
      return { text: { query: match.query, path: match.paths.map((path) => names.path(path)) } };
    case 'autocomplete':
      return {
        autocomplete: {
          query: match.query,
          path: names.path(match.path),
          ...(match.fuzzy && { fuzzy: { maxEdits: 1 } }),
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

/** Bytes that are reserved for an answer before it arrives. */
const EXPECTED_BYTES = 1024 * 1024;

const asItIs = (document: Document): Document => document;

/** Searches with Atlas Search (`$search`, `$searchMeta`, `$vectorSearch`), one command per call. */
@Injectable()
export class MongoRecordSearcher extends RecordSearcher {
  constructor(
    private readonly connection: MongoConnection,
    private readonly catalogue: SchemaCatalogue,
  ) {
    super();
  }

  text(query: TextSearchQuery, operation: OperationContext): Promise<SearchHit[]> {
    return asSearchOperation(operation.signal, async () => {
      const names = await this.names(query.className);
      const { index, match, highlight, keys } = query;
      const request: FoundRequest = {
        score: 'searchScore',
        ...(keys && { keys }),
        ...(highlight !== undefined && { highlight }),
      };
      const search = {
        index,
        ...searchOperator(match, names),
        ...(highlight !== undefined && { highlight: { path: names.path(highlight) } }),
      };
      return this.found(query, { $search: search }, request, names, operation);
    });
  }

  nearest(query: VectorSearchQuery, operation: OperationContext): Promise<SearchHit[]> {
    return asSearchOperation(operation.signal, async () => {
      const names = await this.names(query.className);
      const { index, field, vector, filter, candidates, keys } = query;
      const inside = classWhereToQuery(filter, names, true);
      const search = {
        index,
        path: names.path(field),
        queryVector: [...vector],
        numCandidates: Math.min(candidates * NEIGHBOURS.perCandidate, NEIGHBOURS.most),
        limit: candidates,
        ...(Object.keys(inside).length > 0 && { filter: inside }),
      };
      const request: FoundRequest = { score: 'vectorSearchScore', ...(keys && { keys }) };
      return this.found(query, { $vectorSearch: search }, request, names, operation);
    });
  }

  facets(query: FacetQuery, operation: OperationContext): Promise<FacetCounts> {
    return asSearchOperation(operation.signal, async () => {
      const names = await this.names(query.className);
      const { className, index, match, facets, where } = query;
      const operator = match.kind === 'everything' ? undefined : searchOperator(match, names);
      if (Object.keys(where).length === 0) {
        const facet = { ...(operator && { operator }), facets: searchedFacets(facets, names) };
        const stage = { $searchMeta: { index, facet, count: { type: 'total' } } };
        return searchedCounts((await this.run(className, [stage], operation, asItIs))[0], facets);
      }
      const pipeline = [
        { $search: { index, ...searchOperator(match, names) } },
        { $match: classWhereToQuery(where, names, true) },
        { $facet: filteredFacets(facets, names) },
      ];
      return filteredCounts((await this.run(className, pipeline, operation, asItIs))[0], facets);
    });
  }

  /** The search stage must be first; then every stage that limits its rows; then the limit. */
  private async found(
    { className, where, limit }: { className: string; where: Where; limit: number },
    search: Document,
    request: FoundRequest,
    names: StorageNames,
    operation: OperationContext,
  ): Promise<SearchHit[]> {
    if (!(limit > 0)) return [];
    const admitted = classWhereToQuery(where, names, true);
    const pipeline = [
      search,
      ...(Object.keys(admitted).length > 0 ? [{ $match: admitted }] : []),
      { $limit: limit },
      ...foundStages(request, names),
    ];
    return this.run(className, pipeline, operation, (document) => foundRow(document, request, names));
  }

  private run<Row>(
    className: string,
    pipeline: Document[],
    operation: OperationContext,
    toRow: (document: Document) => Row,
  ): Promise<Row[]> {
    const { maxTimeMS, comment, signal } = operation;
    const cursor = this.connection
      .collection(className)
      .aggregate<Document>(pipeline, { maxTimeMS, comment, signal, raw: true });
    return boundedRows(cursor, { operation, expected: EXPECTED_BYTES, left: answerLeft() }, toRow);
  }

  private async names(className: string): Promise<StorageNames> {
    return StoredClasses.of(await this.catalogue.snapshot()).names(className);
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
function foundStages({ keys, score, highlight }: FoundRequest, names: StorageNames): Document[] {
  const metadata = {
    [SCORE]: { $meta: score },
    ...(highlight !== undefined && { [HIGHLIGHTS]: { $meta: 'searchHighlights' } }),
  };
  const projection = projectionOf(keys, names);
  const inclusion = projection && keys !== undefined;
  return [
    { $addFields: metadata },
    ...(projection
      ? [{ $project: inclusion ? { ...projection, [SCORE]: 1, [HIGHLIGHTS]: 1 } : projection }]
      : []),
  ];
}

function foundRow(document: Document, request: FoundRequest, names: StorageNames): SearchHit {
  const { [SCORE]: score, [HIGHLIGHTS]: passages, ...columns } = document;
  return {
    row: documentToRow(columns, names, wantedFields(request.keys)),
    score: Number(score ?? 0),
    highlights: request.highlight === undefined ? [] : passagesOf(passages, request.highlight, names),
  };
}

/** Only passages of the requested path, whatever the search process returns. */
function passagesOf(value: unknown, path: string, names: StorageNames): Passage[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isPlainObject).flatMap((passage) => {
    const { texts } = passage;
    if (passage['path'] !== names.path(path) || !Array.isArray(texts)) return [];
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

const boundariesOf = ({ type, boundaries = [] }: Facet): (number | Date)[] =>
  boundaries.map((value) => (type === 'date' ? new Date(value) : Number(value)));

/** Facets for the search process to count. */
function searchedFacets(facets: Facets, names: StorageNames): Document {
  return Object.fromEntries(
    [...facets.values()].map((facet, index) => {
      const path = names.path(facet.path);
      const shape =
        facet.type === 'string'
          ? { numBuckets: facet.buckets ?? DEFAULT_BUCKETS }
          : { boundaries: boundariesOf(facet) };
      return [alias(index), { type: facet.type, path, ...shape }];
    }),
  );
}

/** The result of `$searchMeta`. */
function searchedCounts(answer: Document | undefined, facets: Facets): FacetCounts {
  const counted: unknown = answer?.['facet'];
  const branches = isPlainObject(counted) ? counted : {};
  return {
    total: Number(answer?.['count']?.['total'] ?? 0),
    facets: new Map(
      [...facets.keys()].map((name, index) => {
        const branch = branches[alias(index)];
        return [name, bucketsOf(isPlainObject(branch) ? branch['buckets'] : [])];
      }),
    ),
  };
}

/** The same facets over rows that a filter selected: one branch for each, and one for the total. */
function filteredFacets(facets: Facets, names: StorageNames): Document {
  const branches = [...facets.values()].map((facet, index) => [
    alias(index),
    facet.type === 'string' ? valueBranch(facet, names) : rangeBranch(facet, names),
  ]);
  return { ...Object.fromEntries(branches), total: [{ $count: 'count' }] };
}

function valueBranch(facet: Facet, names: StorageNames): Document[] {
  const field = `$${names.path(facet.path)}`;
  return [
    { $unwind: field },
    { $group: { _id: { value: field, row: '$_id' } } },
    { $group: { _id: '$_id.value', count: { $sum: 1 } } },
    { $match: { _id: { $type: 'string' } } },
    { $sort: { count: -1, _id: 1 } },
    { $limit: facet.buckets ?? DEFAULT_BUCKETS },
  ];
}

function rangeBranch(facet: Facet, names: StorageNames): Document[] {
  const path = names.path(facet.path);
  return [
    { $match: { [path]: { $type: facet.type } } },
    {
      $bucket: {
        groupBy: `$${path}`,
        boundaries: boundariesOf(facet),
        default: OUTSIDE,
        output: { count: { $sum: 1 } },
      },
    },
    { $match: { _id: { $ne: OUTSIDE } } },
  ];
}

/** The result of `$facet`; ranges without rows are returned as the search process returns them. */
function filteredCounts(answer: Document | undefined, facets: Facets): FacetCounts {
  const total: unknown = answer?.['total']?.[0]?.count;
  return {
    total: Number(total ?? 0),
    facets: new Map(
      [...facets].map(([name, facet], index) => {
        const found = bucketsOf(answer?.[alias(index)]);
        return [name, facet.type === 'string' ? found : everyRange(facet, found)];
      }),
    ),
  };
}

function everyRange({ boundaries = [] }: Facet, found: readonly FacetBucket[]): FacetBucket[] {
  const counts = new Map(found.map(({ _id, count }) => [_id, count]));
  return boundaries.slice(0, -1).map((_id) => ({ _id, count: counts.get(_id) ?? 0 }));
}

function bucketsOf(value: unknown): FacetBucket[] {
  if (!Array.isArray(value)) return [];
  return value
    .filter(isPlainObject)
    .map(({ _id, count }) => ({ _id: valueFromStorage(_id, 'text'), count: Number(count ?? 0) }));
}

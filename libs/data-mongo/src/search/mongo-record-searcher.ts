import type { Document } from 'mongodb';
import {
  answerLeft,
  type FacetCounts,
  type FacetQuery,
  type OperationContext,
  RecordSearcher,
  type SchemaCatalogue,
  type SearchHit,
  type TextSearchQuery,
  type VectorSearchQuery,
} from '#data';
import type { Where } from '#policy';
import { boundedRows } from '../answers/bounded-rows.js';
import type { MongoConnection } from '../connection/mongo-connection.js';
import { classWhereToQuery } from '../query/where-to-query.js';
import type { StorageNames } from '../storage/storage-names.js';
import { StoredClasses } from '../storage/stored-classes.js';
import { filteredCounts, filteredFacets, searchedCounts, searchedFacets } from './facet-counts.js';
import { foundRow, type FoundRequest, foundStages } from './found-rows.js';
import { asSearchOperation } from './search-errors.js';
import { searchOperator } from './search-stage.js';

/** Neighbours looked at per candidate: the recall that the vector index gives. The most a search may look at is 10 000. */
const NEIGHBOURS = { perCandidate: 10, most: 10_000 };

/** Bytes that are set aside for an answer before it comes. */
const EXPECTED_BYTES = 1024 * 1024;

const asItIs = (document: Document): Document => document;

/** Searches with Atlas Search (`$search`, `$searchMeta`, `$vectorSearch`), one command per call. */
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

  /** The search first, as it must stand; then everything that limits its rows; then the limit. */
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

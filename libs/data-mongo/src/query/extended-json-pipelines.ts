import { BSON, type Document } from 'mongodb';
import type { AggregateQuery, ParseRow, SchemaCatalogue } from '#data';
import { aggregateRow } from '../storage/aggregate-row.js';
import { pipelineToStorage } from './pipeline-to-storage.js';

/** A pipeline over stored columns in extended JSON, and the way back from its documents to rows. */
export interface ExtendedJsonPipeline {
  readonly stages: readonly Readonly<Record<string, unknown>>[];
  rows(documents: readonly unknown[]): ParseRow[];
}

/** Pipelines in storage form for whoever runs them elsewhere than over the driver. */
export class ExtendedJsonPipelines {
  constructor(private readonly catalogue: SchemaCatalogue) {}

  /** @throws StoreError `invalid_query` for stages and operands that cannot be translated */
  async pipeline({ pipeline, className, rewriteLookups }: AggregateQuery): Promise<ExtendedJsonPipeline> {
    const schemas = await this.catalogue.snapshot();
    const { stages, scope } = pipelineToStorage(pipeline, className, schemas, {
      rewriteLookups: rewriteLookups ?? true,
    });
    return {
      stages: BSON.EJSON.serialize(stages) as Document[],
      rows: (documents) =>
        documents.map((document) => aggregateRow(BSON.EJSON.deserialize(document as Document), scope)),
    };
  }
}

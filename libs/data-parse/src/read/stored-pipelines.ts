import type { AggregateQuery, ParseRow } from '#data';

/** A pipeline over stored columns, in extended JSON, with the way back from its documents to rows. */
interface StoredPipeline {
  readonly stages: readonly Readonly<Record<string, unknown>>[];
  rows(documents: readonly unknown[]): ParseRow[];
}

/**
 * How governed pipelines look in Parse's storage form. Parse Server runs pipelines over stored columns, so the adapter
 * that knows the storage gives them.
 */
export interface StoredPipelines {
  /** @throws StoreError for what cannot be translated */
  pipeline(query: AggregateQuery): Promise<StoredPipeline>;
}

import { compilePipeline } from '../aggregate/pipeline.js';
import { withoutPauses } from '../aggregate/stage.js';
import type { Document } from '../bson/document.js';
import type { QueryContext } from '../query/context.js';

/** The results of a pipeline over documents, lazily. */
export const runPipeline = (
  pipeline: Document[],
  source: Iterable<Document>,
  ctx: QueryContext,
): Iterable<Document> => withoutPauses(compilePipeline(pipeline, ctx)(source));

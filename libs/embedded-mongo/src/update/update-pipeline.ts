import { badValue, mongoError } from '../errors.js';
import { getField, isDocument, firstKey, type Document } from '../bson/document.js';
import { compilePipeline } from '../aggregate/pipeline.js';
import { withoutPauses } from '../aggregate/stage.js';
import type { QueryContext } from '../query/context.js';

const allowed = new Set(['$addFields', '$set', '$project', '$unset', '$replaceRoot', '$replaceWith']);

/** An update written as a pipeline over the one document. Errors: 72 for a stage that is no update. */
export function compileUpdatePipeline(
  stages: readonly unknown[],
  ctx: QueryContext,
): (doc: Document) => Document {
  for (const stage of stages) {
    if (!isDocument(stage)) throw mongoError(14, 'Each element of the pipeline must be an object');
    const name = firstKey(stage) ?? '';
    if (!allowed.has(name)) throw mongoError(72, `${name} is not allowed to be used within an update`);
  }
  const run = compilePipeline(stages as Document[], ctx);
  return (doc) => {
    const [result] = withoutPauses(run([doc]));
    if (!result) throw badValue('The update pipeline gave no document');
    const id = getField(doc, '_id');
    return id === undefined || Object.hasOwn(result, '_id') ? result : { _id: id, ...result };
  };
}

import { compilePipeline } from '../aggregate/pipeline.js';
import { withoutPauses } from '../aggregate/stage.js';
import { type Collation, compileCollation } from '../bson/collation.js';
import { type Document, firstKey, isDocument } from '../bson/document.js';
import { mongoError, typeMismatch } from '../errors.js';
import type { CommandContext } from '../server/server-state.js';
import type { Collection, ViewDefinition } from '../storage/catalog.js';
import type { Workspace } from '../storage/store.js';
import { optionalDocument, optionalText } from './arguments.js';

/** How many views may be built on each other. */
const MAX_VIEW_DEPTH = 20;

/** What a command on a collection or view reads in fact. */
export interface ResolvedSource {
  /** The collection under all views; undefined when it does not exist. */
  readonly collection: Collection | undefined;
  /** The pipelines of the views, in the order in which they run; empty for a collection. */
  readonly stages: readonly Document[];
}

/** Errors: 165 for too many views on each other. */
export function resolveSource(workspace: Workspace, db: string, name: string): ResolvedSource {
  let stages: readonly Document[] = [];
  let collection = workspace.find(db, name);
  for (let depth = 0; ; depth += 1) {
    const view = collection?.view;
    if (!view) return { collection, stages };
    if (depth >= MAX_VIEW_DEPTH) throw mongoError(165, 'View depth too deep or view cycle detected');
    stages = [...view.pipeline, ...stages];
    collection = workspace.find(db, view.viewOn);
  }
}

/** Errors: 167 when a view is read, by a command or a join, in another collation than its own. */
export function refuseOtherCollation(asked: Collation | undefined, view: Collection | undefined): void {
  if (!view?.view) return;
  const own = optionalDocument(view.options, 'collation') ?? { locale: 'simple' };
  if (JSON.stringify(asked?.spec ?? { locale: 'simple' }) !== JSON.stringify(own))
    throw mongoError(167, `Cannot override default collation of a view: ${view.fullName}`);
}

/** The options of `create` that are allowed for a view. */
const VIEW_OPTIONS = ['viewOn', 'pipeline', 'collation'];

/**
 * Reads the definition of a view as `create` and `collMod` have it. Errors: 72 without `viewOn` or beside options of
 * collections, 167 for a pipeline that writes or watches, those of the pipeline's stages, 5 for a view of itself.
 */
export function viewOptions(
  command: Document,
  name: string,
  others: readonly string[],
  ctx: CommandContext,
): Document {
  const viewOn = optionalText(command, 'viewOn');
  if (viewOn === undefined || viewOn === '')
    throw mongoError(72, "'pipeline' requires 'viewOn' to also be specified");
  const pipeline = command['pipeline'] ?? [];
  if (!Array.isArray(pipeline) || !pipeline.every(isDocument))
    throw typeMismatch("'pipeline' option must be specified as an array of objects");
  const other = others.find((option) => !VIEW_OPTIONS.includes(option) && command[option] !== undefined);
  if (other !== undefined) throw mongoError(72, `the option '${other}' is not valid for a view`);
  for (const stage of pipeline) {
    const kind = firstKey(stage) ?? '';
    if (['$out', '$merge', '$changeStream', '$indexStats', '$collStats'].includes(kind))
      throw mongoError(167, `The aggregation stage ${kind} cannot be used in the view definition`);
  }
  refuseCycle(ctx, name, { viewOn, pipeline });
  const collation = compileCollation(optionalDocument(command, 'collation') ?? { locale: 'simple' })?.spec;
  return { viewOn, pipeline, ...(collation ? { collation } : {}) };
}

/** Errors: 5. A view that joins itself would never end. */
function refuseCycle(ctx: CommandContext, name: string, view: ViewDefinition): void {
  const seen = new Set<string>();
  const waiting = [...namesIn(view)];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (next === name) throw mongoError(5, `View cycle detected: ${ctx.db}.${name} would be built on itself`);
    if (seen.has(next)) continue;
    seen.add(next);
    const inner = ctx.workspace.find(ctx.db, next)?.view;
    if (inner) waiting.push(...namesIn(inner));
  }
}

/** Every collection that a view reads by itself, joins included. */
function namesIn({ viewOn, pipeline }: ViewDefinition): Set<string> {
  const names = new Set([viewOn]);
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) return value.forEach(visit);
    if (!isDocument(value)) return;
    for (const [key, inner] of Object.entries(value)) {
      const named = key === '$unionWith' && isDocument(inner) ? inner['coll'] : inner;
      const from = (key === '$lookup' || key === '$graphLookup') && isDocument(inner) ? inner['from'] : named;
      if (['$lookup', '$graphLookup', '$unionWith'].includes(key) && typeof from === 'string')
        names.add(from);
      visit(inner);
    }
  };
  visit(pipeline);
  return names;
}

/** The documents of a view for a join, as they are now. */
export function viewDocuments(
  source: Iterable<Document>,
  stages: readonly Document[],
  context: Parameters<typeof compilePipeline>[1],
): Iterable<Document> {
  const run = compilePipeline(stages, context);
  return { [Symbol.iterator]: () => withoutPauses(run(source))[Symbol.iterator]() };
}

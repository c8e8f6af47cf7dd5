import { checkVariableName, compileExpression } from '../aggregate/expression.js';
import { foreignContext } from '../aggregate/stage.js';
import type { Collation } from '../bson/collation.js';
import { type Document, isDocument, setField } from '../bson/document.js';
import { toDouble } from '../bson/number.js';
import type { QueryContext, SearchIndexes, SpecialIndexes } from '../query/context.js';
import { createMissingGeoIndex, type GeoIndex, type NearCondition } from '../query/geo.js';
import { withTextScore } from '../query/text.js';
import type { Pace } from '../server/operation.js';
import type { CommandContext } from '../server/server-state.js';
import type { Collection } from '../storage/catalog.js';
import { refuseOtherCollation, resolveSource, viewDocuments } from './views.js';

/** A query context that can also read the database's other collections. */
export type CommandQueryContext = QueryContext & { collection(name: string): Iterable<Document> };

/** What a statement adds to the context of its command. */
export interface QueryOptions {
  readonly collation?: Collation | undefined;
  readonly variables?: Document | undefined;
  /** The filter, whose `$text` search gives documents their score. */
  readonly filter?: Document | undefined;
  /** Lets `$text` pass without an index. */
  readonly searchable?: boolean;
}

/** What the query engine needs to know to serve a statement on `collection`. */
export function queryContext(
  ctx: CommandContext,
  pace: Pace,
  collection: Collection | undefined,
  options: QueryOptions = {},
): CommandQueryContext {
  const base: CommandQueryContext = {
    tick: pace.tick,
    tickExpression: pace.tickExpression,
    turnIsOver: () => pace.turnIsOver,
    now: ctx.now,
    timeless: ctx.name === 'count' || ctx.name === 'distinct',
    clusterTime: ctx.clusterTime,
    ...(options.collation ? { collation: options.collation } : {}),
    collection: (name) => readJoined(ctx, name, base),
    joinedIndexes: (name) => {
      const { collection: source, stages } = resolveSource(ctx.workspace, ctx.db, name);
      return findSpecialIndexes(stages.length === 0 ? source : undefined);
    },
    ...findSpecialIndexes(collection),
    ...(options.searchable ? { text: { fields: [] } } : {}),
    ...(ctx.server.order ? { order: ctx.server.order } : {}),
    ...(ctx.server.search ? { search: createSearchIndexes(collection) } : {}),
  };
  const { variables, filter } = options;
  const scored = withTextScore(base, filter);
  if (!variables) return scored;
  const values: Document = {};
  for (const name of Object.keys(variables)) {
    checkVariableName(name);
    setField(values, name, compileExpression(variables[name], { ...base, variables: values }).evaluate({}));
  }
  return { ...scored, variables: values };
}

const createSearchIndexes = (collection: Collection | undefined): SearchIndexes => ({
  exists: collection !== undefined,
  misses: (index, type) => {
    const declared = [...(collection?.searchIndexes.values() ?? [])].filter((one) => one.type === type);
    return declared.length > 0 && !declared.some(({ name }) => name === index);
  },
  vectorIndex: (name) => collection?.searchIndexes.get(name),
});

/** The documents that a join reads: those of a collection, or what a view shows of them. */
function readJoined(ctx: CommandContext, name: string, context: CommandQueryContext): Iterable<Document> {
  refuseOtherCollation(context.collation, ctx.workspace.find(ctx.db, name));
  const { collection, stages } = resolveSource(ctx.workspace, ctx.db, name);
  const documents = readDocuments(collection);
  return stages.length === 0 ? documents : viewDocuments(documents, stages, foreignContext(context));
}

/** The documents of a collection as they are now; may be read several times. */
function readDocuments(collection: Collection | undefined): Iterable<Document> {
  const records = collection?.snapshotRecords();
  return {
    *[Symbol.iterator]() {
      for (const stored of records?.range() ?? []) yield stored.document;
    },
  };
}

/** Errors: 291 when no geo index serves the condition. */
export function requireGeoIndex(collection: Collection | undefined, { path, kinds }: NearCondition): void {
  const serves = collection?.indexes.some(
    ({ spec }) => spec['hidden'] !== true && kinds.some((kind) => spec.key[path] === kind),
  );
  if (serves === false) throw createMissingGeoIndex(path);
}

function findSpecialIndexes(collection: Collection | undefined): SpecialIndexes {
  const specs = collection?.indexes.map((index) => index.spec).filter(({ hidden }) => hidden !== true) ?? [];
  const spec = specs.find(({ weights }) => weights !== undefined);
  const geoIndexes = specs.flatMap(({ key }) =>
    Object.entries(key).flatMap(([path, kind]): GeoIndex[] =>
      kind === '2d' || kind === '2dsphere' ? [{ path, kind }] : [],
    ),
  );
  if (!isDocument(spec?.['weights'])) return { geoIndexes };
  const language = spec['default_language'];
  const text = {
    fields: Object.entries(spec['weights']).map(([path, weight]) => ({ path, weight: toDouble(weight) })),
    ...(typeof language === 'string' ? { language } : {}),
  };
  return { geoIndexes, text };
}

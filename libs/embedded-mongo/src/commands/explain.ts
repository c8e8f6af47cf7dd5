import { compilePipeline, elsewhere, splitWriteStage } from '../aggregate/pipeline.js';
import { type Document, firstKey, isDocument } from '../bson/document.js';
import { badValue, createParseError, mongoError, typeMismatch } from '../errors.js';
import type { PlanShape } from '../planner/explain.js';
import { executionStats, explainMissingCollection, queryPlanner } from '../planner/explain.js';
import type { CommandContext, CommandHandler } from '../server/server-state.js';
import { drain } from '../server/steps.js';
import type { Collection } from '../storage/catalog.js';
import { collectionName, documentArray, optionalDocument } from './arguments.js';
import { SERVER_VERSION } from './handshake.js';
import { queryContext } from './query-context.js';
import {
  readSelection,
  readSourceOptions,
  Selection,
  type SelectionSpec,
  selectionStages,
  takeLeadingQuery,
  toStages,
  countSpec,
  findSpec,
} from './selection.js';
import { resolveSource } from './views.js';
import { deleteStatement, updateStatement } from './write-commands.js';

const verbosities = new Set(['queryPlanner', 'executionStats', 'allPlansExecution']);

export const explain: CommandHandler = (command, ctx) => {
  const inner = command['explain'];
  if (!isDocument(inner)) throw typeMismatch("BSON field 'explain.explain' must be an object");
  const verbosity = command['verbosity'] ?? 'allPlansExecution';
  return explainCommand(inner, ctx, verbosity);
};

/** The plan of a command, run to its end unless only the plan is asked for; writes are not done. */
export async function explainCommand(
  inner: Document,
  ctx: CommandContext,
  verbosity: unknown,
): Promise<Document> {
  if (typeof verbosity !== 'string' || !verbosities.has(verbosity))
    throw badValue("verbosity must be 'queryPlanner', 'executionStats' or 'allPlansExecution'");
  const name = firstKey(inner) ?? '';
  const read = readers.get(name);
  if (!read) throw mongoError(59, `Explain failed due to unknown command: ${name}`);
  const coll = collectionName(inner, name);
  const named = ctx.workspace.find(ctx.db, coll);
  const { collection, stages: viewStages } = resolveSource(ctx.workspace, ctx.db, coll);
  const asked = read(inner, named?.options);
  const { spec, stages } = named?.view ? onView(asked, named, viewStages) : asked;
  if (name === 'aggregate' && !elsewhere.has(firstKey(stages[0] ?? {}) ?? ''))
    compilePipeline(
      splitWriteStage([...stages]).pipeline,
      queryContext(ctx, ctx.operation, collection, spec),
    );
  const section = await explainQuery(
    ctx,
    collection?.fullName ?? `${ctx.db}.${coll}`,
    collection,
    spec,
    {
      projection: optionalDocument(inner, 'projection'),
      wanted: named?.view ? undefined : readWanted(name, inner),
    },
    verbosity,
  );
  const plan = stages.length > 0 ? { stages: [{ $cursor: section }, ...stages] } : section;
  const [host = '', port = '0'] = ctx.server.address.split(':');
  return {
    explainVersion: '1',
    ...plan,
    command: { ...inner, $db: ctx.db },
    serverInfo: { host, port: Number(port) || 0, version: SERVER_VERSION, gitVersion: 'embedded' },
  };
}

function readWanted(name: string, { key }: Document): PlanShape['wanted'] {
  if (name === 'count') return name;
  return name === 'distinct' && typeof key === 'string' ? { distinct: key } : undefined;
}

async function explainQuery(
  ctx: CommandContext,
  namespace: string,
  collection: Collection | undefined,
  spec: SelectionSpec,
  asked: Pick<PlanShape, 'projection' | 'wanted'>,
  verbosity: string,
): Promise<Document> {
  const { filter, sort, skip = 0, limit = 0 } = spec;
  if (!collection) {
    const { executionStats: stats, ...missing } = explainMissingCollection(namespace, filter);
    return verbosity === 'queryPlanner' ? missing : { ...missing, executionStats: stats };
  }
  const selection = new Selection(ctx, collection, spec);
  const shape: PlanShape = { filter, sort, sorts: selection.sorts, skip, limit, ...asked };
  const planner = { queryPlanner: queryPlanner(namespace, selection.planned, shape) };
  if (verbosity === 'queryPlanner') return planner;
  const started = performance.now();
  let returned = 0;
  await drain(ctx.operation, await selection.rows(), () => void (returned += 1));
  const run = { returned, counts: selection.counts, millis: Math.round(performance.now() - started) };
  return {
    ...planner,
    executionStats: executionStats(selection.planned, shape, run, verbosity === 'allPlansExecution'),
  };
}

/** What a command reads: a selection and the stages behind it, and what it does with them where it may be of a view. */
interface Explained {
  readonly spec: SelectionSpec;
  readonly stages: readonly Document[];
  readonly ofView?: readonly Document[];
}

type ExplainReader = (command: Document, options: Document | undefined) => Explained;

const only = (spec: SelectionSpec, ofView?: readonly Document[]): Explained => ({
  spec,
  stages: [],
  ...(ofView && { ofView }),
});

const readModified: ExplainReader = (command, options) =>
  only({ ...readSelection(command, 'query', options), limit: 1 });

/** Errors: those of the statement. */
const readStatement =
  (field: string, read: (statement: Document, command: Document) => { multi: boolean }): ExplainReader =>
  (command, options) => {
    const statement = single(command, field);
    const limit = read(statement, command).multi ? 0 : 1;
    return only({ ...readSelection({ ...statement, limit }, 'q', options), limit });
  };

const readers: ReadonlyMap<string, ExplainReader> = new Map<string, ExplainReader>([
  [
    'find',
    (command, options) =>
      only(findSpec(command, options), toStages('$project', optionalDocument(command, 'projection'))),
  ],
  ['count', (command, options) => only(countSpec(command, options), [{ $count: 'n' }])],
  ['distinct', (command, options) => only(readSelection(command, 'query', options), [])],
  ['findAndModify', readModified],
  ['findandmodify', readModified],
  ['update', readStatement('updates', updateStatement)],
  ['delete', readStatement('deletes', deleteStatement)],
  [
    'aggregate',
    (command, options) => {
      const source = readSourceOptions(command, options);
      const { spec, rest } = takeLeadingQuery(documentArray(command, 'pipeline'), source);
      return { spec, stages: rest, ofView: [] };
    },
  ],
]);

/** A command on a view is a pipeline over the collection under it. Errors: 166 for a write. */
function onView(
  { spec, stages, ofView }: Explained,
  view: Collection,
  viewStages: readonly Document[],
): Explained {
  if (!ofView) throw mongoError(166, `Namespace ${view.fullName} is a view, not a collection`);
  const { hint, collation, variables } = spec;
  const all = [...viewStages, ...selectionStages(spec), ...stages, ...ofView];
  const { spec: whole, rest } = takeLeadingQuery(all, { hint, collation, variables });
  return { spec: whole, stages: rest };
}

function single(command: Document, field: string): Document {
  const [statement, second] = documentArray(command, field);
  if (!statement || second) throw createParseError('explain takes exactly one statement');
  return statement;
}

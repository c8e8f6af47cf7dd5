import { compileExpression } from '../aggregate/expression.js';
import { compilePipeline, type WriteStage } from '../aggregate/pipeline.js';
import { withoutPauses } from '../aggregate/stage.js';
import { compareStrings, compareValues } from '../bson/compare.js';
import { type Document, firstKey } from '../bson/document.js';
import { readNested, withNested } from '../bson/path.js';
import { mongoError, MongoError } from '../errors.js';
import type { CommandContext } from '../server/server-state.js';
import { collect } from '../server/steps.js';
import { Collection } from '../storage/catalog.js';
import { createDraft, draftNext } from '../storage/change.js';
import { collectionOptions } from './catalog-commands.js';
import { queryContext, type QueryOptions } from './query-context.js';
import { Selection } from './selection.js';
import { documentCheck, type DocumentCheck, writeTarget } from './write-target.js';
import { extendVariables } from '../aggregate/evaluate.js';

type Out = Extract<WriteStage, { kind: 'out' }>;
type Merge = Extract<WriteStage, { kind: 'merge' }>;

/** Options of an aggregate that concern what it writes. */
interface WriteOptions extends QueryOptions {
  readonly bypass: boolean;
}

/** Writes the results of a pipeline where its `$out` or `$merge` says. */
export async function writeResults(
  ctx: CommandContext,
  write: WriteStage,
  documents: Document[],
  options: WriteOptions,
): Promise<void> {
  const db = write.db ?? ctx.db;
  if (['admin', 'config', 'local'].includes(db))
    throw mongoError(
      write.kind === 'out' ? 31321 : 31320,
      `$${write.kind} cannot write to the database ${db}`,
    );
  if (write.kind === 'out') return replaceAll(ctx, db, write, documents, options.bypass);
  const existing = writeTarget(ctx, db, write.coll, 'change');
  const creates = documents.length > 0 && write.whenNotMatched === 'insert';
  const missing = (): Collection =>
    creates ? ctx.workspace.obtain(db, write.coll) : new Collection({ db, coll: write.coll });
  await new Merging(ctx, existing ?? missing(), write, options).run(documents);
}

/**
 * The new content takes the place of the old one in a single step, or not at all. Errors: those of `writeTarget`, 17152 for
 * a capped collection, 7268700 and 7406103 for one that holds no measurements, or other ones.
 */
function replaceAll(
  ctx: CommandContext,
  db: string,
  { coll, timeseries }: Out,
  documents: Document[],
  bypass: boolean,
): void {
  const wanted = timeseries === undefined ? undefined : collectionOptions({ timeseries }, ctx);
  const found = ctx.workspace.find(db, coll);
  if (wanted && found && found.options['timeseries'] === undefined)
    throw mongoError(7268700, 'Cannot create a time series collection from a non time series collection.');
  const target = writeTarget(ctx, db, coll, 'insert');
  if (wanted && target && compareValues(wanted['timeseries'], target.options['timeseries']) !== 0)
    throw mongoError(7406103, 'Time series options do not match those of the existing collection');
  if (target?.capped)
    throw mongoError(17152, `namespace '${db}.${coll}' is capped so it can't be used for $out`);
  const trial = new Collection({ db, coll }, target?.options ?? wanted);
  for (const index of target?.indexes.slice(1) ?? []) trial.addIndex(index.spec);
  const check = documentCheck(ctx, trial, bypass);
  const drafts = documents.map(createDraft);
  for (const draft of drafts) {
    check(draft.document);
    trial.insert(draft);
  }
  if (wanted && !target) ctx.workspace.create(db, coll, wanted);
  const collection = ctx.workspace.obtain(db, coll);
  for (const stored of collection.snapshotRecords().range()) ctx.workspace.remove(collection, stored);
  for (const draft of drafts) ctx.workspace.insert(collection, draft);
}

const MERGE_STAGES = new Set('$addFields $set $project $unset $replaceRoot $replaceWith $fill'.split(' '));

/** What MongoDB does by `$set`, which adds fields in the order of their names. */
const SETTING = new Set<unknown>(['merge', 'keepExisting']);
const sortFields = (document: Document): Document =>
  Object.fromEntries(Object.entries(document).toSorted(([a], [b]) => compareStrings(a, b)));

/** One run of `$merge`. */
class Merging {
  private readonly check: DocumentCheck;

  constructor(
    private readonly ctx: CommandContext,
    private readonly target: Collection,
    private readonly write: Merge,
    private readonly options: WriteOptions,
  ) {
    this.check = documentCheck(ctx, target, options.bypass);
  }

  /** Every document gets its chance. Errors: 51183, and that of the first document that failed. */
  async run(documents: readonly Document[]): Promise<void> {
    const { ctx, target, write, options } = this;
    const identified = target.indexes.find(
      ({ definition: { unique, fields, collation } }) =>
        unique &&
        compareValues(collation?.spec, options.collation?.spec) === 0 &&
        fields.length === write.on.length &&
        write.on.every((field) => fields.includes(field)),
    );
    if (!identified) throw mongoError(51183, 'Cannot find index to verify that join fields will be unique');
    const mayMiss = !identified.definition.sparse && identified.spec.name !== '_id_';
    let failure: MongoError | undefined;
    for (const given of documents) {
      const document = SETTING.has(write.whenMatched) ? sortFields(given) : given;
      try {
        await this.merge(mayMiss ? withNulls(document, write.on) : document);
      } catch (error) {
        if (!(error instanceof MongoError) || ctx.transaction) throw error;
        failure ??= error;
      }
      if (ctx.operation.turnIsOver) await ctx.operation.breathe();
    }
    if (failure) throw failure;
  }

  private async merge(document: Document): Promise<void> {
    const { ctx, target, write } = this;
    const draft = createDraft(document);
    const filter = Object.fromEntries(
      write.on.map((field) => [field, { $eq: joinValue(draft.document, field) }]),
    );
    const { collation } = this.options;
    const selection = new Selection(ctx, target, { filter, limit: 1, collation });
    const [found] = await collect(ctx.operation, await selection.rows());
    if (found) {
      const after = this.replaceMatched(found.document, document);
      if (!after) return;
      this.check(after, found.document);
      ctx.workspace.replace(target, found, draftNext(found, after), 'update');
    } else if (write.whenNotMatched === 'insert') {
      this.check(draft.document);
      ctx.workspace.insert(target, draft);
    } else if (write.whenNotMatched === 'fail')
      throw mongoError(13113, '$merge found no matching document in the target for one of its documents');
  }

  /** The merged document; undefined when the existing one stays. */
  private replaceMatched(existing: Document, incoming: Document): Document | undefined {
    const { on, whenMatched, variables: own } = this.write;
    const id = { _id: existing['_id'] };
    if (whenMatched === 'keepExisting') return undefined;
    if (whenMatched === 'fail')
      throw mongoError(11000, '$merge failed: a document with the same join fields already exists', {
        keyPattern: Object.fromEntries(on.map((field) => [field, 1])),
        keyValue: Object.fromEntries(on.map((field) => [field, joinValue(existing, field)])),
      });
    if (typeof whenMatched === 'string') {
      keepId(incoming, id);
      return { ...id, ...(whenMatched === 'merge' && existing), ...incoming, ...id };
    }
    const other = whenMatched.map(firstKey).find((name) => !name || !MERGE_STAGES.has(name));
    if (other !== undefined) throw mongoError(72, `${other} is not allowed in 'whenMatched' of $merge`);
    const base = queryContext(this.ctx, this.ctx.operation, undefined, this.options);
    const values = Object.entries(own)
      .map(([name, value]) => [name, compileExpression(value, base).evaluate(incoming)] as const)
      .filter(([, value]) => value !== undefined);
    const variables = extendVariables(base.variables, Object.fromEntries(values));
    const [result] = withoutPauses(compilePipeline(whenMatched, { ...base, variables })([existing]));
    if (result) keepId(result, id);
    return result && { ...result, ...id };
  }
}

/** Errors: 66 for a document that would get another identity. */
function keepId(document: Document, { _id }: Document): void {
  if (Object.hasOwn(document, '_id') && compareValues(document['_id'], _id) !== 0)
    throw mongoError(66, "$merge would change the immutable field '_id'");
}

/** An index that is not sparse holds a missing value as null, and so does what is merged by it. */
const withNulls = (document: Document, paths: readonly string[]): Document =>
  paths
    .map((path) => path.split('.'))
    .filter((parts) => readNested(document, parts) === undefined)
    .reduce((all, parts) => withNested(all, parts, null), document);

/** Errors: 51132 for a missing or array value. */
function joinValue(document: Document, path: string): unknown {
  const value = readNested(document, path.split('.'));
  if (value === undefined || Array.isArray(value))
    throw mongoError(51132, "$merge write error: 'on' field cannot be missing, null, undefined or an array");
  return value;
}

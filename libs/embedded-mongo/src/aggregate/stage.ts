import { compareValues } from '../bson/compare.js';
import type { Document } from '../bson/document.js';
import { toKey } from '../bson/keys.js';
import { compareNumbers, exactDecimal, longValue, numberKind, toBigInt, toDouble } from '../bson/number.js';
import { mongoError } from '../errors.js';
import type { QueryContext } from '../query/context.js';
import { PAUSE, sortInSteps, type Step } from '../server/steps.js';

/** A compiled stage or pipeline; running it twice gives two independent, lazy results. Pauses of the source are passed on. */
export type StageRun = (source: Iterable<Step<Document>>) => Iterable<Step<Document>>;

/** What a stage's compiler is given: its context, and a way to compile pipelines inside it. */
export interface StageBuilder {
  readonly ctx: QueryContext;
  pipeline(stages: unknown, ctx: QueryContext): StageRun;
}

/** Compiles the specification of one stage; all validation happens here, before any document is read. */
export type StageCompiler = (spec: unknown, builder: StageBuilder, name: string) => StageRun;

export type StageTable = Readonly<Record<string, StageCompiler>>;

/** One document in, one out. */
export const mapDocuments = (ctx: QueryContext, apply: (doc: Document) => Document): StageRun =>
  expandDocuments(ctx, (doc) => [apply(doc)]);

/** One document in, any number out. */
export const expandDocuments = (
  ctx: QueryContext,
  expand: (doc: Document) => Iterable<Step<Document>>,
): StageRun =>
  function* (source) {
    for (const doc of source) {
      if (doc === PAUSE) yield PAUSE;
      else {
        ctx.tick();
        for (const made of expand(doc)) yield made === PAUSE ? PAUSE : keepMetadata(ctx, doc, made);
        if (turnIsOver(ctx)) yield PAUSE;
      }
    }
  };

/** The document made of another one, of which the same is known. */
function keepMetadata({ found, metadata }: QueryContext, from: Document, made: Document): Document {
  if (from === made) return made;
  const read = found && Object.entries(found).map(([name, of]) => [name, of(from)] as const);
  const known = metadata?.get(from) ?? (read && Object.fromEntries(read));
  if (known) metadata?.set(made, known);
  return made;
}

/** Shows every document to `visit` and lets others in between. */
export function* visitAll<T>(
  ctx: QueryContext,
  source: Iterable<Step<T>>,
  visit: (item: T) => void,
): Generator<typeof PAUSE, void> {
  for (const item of source) {
    if (item === PAUSE) yield PAUSE;
    else {
      ctx.tick();
      visit(item);
      if (turnIsOver(ctx)) yield PAUSE;
    }
  }
}

/** All documents of a source. */
export function* gather<T>(ctx: QueryContext, source: Iterable<Step<T>>): Generator<typeof PAUSE, T[]> {
  const items: T[] = [];
  yield* visitAll(ctx, source, (item) => void items.push(item));
  return items;
}

/** The documents of a source by what `read` gives of them, in the order of these values. */
export function* partitionDocuments(
  ctx: QueryContext,
  source: Iterable<Step<Document>>,
  read: (doc: Document) => unknown,
): Generator<typeof PAUSE, Document[][]> {
  const partitions = new Map<string, { value: unknown; docs: Document[] }>();
  yield* visitAll(ctx, source, (doc) => {
    const value = read(doc);
    const key = toKey(value, ctx.collation);
    const known = partitions.get(key);
    if (known) known.docs.push(doc);
    else partitions.set(key, { value, docs: [doc] });
  });
  const sorted = [...partitions.values()].sort((a, b) => compareValues(a.value, b.value, ctx.collation));
  return sorted.map(({ docs }) => docs);
}

/** A stable sort that lets others in between. */
export function* sortWithinMemory<T>(
  ctx: QueryContext,
  items: readonly T[],
  compare: (a: T, b: T) => number,
): Generator<typeof PAUSE, T[]> {
  const steps = sortInSteps(items, compare);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    ctx.tick();
    if (turnIsOver(ctx)) yield PAUSE;
  }
}

export const turnIsOver = (ctx: QueryContext): boolean => ctx.turnIsOver?.() === true;

/** Results without the pauses, for work that is small. */
export function* withoutPauses<T>(steps: Iterable<Step<T>>): Iterable<T> {
  for (const step of steps) if (step !== PAUSE) yield step;
}

/** A whole number option of a stage. */
export function wholeOption(value: unknown, code: number, message: string): number {
  const exact = numberKind(value) === undefined ? NaN : exactDecimal(value);
  if (typeof exact === 'number' || compareNumbers(value, longValue(toBigInt(value))) !== 0)
    throw mongoError(code, message);
  return toDouble(value);
}

/** The context for documents of another collection, whose text and geo indexes are not those of the outer one. Errors: 232. */
export function foreignContext(ctx: QueryContext): QueryContext {
  const { text: _text, found: _found, geoIndexes: _geo, search, ...rest } = ctx;
  const joins = (ctx.joins ?? 0) + 1;
  if (joins > 20) throw mongoError(232, 'over 20 joins are nested in each other');
  return { ...rest, joins, ...(search && { search: {} }) };
}

/** Documents of another collection as they are when the pipeline is compiled; a stage that joins is refused where there is no database around it. */
export function readCollection(ctx: QueryContext, name: string): Iterable<Document> {
  if (!ctx.collection) throw mongoError(238, 'joins are not supported in this place by the embedded server');
  return ctx.collection(name);
}

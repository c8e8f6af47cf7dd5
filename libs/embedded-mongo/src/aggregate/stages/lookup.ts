import { Long } from 'bson';
import { type Document, firstKey, getField, isDocument } from '../../bson/document.js';
import { toKey } from '../../bson/keys.js';
import { type FieldPath, listValues, parseFieldPath, withNested } from '../../bson/path.js';
import { createParseError, mongoError } from '../../errors.js';
import type { Filter, QueryContext } from '../../query/context.js';
import { compileFilter } from '../../query/filter.js';
import { withTextScore } from '../../query/text.js';
import { PAUSE, type Step } from '../../server/steps.js';
import { MAX_DOCUMENT_BYTES } from '../../wire/raw-bson.js';
import { refuseOthers } from '../arguments.js';
import { checkVariableName, compileExpression, readPath } from '../expression.js';
import { countBytes, StageMemory } from '../memory.js';
import type { StageBuilder, StageCompiler, StageRun, StageTable } from '../stage.js';
import { expandDocuments, foreignContext, gather, readCollection, visitAll, wholeOption } from '../stage.js';
import { type Expression, extendVariables } from '../evaluate.js';

type Building = Generator<typeof PAUSE, JoinTable>;

/** A hash of a collection by the values at one path: a join costs one lookup per value, not a scan. */
class JoinTable {
  private readonly buckets = new Map<string, number[]>();

  private constructor(
    private readonly docs: readonly Document[],
    private readonly ctx: QueryContext,
  ) {}

  private static *of(
    docs: readonly Document[],
    ctx: QueryContext,
    valuesOf: (doc: Document) => unknown[],
  ): Building {
    const table = new JoinTable(docs, ctx);
    let position = 0;
    yield* visitAll(ctx, docs, (doc) => {
      table.add(position, valuesOf(doc));
      position += 1;
    });
    return table;
  }

  private add(position: number, values: unknown[]): void {
    for (const key of new Set(values.map((value) => toKey(value, this.ctx.collation)))) {
      const bucket = this.buckets.get(key);
      if (bucket) bucket.push(position);
      else this.buckets.set(key, [position]);
    }
  }

  /** As a query sees the path: arrays and their elements count, and missing is null. */
  static byQueryPath(docs: readonly Document[], path: string, ctx: QueryContext): Building {
    const parsed = parseFieldPath(path);
    return JoinTable.of(docs, ctx, (doc) =>
      listValues(doc, parsed, 'elements').map((value) => value ?? null),
    );
  }

  /** As an expression sees the path: one value, missing apart from null. */
  static byExpressionPath(docs: readonly Document[], path: string, ctx: QueryContext): Building {
    const parsed = parseFieldPath(path);
    return JoinTable.of(docs, ctx, (doc) => [readPath(doc, parsed, 0)]);
  }

  /** Documents with any of the values, in their own order. */
  find(values: readonly unknown[]): Document[] {
    const [only] = values;
    if (values.length === 1) return this.at(only).map((position) => this.docs[position] as Document);
    const positions = new Set<number>();
    for (const value of values) {
      this.ctx.tick();
      for (const position of this.at(value)) positions.add(position);
    }
    return [...positions].sort((a, b) => a - b).map((position) => this.docs[position] as Document);
  }

  private at(value: unknown): readonly number[] {
    return this.buckets.get(toKey(value, this.ctx.collation)) ?? [];
  }
}

/** The values a local field joins by: an array joins by its elements, a missing field as null. */
const localValues = (doc: Document, path: FieldPath): unknown[] =>
  listValues(doc, path, 'whole').flatMap((value) =>
    Array.isArray(value) ? (value as unknown[]) : [value ?? null],
  );

interface LookupSpec {
  readonly from: string | undefined;
  readonly as: readonly string[];
  readonly localField: string | undefined;
  readonly foreignField: string | undefined;
  readonly variables: Document;
  readonly pipeline: readonly unknown[] | undefined;
}

function readSpec(spec: unknown): LookupSpec {
  if (!isDocument(spec)) throw createParseError('the $lookup specification must be an object');
  refuseOthers(spec, ['from', 'as', 'localField', 'foreignField', 'let', 'pipeline'], '$lookup', 9);
  const text = (name: string): string | undefined => {
    const value = getField(spec, name) ?? undefined;
    if (value !== undefined && typeof value !== 'string')
      throw createParseError(`$lookup argument '${name}' must be a string`);
    return value;
  };
  const pipeline = getField(spec, 'pipeline');
  if (pipeline !== undefined && !Array.isArray(pipeline))
    throw mongoError(14, "'pipeline' option must be specified as an array");
  const variables = getField(spec, 'let') ?? {};
  if (!isDocument(variables)) throw createParseError("$lookup argument 'let' must be an object");
  const [as, from] = [text('as'), text('from')];
  const [localField, foreignField] = [text('localField') || undefined, text('foreignField') || undefined];
  if (as === undefined) throw createParseError("must specify 'as' field for a $lookup");
  if ((localField === undefined) !== (foreignField === undefined))
    throw createParseError("$lookup requires both or neither of 'localField' and 'foreignField'");
  if (localField === undefined && !pipeline)
    throw createParseError("$lookup requires 'pipeline', or 'localField' and 'foreignField'");
  if (!pipeline && Object.keys(variables).length > 0)
    throw createParseError("$lookup with a 'let' argument must also specify 'pipeline'");
  if (from === undefined && !startsWithDocuments(pipeline))
    throw createParseError("must specify 'from' field for a $lookup");
  if (from === '' || from?.startsWith('.') || from?.includes('\0') || (from && startsWithDocuments(pipeline)))
    throw mongoError(73, "$lookup needs a name as 'from', and none before $documents");
  return { from, as: parseFieldPath(as).parts, localField, foreignField, variables, pipeline };
}

const startsWithDocuments = (pipeline: unknown): boolean =>
  Array.isArray(pipeline) && isDocument(pipeline[0]) && firstKey(pipeline[0]) === '$documents';

const lookup: StageCompiler = (spec, builder) => {
  const { from, as, localField, foreignField, ...rest } = readSpec(spec);
  const { ctx } = builder;
  const inner = rest.pipeline
    ? new InnerPipeline(from, rest.pipeline, rest.variables, builder, localField !== undefined)
    : undefined;
  const localPath = localField === undefined ? undefined : parseFieldPath(localField);
  const stored = from === undefined ? [] : readCollection(ctx, from);
  return function* (source) {
    const foreign = yield* gather(ctx, stored);
    const byField =
      foreignField === undefined ? undefined : yield* JoinTable.byQueryPath(foreign, foreignField, ctx);
    const byVariable = inner?.equality
      ? yield* JoinTable.byExpressionPath(foreign, inner.equality.field, ctx)
      : undefined;
    let uncorrelated: Document[] | undefined;
    yield* expandDocuments(ctx, function* (doc) {
      inner?.bind(doc);
      yield* inner?.judgeAll(foreign) ?? [];
      let candidates: readonly Document[] = foreign;
      if (byField && localPath && foreignField !== undefined) {
        const table = inner?.makes
          ? yield* JoinTable.byQueryPath(yield* collectRows(ctx, inner.makes([])), foreignField, ctx)
          : byField;
        const values = localValues(doc, localPath);
        candidates = table.find(values.length > 0 ? values : [null]);
      } else if (byVariable && inner?.equality)
        candidates = byVariable.find([inner.equality.value.evaluate(doc)]);
      let joined: Document[];
      if (!inner) joined = [...candidates];
      else if (byField || inner.correlated) joined = yield* collectRows(ctx, inner.run(candidates));
      else joined = uncorrelated ??= yield* collectRows(ctx, inner.run(candidates));
      if (countBytes(joined, MAX_DOCUMENT_BYTES) > MAX_DOCUMENT_BYTES)
        throw mongoError(4568, `$lookup found over ${MAX_DOCUMENT_BYTES} bytes for one document`);
      yield withNested(doc, as, joined);
    })(source);
  };
};

function* collectRows(
  ctx: QueryContext,
  rows: Iterable<Step<Document>>,
): Generator<typeof PAUSE, Document[]> {
  const memory = new StageMemory('$lookup');
  const all: Document[] = [];
  yield* visitAll(ctx, rows, (row) => {
    memory.hold(row);
    all.push(row);
  });
  return all;
}

/** The pipeline of a `$lookup`: compiled once, its `let` variables bound again for every outer document. */
class InnerPipeline {
  readonly run: StageRun;
  /** Makes the documents of a join that begins with `$documents` instead of reading a collection. */
  readonly makes: StageRun | undefined;
  readonly correlated: boolean;
  /** An equality of a foreign field with a variable in the first `$match`, which a hash join can serve. */
  readonly equality: { field: string; value: Expression } | undefined;
  /** Where the equality of the join may be asked after the leading filter, that filter. */
  private readonly judged: Filter | undefined;
  private readonly ctx: QueryContext;
  private readonly values: Record<string, unknown>;
  private readonly definitions: { name: string; expression: Expression }[];

  constructor(
    from: string | undefined,
    pipeline: readonly unknown[],
    variables: Document,
    builder: StageBuilder,
    joins: boolean,
  ) {
    this.ctx = builder.ctx;
    const names = Object.keys(variables);
    this.definitions = names.map((name) => {
      checkVariableName(name);
      return { name, expression: compileExpression(variables[name], builder.ctx) };
    });
    this.values = extendVariables(
      builder.ctx.variables,
      Object.fromEntries(names.map((name) => [name, null])),
    );
    this.correlated = names.length > 0;
    if (isDocument(pipeline[0]) && Object.hasOwn(pipeline[0], '$vectorSearch'))
      throw mongoError(51047, '$vectorSearch is not allowed within a $lookup');
    const lead = isDocument(pipeline[0]) ? getField(pipeline[0], '$match') : undefined;
    const inner = { ...createJoinedContext(builder.ctx, from, pipeline), variables: this.values };
    const made = joins && startsWithDocuments(pipeline);
    this.makes = made ? builder.pipeline(pipeline.slice(0, 1), inner) : undefined;
    this.run = builder.pipeline(made ? pipeline.slice(1) : pipeline, inner);
    this.judged = builder.ctx.order && isDocument(lead) ? compileFilter(lead, inner) : undefined;
    const found = isDocument(lead) ? equalityIn(getField(lead, '$expr'), names) : undefined;
    this.equality = found && {
      field: found.field,
      value: compileExpression(variables[found.variable], builder.ctx),
    };
  }

  /** Rows that the join would not reach; only what fails on one of them shows. */
  *judgeAll(foreign: readonly Document[]): Generator<typeof PAUSE, void> {
    const { judged } = this;
    if (judged) yield* visitAll(this.ctx, foreign, (doc) => void judged.matches(doc));
  }

  bind(doc: Document): void {
    for (const { name, expression } of this.definitions) this.values[name] = expression.evaluate(doc);
  }
}

/** Finds `{$eq: ["$field", "$$variable"]}`, also inside `$and`. */
function equalityIn(
  expression: unknown,
  names: readonly string[],
): { field: string; variable: string } | undefined {
  if (!isDocument(expression)) return undefined;
  const all = getField(expression, '$and');
  if (Array.isArray(all)) {
    for (const part of all) {
      const found = equalityIn(part, names);
      if (found) return found;
    }
    return undefined;
  }
  const sides = getField(expression, '$eq');
  if (!Array.isArray(sides) || sides.length !== 2) return undefined;
  for (const [field, variable] of [sides, [sides[1], sides[0]]] as [unknown, unknown][]) {
    if (typeof field !== 'string' || typeof variable !== 'string') continue;
    if (/^\$[^$]/.test(field) && variable.startsWith('$$') && names.includes(variable.slice(2)))
      return { field: field.slice(1), variable: variable.slice(2) };
  }
  return undefined;
}

const unionWith: StageCompiler = (spec, builder) => {
  const options: Document = isDocument(spec) ? spec : { coll: spec };
  const coll = getField(options, 'coll');
  const pipeline = getField(options, 'pipeline') ?? [];
  if (typeof coll !== 'string' && !startsWithDocuments(pipeline))
    throw createParseError('$unionWith takes a name or an object with coll');
  const run = builder.pipeline(pipeline, createJoinedContext(builder.ctx, coll, pipeline));
  const others = typeof coll === 'string' ? readCollection(builder.ctx, coll) : [];
  return function* (source) {
    yield* source;
    yield* run(others);
  };
};

/** A joined pipeline may begin with a text search or `$geoNear` of its own, by the indexes of its collection. */
function createJoinedContext(ctx: QueryContext, coll: unknown, pipeline: unknown): QueryContext {
  const indexes = typeof coll === 'string' ? ctx.joinedIndexes?.(coll) : undefined;
  const lead: unknown = Array.isArray(pipeline) ? pipeline[0] : undefined;
  const joined = { ...foreignContext(ctx), ...indexes };
  return withTextScore(joined, isDocument(lead) ? getField(lead, '$match') : undefined);
}

const known =
  'from startWith connectFromField connectToField as maxDepth depthField restrictSearchWithMatch'.split(' ');

function text(spec: Document, name: string): string {
  const value = getField(spec, name);
  if (value === undefined) throw mongoError(40105, `${name} is required for a $graphLookup`);
  if (typeof value !== 'string') throw mongoError(40103, `expected string as argument for ${name}`);
  return value;
}

const graphLookup: StageCompiler = (spec, { ctx }) => {
  if (!isDocument(spec)) throw createParseError('the $graphLookup stage specification must be an object');
  refuseOthers(spec, known, '$graphLookup', 40104);
  if (!Object.hasOwn(spec, 'startWith')) throw mongoError(40105, 'startWith is required for a $graphLookup');
  const start = compileExpression(spec['startWith'], ctx);
  const [from, toField] = [text(spec, 'from'), text(spec, 'connectToField')];
  const fromPath = parseFieldPath(text(spec, 'connectFromField'));
  const as = parseFieldPath(text(spec, 'as')).parts;
  const depthPath = Object.hasOwn(spec, 'depthField')
    ? parseFieldPath(text(spec, 'depthField')).parts
    : undefined;
  const maxDepth = Object.hasOwn(spec, 'maxDepth')
    ? wholeOption(spec['maxDepth'], 40100, 'maxDepth requires a numeric argument')
    : Infinity;
  if (maxDepth < 0) throw mongoError(40101, 'maxDepth requires a nonnegative argument');
  const restriction = getField(spec, 'restrictSearchWithMatch') ?? {};
  if (!isDocument(restriction)) throw mongoError(40185, 'restrictSearchWithMatch must be an object');
  const filter = compileFilter(restriction, foreignContext(ctx));
  const stored = readCollection(ctx, from);

  return function* (source) {
    const docs: Document[] = [];
    yield* visitAll(ctx, stored, (doc) => void (filter.matches(doc) && docs.push(doc)));
    const table = yield* JoinTable.byQueryPath(docs, toField, ctx);
    yield* expandDocuments(ctx, function* (doc) {
      const first = start.evaluate(doc) ?? null;
      let frontier: unknown[] = Array.isArray(first) ? first : [first];
      const seen = new Set<string>();
      const found = new Map<Document, number>();
      for (let depth = 0; depth <= maxDepth && frontier.length > 0; depth++) {
        const values = frontier.filter((value) => seen.size < seen.add(toKey(value, ctx.collation)).size);
        frontier = [];
        yield* visitAll(ctx, table.find(values), (next) => {
          if (found.has(next)) return;
          found.set(next, depth);
          for (const value of localValues(next, fromPath)) if (value !== null) frontier.push(value);
        });
      }
      const joined = [...found].map(([next, depth]) =>
        depthPath ? withNested(next, depthPath, Long.fromNumber(depth)) : next,
      );
      yield withNested(doc, as, joined);
    })(source);
  };
};

export const joinStages: StageTable = {
  $lookup: lookup,
  $unionWith: unionWith,
  $graphLookup: graphLookup,
};

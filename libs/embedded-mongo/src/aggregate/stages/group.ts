import { Code, MaxKey, MinKey } from 'bson';
import type { Collation } from '../../bson/collation.js';
import { compareValues } from '../../bson/compare.js';
import { type Document, firstKey, getField, isDocument, setField } from '../../bson/document.js';
import { toKey } from '../../bson/keys.js';
import { numberKind } from '../../bson/number.js';
import { mongoError, notImplemented } from '../../errors.js';
import type { QueryContext } from '../../query/context.js';
import { PAUSE } from '../../server/steps.js';
import { type AccumulatorPlan, compileAccumulator } from '../accumulators.js';
import { refuseOthers, requireDocument, requireMembers } from '../arguments.js';
import { compileExpression, expressionBuilder } from '../expression.js';
import type { Accumulator } from '../folds.js';
import { StageMemory } from '../memory.js';
import type { StageCompiler, StageRun, StageTable } from '../stage.js';
import { mapDocuments, sortWithinMemory, turnIsOver, visitAll, wholeOption } from '../stage.js';
import { typeRank } from '../../bson/type-name.js';
import type { Scope } from '../evaluate.js';

/** The output fields of a grouping stage, compiled. */
class GroupOutput {
  private readonly fields: { name: string; plan: AccumulatorPlan }[];

  constructor(spec: Document, ctx: QueryContext) {
    const builder = expressionBuilder(ctx);
    this.fields = Object.keys(spec).map((name) => {
      if (name.includes('.')) throw mongoError(40235, `The field name '${name}' cannot contain '.'`);
      if (name.startsWith('$'))
        throw mongoError(40236, `The field name '${name}' cannot be an operator name`);
      return { name, plan: compileAccumulator(name, getField(spec, name), builder) };
    });
  }

  start(): Accumulator[] {
    return this.fields.map((field) => field.plan.create());
  }

  add(accumulators: readonly Accumulator[], doc: Document): void {
    const scope: Scope = { root: doc, current: doc, variables: [] };
    for (const [i, field] of this.fields.entries()) accumulators[i]?.add(field.plan.input(scope), scope);
  }

  finish(id: unknown, accumulators: readonly Accumulator[]): Document {
    const result: Document = { _id: id };
    for (const [i, field] of this.fields.entries()) setField(result, field.name, accumulators[i]?.result());
    return result;
  }
}

const group: StageCompiler = (spec, { ctx }) => {
  if (!isDocument(spec)) throw mongoError(15947, "a group's fields must be specified in an object");
  if (!Object.hasOwn(spec, '_id')) throw mongoError(15955, 'a group specification must include an _id');
  const { _id, ...outputs } = spec;
  const isFlag = (value: unknown): boolean => typeof value === 'boolean' || numberKind(value) !== undefined;
  if (isDocument(_id) && !firstKey(_id)?.startsWith('$') && Object.values(_id).some(isFlag))
    throw mongoError(17390, '$group does not support inclusion-style expressions');
  const output = new GroupOutput(outputs, ctx);
  const identity = expressionBuilder(ctx).compile(_id);
  return function* (source) {
    const groups = new Map<string, { id: unknown; accumulators: Accumulator[] }>();
    const memory = new StageMemory('$group');
    yield* visitAll(ctx, source, (doc) => {
      const id = identity({ root: doc, current: doc, variables: [] }) ?? null;
      const key = toKey(id, ctx.collation);
      let entry = groups.get(key);
      if (!entry) {
        memory.hold([key, id]);
        groups.set(key, (entry = { id, accumulators: output.start() }));
      }
      output.add(entry.accumulators, doc);
    });
    for (const { id, accumulators } of groups.values()) {
      ctx.tick();
      yield output.finish(id, accumulators);
    }
  };
};

/** What MongoDB's engine makes of values that a group computed, where a stage of another kind follows. */
export const handOver = (ctx: QueryContext): StageRun =>
  mapDocuments(ctx, (doc) => {
    const result: Document = {};
    for (const name of Object.keys(doc)) {
      const value = doc[name];
      setField(result, name, Array.isArray(value) ? value.map(handOverValue) : handOverValue(value));
    }
    return result;
  });

function handOverValue(value: unknown): unknown {
  if (value instanceof MinKey || value instanceof MaxKey) return { '': value };
  return value instanceof Code && !value.scope ? value.code : value;
}

/** Errors: `code` for what is neither a path nor an operator. */
function requireComputed(value: unknown, code: number): void {
  const start = isDocument(value) ? firstKey(value) : value;
  if (typeof start !== 'string' || !start.startsWith('$'))
    throw mongoError(code, 'Documents are grouped by a $-prefixed path or an expression object');
}

const sortByCount: StageCompiler = (spec, builder) => {
  requireComputed(spec, 40147);
  const group = { _id: spec, count: { $sum: 1 } };
  return builder.pipeline([{ $group: group }, { $sort: { count: -1 } }], builder.ctx);
};

/** The outputs of the buckets; a count where none are asked for. */
function readOutput(spec: Document, name: string, code: number): Document {
  const output = getField(spec, 'output');
  const none = isDocument(output) && Object.keys(output).length === 0;
  if (output === undefined || (none && name === '$bucketAuto')) return { count: { $sum: 1 } };
  return requireDocument(output, `'output' of ${name}`, code);
}

/** `$bucket` is written in terms of `$group` and `$sort`, as MongoDB defines it. */
const bucket: StageCompiler = (spec, { ctx, pipeline }) => {
  if (!isDocument(spec)) throw mongoError(40201, 'Argument to $bucket stage must be an object');
  refuseOthers(spec, ['groupBy', 'boundaries', 'default', 'output'], '$bucket', 40197);
  requireMembers(spec, ['groupBy', 'boundaries'], '$bucket', 40198);
  const { groupBy } = spec;
  requireComputed(groupBy, 40202);
  const boundaries = readBoundaries(spec['boundaries'], ctx.collation);
  const hasDefault = Object.hasOwn(spec, 'default');
  const fallback = constant(getField(spec, 'default'));
  const order = (bound: unknown): number => compareValues(fallback, bound, ctx.collation);
  const [lowest, highest] = [boundaries[0], boundaries.at(-1)];
  if (hasDefault && typeRank(fallback) === typeRank(lowest) && order(lowest) >= 0 && order(highest) < 0)
    throw mongoError(40199, "'default' of $bucket must lie outside of its boundaries");
  const literals = boundaries.map((value) => ({ $literal: value }));
  const branches = literals.slice(1).map((high, i) => ({
    case: { $and: [{ $gte: [groupBy, literals[i]] }, { $lt: [groupBy, high] }] },
    // oxlint-disable-next-line unicorn/no-thenable -- a branch of $switch
    then: literals[i],
  }));
  const _id = { $switch: { branches, ...(hasDefault ? { default: { $literal: fallback } } : {}) } };
  const output = readOutput(spec, '$bucket', 40196);
  return pipeline([{ $group: { ...output, _id } }, { $sort: { _id: 1 } }], ctx);
};

const constant = (value: unknown): unknown =>
  isDocument(value) && Object.hasOwn(value, '$literal') ? value['$literal'] : value;

function readBoundaries(value: unknown, collation?: Collation): unknown[] {
  if (!Array.isArray(value)) throw mongoError(40200, "The $bucket 'boundaries' field must be an array");
  if (value.length < 2) throw mongoError(40192, "The $bucket 'boundaries' field must have at least 2 values");
  const boundaries = value.map(constant);
  for (let i = 1; i < boundaries.length; i++) {
    if (typeRank(boundaries[i]) !== typeRank(boundaries[0]))
      throw mongoError(40193, "All values in the 'boundaries' option to $bucket must have the same type");
    if (compareValues(boundaries[i - 1], boundaries[i], collation) >= 0)
      throw mongoError(40194, "The 'boundaries' option to $bucket must be sorted");
  }
  return boundaries;
}

const bucketAuto: StageCompiler = (spec, { ctx }) => {
  if (!isDocument(spec)) throw mongoError(40240, 'The argument to $bucketAuto must be an object');
  refuseOthers(spec, ['groupBy', 'buckets', 'output', 'granularity'], '$bucketAuto', 40245);
  requireMembers(spec, ['groupBy', 'buckets'], '$bucketAuto', 40246);
  requireComputed(spec['groupBy'], 40239);
  const groupBy = compileExpression(spec['groupBy'], ctx);
  const wanted = wholeOption(
    getField(spec, 'buckets'),
    40241,
    "The $bucketAuto 'buckets' field must be a numeric value",
  );
  if (wanted > 0x7fffffff) throw mongoError(40242, "'buckets' of $bucketAuto must be a 32-bit integer");
  if (wanted <= 0) throw mongoError(40243, "The $bucketAuto 'buckets' field must be greater than 0");
  if (getField(spec, 'granularity') !== undefined) throw notImplemented('$bucketAuto granularity');
  const output = new GroupOutput(readOutput(spec, '$bucketAuto', 40244), ctx);
  return function* (source) {
    const read: { value: unknown; doc: Document }[] = [];
    yield* visitAll(ctx, source, (doc) => void read.push({ value: groupBy.evaluate(doc) ?? null, doc }));
    const entries = yield* sortWithinMemory(ctx, read, (a, b) =>
      compareValues(a.value, b.value, ctx.collation),
    );
    const size = Math.max(1, Math.round(entries.length / wanted));
    let at = 0;
    for (let number = 1; at < entries.length; number++) {
      const start = at;
      const end = number >= wanted ? entries.length : Math.min(entries.length, at + size);
      const accumulators = output.start();
      // Equal values never part company, so a bucket may take more than its share.
      while (at < end || (at < entries.length && sameValue(entries[at - 1], entries[at]))) {
        output.add(accumulators, (entries[at] as { doc: Document }).doc);
        at++;
        if (turnIsOver(ctx)) yield PAUSE;
      }
      const max = (entries[at] ?? entries.at(-1))?.value;
      yield output.finish({ min: entries[start]?.value, max }, accumulators);
    }
  };

  function sameValue(a: { value: unknown } | undefined, b: { value: unknown } | undefined): boolean {
    return compareValues(a?.value, b?.value, ctx.collation) === 0;
  }
};

export const groupStages: StageTable = {
  $group: group,
  $sortByCount: sortByCount,
  $bucket: bucket,
  $bucketAuto: bucketAuto,
};

import { Code, MaxKey, MinKey } from 'bson';
import { mongoError } from '../../errors.js';
import { getField, isDocument, setField, type Document } from '../../bson/document.js';
import { toKey } from '../../bson/key-string.js';
import type { QueryContext } from '../../query/context.js';
import { compileAccumulator, type AccumulatorPlan } from '../accumulators.js';
import type { Accumulator } from '../folds.js';
import { expressionBuilder } from '../expression.js';
import type { Scope } from '../evaluate.js';
import { mapDocuments, visitAll, type StageCompiler, type StageRun, type StageTable } from '../stage.js';
import { StageMemory } from '../stage-memory.js';

/** The output fields of a grouping stage, compiled. */
export class GroupOutput {
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

const sortByCount: StageCompiler = (spec, builder) => {
  const valid =
    (typeof spec === 'string' && spec.startsWith('$')) ||
    (isDocument(spec) && Object.keys(spec)[0]?.startsWith('$'));
  if (!valid) throw mongoError(40147, '$sortByCount takes a $-prefixed path or an expression');
  const group = { _id: spec, count: { $sum: 1 } };
  return builder.pipeline([{ $group: group }, { $sort: { count: -1 } }], builder.ctx);
};

export const groupStages: StageTable = { $group: group, $sortByCount: sortByCount };

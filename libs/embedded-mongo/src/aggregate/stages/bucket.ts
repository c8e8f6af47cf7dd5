import { mongoError, notImplemented } from '../../errors.js';
import type { Collation } from '../../bson/collation.js';
import { compareValues, typeRank } from '../../bson/compare.js';
import { getField, isDocument, type Document } from '../../bson/document.js';
import { PAUSE } from '../../server/drain.js';
import { refuseOthers, requireDocument } from '../arguments.js';
import { compileExpression } from '../expression.js';
import {
  sortWithinMemory,
  turnIsOver,
  visitAll,
  wholeOption,
  type StageCompiler,
  type StageTable,
} from '../stage.js';
import { GroupOutput } from './group.js';

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
  const groupBy = requireField(spec, 'groupBy');
  const boundaries = readBoundaries(requireField(spec, 'boundaries'), ctx.collation);
  refuseOthers(spec, ['groupBy', 'boundaries', 'default', 'output'], '$bucket', 40197);
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

function requireField(spec: Document, name: string): unknown {
  if (!Object.hasOwn(spec, name)) throw mongoError(40198, `$bucket requires '${name}' to be specified`);
  return spec[name];
}

const constant = (value: unknown): unknown =>
  isDocument(value) && Object.hasOwn(value, '$literal') ? value['$literal'] : value;

function readBoundaries(value: unknown, collation?: Collation): unknown[] {
  if (!Array.isArray(value)) throw mongoError(40200, "The $bucket 'boundaries' field must be an array");
  if (value.length < 2) throw mongoError(40192, "The $bucket 'boundaries' field must have at least 2 values");
  const boundaries = value.map(constant);
  for (let i = 1; i < boundaries.length; i++) {
    if (typeRank(boundaries[i]) !== typeRank(boundaries[0])) {
      throw mongoError(40193, "All values in the 'boundaries' option to $bucket must have the same type");
    }
    if (compareValues(boundaries[i - 1], boundaries[i], collation) >= 0) {
      throw mongoError(40194, "The 'boundaries' option to $bucket must be sorted");
    }
  }
  return boundaries;
}

const bucketAuto: StageCompiler = (spec, { ctx }) => {
  if (!isDocument(spec)) throw mongoError(40240, 'The argument to $bucketAuto must be an object');
  refuseOthers(spec, ['groupBy', 'buckets', 'output', 'granularity'], '$bucketAuto', 40245);
  const groupBy = compileExpression(getField(spec, 'groupBy'), ctx);
  const wanted = wholeOption(
    getField(spec, 'buckets'),
    40241,
    "The $bucketAuto 'buckets' field must be a numeric value",
  );
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

export const bucketStages: StageTable = { $bucket: bucket, $bucketAuto: bucketAuto };

import { createParseError, mongoError } from '../../errors.js';
import { compareValues, compileSort } from '../../bson/compare.js';
import { getField, isDocument, type Document } from '../../bson/document.js';
import { toKey } from '../../bson/key-string.js';
import { withNested } from '../../bson/nested.js';
import { parseFieldPath } from '../../bson/path.js';
import { refuseOthers } from '../arguments.js';
import { compileExpression } from '../expression.js';
import {
  sortWithinMemory,
  visitAll,
  type StageCompiler,
  type StageTable,
  partitionDocuments,
} from '../stage.js';
import type { Partition } from './window-bounds.js';
import { windowFunction, type WindowFunction } from './window-functions.js';

interface OutputField {
  readonly path: readonly string[];
  readonly compute: WindowFunction;
}

const setWindowFields: StageCompiler = (spec, { ctx }) => {
  if (!isDocument(spec)) throw createParseError('the $setWindowFields stage specification must be an object');
  refuseOthers(spec, ['partitionBy', 'sortBy', 'output'], '$setWindowFields', 40415);
  const output = getField(spec, 'output');
  if (!isDocument(output))
    throw mongoError(40414, "BSON field '$setWindowFields.output' is missing but a required field");
  const sortBy = getField(spec, 'sortBy') ?? undefined;
  if (sortBy !== undefined && !isDocument(sortBy))
    throw mongoError(14, "BSON field '$setWindowFields.sortBy' must be an object");
  const order = sortBy ? compileSort(sortBy, ctx.collation) : undefined;
  const partitionBy = compileExpression(getField(spec, 'partitionBy') ?? null, ctx);
  const fields = Object.keys(output).map((name): OutputField => ({
    path: parseFieldPath(name).parts,
    compute: windowFunction(getField(output, name), sortBy, ctx),
  }));

  return function* (source) {
    const partitions = yield* partitionDocuments(ctx, source, (doc) => {
      const value = partitionBy.evaluate(doc) ?? null;
      if (Array.isArray(value))
        throw mongoError(14, 'An expression used to partition cannot evaluate to value of type array');
      return value;
    });
    for (const docs of partitions) {
      let entries = docs.map((doc) => ({ doc, keys: order?.listKeys(doc) ?? [] }));
      if (order) entries = yield* sortWithinMemory(ctx, entries, (a, b) => order.compareKeys(a.keys, b.keys));
      const partition: Partition = {
        docs: entries.map((entry) => entry.doc),
        keys: entries.map((entry) => entry.keys),
        sameRank: (a, b) =>
          order !== undefined && order.compareKeys(entries[a]?.keys ?? [], entries[b]?.keys ?? []) === 0,
      };
      const columns: unknown[][] = [];
      for (const field of fields) {
        const column = field.compute(partition);
        columns.push(Array.isArray(column) ? column : yield* column);
      }
      for (const [i, doc] of partition.docs.entries()) {
        let result = doc;
        for (const [k, field] of fields.entries()) result = withNested(result, field.path, columns[k]?.[i]);
        yield result;
      }
    }
  };
};

export const windowStages: StageTable = { $setWindowFields: setWindowFields };

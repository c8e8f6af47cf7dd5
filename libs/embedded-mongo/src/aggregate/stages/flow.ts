import { Long } from 'bson';
import { type Document, firstKey, getField, isDocument, setField } from '../../bson/document.js';
import { coerceInteger, numberKind } from '../../bson/number.js';
import { parseFieldPath, readNested, withNested } from '../../bson/path.js';
import { mongoError } from '../../errors.js';
import { compileFilter } from '../../query/filter.js';
import { readMetadata } from '../../query/context.js';
import { requiresGeoIndex } from '../../query/geo.js';
import { PAUSE } from '../../server/steps.js';
import { refuseOthers, requireDocument } from '../arguments.js';
import { compileExpression } from '../expression.js';
import { StageMemory } from '../memory.js';
import type { StageCompiler, StageTable } from '../stage.js';
import { expandDocuments, gather, sortWithinMemory, turnIsOver, visitAll, wholeOption } from '../stage.js';
import { compileSort } from '../../bson/keys.js';

const match: StageCompiler = (spec, { ctx }) => {
  if (!isDocument(spec)) throw mongoError(15959, 'the match filter must be an expression in an object');
  if (requiresGeoIndex(spec))
    throw mongoError(5626500, '$geoNear, $near, and $nearSphere are not allowed in this context');
  const filter = compileFilter(spec, ctx);
  return expandDocuments(ctx, (doc) => (filter.matches(doc) ? [doc] : []));
};

/** Sorts all documents by keys read once; equal keys keep their order. */
const sort: StageCompiler = (spec, { ctx }) => {
  if (!isDocument(spec)) throw mongoError(15973, 'the $sort key specification must be an object');
  if (firstKey(spec) === undefined) throw mongoError(15976, '$sort stage must have at least one sort key');
  if (Object.values(spec).filter((value) => !isDocument(value)).length > 32)
    throw mongoError(13103, 'a $sort stage has at most 32 keys');
  if (Object.hasOwn(spec, '$natural')) throw mongoError(16410, '$sort has no order called $natural');
  const order = compileSort(spec, ctx.collation, (name) => {
    if (name === 'searchHighlights') throw mongoError(31138, `Illegal $meta sort: $meta: "${name}"`);
    return readMetadata(name, ctx);
  });
  return function* (source) {
    const entries: { doc: Document; keys: unknown[] }[] = [];
    yield* visitAll(ctx, source, (doc) => void entries.push({ doc, keys: order.listKeys(doc) }));
    for (const { doc } of yield* sortWithinMemory(ctx, entries, (a, b) => order.compareKeys(a.keys, b.keys)))
      yield doc;
  };
};

const limit: StageCompiler = (spec, { ctx }) => {
  const count = wholeOption(spec, 5107201, 'invalid argument to $limit stage: Expected a whole number');
  if (count <= 0) throw mongoError(15958, 'the limit must be positive');
  return function* (source) {
    let left = count;
    for (const doc of source) {
      ctx.tick();
      yield doc;
      if (doc !== PAUSE && --left === 0) return;
    }
  };
};

const skip: StageCompiler = (spec, { ctx }) => {
  const count = wholeOption(spec, 5107200, 'invalid argument to $skip stage: Expected a whole number');
  if (count < 0) throw mongoError(5107200, 'invalid argument to $skip stage: Expected a non-negative number');
  return function* (source) {
    let left = count;
    for (const doc of source) {
      ctx.tick();
      if (doc === PAUSE || left === 0) yield doc;
      else {
        left--;
        if (turnIsOver(ctx)) yield PAUSE;
      }
    }
  };
};

const unwind: StageCompiler = (spec, { ctx }) => {
  const options: Document = isDocument(spec) ? spec : { path: spec };
  const path = getField(options, 'path');
  refuseOthers(options, ['path', 'includeArrayIndex', 'preserveNullAndEmptyArrays'], '$unwind', 28811);
  if (typeof path !== 'string') throw mongoError(28808, 'expected a string as the path for $unwind stage');
  if (!path.startsWith('$'))
    throw mongoError(28818, `path option to $unwind stage should be prefixed with a '$': ${path}`);
  const { parts } = parseFieldPath(path.slice(1));
  const indexName = getField(options, 'includeArrayIndex');
  if (
    indexName !== undefined &&
    (typeof indexName !== 'string' || indexName === '' || indexName.startsWith('$'))
  ) {
    throw mongoError(28810, 'expected a non-empty string for the includeArrayIndex option to $unwind stage');
  }
  const indexPath = typeof indexName === 'string' ? parseFieldPath(indexName).parts : undefined;
  const preserve = getField(options, 'preserveNullAndEmptyArrays');
  if (preserve !== undefined && typeof preserve !== 'boolean')
    throw mongoError(28809, 'preserveNullAndEmptyArrays must be a bool');
  const numberDocument = (doc: Document, index: number | null): Document =>
    indexPath ? withNested(doc, indexPath, index === null ? null : Long.fromNumber(index)) : doc;
  return expandDocuments(ctx, function* (doc) {
    const value = readNested(doc, parts);
    if (!Array.isArray(value)) {
      if (preserve || (value !== undefined && value !== null)) yield numberDocument(doc, null);
    } else if (value.length === 0) {
      if (preserve) yield numberDocument(withNested(doc, parts, undefined), null);
    } else {
      for (const [index, item] of value.entries()) {
        ctx.tick();
        yield numberDocument(withNested(doc, parts, item), index);
      }
    }
  });
};

const count: StageCompiler = (spec, { ctx }) => {
  if (typeof spec !== 'string') throw mongoError(40156, 'the count field must be a non-empty string');
  if (spec === '') throw mongoError(40157, 'the count field must be a non-empty string');
  if (spec.startsWith('$')) throw mongoError(40158, 'the count field cannot be a $-prefixed path');
  if (spec.includes('\0')) throw mongoError(40159, 'the count field cannot contain a null byte');
  if (spec === '_id') throw mongoError(9039800, "the count field cannot be '_id'");
  if (spec.includes('.')) throw mongoError(40160, "the count field cannot contain '.'");
  return function* (source) {
    let total = 0;
    yield* visitAll(ctx, source, () => void total++);
    if (total > 0) yield { [spec]: total };
  };
};

const sample: StageCompiler = (spec, { ctx }) => {
  const size = getField(requireDocument(spec, '$sample', 28745), 'size');
  if (numberKind(size) === undefined) throw mongoError(28746, 'size argument to $sample must be a number');
  refuseOthers(spec as Document, ['size'], '$sample', 28748);
  const wanted = coerceInteger(size);
  if (!(wanted > 0)) throw mongoError(28747, 'size argument to $sample must be a positive integer');
  return function* (source) {
    // Reservoir sampling: one pass, every document with the same chance.
    const kept: Document[] = [];
    let seen = 0;
    yield* visitAll(ctx, source, (doc) => {
      seen++;
      if (kept.length < wanted) kept.push(doc);
      else {
        const place = Math.floor(Math.random() * seen);
        if (place < wanted) kept[place] = doc;
      }
    });
    yield* kept;
  };
};

const NOT_IN_A_FACET = new Set(
  '$facet $geoNear $out $merge $documents $collStats $indexStats $search $searchMeta $vectorSearch'.split(
    ' ',
  ),
);

const facet: StageCompiler = (spec, builder) => {
  if (!isDocument(spec) || firstKey(spec) === undefined)
    throw mongoError(40169, 'the $facet specification must be a non-empty object');
  if (builder.ctx.inFacet) throw mongoError(40600, '$facet is not allowed to be used within a $facet stage');
  const branches = Object.keys(spec).map((name) => {
    if (parseFieldPath(name).parts.length > 1) throw mongoError(16412, `'${name}' of $facet contains a '.'`);
    const stages = getField(spec, name);
    if (!Array.isArray(stages))
      throw mongoError(40170, `arguments to $facet must be arrays, ${name} is no array`);
    for (const stage of stages) {
      const inner = isDocument(stage) ? (firstKey(stage) ?? '') : '';
      if (NOT_IN_A_FACET.has(inner))
        throw mongoError(40600, `${inner} is not allowed to be used within a $facet stage`);
    }
    return { name, run: builder.pipeline(stages, { ...builder.ctx, inFacet: true }) };
  });
  return function* (source) {
    const docs = yield* gather(builder.ctx, source);
    const result: Document = {};
    const memory = new StageMemory('$facet');
    for (const { name, run } of branches) {
      const rows: Document[] = [];
      yield* visitAll(builder.ctx, run(docs), (row) => {
        memory.hold(row);
        rows.push(row);
      });
      setField(result, name, rows);
    }
    yield result;
  };
};

const documents: StageCompiler = (spec, { ctx }) => {
  const expression = compileExpression(spec, ctx);
  return function* () {
    const docs = expression.evaluate({});
    if (!Array.isArray(docs) || !docs.every(isDocument))
      throw mongoError(5858203, 'an array of documents is expected for $documents');
    yield* docs;
  };
};

/** Stages that choose, order and count documents. */
export const flowStages: StageTable = {
  $match: match,
  $sort: sort,
  $limit: limit,
  $skip: skip,
  $unwind: unwind,
  $count: count,
  $sample: sample,
  $facet: facet,
  $documents: documents,
};

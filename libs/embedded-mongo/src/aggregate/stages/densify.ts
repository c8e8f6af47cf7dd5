import { addNumbers, multiplyNumbers } from '../../bson/arithmetic.js';
import { compareValues } from '../../bson/compare.js';
import { type Document, getField, isDocument } from '../../bson/document.js';
import { numberKind, toDouble } from '../../bson/number.js';
import { parseFieldPath, readNested, withNested } from '../../bson/path.js';
import { printValue } from '../../bson/text.js';
import { typeName } from '../../bson/type-name.js';
import { createParseError, mongoError } from '../../errors.js';
import { type DateUnit, isDateUnit, utcZone } from '../date/calendar.js';
import { addToDate } from '../operators/date.js';
import type { StageCompiler, StageTable } from '../stage.js';
import { partitionDocuments, sortWithinMemory, visitAll } from '../stage.js';

interface Range {
  readonly step: unknown;
  readonly unit: DateUnit | undefined;
  readonly bounds: 'full' | 'partition' | readonly [unknown, unknown];
}

const mostDocuments = 500_000;

function readRange(spec: Document): Range {
  const range = getField(spec, 'range');
  if (!isDocument(range)) throw mongoError(5733201, "The 'range' argument to $densify must be an object");
  const [step, unit, bounds] = ['step', 'unit', 'bounds'].map((name) => getField(range, name));
  if (numberKind(step) === undefined || !(toDouble(step) > 0))
    throw mongoError(5733401, "'step' of a range must be a positive number");
  if (unit !== undefined && !isDateUnit(unit))
    throw mongoError(9, `unknown time unit value: ${printValue(unit)}`);
  if (bounds === 'full' || bounds === 'partition') return { step, unit, bounds };
  if (!Array.isArray(bounds) || bounds.length !== 2)
    throw mongoError(5733403, "'bounds' are 'full', 'partition' or an array of two values");
  for (const bound of bounds as unknown[]) {
    if (unit === undefined ? numberKind(bound) === undefined : !(bound instanceof Date))
      throw mongoError(5733406, `'bounds' cannot be of type ${typeName(bound)} here`);
  }
  if (compareValues(bounds[0], bounds[1]) > 0)
    throw mongoError(5733402, 'the bounds of a range must be ascending');
  return { step, unit, bounds: bounds as [unknown, unknown] };
}

/** The value a number of steps after another; multiplied rather than added up, so months keep their day. */
function addSteps(start: unknown, count: number, { step, unit }: Range): unknown {
  if (unit) return addToDate(Number(start), unit, toDouble(step) * count, utcZone);
  return addNumbers(start, multiplyNumbers(step, count));
}

const densify: StageCompiler = (spec, { ctx }) => {
  if (!isDocument(spec)) throw mongoError(5733200, 'The $densify stage specification must be an object');
  const field = getField(spec, 'field');
  if (typeof field !== 'string')
    throw mongoError(40414, "BSON field '$densify.field' is missing but a required field");
  const range = readRange(spec);
  const path = parseFieldPath(field).parts;
  const names: unknown = getField(spec, 'partitionByFields') ?? [];
  if (!Array.isArray(names) || !names.every((name) => typeof name === 'string'))
    throw mongoError(5733202, "The 'partitionByFields' argument to $densify must be an array of strings");
  if (range.bounds === 'partition' && names.length === 0)
    throw mongoError(5733408, 'one may not specify the bounds as partition without partitionByFields');
  const partitionPaths = (names as string[]).map((name) => parseFieldPath(name).parts);
  const check = (value: unknown): void => {
    if (range.unit ? !(value instanceof Date) : numberKind(value) === undefined)
      throw mongoError(range.unit ? 6053600 : 5733201, `$densify has no place for a ${typeName(value)}`);
  };

  return function* (source) {
    const without: Document[] = [];
    const within: Document[] = [];
    const readValue = (doc: Document): unknown => readNested(doc, path);
    yield* visitAll(ctx, source, (doc) => {
      const value = readValue(doc) ?? null;
      if (value !== null) check(value);
      (value === null ? without : within).push(doc);
    });
    yield* without;
    const inOrder: Document[][] = [];
    const partitions = yield* partitionDocuments(ctx, within, (doc) =>
      partitionPaths.map((partition) => readNested(doc, partition)),
    );
    for (const docs of partitions)
      inOrder.push(yield* sortWithinMemory(ctx, docs, (a, b) => compareValues(readValue(a), readValue(b))));
    const all = inOrder.flatMap((docs) => [
      readValue(docs[0] as Document),
      readValue(docs.at(-1) as Document),
    ]);
    all.sort((a, b) => compareValues(a, b));
    let made = 0;
    for (const docs of inOrder) {
      const own = [readValue(docs[0] as Document), readValue(docs.at(-1) as Document)];
      const [low, high] =
        typeof range.bounds === 'string'
          ? range.bounds === 'full'
            ? [all[0], all.at(-1)]
            : own
          : range.bounds;
      const inclusive = typeof range.bounds === 'string';
      let next = 0;
      for (let count = 0; ; count++) {
        ctx.tick();
        const value = addSteps(low, count, range);
        const order = compareValues(value, high);
        if (order > 0 || (order === 0 && !inclusive)) break;
        while (next < docs.length && compareValues(readValue(docs[next] as Document), value) < 0)
          yield docs[next++] as Document;
        if (next < docs.length && compareValues(readValue(docs[next] as Document), value) === 0) continue;
        if (++made > mostDocuments)
          throw mongoError(5897900, `$densify would make over ${mostDocuments} documents`);
        const example = docs[next] ?? docs[0];
        let filler: Document = {};
        for (const partition of partitionPaths) {
          const kept = readNested(example, partition);
          if (kept !== undefined) filler = withNested(filler, partition, kept);
        }
        yield withNested(filler, path, value);
      }
      yield* docs.slice(next);
    }
  };
};

/** `$fill` is written in terms of `$setWindowFields` and `$addFields`, as MongoDB defines it. */
const fill: StageCompiler = (spec, builder) => {
  if (!isDocument(spec)) throw createParseError('The $fill stage specification must be an object');
  const output = getField(spec, 'output');
  if (!isDocument(output) || Object.keys(output).length === 0)
    throw mongoError(40414, "BSON field '$fill.output' is missing but a required field");
  const constants: Document = {};
  const windows: Document = {};
  for (const field of Object.keys(output)) {
    const rule = getField(output, field);
    if (!isDocument(rule)) throw createParseError(`$fill output '${field}' must be an object`);
    const method = getField(rule, 'method');
    if (Object.hasOwn(rule, 'value')) {
      if (method !== undefined)
        throw createParseError(`$fill output '${field}' must have exactly one of 'value' and 'method'`);
      constants[field] = { $ifNull: [`$${field}`, rule['value']] };
    } else if (method === 'locf') windows[field] = { $locf: `$${field}` };
    else if (method === 'linear') windows[field] = { $linearFill: `$${field}` };
    else throw mongoError(6050202, "Method must be either 'locf' or 'linear'");
  }
  const stages: Document[] = [];
  if (Object.keys(windows).length > 0) {
    const sortBy = getField(spec, 'sortBy');
    if (
      sortBy === undefined &&
      Object.values(windows).some((rule) => Object.hasOwn(rule as Document, '$linearFill'))
    ) {
      throw mongoError(605001, '$fill with linear needs a sortBy of one field');
    }
    const stage: Document = { output: windows };
    const partition = readPartition(spec);
    if (partition !== undefined) stage['partitionBy'] = partition;
    if (sortBy !== undefined) stage['sortBy'] = sortBy;
    stages.push({ $setWindowFields: stage });
  }
  if (Object.keys(constants).length > 0) stages.push({ $addFields: constants });
  return builder.pipeline(stages, builder.ctx);
};

function readPartition(spec: Document): unknown {
  const by = getField(spec, 'partitionBy');
  const fields = getField(spec, 'partitionByFields');
  if (by !== undefined && fields !== undefined)
    throw mongoError(6050204, 'Maximum one of partitionBy and partitionByFields can be specified in $fill');
  if (fields === undefined) return by;
  if (!Array.isArray(fields) || !fields.every((field) => typeof field === 'string'))
    throw createParseError("'partitionByFields' of $fill must be an array of strings");
  return Object.fromEntries(fields.map((field, i) => [`field${i}`, `$${field as string}`]));
}

export const densifyStages: StageTable = { $densify: densify, $fill: fill };

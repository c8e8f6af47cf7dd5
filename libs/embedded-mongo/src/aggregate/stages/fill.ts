import { createParseError, mongoError } from '../../errors.js';
import { getField, isDocument, type Document } from '../../bson/document.js';
import type { StageCompiler, StageTable } from '../stage.js';

/** `$fill` is written in terms of `$setWindowFields` and `$addFields`, as MongoDB defines it. */
const fill: StageCompiler = (spec, builder) => {
  if (!isDocument(spec)) throw createParseError('The $fill stage specification must be an object');
  const output = getField(spec, 'output');
  if (!isDocument(output) || Object.keys(output).length === 0) {
    throw mongoError(40414, "BSON field '$fill.output' is missing but a required field");
  }
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
  if (by !== undefined && fields !== undefined) {
    throw mongoError(6050204, 'Maximum one of partitionBy and partitionByFields can be specified in $fill');
  }
  if (fields === undefined) return by;
  if (!Array.isArray(fields) || !fields.every((field) => typeof field === 'string')) {
    throw createParseError("'partitionByFields' of $fill must be an array of strings");
  }
  return Object.fromEntries(fields.map((field, i) => [`field${i}`, `$${field as string}`]));
}

export const fillStages: StageTable = { $fill: fill };

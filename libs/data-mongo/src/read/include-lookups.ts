import type { Document } from 'mongodb';
import type { IncludePlan, ParseRow } from '#data';
import { classWhereToQuery } from '../query/where-to-query.js';
import { documentToRow } from '../storage/from-storage.js';
import { isPointer } from '../storage/pointer-string.js';
import { isPlainObject, setOwn } from '../storage/own-property.js';
import type { StorageNames } from '../storage/storage-names.js';
import type { StoredClasses } from '../storage/stored-classes.js';
import { projectionOf, wantedFields } from './row-projection.js';

/** Where a joined row waits beside its pointer. A leading underscore keeps it out of every answer. */
const JOINED = '_i_';

export interface RowRequest {
  readonly keys?: readonly string[];
  readonly include?: readonly IncludePlan[];
}

/** A pointer column can be joined; pointers inside arrays are fetched afterwards. */
export function isJoinable(plan: IncludePlan, names: StorageNames): boolean {
  return names.field(plan.field)?.type === 'Pointer';
}

/** Keys of a request with the pointers it includes. */
function keysOf({ keys, include }: RowRequest): readonly string[] | undefined {
  return keys && [...keys, ...(include ?? []).map((plan) => plan.field)];
}

export function requestProjection(request: RowRequest, names: StorageNames): Document | undefined {
  return projectionOf(keysOf(request), names);
}

/** The stages after rows are chosen: their columns, then one join per included pointer, nested as deep as the plan. */
export function rowStages(request: RowRequest, names: StorageNames, classes: StoredClasses): Document[] {
  const projection = requestProjection(request, names);
  const joins = (request.include ?? [])
    .filter((plan) => isJoinable(plan, names))
    .map((plan) => joinOf(plan, names, classes));
  return [...(projection ? [{ $project: projection }] : []), ...joins];
}

function joinOf(plan: IncludePlan, names: StorageNames, classes: StoredClasses): Document {
  const target = classes.names(plan.targetClass);
  const admitted = classWhereToQuery(plan.where, target, true);
  const identified = { $expr: { $eq: ['$_id', '$$id'] } };
  const conditions = Object.keys(admitted).length > 0 ? { $and: [identified, admitted] } : identified;
  return {
    $lookup: {
      from: plan.targetClass,
      let: { id: { $arrayElemAt: [{ $split: [`$${names.column(plan.field)}`, { $literal: '$' }] }, 1] } },
      pipeline: [{ $match: conditions }, ...rowStages(plan, target, classes)],
      as: JOINED + plan.field,
    },
  };
}

/** Reads rows with their joined rows in place of pointers. A pointer whose row was not admitted stays as it is. */
export function rowReader(
  request: RowRequest,
  names: StorageNames,
  classes: StoredClasses,
): (document: Document) => ParseRow {
  const wanted = wantedFields(keysOf(request));
  const joins = (request.include ?? []).map((plan) => ({
    plan,
    read: rowReader(plan, classes.names(plan.targetClass), classes),
  }));
  return (document) => {
    const row = documentToRow(document, names, wanted);
    for (const { plan, read } of joins) {
      const joined: unknown = document[JOINED + plan.field];
      const found: unknown = Array.isArray(joined) ? joined[0] : undefined;
      const pointer = row[plan.field];
      if (!isPlainObject(found) || !isPointer(pointer) || pointer.className !== plan.targetClass) continue;
      setOwn(row, plan.field, includedRow(read(found), plan));
    }
    return row;
  };
}

export function includedRow(row: ParseRow, plan: IncludePlan): ParseRow {
  return { __type: 'Object', className: plan.targetClass, ...row };
}

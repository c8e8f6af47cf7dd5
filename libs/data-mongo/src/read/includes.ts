import { setOwn } from '#core';
import type { Document } from 'mongodb';
import { type AnswerLeft, type FindQuery, type IncludePlan, type ParseRow, PlacedRows } from '#data';
import { classWhereToQuery } from '../query/where-to-query.js';
import { type ClassStorage, isPointer } from '../storage/class-storage.js';
import { isPlainObject } from '#policy';
import { unifyIds } from '../storage/mixed-references.js';
import type { StoredClasses } from '../storage/stored-classes.js';

/** The fields of an answer, by their roots; undefined: all. */
export function listWantedFields(keys: readonly string[] | undefined): ReadonlySet<string> | undefined {
  return keys && new Set(keys.map((key) => key.split('.', 1)[0] as string));
}

/** The field that holds a joined row beside its pointer. A leading underscore keeps it out of every answer. */
const JOINED_PREFIX = '_i_';

interface RowRequest {
  readonly keys?: readonly string[];
  readonly include?: readonly IncludePlan[];
}

/** A pointer column can be joined; pointers inside arrays, and to another database, are fetched with separate finds. */
export function isJoinable(plan: IncludePlan, storage: ClassStorage, classes: StoredClasses): boolean {
  return (
    storage.field(plan.field)?.type === 'Pointer' &&
    classes.storage(plan.targetClass).database === storage.database
  );
}

/** Keys of a request with the pointers it includes. */
function listKeys({ keys, include }: RowRequest): readonly string[] | undefined {
  return keys && [...keys, ...(include ?? []).map((plan) => plan.field)];
}

export function requestProjection(request: RowRequest, storage: ClassStorage): Document | undefined {
  return storage.projection(listKeys(request));
}

/** The stages after the selection of rows: their columns, then one join per included pointer, nested as deep as the plan. */
export function rowStages(request: RowRequest, storage: ClassStorage, classes: StoredClasses): Document[] {
  const projection = requestProjection(request, storage);
  const joins = (request.include ?? [])
    .filter((plan) => isJoinable(plan, storage, classes))
    .map((plan) => buildJoin(plan, storage, classes));
  return [...(projection ? [{ $project: projection }] : []), ...joins];
}

function buildJoin(plan: IncludePlan, storage: ClassStorage, classes: StoredClasses): Document {
  const target = classes.storage(plan.targetClass);
  const pointer = `$${storage.column(plan.field)}`;
  const admitted = classWhereToQuery(plan.where, target, true);
  const identified = { $expr: { $eq: ['$_id', '$$id'] } };
  const conditions = Object.keys(admitted).length > 0 ? { $and: [identified, admitted] } : identified;
  return {
    $lookup: {
      from: target.collection,
      let: {
        id: storage.form.pointersAreIds
          ? (unifyIds(pointer, storage.field(plan.field)) ?? pointer)
          : target.idOfReference(pointer),
      },
      pipeline: [{ $match: conditions }, ...rowStages(plan, target, classes)],
      as: JOINED_PREFIX + plan.field,
    },
  };
}

/**
 * Reads rows with their joined rows in place of pointers. A pointer whose row does not match the constraint stays unchanged.
 */
export function rowReader(
  request: RowRequest,
  storage: ClassStorage,
  classes: StoredClasses,
): (document: Document) => ParseRow {
  const wanted = listWantedFields(listKeys(request));
  const joins = (request.include ?? []).map((plan) => ({
    plan,
    read: rowReader(plan, classes.storage(plan.targetClass), classes),
  }));
  return (document) => {
    const row = storage.toRow(document, wanted);
    for (const { plan, read } of joins) {
      const joined: unknown = document[JOINED_PREFIX + plan.field];
      const found: unknown = Array.isArray(joined) ? joined[0] : undefined;
      const pointer = row[plan.field];
      if (!isPlainObject(found) || !isPointer(pointer) || pointer.className !== plan.targetClass) continue;
      setOwn(row, plan.field, toIncludedRow(read(found), plan));
    }
    return row;
  };
}

function toIncludedRow(row: ParseRow, plan: IncludePlan): ParseRow {
  return { __type: 'Object', className: plan.targetClass, ...row };
}

/** Ids in one command. */
const BATCH_SIZE = 1000;

type Find = (query: FindQuery) => Promise<ParseRow[]>;

/** Whether the command that read rows of this class left the include unresolved. */
export type NeedsBatch = (plan: IncludePlan, className: string) => boolean;

/**
 * Resolves includes that the rows' own command could not join: pointers inside arrays or to another database, and every
 * pointer of a search by distance. One further find per plan and thousand ids, all under the same deadline.
 */
export async function resolveBatched(
  rows: readonly ParseRow[],
  className: string,
  plans: readonly IncludePlan[],
  needsBatch: NeedsBatch,
  find: Find,
  left: AnswerLeft,
): Promise<void> {
  for (const plan of plans) {
    if (needsBatch(plan, className)) await replacePointers(rows, plan, find, left);
    else
      await resolveBatched(
        listJoinedRows(rows, plan),
        plan.targetClass,
        plan.include,
        needsBatch,
        find,
        left,
      );
  }
}

/** Rows that a join already resolved, whose own includes may still need a batch. */
function listJoinedRows(rows: readonly ParseRow[], plan: IncludePlan): ParseRow[] {
  return rows
    .map((row) => row[plan.field])
    .filter((value): value is ParseRow => isPlainObject(value) && value['__type'] === 'Object');
}

async function replacePointers(
  rows: readonly ParseRow[],
  plan: IncludePlan,
  find: Find,
  left: AnswerLeft,
): Promise<void> {
  const ids = [...new Set(rows.flatMap((row) => pointersIn(row[plan.field], plan)))];
  const found = new PlacedRows(left);
  for (let from = 0; from < ids.length; from += BATCH_SIZE) {
    const batch = ids.slice(from, from + BATCH_SIZE);
    const where = { $and: [plan.where, { objectId: { $in: batch } }] };
    const { targetClass: className, keys, include } = plan;
    for (const row of await find({ className, where, ...(keys && { keys }), include, limit: batch.length }))
      found.add(String(row['objectId']), toIncludedRow(row, plan));
  }
  const resolve = (value: unknown): unknown =>
    isPointer(value) && value.className === plan.targetClass ? (found.place(value.objectId) ?? value) : value;
  for (const row of rows) {
    const value = row[plan.field];
    if (value !== undefined)
      setOwn(row, plan.field, Array.isArray(value) ? value.map(resolve) : resolve(value));
  }
}

function pointersIn(value: unknown, plan: IncludePlan): string[] {
  const members: unknown[] = Array.isArray(value) ? value : [value];
  return members
    .filter(isPointer)
    .filter((pointer) => pointer.className === plan.targetClass)
    .map((pointer) => pointer.objectId);
}

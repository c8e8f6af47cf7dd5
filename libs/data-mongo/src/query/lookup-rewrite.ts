import type { Document } from 'mongodb';
import { type StorageNames } from '../storage/storage-names.js';
import type { ScopedRef } from './row-scope.js';

/** One side of an equality join: the name as written and where it leads. */
export interface JoinSide {
  readonly name: string;
  readonly ref: ScopedRef;
  /** The class whose rows stand on this side; null after a stage replaced them. */
  readonly names: StorageNames | null;
}

export interface RewrittenJoin {
  readonly fields: { readonly localField?: string; readonly foreignField?: string };
  readonly let: Document;
  readonly match: readonly Document[];
}

/** A column in which a class keeps `Class$id` of each row itself. */
const SELF_REFERENCE = 'parseReference';

const isId = (side: JoinSide): boolean => side.ref.column === '_id' && side.ref.field?.type !== 'Pointer';

function pointsAt(pointer: JoinSide, target: StorageNames | null): boolean {
  const { field, nested } = pointer.ref;
  if (nested || field?.type !== 'Pointer') return false;
  return target === null || field.targetClass === undefined || field.targetClass === target.className;
}

const idOf = (reference: string): Document => ({
  $arrayElemAt: [{ $split: [reference, { $literal: '$' }] }, 1],
});

const variableFor = (prefix: string, name: string): string => prefix + name.replace(/\W/g, '_');

/**
 * Joins between a pointer (`Class$id`) and an id, whichever side the pointer is on; null when the join is none.
 * The foreign side is always a bare column, so that its index serves the join.
 */
export function rewriteJoin(local: JoinSide, foreign: JoinSide): RewrittenJoin | null {
  if (isId(foreign) && foreign.names && pointsAt(local, foreign.names)) return forward(local, foreign.names);
  if (isId(local) && local.names && pointsAt(foreign, local.names))
    return reverse(local, foreign, local.names);
  return null;
}

function forward(local: JoinSide, target: StorageNames): RewrittenJoin {
  if (target.field(SELF_REFERENCE) && !local.ref.list) return plainly(local.ref.column, SELF_REFERENCE);
  const variable = variableFor('rwLookupId_', local.name);
  const reference = `$${local.ref.column}`;
  if (!local.ref.list) return byVariable(variable, idOf(reference), { $eq: ['$_id', `$$${variable}`] });
  const ids = { $map: { input: { $ifNull: [reference, []] }, in: idOf('$$this') } };
  return byVariable(variable, ids, { $in: ['$_id', `$$${variable}`] });
}

function reverse(local: JoinSide, foreign: JoinSide, target: StorageNames): RewrittenJoin {
  if (target.field(SELF_REFERENCE)) return plainly(SELF_REFERENCE, foreign.ref.column);
  const variable = variableFor('rwReverseId_', foreign.name);
  const reference = { $concat: [`${target.className}$`, `$${local.ref.column}`] };
  return byVariable(variable, reference, { $eq: [`$${foreign.ref.column}`, `$$${variable}`] });
}

function plainly(localField: string, foreignField: string): RewrittenJoin {
  return { fields: { localField, foreignField }, let: {}, match: [] };
}

function byVariable(variable: string, value: Document, condition: Document): RewrittenJoin {
  return { fields: {}, let: { [variable]: value }, match: [{ $match: { $expr: condition } }] };
}

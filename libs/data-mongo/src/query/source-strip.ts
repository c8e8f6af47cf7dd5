import type { Document } from 'mongodb';
import { AUTH_DATA_PREFIX } from '#policy';
import { INTERNAL_COLUMNS } from '../storage/internal-columns.js';
import { isPlainObject } from '../storage/own-property.js';

/** Stages that choose and order rows but make none: the policy's predicate, `$text` and index use need them in front. */
const KEEPS_ITS_PLACE = new Set([
  '$match',
  '$sort',
  '$skip',
  '$limit',
  '$sample',
  '$search',
  '$searchMeta',
  '$vectorSearch',
]);

/** Only users hold login data, under one column per provider: no list of names could cover them. */
const HAS_AUTH_DATA = '_User';

const withoutAuthData = (row: string): Document => ({
  $arrayToObject: {
    $filter: {
      input: { $objectToArray: row },
      as: 'column',
      cond: { $ne: [{ $indexOfBytes: ['$$column.k', AUTH_DATA_PREFIX] }, 0] },
    },
  },
});

const UNSET_INTERNAL: Document = { $unset: [...INTERNAL_COLUMNS] };

function isInclusion(stage: Readonly<Record<string, unknown>> | undefined): boolean {
  const projection = stage?.['$project'];
  return (
    isPlainObject(projection) &&
    Object.keys(projection).some((key) => key !== '_id' && key !== 'objectId' && projection[key] === 1)
  );
}

/**
 * How many leading stages choose rows and so come before the internal columns are dropped, and the stages that drop
 * them. After those no expression can reach a secret, however it renames what it reads.
 */
export function sourceStrip(
  className: string,
  pipeline: readonly Readonly<Record<string, unknown>>[],
): { readonly at: number; readonly stages: readonly Document[] } {
  const first = pipeline.findIndex((stage) => !KEEPS_ITS_PLACE.has(Object.keys(stage)[0] ?? ''));
  const at = first < 0 ? pipeline.length : first;
  const prefixed = className === HAS_AUTH_DATA && !isInclusion(pipeline[at]);
  const byPrefix = { $replaceWith: withoutAuthData('$$ROOT') };
  return { at, stages: prefixed ? [UNSET_INTERNAL, byPrefix] : [UNSET_INTERNAL] };
}

/** The same for rows that arrive inside a field, where no stage of their own can run. */
export function stripInside(className: string, field: string): Document[] {
  const unset = { $unset: INTERNAL_COLUMNS.map((column) => `${field}.${column}`) };
  if (className !== HAS_AUTH_DATA) return [unset];
  return [
    unset,
    { $addFields: { [field]: { $map: { input: `$${field}`, as: 'row', in: withoutAuthData('$$row') } } } },
  ];
}

import type { GovernedClass } from '#data';
import {
  type Arguments,
  integer,
  oneOf,
  optionalString,
  refuseArgument,
} from '../arguments/argument-readers.js';

const FIELD = /^(_p_)?[A-Za-z][A-Za-z0-9_]{0,127}$/;
const STORED_POINTER = '_p_';

const OPERATIONS = ['count', 'sum', 'avg', 'average', 'min', 'max'] as const;
type Operation = 'count' | 'sum' | 'avg' | 'min' | 'max';

/** A column as the caller wrote it and as a pipeline refers to it. */
export interface GroupedColumn {
  readonly written: string;
  readonly reference: string;
  /** Wire name, for what the schema says of it. */
  readonly wireName: string;
}

/** What every group is reduced to. */
export interface Reduction {
  readonly operation: Operation;
  /** Null when groups are only counted. */
  readonly value: GroupedColumn | null;
}

/**
 * One column, no path. The storage form of a pointer (`_p_author`) stands for its field where that field may be read;
 * everywhere else it stays as written, and is refused where names are judged.
 */
export function groupedColumn(args: Arguments, name: string, known: GovernedClass): GroupedColumn {
  const written = optionalString(args, name) || refuseArgument(`${name} is required`);
  if (!FIELD.test(written)) {
    refuseArgument(`${name} must be one field name: letters, digits and _, starting with a letter, no dots`);
  }
  const { names } = known.policy;
  if (!written.startsWith(STORED_POINTER)) {
    return { written, reference: `$${written}`, wireName: names.wireName(written) };
  }
  const field = names.wireName(written.slice(STORED_POINTER.length));
  const readable = known.fields.includes(field) && known.schema.fields.get(field)?.type === 'Pointer';
  return { written, reference: `$${readable ? field : written}`, wireName: field };
}

/** `operation`, and the `value_field` that all but a count need. */
export function reduction(args: Arguments, known: GovernedClass): Reduction {
  const asked = oneOf(args, 'operation', OPERATIONS, 'count');
  const operation = asked === 'average' ? 'avg' : asked;
  if (operation === 'count') return { operation, value: null };
  if (!optionalString(args, 'value_field'))
    refuseArgument(`value_field is required for operation ${operation}`);
  return { operation, value: groupedColumn(args, 'value_field', known) };
}

/** The accumulator of a reduction. */
export function accumulator({ operation, value }: Reduction): Readonly<Record<string, unknown>> {
  return operation === 'count' ? { $sum: 1 } : { [`$${operation}`]: value?.reference };
}

export function groupLimit(
  args: Arguments,
  bounds: { readonly default: number; readonly max: number },
): number {
  return integer(args, 'limit', { ...bounds, min: 1, above: 'refuse' });
}

export const GROUP_SORTS = ['value_desc', 'value_asc', 'key_desc', 'key_asc'] as const;
export type GroupSort = (typeof GROUP_SORTS)[number];

/** Members of an answer that holds no more than `limit` of what there is. */
export function cutNote(
  what: 'groups' | 'values',
  { limit, max }: { readonly limit: number; readonly max: number },
) {
  const raise = limit < max ? `raise limit (max ${max}), ` : '';
  return {
    truncated: true,
    hint:
      `Only ${limit} of more ${what}: ${raise}narrow where, or page with aggregate: sort its groups by _id and put ` +
      `{"$skip":${limit}} in front of {"$limit":${limit}}.`,
  };
}

/** Absent and blank: no order. */
export function groupSort(args: Arguments): GroupSort | undefined {
  return optionalString(args, 'sort') ? oneOf(args, 'sort', GROUP_SORTS, 'value_desc') : undefined;
}

/** The `$sort` stage of an order, over groups of `_id` and `value`. */
export function sortStages(sort: GroupSort | undefined): readonly object[] {
  if (sort === undefined) return [];
  const direction = sort.endsWith('_desc') ? -1 : 1;
  return [{ $sort: { [sort.startsWith('value') ? 'value' : '_id']: direction } }];
}

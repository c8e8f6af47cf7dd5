import type { GovernedClass, ParseRow } from '#data';
import { type FieldSchema, isFieldName, STORED_POINTER } from '#policy';
import { type Arguments, refuseArgument } from '../arguments/argument-class.js';
import { BOOLEAN, INTEGER, listOf, OBJECT, STRING } from '../json-schema.js';
import type { JsonSchema, ToolCall } from '../tool.js';

export const OPERATIONS = ['count', 'sum', 'avg', 'average', 'min', 'max'] as const;
export type GroupOperation = (typeof OPERATIONS)[number];

export const GROUP_SORTS = ['value_desc', 'value_asc', 'key_desc', 'key_asc'] as const;
export type GroupSort = (typeof GROUP_SORTS)[number];

/** The key of a group without a value. */
export const NO_KEY = 'null';
export const DRY_RUN = 'true: show the pipeline.';

type Properties = Readonly<Record<string, JsonSchema>>;

/** Members that repeat arguments of the call are in the answer, and not in the schema that every list of tools carries. */
export const GROUPING_OUTPUT: Properties = {
  class_name: STRING,
  group_count: INTEGER,
  groups: listOf(OBJECT),
  truncated: BOOLEAN,
};

export const DRY_RUN_OUTPUT: Properties = {
  dry_run: BOOLEAN,
  pipeline: listOf(OBJECT),
  hint: STRING,
};

/** Names in a path, which leads into the documents of a plain class. */
const MAX_PATH = 8;
const STORED_PREFIX = '_p_';

/** A column with the name from the caller and its name in a pipeline. */
export interface GroupedColumn {
  readonly written: string;
  readonly reference: string;
  /** Its name in the schema of the class. */
  readonly wireName: string;
}

export interface Reduction {
  readonly operation: Exclude<GroupOperation, 'average'>;
  /** Null when groups are only counted. */
  readonly value: GroupedColumn | null;
}

/** Members may have a `_` in front. */
const isMemberPath = ([root, ...members]: readonly string[]): boolean =>
  isFieldName(root) && members.every((member) => isFieldName(member.replace(/^_+/, '')));

/**
 * One column without a path; of a plain class, also a member of one. The storage form of a pointer (`_p_author`) means its field where that field is readable;
 * everywhere else it stays unchanged, and the policy refuses it.
 */
export function findGroupedColumn(written: string, name: string, known: GovernedClass): GroupedColumn {
  const segments = written.split('.');
  const isPath = segments.length > 1 && segments.length <= MAX_PATH && isMemberPath(segments);
  if (isPath && known.schema.storage === 'plain')
    return { written, reference: `$${written}`, wireName: known.policy.names.wirePath(written) };
  if (!isFieldName(written.startsWith(STORED_PREFIX) ? written.slice(STORED_PREFIX.length) : written)) {
    refuseArgument(`${name} must be one field name, without $, and no dots`);
  }
  const { names } = known.policy;
  if (!written.startsWith(STORED_PREFIX)) {
    return { written, reference: `$${written}`, wireName: names.wireName(written) };
  }
  const field = names.wireName(written.slice(STORED_PREFIX.length));
  const readable = known.fields.includes(field) && known.schema.fields.get(field)?.type === 'Pointer';
  return { written, reference: `$${readable ? field : written}`, wireName: field };
}

/** Reads `operation`, and the `value_field` that all operations except count need. */
export function reduction(
  {
    operation: asked,
    value_field: field,
  }: { readonly operation: GroupOperation; readonly value_field?: string },
  known: GovernedClass,
): Reduction {
  const operation = asked === 'average' ? 'avg' : asked;
  if (operation === 'count') return { operation, value: null };
  if (!field) return refuseArgument(`value_field is required for operation ${operation}`);
  return { operation, value: findGroupedColumn(field, 'value_field', known) };
}

/** A count does not use `value_field`. */
export const reducesValues = ({ operation }: { readonly operation: GroupOperation }): boolean =>
  operation !== 'count';

export function accumulator({ operation, value }: Reduction): Readonly<Record<string, unknown>> {
  return operation === 'count' ? { $sum: 1 } : { [`$${operation}`]: value?.reference };
}

/** The `$sort` stage of an order, over groups of `_id` and `value`. */
export function sortStages(sort: GroupSort | undefined): readonly object[] {
  if (sort === undefined) return [];
  const direction = sort.endsWith('_desc') ? -1 : 1;
  return [{ $sort: { [sort.startsWith('value') ? 'value' : '_id']: direction } }];
}

/** Members of an answer with at most `limit` of the existing groups. */
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

/** Types of columns whose values may be pointers; in any other, `USD$5` is an ordinary text. */
const MAY_POINT: ReadonlySet<unknown> = new Set(['Pointer', 'Array', undefined]);

/** In a plain class only a declared reference is one. */
function mayPoint(known: GovernedClass, path: string): boolean {
  const column = findColumn(known, path);
  return known.schema.storage === 'plain' ? column?.targetClass !== undefined : MAY_POINT.has(column?.type);
}

/** The column or member of a wire path; undefined where no declaration says what a member is. */
export function findColumn({ schema }: GovernedClass, path: string): FieldSchema | undefined {
  const [root = '', ...members] = path.split('.');
  return members.reduce<FieldSchema | undefined>((column, name) => {
    const member = column?.members?.get(name);
    return member?.origin === 'sample' ? undefined : member;
  }, schema.fields.get(root));
}

interface Pointer {
  readonly className: string;
  readonly objectId: string;
}

export interface ShownKeys {
  /**
   * In the order of the rows; null where there is no value. A value of a withheld class is the same placeholder as in
   * queries.
   */
  readonly keys: readonly unknown[];
  /** The class of all keys, which are then bare ids. */
  readonly pointerClass: string | null;
}

function toPointer(value: unknown): Pointer | null {
  if (typeof value === 'string') {
    const [, className, objectId] = STORED_POINTER.exec(value) ?? [];
    return className !== undefined && objectId !== undefined ? { className, objectId } : null;
  }
  if (value === null || typeof value !== 'object') return null;
  const { __type: type, className, objectId } = value as ParseRow;
  if (type !== 'Pointer' || typeof className !== 'string' || typeof objectId !== 'string') return null;
  return { className, objectId };
}

/** The key of a group, independent of the route's member name. */
export function readKey(row: ParseRow): unknown {
  return (Object.hasOwn(row, '_id') ? row['_id'] : row['objectId']) ?? null;
}

/** @param field wire name of the column with the key values */
export function showKeys(rows: readonly ParseRow[], known: GovernedClass, field: string): ShownKeys {
  const raw = rows.map(readKey);
  if (!mayPoint(known, field)) return { keys: raw, pointerClass: null };
  const present = raw.filter((key) => key !== null).map(toPointer);
  const pointerClass = present[0]?.className ?? null;
  const oneClass = pointerClass !== null && present.every((pointer) => pointer?.className === pointerClass);
  const keys = raw.map((key) => {
    const pointer = toPointer(key);
    if (!pointer) return key;
    return oneClass ? pointer.objectId : `${pointer.className}$${pointer.objectId}`;
  });
  return { keys, pointerClass: oneClass ? pointerClass : null };
}

const DRY_RUN_HINT =
  'Nothing was read. Call again with dry_run: false to run this, or pass the pipeline to aggregate to change it.';

const isGiven = (value: unknown): boolean => value !== undefined && value !== null && value !== '';
const isEmpty = (where: unknown): boolean =>
  where === undefined || where === null || (typeof where === 'object' && Object.keys(where).length === 0);

/** The pipeline that would run, with the caller's names. Every rule is applied to it, and nothing is read. */
export async function dryRun(
  className: string,
  request: {
    readonly where: unknown;
    readonly stages: readonly object[];
    readonly parameters: Arguments;
  },
  call: ToolCall,
) {
  const { where, stages, parameters } = request;
  await call.records.checkAggregate(className, stages, { where });
  return {
    dry_run: true,
    class_name: className,
    pipeline: isEmpty(where) ? stages : [{ $match: where }, ...stages],
    parameters: Object.fromEntries(Object.entries(parameters).filter(([, value]) => isGiven(value))),
    hint: DRY_RUN_HINT,
  };
}

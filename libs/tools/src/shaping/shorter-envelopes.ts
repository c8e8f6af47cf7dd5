import { isJsonObject } from '#core';

/** The answer of a tool whose members have names. */
export type Envelope = Readonly<Record<string, unknown>>;

/** Members with the entries of built-in results, and whether the entries are rows. */
export const LISTS = [
  ['results', true],
  ['samples', true],
  ['groups', false],
  ['values', false],
  ['chunks', false],
  ['suggestions', false],
  ['change_sets', false],
] as const;

/** Rebuilds one tool's oversized envelope from fewer rows. */
export interface Recovery {
  readonly rows: readonly unknown[];
  /** Entries lose no field: they are no rows. */
  readonly wholeEntries?: boolean;
  /** @param kept the first rows, already without the dropped field */
  build(kept: readonly unknown[], droppedField: string | null): Envelope;
}

interface Cut {
  readonly dropped: string | null;
  readonly kept: number;
  readonly of: number;
  readonly cap: number;
  /** What the entries are. Default: rows. */
  readonly entries?: string;
}

const without = (envelope: Envelope, names: readonly string[]): Envelope =>
  Object.fromEntries(Object.entries(envelope).filter(([name]) => !names.includes(name)));

function whatHappened({ dropped, kept, of, cap, entries = 'rows' }: Cut): string {
  const field = dropped === null ? [] : [`field '${dropped}' was left out of every row`];
  const rows = kept < of ? [`only the first ${kept} of ${of} ${entries} are shown`] : [];
  return `To stay within ${cap} bytes, ${[...field, ...rows].join(' and ')}.`;
}

/** What was cut, as an answer says it. */
export const annotation = (cut: Cut, hint: string, extra: Envelope = {}): Envelope => ({
  reason: 'response_exceeded_max_bytes',
  dropped_fields: cut.dropped === null ? [] : [cut.dropped],
  kept_count: cut.kept,
  original_count: cut.of,
  ...extra,
  hint: [whatHappened(cut), hint].filter(Boolean).join(' '),
});

const readDropped = ({ dropped }: Cut) =>
  dropped === null ? '' : `Read '${dropped}' of a row with get_object(class_name, object_id).`;

function readSkip(envelope: Envelope): number {
  const skip = (envelope['pagination'] as { skip?: unknown } | undefined)?.skip;
  return typeof skip === 'number' ? skip : 0;
}

/** Calls for further rows. */
const OFFERED_CALLS = new Set(['next_call', 'truncated_call']);

function queryRows(envelope: Envelope, rows: readonly unknown[], cap: number, args: Envelope): Recovery {
  const rest = without(envelope, [
    'result_count',
    'truncated',
    'truncated_note',
    'next_call',
    'truncated_call',
  ]);
  return {
    rows,
    build(kept, dropped) {
      const cut = { dropped, kept: kept.length, of: rows.length, cap };
      if (cut.kept === cut.of) {
        // The offered calls still return the rows behind the display cap, and the next page.
        const offered = Object.entries(envelope).filter(([name]) => OFFERED_CALLS.has(name));
        return {
          ...rest,
          ...Object.fromEntries(offered),
          results: kept,
          _truncated: annotation(cut, readDropped(cut)),
        };
      }
      const nextSkip = readSkip(envelope) + cut.kept;
      const hint = `Follow next_call for the others. ${readDropped(cut)}`.trim();
      const next_call = { tool: 'query_class', arguments: { ...args, skip: nextSkip } };
      return { ...rest, next_call, results: kept, _truncated: annotation(cut, hint) };
    },
  };
}

function aggregateRows(envelope: Envelope, rows: readonly unknown[], cap: number): Recovery {
  const rest = without(envelope, ['result_count', 'truncated', 'truncated_note', 'next_call', 'hint']);
  return {
    rows,
    build(kept, dropped) {
      const cut = { dropped, kept: kept.length, of: rows.length, cap };
      const hint =
        'Add a $match stage for fewer rows, a $project stage for smaller ones, or page: $sort, then $skip and $limit.';
      return { ...rest, results: kept, _truncated: annotation(cut, hint) };
    },
  };
}

function objectsById(envelope: Envelope, objects: Envelope, cap: number): Recovery {
  const ids = Object.keys(objects);
  return {
    rows: Object.values(objects),
    build(kept, dropped) {
      const cut = { dropped, kept: kept.length, of: ids.length, cap };
      const missing = ids.slice(kept.length);
      const again = missing.length > 0 ? 'Ask for the ids in dropped_for_size again, fewer at a time. ' : '';
      return {
        ...envelope,
        objects: Object.fromEntries(kept.map((row, index) => [ids[index] as string, row])),
        _truncated: annotation(cut, (again + readDropped(cut)).trim(), { dropped_for_size: missing }),
      };
    },
  };
}

/** Tools that answer with a list in their own order: the first entries, and how to ask for the others. */
const BUILT_IN_LISTS: ReadonlyMap<string, string> = new Map([
  ['get_sample_objects', 'Ask for fewer with limit, or page with query_class(order: "-createdAt").'],
  [
    'group_by',
    'Ask for fewer with limit, or page with aggregate: sort its groups by _id, then $skip and $limit.',
  ],
  ['group_by_date', 'Ask for a coarser interval, or a shorter time with where.'],
  [
    'distinct',
    'Ask for fewer with limit, or page with aggregate: sort its groups by _id, then $skip and $limit.',
  ],
  ['atlas_text_search', 'Ask for fewer with limit.'],
  ['atlas_autocomplete', 'Ask for fewer with limit.'],
  ['semantic_search', 'Ask for fewer with k, or for smaller passages with chunk_size.'],
  ['find_similar', 'Ask for fewer with limit.'],
  ['list_changes', 'They are the newest; show_changes shows any of them by its id.'],
]);

function listEntries(
  envelope: Envelope,
  [member, areRows]: (typeof LISTS)[number],
  hint: string,
  cap: number,
): Recovery {
  const rows = envelope[member] as readonly unknown[];
  return {
    rows,
    wholeEntries: !areRows,
    build(kept, dropped) {
      const entries = areRows ? 'rows' : member;
      const cut = { dropped, kept: kept.length, of: rows.length, cap, entries };
      return {
        ...envelope,
        [member]: kept,
        _truncated: annotation(cut, `${hint} ${readDropped(cut)}`.trim()),
      };
    },
  };
}

interface PagedList {
  /** The members that hold it. */
  readonly members: readonly string[];
  readonly entries: string;
}

/** Lists without rows, by the tool that continues them with `skip`. */
const PAGED_LISTS: ReadonlyMap<string, PagedList> = new Map([
  ['list_tools', { members: ['tools'], entries: 'tools' }],
  ['get_all_schemas', { members: ['built_in', 'custom'], entries: 'classes' }],
  ['get_schema', { members: ['fields'], entries: 'fields' }],
]);

function pagedEntries(
  tool: string,
  envelope: Envelope,
  { members, entries: named }: PagedList,
  { cap, args }: { readonly cap: number; readonly args: Envelope },
): Recovery {
  const lists = members.map((member) => [member, envelope[member] as readonly unknown[]] as const);
  const rows = lists.flatMap(([, entries]) => entries);
  return {
    rows,
    wholeEntries: true,
    build(kept) {
      const cut = { dropped: null, kept: kept.length, of: rows.length, cap, entries: named };
      let next = 0;
      const parts = lists.map(
        ([member, { length }]) => [member, kept.slice(next, (next += length))] as const,
      );
      const skip = (typeof args['skip'] === 'number' ? args['skip'] : 0) + kept.length;
      return {
        ...envelope,
        ...Object.fromEntries(parts),
        next_call: { tool, arguments: { ...args, skip } },
        _truncated: annotation(cut, 'Follow next_call for the others.'),
      };
    },
  };
}

function oneObject(envelope: Envelope, cap: number): Recovery {
  return {
    rows: [envelope['object']],
    build([object], dropped) {
      const cut = { dropped, kept: 1, of: 1, cap };
      const hint =
        dropped === null ? '' : `Read parts of it by keys, such as ["${dropped}.NAME"], or by export_data.`;
      return { ...envelope, object: object ?? null, _truncated: annotation(cut, hint) };
    },
  };
}

/** Null when a tool's results are refused rather than cut, or do not have the form that can be cut. */
export function recoveryFor(
  toolName: string,
  envelope: Envelope,
  cap: number,
  args: Envelope,
): Recovery | null {
  const { results, objects } = envelope;
  if (toolName === 'query_class')
    return Array.isArray(results) ? queryRows(envelope, results, cap, args) : null;
  if (toolName === 'aggregate') return Array.isArray(results) ? aggregateRows(envelope, results, cap) : null;
  if (toolName === 'get_objects' && objects !== null && typeof objects === 'object')
    return objectsById(envelope, objects as Envelope, cap);
  if (toolName === 'get_object' && isJsonObject(envelope['object'])) return oneObject(envelope, cap);
  const paged = PAGED_LISTS.get(toolName);
  if (paged?.members.every((member) => Array.isArray(envelope[member])))
    return pagedEntries(toolName, envelope, paged, { cap, args });
  const list = LISTS.find(([member]) => Array.isArray(envelope[member]));
  const hint = BUILT_IN_LISTS.get(toolName);
  return list && hint !== undefined ? listEntries(envelope, list, hint, cap) : null;
}

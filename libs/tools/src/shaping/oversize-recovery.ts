type Envelope = Readonly<Record<string, unknown>>;

/** How one tool's oversized envelope is rebuilt from fewer rows. */
export interface Recovery {
  readonly rows: readonly unknown[];
  /** @param kept the first rows, already without the dropped field */
  build(kept: readonly unknown[], droppedField: string | null): Envelope;
}

interface Cut {
  readonly dropped: string | null;
  readonly kept: number;
  readonly of: number;
  readonly cap: number;
}

const without = (envelope: Envelope, names: readonly string[]): Envelope =>
  Object.fromEntries(Object.entries(envelope).filter(([name]) => !names.includes(name)));

function whatHappened({ dropped, kept, of, cap }: Cut): string {
  const field = dropped === null ? [] : [`field '${dropped}' was left out of every row`];
  const rows = kept < of ? [`only the first ${kept} of ${of} rows are shown`] : [];
  return `To stay within ${cap} bytes, ${[...field, ...rows].join(' and ')}.`;
}

const annotation = (cut: Cut, hint: string, extra: Envelope = {}): Envelope => ({
  reason: 'response_exceeded_max_bytes',
  dropped_fields: cut.dropped === null ? [] : [cut.dropped],
  kept_count: cut.kept,
  original_count: cut.of,
  ...extra,
  hint: [whatHappened(cut), hint].filter(Boolean).join(' '),
});

const readDropped = ({ dropped }: Cut) =>
  dropped === null ? '' : `Read '${dropped}' of a row with get_object(class_name, object_id).`;

function skipOf(envelope: Envelope): number {
  const skip = (envelope['pagination'] as { skip?: unknown } | undefined)?.skip;
  return typeof skip === 'number' ? skip : 0;
}

function queryRows(envelope: Envelope, rows: readonly unknown[], cap: number): Recovery {
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
        // Rows behind the display cap are still reached by the call that was offered for them.
        const { truncated_call: more } = envelope;
        const offered = more === undefined ? {} : { truncated_call: more };
        return { ...rest, ...offered, results: kept, _truncated: annotation(cut, readDropped(cut)) };
      }
      const nextSkip = skipOf(envelope) + cut.kept;
      const hint = `Continue with query_class(skip: ${nextSkip}). ${readDropped(cut)}`.trim();
      return { ...rest, results: kept, _truncated: annotation(cut, hint, { next_skip: nextSkip }) };
    },
  };
}

function aggregateRows(envelope: Envelope, rows: readonly unknown[], cap: number): Recovery {
  const rest = without(envelope, ['result_count', 'truncated', 'truncated_note', 'next_call', 'hint']);
  return {
    rows,
    build(kept, dropped) {
      const cut = { dropped, kept: kept.length, of: rows.length, cap };
      const hint = 'Add a $match stage for fewer rows, or a $project stage for smaller ones.';
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

/** Null when a tool's results are refused rather than cut, or do not have the shape that could be cut. */
export function recoveryFor(toolName: string, envelope: Envelope, cap: number): Recovery | null {
  const { results, objects } = envelope;
  if (toolName === 'query_class') return Array.isArray(results) ? queryRows(envelope, results, cap) : null;
  if (toolName === 'aggregate') return Array.isArray(results) ? aggregateRows(envelope, results, cap) : null;
  if (toolName !== 'get_objects' || objects === null || typeof objects !== 'object') return null;
  return objectsById(envelope, objects as Envelope, cap);
}

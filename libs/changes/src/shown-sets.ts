import type {
  ChangeSet,
  ChangeViews,
  HeldChange,
  ParseRow,
  ReviewedChange,
  StoredEntry,
  ViewedChange,
} from '#data';
import { showChange } from '#dispatcher';
import type { RowCounts, ShownChangeSet, ShownEntry } from '#tools';

const toText = (time: number): string => new Date(time).toISOString();

/** A set as its owner sees it. */
export function showSet(set: ChangeSet): ShownChangeSet {
  const { id, kind, state, title, reason, openedAt, expiresAt, appliedAt, approver, undoes, undoneBy } = set;
  return {
    change_set: id,
    kind,
    state,
    ...(title !== undefined && { title }),
    ...(reason !== undefined && { reason }),
    opened_at: toText(openedAt),
    expires_at: toText(expiresAt),
    ...(appliedAt !== undefined && { applied_at: toText(appliedAt) }),
    ...(approver !== undefined && { approver }),
    ...(undoes !== undefined && { undoes }),
    ...(undoneBy !== undefined && { undone_by: undoneBy }),
    rows: countRows(set.entries),
  };
}

export function countRows(entries: readonly Pick<StoredEntry, 'operation'>[]): RowCounts {
  const count = (operation: StoredEntry['operation']) =>
    entries.filter((entry) => entry.operation === operation).length;
  return { created: count('create'), changed: count('update'), deleted: count('delete') };
}

/** An entry without its values: those of a set that is over. */
export function showBareEntry(stored: StoredEntry): ShownEntry {
  const { entry, operation, className, objectId, undoneBy } = stored;
  return {
    entry,
    operation,
    class_name: className,
    object_id: objectId,
    ...(undoneBy !== undefined && { undone_by: undoneBy }),
  };
}

/** An entry as the caller may read it now. */
export function showEntry(stored: StoredEntry, { operation, judged, conflict }: ReviewedChange): ShownEntry {
  const { before, after } = showChange(operation, judged);
  return {
    ...showBareEntry(stored),
    ...(before && { before }),
    ...(after && { after }),
    ...(conflict !== null && { conflict }),
  };
}

/** An entry that was applied, as the caller may read it now. A row that it may no longer read shows nothing of what was in it. */
export function showApplied(stored: StoredEntry, viewed: ViewedChange | undefined): ShownEntry {
  const { before, after } = viewed ?? {};
  return { ...showBareEntry(stored), ...(before && { before }), ...(after && { after }) };
}

/** What a set is about, for who decides on it. */
export function describeSet(set: ChangeSet): Readonly<Record<string, unknown>> {
  const { change_set, kind, title, reason, undoes, rows } = showSet(set);
  return {
    change_set,
    kind,
    ...(title !== undefined && { title }),
    ...(reason !== undefined && { reason }),
    ...(undoes !== undefined && { undoes }),
    rows,
  };
}

/** One row of a set as another person than its owner may see it. */
export interface ViewedEntry {
  /** Its number in the set. */
  readonly entry?: number;
  /** What happens to the row. */
  readonly operation: StoredEntry['operation'];
  /** Absent where the row is hidden from the viewer. */
  readonly class_name?: string | null;
  /** Id of the row; null: it has none yet. */
  readonly object_id?: string | null;
  /** The values that are replaced. */
  readonly before?: ParseRow;
  /** The values that replace them. */
  readonly after?: ParseRow;
  /** Names of the credentials by which it was written. */
  readonly key_names?: readonly string[];
  /** Id of the set that took it back, and not the others of its set. */
  readonly undone_by?: string;
  /** Why nothing is shown of the row. */
  readonly hidden?: string;
  /** Names of fields that the viewer may not read. */
  readonly withheld_from_you?: readonly string[];
  /** Why the row cannot be taken back. */
  readonly conflict?: string;
}

/** An entry of which a person learns only that there is one. */
export const showHiddenEntry = ({ entry, operation }: Pick<StoredEntry, 'entry' | 'operation'>) => ({
  entry,
  operation,
  hidden: 'of a class or row that you may not read',
});

/** Rows of a set whose values are deleted: named to who may read them. A row that was never made is hidden with its class alone. */
export async function nameRows(
  { state, entries }: ChangeSet,
  views: ChangeViews,
): Promise<readonly ShownEntry[]> {
  const looked = entries.map(({ operation, className, objectId }): HeldChange => {
    const isMade = operation !== 'create' || state === 'applied';
    return { operation: isMade ? 'delete' : 'create', className, objectId, fields: null, before: null };
  });
  const viewed = await views.view(looked);
  return entries.map((stored, at) =>
    viewed[at]?.isReadable ? showBareEntry(stored) : showHiddenEntry(stored),
  );
}

/** An entry as an approver may see it. Of a row that it may not read it learns only that there is one. */
export function showViewed({ entry }: StoredEntry, viewed: ViewedChange): ViewedEntry {
  const { operation, isReadable, className, objectId, before, after, withheld } = viewed;
  if (!isReadable) return showHiddenEntry({ entry, operation });
  return {
    entry,
    operation,
    class_name: className,
    object_id: objectId,
    ...(before && { before }),
    ...(after && { after }),
    ...(withheld.length > 0 && { withheld_from_you: withheld }),
  };
}

/** Bytes of the rows that an approver is shown at once. */
const MAX_SHOWN = 12_000;

/** The rows that fit, and how many do not. */
export function fitEntries(entries: readonly ShownEntry[]): {
  readonly changes: readonly ShownEntry[];
  readonly not_shown?: string;
} {
  let bytes = 0;
  const fitting = entries.findIndex((entry) => {
    bytes += Buffer.byteLength(JSON.stringify(entry));
    return bytes > MAX_SHOWN;
  });
  if (fitting < 0) return { changes: entries };
  return {
    changes: entries.slice(0, fitting),
    not_shown: `${entries.length - fitting} of ${entries.length} rows: show_changes shows all of them`,
  };
}

/** Conflicts that a text names. */
const MAX_NAMED = 20;

/** Rows in conflict as words, and how many are not named. */
export function nameConflicts(
  conflicts: readonly {
    readonly className: string;
    readonly objectId: string | null;
    readonly reason: string;
  }[],
): readonly [named: readonly string[], others: number] {
  const named = conflicts
    .slice(0, MAX_NAMED)
    .map(({ className, objectId, reason }) => `${className} ${objectId ?? '(new)'}: ${reason}`);
  return [named, conflicts.length - named.length];
}

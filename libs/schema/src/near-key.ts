/** Edits between two names; letters that changed places count as one. */
function edits(left: string, right: string): number {
  const [a, b] = [left.toLowerCase(), right.toLowerCase()];
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, index) => index)];
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const substitution = (rows[i - 1]?.[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let least = Math.min((rows[i - 1]?.[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, substitution);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, (rows[i - 2]?.[j - 2] ?? 0) + 1);
      row.push(least);
    }
    rows.push(row);
  }
  return rows[a.length]?.[b.length] ?? Number.POSITIVE_INFINITY;
}

/** Longer names are not compared: nothing that is accepted is that long. */
const MAX_KEY_LENGTH = 64;

/** The accepted name that was most likely meant; null where none is near. */
export function nearKey(written: string, accepted: readonly string[]): string | null {
  if (written.length > MAX_KEY_LENGTH) return null;
  const limit = written.length <= 3 ? 1 : Math.max(2, Math.floor(written.length / 3));
  const [nearest] = accepted
    .map((name) => ({ name, distance: edits(written, name) }))
    .filter(({ distance }) => distance <= limit)
    .sort((one, other) => one.distance - other.distance || (one.name < other.name ? -1 : 1));
  return nearest?.name ?? null;
}

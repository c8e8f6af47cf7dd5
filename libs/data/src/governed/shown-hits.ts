import { type ClassAccess, parseKeys, redact } from '#policy';
import type { SearchHit } from '../record-search.js';
import { fetchKeys, type Onlooker, type RowGuard } from './row-guard.js';
import { shownRows } from './shown-rows.js';

/** What a search fetches of its rows, and what it must take from them again. */
export interface HitColumns {
  readonly keys?: readonly string[];
  readonly guard: RowGuard;
}

/** Every column the agent may see, and those that decide about others row by row. */
export function hitColumns(access: ClassAccess): HitColumns {
  const keys = parseKeys(undefined, access);
  const fetched = fetchKeys({ access, keys });
  return { guard: { access, keys, includes: new Map() }, ...(fetched && { keys: fetched }) };
}

/** Found rows as any read would show them; passages are redacted as the rows are. */
export function shownHits(
  hits: readonly SearchHit[],
  onlooker: Onlooker,
  { guard }: HitColumns,
): SearchHit[] {
  const { scope } = onlooker;
  const rows = shownRows(
    hits.map(({ row }) => row),
    onlooker,
    guard,
  );
  return hits.flatMap(({ score, highlights }, index) => {
    const row = rows[index];
    if (!row) return [];
    const passages = redact(highlights, (name) => scope.isWithheld(name)) as SearchHit['highlights'];
    return [{ row, score, highlights: passages }];
  });
}

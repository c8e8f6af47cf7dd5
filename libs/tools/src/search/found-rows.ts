import type { ParseRow, SearchHit } from '#data';
import { simplifyRow } from '../shaping/simplify.js';

/** Found rows in the short form, each with its score and, when they were asked for, its passages. */
export function foundRows(
  hits: readonly SearchHit[],
  score: (hit: SearchHit) => number,
  withHighlights = false,
): ParseRow[] {
  return hits.map((hit) => ({
    ...simplifyRow(hit.row),
    score: score(hit),
    ...(withHighlights && { highlights: hit.highlights }),
  }));
}

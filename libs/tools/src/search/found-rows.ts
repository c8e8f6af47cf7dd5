import type { ParseRow, SearchHit } from '#data';
import { refuseArgument } from '../arguments/argument-class.js';
import { simplifyRow } from '../shaping/presented-rows.js';

/** A text to search for. */
export function searchText(name: string, text: string): string {
  if (text === '') return refuseArgument(`${name} is required`);
  return text.trim() === '' ? refuseArgument(`${name} must not be blank`) : text;
}

/** A score precise enough to order by; all of its digits could reveal whether a particular row exists. */
export function shownScore(score: number, tier: string): number {
  return tier === 'admin' ? score : Math.round(score * 10) / 10;
}

/** Search results in the short form, each with its score and, when requested, its passages. */
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

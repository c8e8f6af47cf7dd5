import type { ParseRow, SearchHit } from '#data';
import { refuseArgument } from '../arguments/argument-class.js';
import { simplifyRow } from '../shaping/presented-rows.js';

/** Where rows are missing from an answer that nobody may count. */
export const MAY_LACK_ROWS =
  'Fewer rows than requested, and there may be more: rows that a filter removes took places among the nearest. ' +
  'Name filter fields of the class, or ask query_class.';

export function searchText(name: string, text: string): string {
  if (text === '') return refuseArgument(`${name} is required`);
  return text.trim() === '' ? refuseArgument(`${name} must not be blank`) : text;
}

/** Search results in the short form, each with its score unless that is withheld and, when requested, its passages. */
export function toFoundRows(hits: readonly SearchHit[], withHighlights = false): ParseRow[] {
  return hits.map((hit) => ({
    ...simplifyRow(hit.row),
    ...(hit.score !== null && { score: hit.score }),
    ...(withHighlights && { highlights: hit.highlights }),
  }));
}

/** A word of a text, and where it stands in it. */
export interface Word {
  /** Lower case, as it is compared. */
  readonly term: string;
  readonly start: number;
  readonly end: number;
}

/** Words as the standard analyzer of Atlas Search makes them: split where no letter or digit is, lower case, none dropped. */
export function splitWords(text: string): Word[] {
  return [...text.matchAll(/[\p{L}\p{N}_]+/gu)].map((match) => ({
    term: match[0].toLowerCase(),
    start: match.index,
    end: match.index + match[0].length,
  }));
}

export const listTerms = (text: string): string[] => splitWords(text).map(({ term }) => term);

/**
 * How many letters must be inserted, deleted, replaced or swapped with their neighbour to make one word the other; more
 * than `most` when it takes more.
 */
export function editDistance(left: string, right: string, most: number): number {
  if (Math.abs(left.length - right.length) > most) return most + 1;
  let before: number[] = [];
  let above = Array.from({ length: right.length + 1 }, (_, at) => at);
  for (let i = 1; i <= left.length; i++) {
    const row = [i];
    for (let j = 1; j <= right.length; j++) {
      const same = left[i - 1] === right[j - 1];
      const replaced = (above[j - 1] as number) + (same ? 0 : 1);
      let best = Math.min(replaced, (above[j] as number) + 1, (row[j - 1] as number) + 1);
      const swapped = i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1];
      if (swapped) best = Math.min(best, (before[j - 2] as number) + 1);
      row.push(best);
    }
    if (Math.min(...row) > most) return most + 1;
    before = above;
    above = row;
  }
  return above[right.length] as number;
}

/** Names are compared without case and separators: `className` is `class_name`, `User` is `_User`. */
const compared = (name: string): string => name.toLowerCase().replaceAll(/[_-]/g, '');

/** Edits between two texts; letters that changed places are one edit. */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const current = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const substitution = (previous[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      current.push(
        Math.min(
          (previous[j] as number) + 1,
          (current[j - 1] as number) + 1,
          substitution,
          swapped ? (before[j - 2] as number) + 1 : Infinity,
        ),
      );
    }
    [before, previous] = [previous, current];
  }
  return previous[b.length] as number;
}

/** At most three candidates that the name may be a slip of, nearest first: one edit for every four letters. */
export function suggestNames(name: string, candidates: readonly string[]): string[] {
  const written = compared(name);
  const limit = Math.max(1, Math.ceil(written.length / 4));
  return candidates
    .map((candidate) => ({ candidate, other: compared(candidate) }))
    .filter(({ other }) => Math.abs(other.length - written.length) <= limit)
    .map(({ candidate, other }) => ({ candidate, edits: distance(written, other) }))
    .filter(({ edits }) => edits <= limit)
    .sort((a, b) => a.edits - b.edits || (a.candidate < b.candidate ? -1 : 1))
    .slice(0, 3)
    .map(({ candidate }) => candidate);
}

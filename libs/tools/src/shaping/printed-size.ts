/** What a text of JSON may grow by when it is printed: a control character becomes six. */
const ESCAPED = 6;
/** Line break, quotes, colon, comma and the longest number. */
const PER_VALUE = 32;

/**
 * The most characters that a value may have as pretty-printed JSON, without printing it: what stands in several places
 * counts in each, and every level of nesting is indented.
 * @param most where counting ends: a larger value counts for more than this, nobody knows how much
 */
export function printedAtMost(value: unknown, most: number, depth = 0): number {
  if (typeof value === 'string') return value.length * ESCAPED + PER_VALUE + depth * 2;
  let size = PER_VALUE + depth * 4;
  if (value === null || typeof value !== 'object') return size;
  if (Array.isArray(value)) {
    for (const member of value) {
      if (size > most) return size;
      size += printedAtMost(member, most - size, depth + 1);
    }
    return size;
  }
  for (const name in value) {
    if (size > most) return size;
    size +=
      name.length * ESCAPED + printedAtMost((value as Record<string, unknown>)[name], most - size, depth + 1);
  }
  return size;
}

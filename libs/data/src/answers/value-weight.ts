import { MIN_VALUE_BYTES } from './answer-limits.js';

/**
 * Bytes that a JSON value counts for: its texts and names, where each value has at least `MIN_VALUE_BYTES`. What stands in
 * several places counts in each of them.
 * @param most where counting ends: a larger value counts for more than this, nobody knows how much
 */
export function valueWeight(value: unknown, most = Infinity): number {
  if (typeof value === 'string') return Math.max(value.length, MIN_VALUE_BYTES);
  let weight = MIN_VALUE_BYTES;
  if (value === null || typeof value !== 'object') return weight;
  if (Array.isArray(value)) {
    for (const member of value) {
      if (weight > most) return weight;
      weight += valueWeight(member, most - weight);
    }
    return weight;
  }
  for (const name in value) {
    if (weight > most) return weight;
    weight += name.length + valueWeight((value as Record<string, unknown>)[name], most - weight);
  }
  return weight;
}

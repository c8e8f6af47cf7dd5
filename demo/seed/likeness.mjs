/** Small enough to read, large enough that reviews about the same things come out near each other. */
const DIMENSIONS = 16;

const COMMON = new Set('a an and at by for from i in is it its my of on or so that the this to was were with'.split(' '));

/** FNV-1a: the same number for the same word on every machine. */
function hashOf(word) {
  let hash = 0x811c9dc5;
  for (const character of word) hash = Math.imul(hash ^ character.codePointAt(0), 0x01000193) >>> 0;
  return hash;
}

/**
 * An embedding that needs no model: every word adds one to, or takes one from, the dimension its hash names. Texts with
 * words in common lie near each other; what the words mean it does not know.
 */
export function vectorOf(text) {
  const sums = Array.from({ length: DIMENSIONS }, () => 0);
  for (const word of text.toLowerCase().match(/\p{L}+/gu) ?? []) {
    if (COMMON.has(word)) continue;
    const hash = hashOf(word);
    sums[hash % DIMENSIONS] += hash & 0x10000 ? 1 : -1;
  }
  const length = Math.hypot(...sums);
  return length === 0 ? null : sums.map((sum) => Math.round((sum / length) * 1000) / 1000 + 0);
}

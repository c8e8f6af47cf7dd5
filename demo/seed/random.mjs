/** A small generator of its own (mulberry32): the same seed file on every machine and every run. */
export function randomSource(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  const int = (from, to) => from + Math.floor(next() * (to - from + 1));
  const pick = (list) => list[Math.floor(next() * list.length)];
  return {
    int,
    pick,
    chance: (share) => next() < share,
    /** Early entries come up far more often than late ones. */
    popular: (list) => list[Math.floor(next() ** 2.2 * list.length)],
    weighted: (weights) => {
      const entries = Object.entries(weights);
      let rest = next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
      return (entries.find(([, weight]) => (rest -= weight) < 0) ?? entries[0])[0];
    },
    sample: (list, count) => {
      const left = [...list];
      return Array.from(
        { length: Math.min(count, left.length) },
        () => left.splice(Math.floor(next() * left.length), 1)[0],
      );
    },
    near: (value, spread) => value + (next() + next() - 1) * spread,
    id: () => {
      const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
      return Array.from({ length: 10 }, () => alphabet[Math.floor(next() * 62)]).join('');
    },
  };
}

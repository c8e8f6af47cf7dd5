/** How hard a pattern can make a backtracking matcher work: at most `factor × length^exponent` steps. */
export interface Cost {
  readonly factor: number;
  readonly exponent: number;
  /** True when one text can be split among repetitions in several ways: exponential work. */
  readonly ambiguous: boolean;
}

export const constantCost: Cost = { factor: 1, exponent: 0, ambiguous: false };

const many = 32;
const budget = 2e7;

/** One part after the other: every choice of the first meets every choice of the second. */
export const inSequence = (a: Cost, b: Cost): Cost => ({
  factor: a.factor * b.factor,
  exponent: a.exponent + b.exponent,
  ambiguous: a.ambiguous || b.ambiguous,
});

export const inTurn = (a: Cost, b: Cost): Cost => ({
  factor: a.factor + b.factor,
  exponent: Math.max(a.exponent, b.exponent),
  ambiguous: a.ambiguous || b.ambiguous,
});

/** The cost of repeating an atom. An atom with choices of its own must not be repeated more than once. */
export function repeatCost(atom: Cost, min: number, max: number): Cost {
  const hasChoices = atom.factor > 1 || atom.exponent > 0;
  const spread = max - min + 1;
  return {
    factor: atom.factor * (spread > many ? 1 : spread),
    exponent: atom.exponent + (spread > many ? 1 : 0),
    ambiguous: atom.ambiguous || (hasChoices && max > 1),
  };
}

/** A few seconds: one match cannot be interrupted. */
const linearBudget = 2e7;

/** The same for a pattern of some size in the linear-time engine, whose work is size times length. */
export function longestLinearSubject(cost: Cost, size: number): number {
  const singlePath = cost.factor === 1 && cost.exponent === 0;
  return singlePath ? Infinity : Math.floor(linearBudget / size);
}

/** The longest text a pattern may be tried on by backtracking, from any start position; 0 means never. */
export function longestSubject(cost: Cost): number {
  if (cost.ambiguous || cost.factor > budget) return 0;
  return Math.floor((budget / cost.factor) ** (1 / (cost.exponent + 1)));
}

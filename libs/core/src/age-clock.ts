let ahead = -Infinity;

/**
 * Milliseconds for the age of everything that a decision rests on; only differences count. It never runs backwards. The clock of
 * the process stands still while the machine is suspended, and the clock of the machine does not: this one follows whichever is
 * further on, so that nothing is taken for younger than it is.
 */
export function ageClock(): number {
  const elapsed = performance.now();
  ahead = Math.max(ahead, Date.now() - elapsed);
  return elapsed + ahead;
}

/** Milliseconds by which two clocks may differ for other reasons than a jump. */
const MIN_CLOCK_JUMP = 500;

let last = { elapsed: 0, wall: Infinity };
let jumped = 0;

/**
 * Milliseconds for the age of everything that a decision rests on; only differences count. It never runs backwards. The clock of
 * the process stands still while the machine is suspended: whenever the clock of the machine has gone on further, this one has
 * too, so that nothing is taken for younger than it is.
 */
export function ageClock(): number {
  const now = { elapsed: performance.now(), wall: Date.now() };
  const jump = now.wall - last.wall - (now.elapsed - last.elapsed);
  if (jump > MIN_CLOCK_JUMP) jumped += jump;
  last = now;
  return now.elapsed + jumped;
}

let furthest = { elapsed: performance.now(), wall: Date.now() };

/**
 * Milliseconds since 1970 for an end that an operator set. A clock that is set back revives nothing in this process: time goes on
 * from the furthest that the clock of the machine has shown.
 */
export function endClock(): number {
  const now = { elapsed: performance.now(), wall: Date.now() };
  const expected = furthest.wall + now.elapsed - furthest.elapsed;
  if (now.wall < expected) return expected;
  furthest = now;
  return now.wall;
}
